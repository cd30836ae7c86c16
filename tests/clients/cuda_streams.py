"""Streams: order within one, waiting between two, priorities, callbacks, the legacy stream, graphs of nothing."""

import ctypes
import threading

from cu import MIB, PTR, U32, cu, end, get, image, launch, must, put, result, say, start, words

dev = start()
module = must("cuModuleLoadData", image())
step = must("cuModuleGetFunction", module, b"prog_step")
word = must("cuMemAlloc", 4)


def value():
    return words(get(word, 4))[0]


flags = cu.CUstream_flags
one = must("cuStreamCreate", flags.CU_STREAM_NON_BLOCKING)
two = must("cuStreamCreate", flags.CU_STREAM_NON_BLOCKING)
say("ready", result("cuStreamQuery", one))
say("flags", (must("cuStreamGetFlags", one), must("cuStreamGetFlags", cu.CUstream(0))))
least, greatest = must("cuCtxGetStreamPriorityRange")
say("priorities", (least, greatest))
high = must("cuStreamCreateWithPriority", flags.CU_STREAM_NON_BLOCKING, greatest)
say("priority", must("cuStreamGetPriority", high))
say("its context is ours", int(must("cuStreamGetCtx", one)) == int(must("cuCtxGetCurrent")))
say("ids differ", len({int(must("cuStreamGetId", s)) for s in (one, two, high)}))

put(word, bytes(4))
for factor, add in ((1, 3), (5, 1), (2, 7)):
    launch(step, 1, one, (int(word), PTR), (factor, U32), (add, U32))
must("cuStreamSynchronize", one)
say("in order", value())

event = must("cuEventCreate", cu.CUevent_flags.CU_EVENT_DISABLE_TIMING)
must("cuMemsetD32Async", word, 1, 1, one)
launch(step, 1, one, (int(word), PTR), (1, U32), (9, U32))
must("cuEventRecord", event, one)
must("cuStreamWaitEvent", two, event, 0)
launch(step, 1, two, (int(word), PTR), (10, U32), (0, U32))
must("cuStreamSynchronize", two)
say("one stream waits for another", value())

called = threading.Event()
seen = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def on_host(data):
    seen.append(data)
    called.set()


must("cuLaunchHostFunc", one, cu.CUhostFn(ctypes.cast(on_host, ctypes.c_void_p).value), 1234)
must("cuStreamSynchronize", one)
say("a host function ran", (called.wait(10), seen))

host = must("cuMemHostAlloc", MIB, 0)
big = must("cuMemAlloc", MIB)
must("cuMemsetD8Async", big, 0x5A, MIB, two)
must("cuMemcpyDtoHAsync", host, big, MIB, two)
must("cuStreamSynchronize", two)
say("copied to the host", ctypes.string_at(int(host), MIB) == bytes([0x5A]) * MIB)
ctypes.memset(int(host), 0x11, MIB)
must("cuMemcpyHtoDAsync", big, host, MIB, one)
must("cuStreamSynchronize", one)
say("and back", get(big, MIB) == bytes([0x11]) * MIB)

launch(step, 1, cu.CUstream(0), (int(word), PTR), (0, U32), (77, U32))
must("cuStreamSynchronize", cu.CUstream(0))
say("the legacy stream", value())
must("cuStreamWriteValue32", one, word, 4242, 0)
must("cuStreamWaitValue32", one, word, 4242, cu.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ)
must("cuStreamSynchronize", one)
say("batch operations", value())

for stream in (one, two, high):
    must("cuStreamDestroy", stream)
say("no such function", result("cuModuleGetFunction", module, b"prog_nothing"))
must("cuMemFreeHost", host)
must("cuMemFree", big)
must("cuMemFree", word)
must("cuModuleUnload", module)
end(dev)
