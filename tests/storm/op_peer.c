/*
 * op_peer - memory of another GPU: copied from, reached by kernels, and left alone again
 *
 * Where there is one GPU these steps do nothing.
 */
#include "ops.h"

#define PEER_BYTES 8192

/* Obtains memory on the other GPU, whose context is current between the two calls. */
static CUdeviceptr obtain(struct storm_lane *l, CUcontext there, unsigned char value)
{
	CUdeviceptr at = 0;

	if (CALL(l, cuCtxPushCurrent_v2, there) != CUDA_SUCCESS)
		return 0;
	if (CALL(l, cuMemAlloc_v2, &at, PEER_BYTES) == CUDA_SUCCESS)
		CALL(l, cuMemsetD8_v2, at, value, PEER_BYTES);
	CALL_0(l, cuCtxSynchronize);
	CALL(l, cuCtxPopCurrent_v2, &there);
	return at;
}

/* A kernel of this GPU writes there, and both read the same. */
static void reach(struct storm_lane *l, CUdeviceptr at)
{
	uint64_t count = PEER_BYTES / 8, stride = 1;
	uint32_t seed = l->step->dice;
	void *args[] = {&at, &count, &stride, &seed};

	CALL(l, cuLaunchKernel, l->fill, (unsigned)(count + 255) / 256, 1, 1, 256, 1, 1,
		0, CU_STREAM_LEGACY, args, NULL);
	CALL_0(l, cuCtxSynchronize);
	if (CALL(l, cuMemcpyDtoH_v2, l->readback, at, PEER_BYTES) == CUDA_SUCCESS)
		storm_note_bytes(l, l->readback, PEER_BYTES);
}

static void use(struct storm_lane *l, CUcontext there, CUdeviceptr at,
	struct storm_buffer *b, bool enable)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (b && !storm_on_host(b) && b->bytes >= PEER_BYTES) {
		storm_touch(l, b, 0);
		CALL(l, cuMemcpyPeer, b->at, l->primary, at, there, PEER_BYTES);
		storm_verify(l, b, 0, PEER_BYTES);
	}
	if (enable && CALL(l, cuCtxEnablePeerAccess, there, 0) == CUDA_SUCCESS) {
		CALL(l, cuCtxEnablePeerAccess, there, 0); /* again: refused */
		reach(l, at);
		CALL(l, cuCtxDisablePeerAccess, there);
	}
	CALL(l, cuCtxDisablePeerAccess, there); /* not enabled: refused */
	if (CALL(l, cuMemGetAddressRange_v2, &base, &bytes, at + 100) == CUDA_SUCCESS)
		storm_note(l, "offset and bytes", (at + 100 - base) << 32 | bytes);
}

void storm_op_peer(struct storm_lane *l, const uint32_t *a)
{
	CUdevice other = l->device ? 0 : 1;
	CUcontext there = NULL;
	CUdeviceptr at;
	int can = 0;

	if (l->devices < 2 || l->captures || l->context || l->broken)
		return;
	storm_quiesce(l);
	CALL(l, cuDeviceCanAccessPeer, &can, l->device, other);
	storm_note(l, "can", (uint64_t)can);
	if (CALL(l, cuDevicePrimaryCtxRetain, &there, other) != CUDA_SUCCESS)
		return;
	at = obtain(l, there, (unsigned char)a[1]);
	if (at) {
		use(l, there, at, storm_buffer(l, a[0]), can && a[1] & 0x100);
		CALL(l, cuMemFree_v2, at);
	}
	/* The last one gone resets the GPU for this process. */
	if (a[1] % 8 == 0)
		CALL(l, cuDevicePrimaryCtxRelease_v2, other);
}
