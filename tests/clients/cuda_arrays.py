"""Arrays: made, described, copied to and from, destroyed; and managed memory."""

import ctypes

from cu import MIB, cu, end, figure, get, must, pattern, put, result, say, start

dev = start()
before, _ = must("cuMemGetInfo")
desc = cu.CUDA_ARRAY_DESCRIPTOR()
desc.Width = 1000
desc.Height = 600
desc.Format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
desc.NumChannels = 4
array = must("cuArrayCreate", desc)
told = must("cuArrayGetDescriptor", array)
say("described", (told.Width, told.Height, told.Format.name, told.NumChannels))
row = 1000 * 16
say("it counts", before - must("cuMemGetInfo")[0] >= 600 * row)

data = pattern(600 * row, 21)
plain = must("cuMemAlloc", 600 * row)
put(plain, data)
copy = cu.CUDA_MEMCPY2D()
copy.srcMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE
copy.srcDevice = plain
copy.srcPitch = row
copy.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_ARRAY
copy.dstArray = array
copy.WidthInBytes = row
copy.Height = 600
must("cuMemcpy2D", copy)
must("cuMemsetD8", plain, 0, 600 * row)
back = cu.CUDA_MEMCPY2D()
back.srcMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_ARRAY
back.srcArray = array
back.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE
back.dstDevice = plain
back.dstPitch = row
back.WidthInBytes = row
back.Height = 600
must("cuMemcpy2D", back)
say("there and back", get(plain, 600 * row) == data)

desc3 = cu.CUDA_ARRAY3D_DESCRIPTOR()
desc3.Width = 64
desc3.Height = 64
desc3.Depth = 16
desc3.Format = cu.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
desc3.NumChannels = 1
cube = must("cuArray3DCreate", desc3)
told3 = must("cuArray3DGetDescriptor", cube)
say("in three dimensions", (told3.Width, told3.Height, told3.Depth))
desc3.Flags = 0
levels = must("cuMipmappedArrayCreate", desc3, 3)
level = must("cuArray3DGetDescriptor", must("cuMipmappedArrayGetLevel", levels, 1))
say("the second level", (level.Width, level.Height, level.Depth))
desc.Width = 0
say("without a width", result("cuArrayCreate", desc))
desc.Width = 1 << 30
say("far too wide", result("cuArrayCreate", desc))
must("cuMipmappedArrayDestroy", levels)
must("cuArrayDestroy", cube)
must("cuArrayDestroy", array)
must("cuMemFree", plain)
say("destroyed twice", result("cuArrayDestroy", array))

managed = must("cuMemAllocManaged", 4 * MIB, cu.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)
ctypes.memset(int(managed), 0x42, 4 * MIB)
say("the device sees it", get(managed, 64) == bytes([0x42]) * 64)
must("cuMemsetD8", managed, 0x43, 4096)
must("cuCtxSynchronize")
say("and the host what it does", ctypes.string_at(int(managed), 4097) == bytes([0x43]) * 4096 + b"\x42")
say("managed", int(must("cuPointerGetAttribute", cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED, managed)))
must("cuMemFree", managed)
say("all came back", before - must("cuMemGetInfo")[0] <= 2 * MIB)
end(dev)
