"""JupyterLab and three notebooks for the browser (lab.mjs), and what is left when it has gone."""

from nb import *

COUNT = 28 << 20
BEGIN = f"""import time
from cu import *
device = start()
data, bad = must("cuMemAlloc", 4 * {COUNT}), must("cuMemAlloc", 4)
module = must("cuModuleLoadData", image())
fill, compare = (must("cuModuleGetFunction", module, name) for name in (b"prog_fill", b"prog_check"))
stream = cu.CUstream(0)
launch(fill, {COUNT}, stream, (int(data), PTR), ({COUNT}, U64), (1, U64), (seed, U32))
must("cuCtxSynchronize")
print("begun", seed)
"""
# For as long as it takes a person to look.
COMPUTE = f"""end = time.time() + 5
put(bad, bytes(4))
while time.time() < end:
    launch(compare, {COUNT}, stream, (int(data), PTR), ({COUNT}, U64), (1, U64), (seed, U32), (int(bad), PTR))
    must("cuCtxSynchronize")
print("wrong", words(get(bad, 4))[0])
"""


def notebook(name, kernel, *cells):
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}},
        "cells": [{"cell_type": "code", "id": f"cell{number}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
            for number, source in enumerate(cells)]}
    with open(f"{FOLDER}/notebooks/{name}.ipynb", "w", encoding="utf-8") as file:
        json.dump(document, file)


def main():
    daemon = Daemon("host_memory: 1GiB", "idle_grace: 100ms")
    subprocess.run([sys.executable, "-m", "sluice_jupyter", "install", "--request", "0", "--limit", "0.8", "--detach-after", "1s",
        "--prefix", os.environ["NB_PREFIX"]], check=True)
    server = Server(app="jupyterlab")
    for seed, name in enumerate(("one", "two", "three")):
        notebook(name, "python3-sluice", f"seed = {seed}\n{BEGIN}", COMPUTE, "%sluice park")
    notebook("plain", "python3", "print('plain')")
    browser = subprocess.run([os.environ["SLUICE_NODE"], f"{os.path.dirname(os.path.abspath(__file__))}/lab.mjs"],
        env={**os.environ, "LAB_BASE": server.address, "LAB_TOKEN": server.token}, check=False)
    check("the browser's checks", browser.returncode, 0)
    server.stop()
    becomes("no workload is left", workloads, {})
    daemon.kill()
    finish()


main()
