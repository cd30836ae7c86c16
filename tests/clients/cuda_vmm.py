"""Virtual memory: reserve, create, map, allow, use, take apart; out of order and wrong."""

from cu import MIB, at, cu, end, figure, get, must, pattern, put, result, say, start

dev = start()
prop = cu.CUmemAllocationProp()
prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
prop.location.id = 0
kinds = cu.CUmemAllocationGranularity_flags
grain = must("cuMemGetAllocationGranularity", prop, kinds.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
say("granularity", grain)
say("recommended", must("cuMemGetAllocationGranularity", prop, kinds.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
before, _ = must("cuMemGetInfo")

room = must("cuMemAddressReserve", 8 * grain, 0, cu.CUdeviceptr(0), 0)
handles = [must("cuMemCreate", 2 * grain, prop, 0) for _ in range(3)]
for n, handle in enumerate(handles):
    must("cuMemMap", at(room, 2 * n * grain), 2 * grain, 0, handle, 0)
access = cu.CUmemAccessDesc()
access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
access.location.id = 0
access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
say("no access yet", must("cuMemGetAccess", access.location, room))
must("cuMemSetAccess", room, 6 * grain, [access], 1)
say("access", must("cuMemGetAccess", access.location, at(room, 5 * grain)))
held, _ = must("cuMemGetInfo")
say("the handles count", before - held >= 6 * grain)

data = pattern(6 * grain, 9)
put(room, data)
say("across handles", get(at(room, grain), 4 * grain) == data[grain:5 * grain])
again = must("cuMemRetainAllocationHandle", int(at(room, grain)))
say("the handle behind an address", int(again) == int(handles[0]))
must("cuMemRelease", again)
got = must("cuMemGetAllocationPropertiesFromHandle", handles[1])
say("its properties", (got.type.name, got.location.type.name, got.location.id))

# The same memory at a second place, and nothing at the first one.
must("cuMemMap", at(room, 6 * grain), 2 * grain, 0, handles[1], 0)
must("cuMemSetAccess", at(room, 6 * grain), 2 * grain, [access], 1)
say("twice mapped", get(at(room, 6 * grain), 2 * grain) == data[2 * grain:4 * grain])
must("cuMemsetD8", at(room, 6 * grain), 0xEE, 16)
say("one memory", get(at(room, 2 * grain), 16) == bytes([0xEE]) * 16)
must("cuMemUnmap", at(room, 2 * grain), 2 * grain)
say("unmapped", result("cuMemcpyDtoH", bytearray(16), at(room, 2 * grain), 16))
say("still at the other", get(at(room, 6 * grain), 16) == bytes([0xEE]) * 16)

say("map over a mapping", result("cuMemMap", room, 2 * grain, 0, handles[1], 0))
say("part of a mapping", result("cuMemUnmap", room, grain))
say("with an offset", result("cuMemMap", at(room, 2 * grain), grain, grain, handles[2], 0))
say("free a mapped range", result("cuMemAddressFree", room, 8 * grain))
say("an odd size", result("cuMemCreate", grain + 1, prop, 0))
say("no such handle", result("cuMemRelease", cu.CUmemGenericAllocationHandle(0x1234567)))
say("too large", result("cuMemCreate", 1 << 44, prop, 0))

for handle in handles:
    must("cuMemRelease", handle)
say("released and still mapped", get(room, 16) == data[:16])
say("released twice", result("cuMemRelease", handles[0]))
for offset in (0, 4 * grain, 6 * grain):
    must("cuMemUnmap", at(room, offset), 2 * grain)
must("cuMemAddressFree", room, 8 * grain)
after, _ = must("cuMemGetInfo")
say("all came back", before - after <= 2 * MIB)

# To another descriptor and back, within one process.
prop.requestedHandleTypes = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
shared = must("cuMemCreate", 2 * grain, prop, 0)
fd = must("cuMemExportToShareableHandle", shared, prop.requestedHandleTypes, 0)
other = must("cuMemImportFromShareableHandle", int(fd), prop.requestedHandleTypes)
room = must("cuMemAddressReserve", 4 * grain, 0, cu.CUdeviceptr(0), 0)
must("cuMemMap", room, 2 * grain, 0, shared, 0)
must("cuMemMap", at(room, 2 * grain), 2 * grain, 0, other, 0)
must("cuMemSetAccess", room, 4 * grain, [access], 1)
put(room, data[:4096])
say("exported and imported", get(at(room, 2 * grain), 4096) == data[:4096])
must("cuMemUnmap", room, 2 * grain)
must("cuMemUnmap", at(room, 2 * grain), 2 * grain)
must("cuMemRelease", shared)
must("cuMemRelease", other)
must("cuMemAddressFree", room, 4 * grain)
end(dev)
