"""The cells of docs/guide/notebooks.md, in three notebooks of the kernel that its commands installed."""

import re

from nb import *


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


def main():
    with open(os.environ["GUIDE"], encoding="utf-8") as file:
        page = file.read()
    begin, later = blocks(page, "python")
    daemon = Daemon("host_memory: 1GiB")
    server = Server(app="jupyterlab")
    books = [Notebook(server, f"{name}.ipynb") for name in ("one", "two", "three")]
    check("three notebooks are open", [book.status for book in books], [201] * 3)
    check("as workloads of the limit that was typed", {row["limit_bytes"] for row in workloads().values()}, {288 * MIB})
    for book in books:
        check(f"{book.path}: begins", book.cell(begin)["error"], "")
    for book in books:
        check(f"{book.path}: its memory is as it left it", book.cell(later), {"out": "42", "err": "", "error": ""})
    # What stands behind them explains them.
    magic = re.findall("^(%sluice.*?)  +", page, re.M)
    check("cells that ask", len(magic), 5)
    for line in magic:
        said = books[0].cell(line)
        check(f"{line}: {said['out']}{said['err']}", (said["error"], said["out"] != ""), ("", True))
    check("and then", books[0].cell(later)["out"], "42")
    server.stop()
    becomes("no workload is left", workloads, {})
    daemon.kill()
    finish()


main()
