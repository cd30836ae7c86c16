/*
 * facts-copies - copies in batches, with attributes, and of two and three dimensions
 */
#include "contract.h"

#define MANUAL "driver API manual"

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

static CUmemcpyAttributes in_order(void)
{
	CUmemcpyAttributes attributes = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

	return attributes;
}

/* `count` words from `first` on, one after another. */
static CUdeviceptr words(size_t count, uint32_t first)
{
	CUdeviceptr at = contract_alloc(count * 4);

	for (size_t i = 0; i < count; i++)
		OK(cuMemsetD32_v2, at + 4 * i, first + (uint32_t)i, 1);
	OK(cuCtxSynchronize);
	return at;
}

FACT(batch_rows, "driver API manual of CUDA 12.8", SAME,
	"a batch copies each of its rows")
{
	CUmemcpyAttributes attributes = in_order();
	CUdeviceptr dst[2], src[2];
	size_t sizes[] = {16, 8}, first[] = {0}, failed = 7;
	CUstream stream;
	uint32_t *host;

	contract_context();
	stream = new_stream();
	OK(cuMemAllocHost_v2, (void **)&host, 64);
	host[0] = 31;
	host[1] = 32;
	src[0] = words(8, 100);
	src[1] = (CUdeviceptr)(uintptr_t)host;
	dst[0] = contract_alloc(64);
	dst[1] = contract_alloc(64);
	OK(cuMemcpyBatchAsync, dst, src, sizes, 2, &attributes, first, 1, &failed,
		stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst[0] + 12), ==, 103);
	HOLDS(contract_read(dst[1] + 4), ==, 32);
	OK(cuMemcpyBatchAsync_v2, src, dst, sizes, 1, &attributes, first, 1, stream);
	OK(cuStreamSynchronize, stream);
}

FACT(batch_rows_order, "driver API manual of CUDA 12.8", SAME,
	"a batch stands in the order of its stream")
{
	CUmemcpyAttributes attributes = in_order();
	CUdeviceptr dst, src;
	size_t size = 4, first = 0;
	CUstream stream;

	contract_context();
	stream = new_stream();
	src = words(1, 5);
	dst = words(1, 6);
	contract_spin(stream, 50);
	OK(cuMemsetD32Async, src, 9, 1, stream);
	OK(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attributes, &first, 1, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst), ==, 9);
}

FACT(batch_rows_bad, "driver API manual of CUDA 12.8", SAME,
	"a batch without rules for its copies is refused")
{
	CUmemcpyAttributes attributes = in_order(),
			   none = {CU_MEMCPY_SRC_ACCESS_ORDER_INVALID};
	CUdeviceptr dst, src;
	size_t size = 4, zero = 0, one = 1;
	CUstream stream;

	contract_context();
	stream = new_stream();
	src = words(1, 5);
	dst = words(1, 6);
	FAILS(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &none, &zero, 1, stream);
	FAILS(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attributes, &one, 1, stream);
	FAILS(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, NULL, NULL, 0, stream);
	FAILS(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attributes, &zero, 1, NULL);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst), ==, 6);
}

FACT(batch_during, "driver API manual of CUDA 12.8", SAME,
	"a source read during the call may change after it")
{
	CUmemcpyAttributes attributes = {CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL};
	size_t size = 4, first = 0;
	CUdeviceptr dst, src;
	CUstream stream;
	uint32_t word = 77;

	contract_context();
	stream = new_stream();
	dst = words(1, 6);
	src = (CUdeviceptr)(uintptr_t)&word;
	contract_spin(stream, 30);
	OK(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attributes, &first, 1, stream);
	word = 78;
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst), ==, 77);
}

FACT(batch_during_pinned, "driver API manual of CUDA 12.8", SAME,
	"so may pinned memory, though work before it still runs")
{
	CUmemcpyAttributes attributes = {CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL};
	size_t size = 4, first = 0;
	CUdeviceptr dst, src;
	CUstream stream;
	uint32_t *word;

	contract_context();
	stream = new_stream();
	dst = words(1, 6);
	OK(cuMemAllocHost_v2, (void **)&word, 4);
	*word = 87;
	src = (CUdeviceptr)(uintptr_t)word;
	contract_spin(stream, 30);
	OK(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attributes, &first, 1, stream);
	*word = 88;
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst), ==, 87);
}

FACT(batch_boxes, "driver API manual of CUDA 12.8", SAME,
	"boxes go in batches, between pointers and arrays")
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
	CUDA_MEMCPY3D_BATCH_OP op = {
		.extent = {4, 2, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUdeviceptr from, to;
	CUstream stream;
	CUarray array;

	contract_context();
	stream = new_stream();
	OK(cuArray3DCreate_v2, &array, &desc);
	from = words(16, 200);
	to = words(16, 900);
	op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = from;
	op.src.op.ptr.rowLength = 8;
	op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op.dst.op.array.array = array;
	op.dst.op.array.offset.x = 2;
	op.dst.op.array.offset.y = 1;
	OK(cuMemcpy3DBatchAsync_v2, 1, &op, 0, stream);
	op.src = op.dst;
	op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.dst.op.ptr.ptr = to;
	op.dst.op.ptr.rowLength = op.dst.op.ptr.layerHeight = 0;
	OK(cuMemcpy3DBatchAsync_v2, 1, &op, 0, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(to), ==, 200);
	HOLDS(contract_read(to + 12), ==, 203);
	HOLDS(contract_read(to + 16), ==, 208);
	HOLDS(contract_read(to + 32), ==, 908);
	op.src.op.array.offset.x = 6;
	FAILS(cuMemcpy3DBatchAsync_v2, 1, &op, 0, stream);
	op.extent.depth = 0;
	FAILS(cuMemcpy3DBatchAsync_v2, 1, &op, 0, stream);
}

FACT(copy_box, MANUAL, SAME, "a box leaves what lies around it")
{
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 16,
		.srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstXInBytes = 4,
		.dstY = 1,
		.dstZ = 1,
		.dstPitch = 16,
		.dstHeight = 4,
		.WidthInBytes = 8,
		.Height = 2,
		.Depth = 1};

	contract_context();
	copy.srcDevice = words(32, 0);
	copy.dstDevice = words(32, 1000);
	OK(cuMemcpy3D_v2, &copy);
	/* Word 1 of row 1 of slice 1 is number 16 + 4 + 1. */
	HOLDS(contract_read(copy.dstDevice + 4 * 21), ==, 0);
	HOLDS(contract_read(copy.dstDevice + 4 * 22), ==, 1);
	HOLDS(contract_read(copy.dstDevice + 4 * 25), ==, 4);
	HOLDS(contract_read(copy.dstDevice + 4 * 23), ==, 1023);
	HOLDS(contract_read(copy.dstDevice + 4 * 20), ==, 1020);
	HOLDS(contract_read(copy.dstDevice + 4 * 5), ==, 1005);
}

FACT(copy_pitch, MANUAL, SAME, "a pitch less than the width is refused")
{
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 16,
		.WidthInBytes = 16,
		.Height = 2};

	contract_context();
	copy.srcDevice = words(16, 0);
	copy.dstDevice = words(16, 0);
	IS(ERROR_INVALID_VALUE, cuMemcpy2D_v2, &copy);
	copy.srcPitch = 16;
	OK(cuMemcpy2D_v2, &copy);
}

FACT(copy_lod, MANUAL, SAME, "levels of detail are not for copies")
{
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcLOD = 1,
		.WidthInBytes = 16,
		.Height = 1,
		.Depth = 1};

	contract_context();
	copy.srcDevice = words(16, 0);
	copy.dstDevice = words(16, 0);
	IS(ERROR_INVALID_VALUE, cuMemcpy3D_v2, &copy);
}

FACT(copy_attributes, "driver API manual of CUDA 13.2", SAME,
	"one copy may have attributes of its own")
{
	CUmemcpyAttributes attributes = in_order(),
			   none = {CU_MEMCPY_SRC_ACCESS_ORDER_INVALID};
	CUdeviceptr dst, src;
	CUstream stream;

	contract_context();
	stream = new_stream();
	src = words(4, 40);
	dst = words(4, 0);
	OK(cuMemcpyWithAttributesAsync, dst, src, 16, &attributes, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(dst + 12), ==, 43);
	FAILS(cuMemcpyWithAttributesAsync, dst, src, 16, &none, stream);
}

/* The primary context of device 1, current; ends the fact where there is one GPU. */
static CUcontext second_context(void)
{
	CUcontext other = NULL;
	int count = 0;

	OK(cuDeviceGetCount, &count);
	if (count < 2)
		contract_skip("no second GPU");
	OK(cuDevicePrimaryCtxRetain, &other, 1);
	OK(cuCtxSetCurrent, other);
	return other;
}

FACT(copy_peer_order, MANUAL, SAME, "a copy between contexts waits for the work of both")
{
	CUcontext own = contract_context(), other;
	CUdeviceptr dst = words(1, 3), src;

	other = second_context();
	src = words(1, 4);
	contract_spin(NULL, 100);
	OK(cuMemsetD32Async, src, 5, 1, NULL);
	OK(cuCtxSetCurrent, own);
	OK(cuMemcpyPeer, dst, own, src, other, 4);
	HOLDS(contract_read(dst), ==, 5);
}

FACT(copy_peer_box, MANUAL, SAME, "a box goes between devices by their contexts")
{
	CUcontext own = contract_context(), other;
	CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 16,
		.dstPitch = 16,
		.WidthInBytes = 8,
		.Height = 2,
		.Depth = 1};

	copy.dstDevice = words(8, 0);
	copy.dstContext = own;
	other = second_context();
	copy.srcDevice = words(8, 70);
	copy.srcContext = other;
	OK(cuCtxSetCurrent, own);
	OK(cuMemcpy3DPeer, &copy);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(copy.dstDevice + 20), ==, 75);
	HOLDS(contract_read(copy.dstDevice + 24), ==, 6);
}
