"""Two GPUs: what they may, copies between them with and without peer access, contexts of both."""

from cu import MIB, cu, end, get, must, pattern, put, result, say

must("cuInit", 0)
say("GPUs", must("cuDeviceGetCount"))
devices = [must("cuDeviceGet", n) for n in range(2)]
contexts = [must("cuDevicePrimaryCtxRetain", dev) for dev in devices]
say("may", [must("cuDeviceCanAccessPeer", devices[n], devices[1 - n]) for n in range(2)])
kinds = cu.CUdevice_P2PAttribute
say("attribute", must("cuDeviceGetP2PAttribute", kinds.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, devices[0], devices[1]))
memory = []
for ctx in contexts:
    must("cuCtxSetCurrent", ctx)
    memory.append(must("cuMemAlloc", 3 * MIB))
data = pattern(3 * MIB, 33)
must("cuCtxSetCurrent", contexts[0])
put(memory[0], data)
must("cuMemcpyPeer", memory[1], contexts[1], memory[0], contexts[0], 3 * MIB)
must("cuCtxSetCurrent", contexts[1])
say("copied to the peer", get(memory[1], 3 * MIB) == data)
say("not enabled", result("cuCtxDisablePeerAccess", contexts[0]))
must("cuCtxEnablePeerAccess", contexts[0], 0)
say("enabled twice", result("cuCtxEnablePeerAccess", contexts[0], 0))
say("with itself", result("cuCtxEnablePeerAccess", contexts[1], 0))
must("cuMemcpyDtoD", memory[1], memory[0], MIB)
later = must("cuMemAlloc", MIB)
must("cuMemcpyDtoD", later, memory[0], MIB)
say("copied through the peer's memory", get(later, MIB) == data[:MIB])
ordinal = must("cuPointerGetAttribute", cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[0])
say("whose memory it is", int(ordinal))
must("cuCtxDisablePeerAccess", contexts[0])
must("cuMemFree", later)
must("cuMemFree", memory[1])
must("cuCtxSetCurrent", contexts[0])
must("cuMemFree", memory[0])
must("cuCtxSetCurrent", cu.CUcontext(0))
must("cuDevicePrimaryCtxRelease", devices[1])
must("cuCtxSetCurrent", contexts[0])
end(devices[0])
