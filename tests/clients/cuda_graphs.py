"""Graphs: captured and built by hand, launched again, updated; what a capture forbids."""

from cu import PTR, U32, cu, end, get, image, launch, must, result, say, start, words

dev = start()
module = must("cuModuleLoadData", image())
step = must("cuModuleGetFunction", module, b"prog_step")
word = must("cuMemAlloc", 4)
stream = must("cuStreamCreate", cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
must("cuMemsetD32", word, 1, 1)

must("cuStreamBeginCapture", stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
say("capturing", must("cuStreamIsCapturing", stream).name)
launch(step, 1, stream, (int(word), PTR), (2, U32), (1, U32))
launch(step, 1, stream, (int(word), PTR), (3, U32), (0, U32))
graph = must("cuStreamEndCapture", stream)
say("nothing ran yet", words(get(word, 4))[0])
say("nodes", must("cuGraphGetNodes", graph, 0)[1])
nodes, count = must("cuGraphGetNodes", graph, 2)
say("kinds", [must("cuGraphNodeGetType", node).name for node in nodes])
ready = must("cuGraphInstantiate", graph, 0)
for _ in range(3):
    must("cuGraphLaunch", ready, stream)
must("cuStreamSynchronize", stream)
say("three launches", words(get(word, 4))[0])
must("cuGraphUpload", ready, stream)
must("cuStreamSynchronize", stream)

hand = must("cuGraphCreate", 0)
fill = cu.CUDA_MEMSET_NODE_PARAMS()
fill.dst = word
fill.elementSize = 4
fill.width = 1
fill.height = 1
fill.value = 100
ctx = must("cuCtxGetCurrent")
first = must("cuGraphAddMemsetNode", hand, [], 0, fill, ctx)
empty = must("cuGraphAddEmptyNode", hand, [first], 1)
say("by hand", (must("cuGraphNodeGetType", first).name, must("cuGraphNodeGetType", empty).name))
by_hand = must("cuGraphInstantiate", hand, 0)
must("cuGraphLaunch", by_hand, stream)
must("cuStreamSynchronize", stream)
say("it set the word", words(get(word, 4))[0])
fill.value = 200
must("cuGraphExecMemsetNodeSetParams", by_hand, first, fill, ctx)
must("cuGraphLaunch", by_hand, stream)
must("cuStreamSynchronize", stream)
say("with other parameters", words(get(word, 4))[0])
copy = must("cuGraphClone", hand)
say("a clone's nodes", must("cuGraphGetNodes", copy, 0)[1])

# What may not be done while one captures.
other = must("cuStreamCreate", cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
must("cuStreamBeginCapture", stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
launch(step, 1, stream, (int(word), PTR), (1, U32), (1, U32))
say("synchronise it", result("cuStreamSynchronize", stream))
say("the capture is", must("cuStreamIsCapturing", stream).name)
say("its end", result("cuStreamEndCapture", stream))
say("allocate meanwhile is fine again", result("cuMemFree", must("cuMemAlloc", 4096)))
must("cuStreamBeginCapture", stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
launch(step, 1, stream, (int(word), PTR), (1, U32), (5, U32))
block = must("cuMemAlloc", 3 << 20)
relaxed = must("cuStreamEndCapture", stream)
say("an allocation in a relaxed capture", words(get(word, 4))[0])
must("cuMemFree", block)
for graph_ in (graph, hand, copy, relaxed):
    must("cuGraphDestroy", graph_)
for exec_ in (ready, by_hand):
    must("cuGraphExecDestroy", exec_)
must("cuStreamDestroy", stream)
must("cuStreamDestroy", other)
must("cuMemFree", word)
must("cuModuleUnload", module)
end(dev)
