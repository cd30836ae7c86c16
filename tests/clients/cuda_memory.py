"""Memory as most programs use it: allocate, fill, copy, ask about pointers, free, do it wrong."""

from cu import MIB, at, cu, end, figure, get, must, pattern, put, result, say, start

dev = start()
must("cuDeviceGetName", 64, dev)
say("device 0 of", must("cuDeviceGetCount") > 0)
before_free, total = must("cuMemGetInfo")
figure("total", total)
figure("device total", must("cuDeviceTotalMem", dev))
say("total is one number", total == must("cuDeviceTotalMem", dev))
# Under Sluice the GPU's reserve may pay it.
say("a context adds nothing", before_free <= total)

sizes = [1, 256, 257, 4096, MIB, 3 * MIB + 5, 40 * MIB]
blocks = [must("cuMemAlloc", size) for size in sizes]
say("aligned", [int(p) % 256 for p in blocks])
for n, (p, size) in enumerate(zip(blocks, sizes)):
    head = min(size, 5000)
    data = pattern(head, n)
    put(p, data)
    put(at(p, size - head), data)
    say(f"block {n} reads back", get(at(p, size - head), head) == data)
    base, length = must("cuMemGetAddressRange", at(p, size - 1))
    say(f"block {n} range", (int(base) == int(p), length))
held_free, _ = must("cuMemGetInfo")
say("free went down by what was allocated", before_free - held_free >= sum(sizes))

kinds = cu.CUpointer_attribute
for name in ("MEMORY_TYPE", "DEVICE_ORDINAL", "IS_MANAGED", "RANGE_SIZE", "MAPPED"):
    value = must("cuPointerGetAttribute", getattr(kinds, f"CU_POINTER_ATTRIBUTE_{name}"), blocks[5])
    say(f"attribute {name}", int(value))
ctx = must("cuPointerGetAttribute", kinds.CU_POINTER_ATTRIBUTE_CONTEXT, blocks[5])
say("its context is ours", int(ctx) == int(must("cuCtxGetCurrent")))

must("cuMemsetD8", blocks[4], 0xA5, MIB)
must("cuMemsetD32", at(blocks[4], 4096), 0x01020304, 1024)
say("set", (get(blocks[4], 2), get(at(blocks[4], 4096), 4), get(at(blocks[4], 8192), 1)))
must("cuMemcpyDtoD", blocks[6], blocks[4], MIB)
say("device to device", get(blocks[6], MIB) == get(blocks[4], MIB))
pitched, pitch = must("cuMemAllocPitch", 1000, 30, 4)
say("pitch holds a row", pitch >= 1000 and pitch % 4 == 0)
must("cuMemsetD2D8", pitched, pitch, 9, 1000, 30)
say("last row", get(at(pitched, 29 * pitch), 1000) == bytes([9]) * 1000)

host = must("cuMemHostAlloc", MIB, 0)
say("host memory's flags", must("cuMemHostGetFlags", host))
must("cuMemFreeHost", host)

say("free of nothing", result("cuMemFree", cu.CUdeviceptr(0)))
say("free inside a block", result("cuMemFree", at(blocks[6], 512)))
say("zero bytes", result("cuMemAlloc", 0))
say("too much", result("cuMemAlloc", 1 << 44))
must("cuMemFree", pitched)
for p in blocks:
    must("cuMemFree", p)
say("free twice", result("cuMemFree", blocks[6]))
say("copy from freed memory", result("cuMemcpyDtoH", bytearray(16), blocks[6], 16))
after_free, _ = must("cuMemGetInfo")
say("all of it came back but a slab", before_free - after_free <= 2 * MIB)

# The whole GPU, chunk by chunk: how much there was is the figure, that it ends well is not.
chunks = []
while True:
    error, p = cu.cuMemAlloc(32 * MIB)
    if error != cu.CUresult.CUDA_SUCCESS:
        break
    chunks.append(p)
say("filled until", error.name)
figure("filled", len(chunks) * 32 * MIB)
for p in chunks:
    must("cuMemFree", p)
say("and it works on", result("cuMemFree", must("cuMemAlloc", 32 * MIB)))
end(dev)
