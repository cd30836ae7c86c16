"""Memory and events of one process used by another: each of them a client of its own."""

import ctypes
import subprocess
import sys

from cu import MIB, PTR, U32, at, cu, end, get, image, launch, must, pattern, put, result, say, start, words

SIZE = 64  # of either kind of handle
HANDLES = cu.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


def text_of(handle):
    return ctypes.string_at(handle.getPtr(), SIZE).hex()


def opener():
    """Says on stdout what it finds; the handles come on stdin."""
    dev = start()
    memory, event = (bytes.fromhex(line) for line in sys.stdin.readline().split())
    handle = cu.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), memory, SIZE)
    there = must("cuIpcOpenMemHandle", handle, HANDLES)
    say("the other's pattern", get(there, 5 * MIB) == pattern(5 * MIB, 77))
    say("opened again", int(must("cuIpcOpenMemHandle", handle, HANDLES)) == int(there))
    must("cuIpcCloseMemHandle", there)
    signal = cu.CUipcEventHandle()
    ctypes.memmove(signal.getPtr(), event, SIZE)
    theirs = must("cuIpcOpenEventHandle", signal)
    say("its event", result("cuEventSynchronize", theirs))
    must("cuEventDestroy", theirs)
    must("cuMemsetD8", at(there, 4096), 0xAB, 4096)
    must("cuCtxSynchronize")
    must("cuIpcCloseMemHandle", there)
    say("closed twice", result("cuIpcCloseMemHandle", there))
    say("rubbish", result("cuIpcOpenMemHandle", cu.CUipcMemHandle(), HANDLES))
    end(dev)


def exporter():
    dev = start()
    block = must("cuMemAlloc", 5 * MIB)
    put(block, pattern(5 * MIB, 77))
    handle = must("cuIpcGetMemHandle", block)
    say("the same handle for any of its addresses",
        text_of(must("cuIpcGetMemHandle", at(block, 4096))) == text_of(handle))
    kinds = cu.CUevent_flags
    event = must("cuEventCreate", kinds.CU_EVENT_DISABLE_TIMING | kinds.CU_EVENT_INTERPROCESS)
    must("cuEventRecord", event, cu.CUstream(0))
    signal = must("cuIpcGetEventHandle", event)
    say("opened by ourselves", result("cuIpcOpenMemHandle", handle, HANDLES))
    text = f"{text_of(handle)} {text_of(signal)}\n"
    child = subprocess.run([sys.executable, __file__, "opener"], input=text, capture_output=True, text=True)
    for line in child.stdout.splitlines():
        print("  child:", line)
    say("its status", child.returncode)
    say("it says else", child.stderr)
    say("what it wrote", get(at(block, 4095), 3) == pattern(4096, 77)[4095:] + b"\xab\xab")
    must("cuEventDestroy", event)
    must("cuMemFree", block)
    end(dev)


opener() if sys.argv[1:] else exporter()
