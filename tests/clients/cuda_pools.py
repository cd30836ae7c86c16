"""The driver's own pools: the default one, one of the program's, limits of what they keep."""

from cu import MIB, cu, end, get, must, result, say, start

dev = start()
stream = must("cuStreamCreate", cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
kinds = cu.CUmemPool_attribute
default = must("cuDeviceGetDefaultMemPool", dev)
say("the device's is the default", int(must("cuDeviceGetMemPool", dev)) == int(default))
say("keeps", int(must("cuMemPoolGetAttribute", default, kinds.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)))
before, _ = must("cuMemGetInfo")

p = must("cuMemAllocAsync", 20 * MIB, stream)
must("cuMemsetD8Async", p, 0x3C, 20 * MIB, stream)
must("cuStreamSynchronize", stream)
say("usable", get(p, 4096) == bytes([0x3C]) * 4096)
say("used", int(must("cuMemPoolGetAttribute", default, kinds.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)))
say("reserved covers it", int(must("cuMemPoolGetAttribute", default, kinds.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) >= 20 * MIB)
held, _ = must("cuMemGetInfo")
say("it counts", before - held >= 20 * MIB)
must("cuMemFreeAsync", p, stream)
must("cuStreamSynchronize", stream)
must("cuCtxSynchronize")
must("cuMemPoolTrimTo", default, 0)
say("used after", int(must("cuMemPoolGetAttribute", default, kinds.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)))
after, _ = must("cuMemGetInfo")
say("it came back", before - after < 20 * MIB)

props = cu.CUmemPoolProps()
props.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
props.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
props.location.id = 0
pool = must("cuMemPoolCreate", props)
must("cuMemPoolSetAttribute", pool, kinds.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, cu.cuuint64_t(64 * MIB))
blocks = [must("cuMemAllocFromPoolAsync", 8 * MIB, pool, stream) for _ in range(4)]
for n, block in enumerate(blocks):
    must("cuMemsetD8Async", block, n, 8 * MIB, stream)
must("cuStreamSynchronize", stream)
say("four blocks", [get(block, 2) for block in blocks])
attribute = must("cuPointerGetAttribute", cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, blocks[0])
say("the pool behind a pointer", int(attribute) == int(pool))
must("cuDeviceSetMemPool", dev, pool)
extra = must("cuMemAllocAsync", MIB, stream)
say("the device's pool now", int(must("cuMemPoolGetAttribute", pool, kinds.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)) >= 33 * MIB)
must("cuDeviceSetMemPool", dev, default)
must("cuMemFreeAsync", extra, stream)
for block in blocks[:3]:
    must("cuMemFreeAsync", block, stream)
must("cuMemFree", blocks[3])
must("cuStreamSynchronize", stream)
say("kept for the next", int(must("cuMemPoolGetAttribute", pool, kinds.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) > 0)
say("too much", result("cuMemAllocFromPoolAsync", 1 << 44, pool, stream))
say("free twice", result("cuMemFreeAsync", blocks[0], stream))
must("cuMemPoolDestroy", pool)
must("cuStreamDestroy", stream)
final, _ = must("cuMemGetInfo")
say("nothing is left", before - final < 20 * MIB)
end(dev)
