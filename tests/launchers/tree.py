#!/usr/bin/env python3
"""Trees of processes as launchers of frameworks make them; each leaf asks the driver for 301 MiB.

tree.py torchrun CMD | fork | spawn | forkserver | server
The answers go as lines of JSON to the file that LAUNCHERS_OUT names, as those of tests/programs/tenant do.
"""
import ctypes
import multiprocessing
import os
import subprocess
import sys


def leaf(*_):
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    result = cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(301 << 20))
    event = {0: "held", 2: "oom"}.get(result, "error")
    with open(os.environ["LAUNCHERS_OUT"], "a", encoding="utf-8") as out:
        out.write('{"event":"%s","result":%d}\n' % (event, result))


def engine(method):
    """An engine core, which starts its workers."""
    start(method, 1)


def start(method, count, target=leaf):
    context = multiprocessing.get_context(method)
    children = [context.Process(target=target, args=(method,)) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0


def torchrun(command):
    """An agent: one process per rank, each with its own environment and session."""
    ranks = []
    for rank in range(2):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                   MASTER_PORT="29500", OMP_NUM_THREADS="1", TORCHELASTIC_RUN_ID="none")
        ranks.append(subprocess.Popen([command], env=env, start_new_session=True))
    assert [rank.wait() for rank in ranks] == [0, 0]


def main():
    how = sys.argv[1]
    if how == "torchrun":
        torchrun(sys.argv[2])
    elif how == "server":
        # The engines are spawned; each forks its worker.
        start("spawn", 2, engine_of_workers)
    else:
        start(how, 2)


def engine_of_workers(_):
    engine("fork")


if __name__ == "__main__":
    main()
