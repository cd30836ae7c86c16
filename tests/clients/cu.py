"""What the clients of cuda-bindings have in common.

A client says what it sees in lines "what: value". The test runs it on the software GPU alone and under
Sluice, and the lines must be the same; figures that must differ, because they are what Sluice is there
for, stand in lines that begin with "~" and are checked by the test.
"""

import ctypes
import os
import struct
import sys

from cuda.bindings import driver as cu

MIB = 1 << 20


def say(what, value):
    print(f"{what}: {value}", flush=True)


def figure(what, value):
    print(f"~ {what} {value}", flush=True)


def result(call, *args):
    """The name of what the driver answered: for calls that are to fail."""
    return getattr(cu, call)(*args)[0].name


def must(call, *args):
    """What the driver gave; a failure ends the client with a line that the comparison shows."""
    answer = getattr(cu, call)(*args)
    if answer[0] != cu.CUresult.CUDA_SUCCESS:
        say(call, answer[0].name)
        sys.exit(1)
    return answer[1] if len(answer) == 2 else answer[1:]


def start(ordinal=0):
    """A current primary context."""
    must("cuInit", 0)
    dev = must("cuDeviceGet", ordinal)
    must("cuCtxSetCurrent", must("cuDevicePrimaryCtxRetain", dev))
    return dev


def end(dev):
    must("cuCtxSynchronize")
    must("cuCtxSetCurrent", cu.CUcontext(0))
    must("cuDevicePrimaryCtxRelease", dev)
    say("end", "reached")


def pattern(count, seed):
    """Bytes that say where they belong; the same again every 64 KiB."""
    period = bytes((seed + 7 * i + (i >> 8)) & 0xFF for i in range(1 << 16))
    return (period * (count // len(period) + 1))[:count]


def put(at, data):
    must("cuMemcpyHtoD", at, data, len(data))


def get(at, count):
    data = bytearray(count)
    must("cuMemcpyDtoH", data, at, count)
    return bytes(data)


def at(ptr, offset):
    return cu.CUdeviceptr(int(ptr) + offset)


def words(data):
    return struct.unpack(f"<{len(data) // 4}I", data)


def image():
    """The kernels as the software GPU takes them: a shared object."""
    with open(os.environ["CLIENT_IMAGE"], "rb") as file:
        return file.read()


def launch(function, threads, stream, *params):
    """params: pairs of a value and its ctypes type."""
    values = tuple(value for value, _ in params)
    types = tuple(kind for _, kind in params)
    block = min(threads, 256)
    return must("cuLaunchKernel", function, (threads + block - 1) // block, 1, 1, block, 1, 1, 0,
        stream, (values, types), 0)


U32 = ctypes.c_uint32
U64 = ctypes.c_uint64
PTR = ctypes.c_void_p
