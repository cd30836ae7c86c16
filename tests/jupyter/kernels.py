"""Scenes of notebooks that share a GPU of 192 MiB, in a real Jupyter server: see each function."""

from nb import *

# A notebook takes two thirds of the GPU; each cell says what only its own memory can tell.
COUNT = 28 << 20
BEGIN = f"""
from cu import *
device = start()
data, bad = must("cuMemAlloc", 4 * {COUNT}), must("cuMemAlloc", 4)
module = must("cuModuleLoadData", image())
fill, compare = (must("cuModuleGetFunction", module, name) for name in (b"prog_fill", b"prog_check"))
stream = cu.CUstream(0)
def write(seed):
    launch(fill, {COUNT}, stream, (int(data), PTR), ({COUNT}, U64), (1, U64), (seed, U32))
    must("cuCtxSynchronize")
def wrong(seed):
    put(bad, bytes(4))
    launch(compare, {COUNT}, stream, (int(data), PTR), ({COUNT}, U64), (1, U64), (seed, U32), (int(bad), PTR))
    must("cuCtxSynchronize")
    return words(get(bad, 4))[0]
"""
# Nothing runs yet.
EMPTY_BYTES = used_bytes()
NOTHING = {"out": "", "err": "", "error": ""}


def install(name, *options):
    """The kernelspec NAME, as `jupyter sluice install` makes it."""
    done = subprocess.run([sys.executable, "-m", "sluice_jupyter", "install", "--name", name, *options, "--prefix", os.environ["NB_PREFIX"]],
        capture_output=True, text=True, check=False)
    check(f"kernelspec {name}: {done.stderr}", done.returncode, 0)


def three_share(server):
    """Three on a GPU for one and a half: each cell's result is right, `detached` is shown, and is gone at the next run."""
    books = [Notebook(server, f"{name}.ipynb", "share") for name in ("one", "two", "three")]
    check("three notebooks are open", [book.status for book in books], [201] * 3)
    check("named as they are", sorted(workloads()), ["one", "three", "two"])
    for seed, book in enumerate(books):
        check(f"{book.path}: begins", book.cell(BEGIN + f"write({seed})"), NOTHING)
    for turn in range(2):
        for seed, book in enumerate(books):
            at = seed + 10 * turn
            check(f"{book.path}: its memory is as it left it", book.cell(f"print(wrong({at}))")["out"], "0\n")
            check(f"{book.path}: runs", book.cell(f"write({at + 10}); print('written')")["out"], "written\n")
    becomes("all are detached", lambda: [book.state() for book in books], ["detached"] * 3)
    becomes("nothing but contexts is left on the GPU", lambda: used_bytes() < 40 * MIB, True)
    check("its next cell", books[0].cell("print(wrong(20))")["out"], "0\n")
    books[0].send("import time; end = time.time() + 3\nwhile time.time() < end: wrong(20)")
    becomes("while it computes it is shown as running", books[0].state, "running")
    check("and is there", used_bytes() > 112 * MIB)
    check("to the end", books[0].result(), NOTHING)
    check("a cell that is wrong stays an error", books[0].cell("1/0")["error"], "ZeroDivisionError: division by zero")
    for book in books:
        check(f"{book.path}: ends", book.end(), 204)
    becomes("no workload is left", workloads, {})


def guaranteed(server):
    """Each is guaranteed more than half: those that are open and unused give that up, and each gets it when a cell needs it."""
    books = [Notebook(server, f"{name}.ipynb", "guaranteed") for name in ("four", "five", "six")]
    check("three notebooks are open", [book.status for book in books], [201] * 3)
    becomes("none has used the GPU, and all are detached", lambda: [book.state() for book in books], ["detached"] * 3)
    for seed, book in enumerate(books):
        check(f"{book.path}: begins", book.cell(BEGIN + f"write({seed})"), NOTHING)
    for seed, book in enumerate(books):
        check(f"{book.path}: its memory is as it left it", book.cell(f"print(wrong({seed}))")["out"], "0\n")
        book.end()
    becomes("no workload is left", workloads, {})


def magic(server):
    """%sluice, loaded by itself; what it parks comes back with the next cell."""
    book = Notebook(server, "magic.ipynb", "plain")
    check("before it uses the GPU", book.cell("%sluice")["out"], "magic: reserved, 0 B of 144 MiB on the GPU\n")
    check("begins", book.cell(BEGIN + "write(5)"), NOTHING)
    check_in("running", "magic: running, 11", book.cell("%sluice")["out"])
    check_in("why", "magic runs on GPU 0", book.cell("%sluice why")["out"])
    check_in("set", "limit 130 MiB", book.cell("%sluice set --limit 130MiB")["out"])
    check("and is so", workloads()["magic"]["limit_bytes"], 130 * MIB)
    check_in("park", "magic is parked", book.cell("%sluice park")["out"])
    check("it is parked", workloads()["magic"]["residency"], "parked")
    becomes("the GPU is free", lambda: used_bytes() < 16 * MIB, True)
    check_in("a question leaves it parked", "parked", book.cell("%sluice\n%sluice why")["out"])
    becomes("the status bar says so", book.state, "parked")
    check("the next cell", book.cell("print(wrong(5))")["out"], "0\n")
    check("brought it back", workloads()["magic"]["residency"], "bound")
    book.cell("%sluice park")
    check_in("resume", "magic is back", book.cell("%sluice resume")["out"])
    check_in("a wrong verb", "the forms are", book.cell("%sluice fly")["err"])
    check_in("a wrong amount", "is not an amount", book.cell("%sluice set --limit much")["err"])
    check_in("no amount", "needs an option", book.cell("%sluice set")["err"])
    sluice("park", "magic")
    book.send("print(wrong(5))")
    becomes("a cell waits while it is parked from elsewhere", book.state, "parked")
    check("the status bar resumes it", book.server.ask(f"/sluice/api/kernels/{book.kernel}/resume", "POST", {}), (200, {}))
    check("and the cell ends", book.result()["out"], "0\n")
    book.end()
    becomes("the GPU is empty", used_bytes, EMPTY_BYTES)
    plain = Notebook(server, "plain.ipynb", "python3")
    check("a kernel without Sluice is not managed", plain.shown(), {"managed": False})
    check_in("and the magic says so", "no workload of Sluice", plain.cell("%load_ext sluice_jupyter\n%sluice")["err"])
    check("nor can it be resumed", server.ask(f"/sluice/api/kernels/{plain.kernel}/resume", "POST", {})[0], 400)
    plain.end()
    check("there is no such kernel", server.ask("/sluice/api/kernels/0123-4567")[0], 404)


def refusals(server):
    """A start that is refused says why, in words of `sluice run`, and leaves nothing."""
    def refused(config, part):
        spec = f"{os.environ['NB_PREFIX']}/share/jupyter/kernels/wrong"
        install("wrong")
        with open(f"{spec}/kernel.json", encoding="utf-8") as file:
            kernel = json.load(file)
        kernel["metadata"]["kernel_provisioner"]["config"] = config
        with open(f"{spec}/kernel.json", "w", encoding="utf-8") as file:
            json.dump(kernel, file)
        book = Notebook(server, "wrong.ipynb", "wrong")
        check(f"{config}: refused", book.status, 500)
        check_in(f"{config}: says why", part, book.session["message"])

    refused({"request": "64GiB"}, "64 GiB")
    refused({"limit": "7"}, "did you mean 7GiB")
    refused({"requests": "1GiB"}, "no option requests in the kernelspec; the options are command, request, limit")
    refused({"command": "/nowhere/sluice"}, "cannot start /nowhere/sluice")
    refused({"options": ["--gpu", "1"]}, "--gpu")
    holder = Notebook(server, "holder.ipynb", "most")
    check("one holds most of the GPU", holder.status, 201)
    refused({"request": "0.5"}, "others' requests and held memory leave 72 MiB")
    refused({"request": "0.5"}, "`wait_for_room` of the kernel's provisioner waits for room")
    refused({"request": "0.5", "wait_for_room": 1}, "no room within 1 s")
    again = Notebook(server, "copies/holder.ipynb", "plain")
    check("a name that is taken gets a number", again.status, 201)
    check("here 2", sorted(workloads()), ["holder", "holder-2"])
    again.end()
    holder.end()
    becomes("no workload is left", workloads, {})


def signals(server):
    """Interrupt, restart and a kernel's end reach it, and what it started."""
    book = Notebook(server, "signals.ipynb", "plain")
    first = book.pid()
    check("the kernel is the workload's process", workloads()["signals"]["pid"], first)
    book.send("import time; print('sleeps', flush=True); time.sleep(600)")
    time.sleep(0.5)
    check("interrupted", book.act("interrupt")[0], 204)
    check_in("it is a KeyboardInterrupt", "KeyboardInterrupt", book.result()["error"])
    check("begins", book.cell(BEGIN + "write(1)"), NOTHING)
    check("restarted", book.act("restart")[0], 200)
    second = book.pid()
    check("another process", second != first and not alive(first))
    check("nothing is left of the first", workloads()["signals" if "signals" in workloads() else "signals-2"]["clients"], 0)
    check("it begins anew", book.cell(BEGIN + "write(2); print(wrong(2))")["out"], "0\n")
    # Two workers: one in its group, one that leaves it.
    worker = "import subprocess, sys; worker = subprocess.Popen([sys.executable, '-c', 'from cu import *; start(); must(\"cuMemAlloc\", 8 << 20); import time; print(1, flush=True); time.sleep(600)'], stdout=subprocess.PIPE, start_new_session={}); worker.stdout.readline(); print(worker.pid)"
    workers = [int(book.cell(worker.format(new))["out"]) for new in (False, True)]
    check("its workers are of the workload", next(iter(workloads().values()))["clients"], 3)
    os.kill(second, signal.SIGKILL)
    becomes("the server starts it anew", lambda: [row["pid"] not in (first, second) for row in workloads().values()], [True], 40)
    becomes("its workers are gone", lambda: [alive(pid) for pid in workers], [False, False])
    becomes("and their memory", used_bytes, EMPTY_BYTES)
    check("a cell runs in the new one", book.cell("print('new')")["out"], "new\n")
    check("ends", book.end(), 204)
    becomes("no workload is left", workloads, {})


def without_daemon(server, daemon):
    """The daemon is killed between two cells: the memory stays, the status bar says what is wrong, and a new daemon goes on."""
    book = Notebook(server, "lasting.ipynb", "plain")
    check("begins", book.cell(BEGIN + "write(7)"), NOTHING)
    daemon.kill()
    becomes("no daemon: the state is not known", book.state, "unknown")
    check_in("and why", "sluiced", str(book.shown().get("why")))
    check_in("the magic says it, too", "sluiced", book.cell("%sluice")["err"])
    check("the notebook computes", book.cell("print(wrong(7))")["out"], "0\n")
    refused = Notebook(server, "late.ipynb", "plain")
    check("no kernel starts meanwhile", refused.status, 500)
    check_in("for that reason", "sluiced", refused.session["message"])
    daemon.start()
    becomes("a new daemon knows it", book.state, "running")
    check("and the memory is the same", book.cell("print(wrong(7))")["out"], "0\n")
    book.end()
    becomes("no workload is left", workloads, {})


def without_server(server):
    """The server is killed: its kernels end, and so do their workloads."""
    books = [Notebook(server, f"{name}.ipynb", "plain") for name in ("left", "right")]
    pids = [book.pid() for book in books]
    check("begins", books[0].cell(BEGIN + "write(7)"), NOTHING)
    server.process.kill()
    server.process.wait()
    becomes("the kernels end", lambda: [alive(pid) for pid in pids], [False, False])
    becomes("no workload is left", workloads, {})
    becomes("and the GPU is free", used_bytes, EMPTY_BYTES)


def main():
    daemon = Daemon("host_memory: 1GiB", "idle_grace: 100ms")
    install("share", "--request", "0", "--limit", "0.8", "--detach-after", "1s")
    install("guaranteed", "--request", "0.6", "--limit", "0.8", "--detach-after", "1s", "--wait-for-room", "120")
    install("plain", "--request", "0", "--limit", "0.8")
    install("most", "--request", "0.6")
    server = Server()
    three_share(server)
    guaranteed(server)
    magic(server)
    refusals(server)
    signals(server)
    without_daemon(server, daemon)
    without_server(server)
    server = Server()
    check("a server ends its kernels", Notebook(server, "end.ipynb", "plain").status, 201)
    server.stop()
    becomes("no workload is left", workloads, {})
    finish()


main()
