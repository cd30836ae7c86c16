/*
 * facts-arrays - arrays, mipmapped arrays, and copies to and from them
 */
#include "contract.h"

#define MANUAL "driver API manual"

static CUarray array_of(size_t width, size_t height, size_t depth, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
	CUarray array = NULL;

	OK(cuArray3DCreate_v2, &array, &desc);
	return array;
}

/* words[i] = first + i */
static void count_up(uint32_t *words, size_t count, uint32_t first)
{
	for (size_t i = 0; i < count; i++)
		words[i] = first + (uint32_t)i;
}

FACT(array_describe, MANUAL, SAME, "an array says what it was made as")
{
	CUDA_ARRAY_DESCRIPTOR in = {100, 50, CU_AD_FORMAT_HALF, 4}, out;
	CUDA_ARRAY3D_DESCRIPTOR out3;
	CUarray array;

	contract_context();
	OK(cuArrayCreate_v2, &array, &in);
	OK(cuArrayGetDescriptor_v2, &out, array);
	HOLDS(out.Width, ==, 100);
	HOLDS(out.Height, ==, 50);
	HOLDS(out.Format, ==, CU_AD_FORMAT_HALF);
	HOLDS(out.NumChannels, ==, 4);
	OK(cuArray3DGetDescriptor_v2, &out3, array);
	HOLDS(out3.Depth, ==, 0);
	HOLDS(out3.Flags, ==, 0);
	OK(cuArrayDestroy, array);
}

FACT(array_flags, MANUAL, SAME, "layers, cubes and surfaces are kinds of arrays")
{
	static const CUDA_ARRAY3D_DESCRIPTOR good[] = {
		{64, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
		{64, 32, 0, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_SURFACE_LDST},
		{64, 32, 16, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0},
		{64, 0, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
		{64, 32, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
		{64, 64, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},
		{64, 64, 12, CU_AD_FORMAT_FLOAT, 1,
			CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
		{64, 64, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER},
	};
	CUDA_ARRAY3D_DESCRIPTOR out;
	CUarray array;

	contract_context();
	for (size_t i = 0; i < SL_ARRAY_LEN(good); i++) {
		OK(cuArray3DCreate_v2, &array, &good[i]);
		OK(cuArray3DGetDescriptor_v2, &out, array);
		HOLDS(out.Depth, ==, good[i].Depth);
		HOLDS(out.Flags, ==, good[i].Flags);
		OK(cuArrayDestroy, array);
	}
}

FACT(array_refused, MANUAL, SAME, "a description that cannot be is refused")
{
	static const CUDA_ARRAY3D_DESCRIPTOR bad[] = {
		{0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
		{64, 32, 0, CU_AD_FORMAT_FLOAT, 3, 0},
		{64, 32, 0, (CUarray_format)0x77, 1, 0},
		{64, 64, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},
		{64, 32, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},
		{64, 32, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
		{1u << 30, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
	};
	CUarray array;

	contract_context();
	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++)
		IS(ERROR_INVALID_VALUE, cuArray3DCreate_v2, &array, &bad[i]);
	IS(ERROR_INVALID_VALUE, cuArray3DCreate_v2, NULL, &bad[0]);
	IS(ERROR_INVALID_VALUE, cuArray3DCreate_v2, &array, NULL);
}

FACT(array_takes, MANUAL, SAME, "an array takes the GPU's memory and gives it back")
{
	size_t before, texels = (size_t)4096 * 4096;
	CUarray array;

	contract_context();
	OK(cuArrayDestroy, array_of(64, 64, 0, 0));
	before = contract_free_bytes();
	array = array_of(4096, 4096, 0, 0);
	HOLDS(contract_free_bytes() + texels * 4, <=, before);
	OK(cuArrayDestroy, array);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(array_small_shared, "assumed", SAME, "small arrays share a piece of the GPU")
{
	CUarray array[64];
	size_t before;

	contract_context();
	array_of(64, 64, 0, 0);
	before = contract_free_bytes();
	for (unsigned int i = 0; i < 64; i++)
		array[i] = array_of(64, 64, 0, 0);
	HOLDS(contract_free_bytes() + (4 << 20), >=, before);
	for (unsigned int i = 0; i < 64; i++)
		OK(cuArrayDestroy, array[i]);
}

FACT(array_oom, MANUAL, SAME, "an array larger than the GPU gives OUT_OF_MEMORY")
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		16384, 16384, 2048, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED};
	CUarray array;

	contract_context();
	IS(ERROR_OUT_OF_MEMORY, cuArray3DCreate_v2, &array, &desc);
	OK(cuArrayDestroy, array_of(64, 64, 0, 0));
}

FACT(array_handle, MANUAL, SAME, "what is no array is refused")
{
	CUDA_ARRAY_DESCRIPTOR desc;
	uint32_t word = 0;

	contract_context();
	FAILS(cuArrayDestroy, NULL);
	FAILS(cuArrayGetDescriptor_v2, &desc, NULL);
	FAILS(cuMemcpyHtoA_v2, NULL, 0, &word, 4);
}

FACT(array_row, MANUAL, SAME, "bytes go into an array and come back, by every way")
{
	uint32_t in[256], out[256] = {0};
	CUarray first, second;
	CUdeviceptr at;

	contract_context();
	count_up(in, 256, 1000);
	first = array_of(256, 0, 0, 0);
	second = array_of(256, 0, 0, 0);
	at = contract_alloc(sizeof(in));
	OK(cuMemcpyHtoA_v2, first, 0, in, sizeof(in));
	OK(cuMemcpyAtoA_v2, second, 0, first, 0, sizeof(in));
	OK(cuMemcpyAtoD_v2, at, second, 0, sizeof(in));
	HOLDS(contract_read(at + 255 * 4), ==, 1255);
	OK(cuMemsetD32_v2, at, 7, 2);
	OK(cuMemcpyDtoA_v2, first, 40, at, 8);
	OK(cuMemcpyAtoH_v2, out, first, 0, sizeof(out));
	HOLDS(out[9], ==, 1009);
	HOLDS(out[10], ==, 7);
	HOLDS(out[11], ==, 7);
	HOLDS(out[12], ==, 1012);
}

FACT(array_row_bounds, MANUAL, SAME, "a copy past an array's end is refused")
{
	uint32_t in[16] = {0};
	CUarray array;

	contract_context();
	array = array_of(20, 0, 0, 0);
	IS(ERROR_INVALID_VALUE, cuMemcpyHtoA_v2, array, 20, in, sizeof(in));
	OK(cuMemcpyHtoA_v2, array, 16, in, sizeof(in));
}

FACT(array_row_async, MANUAL, SAME, "copies with arrays follow the order of their stream")
{
	uint32_t *in = NULL, *out = NULL;
	CUstream stream;
	CUarray array;

	contract_context();
	array = array_of(64, 0, 0, 0);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemAllocHost_v2, (void **)&in, 256);
	OK(cuMemAllocHost_v2, (void **)&out, 256);
	count_up(in, 64, 5);
	contract_spin(stream, 50);
	OK(cuMemcpyHtoAAsync_v2, array, 0, in, 256, stream);
	OK(cuMemcpyAtoHAsync_v2, out, array, 0, 256, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(out[63], ==, 68);
}

FACT(array_plane, MANUAL, SAME, "a rectangle of an array can be written and read")
{
	uint32_t in[8 * 4], out[8 * 4] = {0}, edge = 0;
	CUarray array;
	CUDA_MEMCPY2D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 32,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstXInBytes = 16,
		.dstY = 3,
		.WidthInBytes = 32,
		.Height = 4};
	CUDA_MEMCPY2D from = {.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 32,
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcXInBytes = 16,
		.srcY = 3,
		.WidthInBytes = 32,
		.Height = 4};

	contract_context();
	count_up(in, 32, 70);
	array = to.dstArray = from.srcArray = array_of(100, 50, 0, 0);
	OK(cuMemcpy2D_v2, &to);
	OK(cuMemcpy2D_v2, &from);
	HOLDS(memcmp(in, out, sizeof(in)), ==, 0);
	/* The last of its rows lies at column 4 of row 6. */
	from.srcXInBytes = 4 * 4;
	from.srcY = 6;
	from.WidthInBytes = 4;
	from.Height = 1;
	from.dstHost = &edge;
	OK(cuMemcpy2DUnaligned_v2, &from);
	HOLDS(edge, ==, 70 + 24);
	to.dstY = 47;
	IS(ERROR_INVALID_VALUE, cuMemcpy2D_v2, &to);
	to.dstY = 0;
	to.dstXInBytes = 93 * 4;
	IS(ERROR_INVALID_VALUE, cuMemcpy2D_v2, &to);
	(void)array;
}

FACT(array_volume, MANUAL, SAME, "a box of an array can be written and read")
{
	static uint32_t in[4 * 3 * 2], out[4 * 3 * 2];
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 16,
		.srcHeight = 3,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstXInBytes = 8,
		.dstY = 1,
		.dstZ = 2,
		.WidthInBytes = 16,
		.Height = 3,
		.Depth = 2};
	CUDA_MEMCPY3D back = {.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 16,
		.dstHeight = 3,
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 16,
		.Height = 3,
		.Depth = 2};

	contract_context();
	count_up(in, 24, 500);
	copy.dstArray = array_of(16, 8, 4, 0);
	back.srcArray = array_of(16, 8, 4, CUDA_ARRAY3D_LAYERED);
	OK(cuMemcpy3D_v2, &copy);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = copy.dstArray;
	copy.srcXInBytes = 8;
	copy.srcY = 1;
	copy.srcZ = 2;
	copy.dstArray = back.srcArray;
	copy.dstXInBytes = copy.dstY = copy.dstZ = 0;
	OK(cuMemcpy3DAsync_v2, &copy, NULL);
	OK(cuMemcpy3D_v2, &back);
	HOLDS(memcmp(in, out, sizeof(in)), ==, 0);
	back.srcZ = 3;
	IS(ERROR_INVALID_VALUE, cuMemcpy3D_v2, &back);
}

FACT(array_fresh_context, MANUAL, SAME, "arrays go with their context")
{
	CUDA_ARRAY_DESCRIPTOR desc;
	CUcontext made;
	CUarray array;
	size_t before;

	contract_context();
	before = contract_free_bytes();
	OK(cuCtxCreate_v2, &made, 0, 0);
	array = array_of(4096, 4096, 0, 0);
	OK(cuCtxDestroy_v2, made);
	HOLDS(contract_free_bytes(), >=, before);
	FAILS(cuArrayGetDescriptor_v2, &desc, array);
}

FACT(array_no_plane, MANUAL, SAME, "an array of plain texels has no planes")
{
	CUarray plane, array;

	contract_context();
	array = array_of(64, 64, 0, 0);
	IS(ERROR_INVALID_VALUE, cuArrayGetPlane, &plane, array, 0);
}

FACT(array_no_requirements, MANUAL, SAME,
	"only arrays that are mapped later have requirements, only sparse ones tiles")
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUarray array;

	contract_context();
	array = array_of(64, 64, 0, 0);
	IS(ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements, &requirements, array, 0);
	IS(ERROR_INVALID_VALUE, cuArrayGetSparseProperties, &tiles, array);
}

FACT(mipmap_levels, MANUAL, SAME, "each level of a mipmapped array is half as large")
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {64, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0}, out;
	CUmipmappedArray mipmap;
	CUarray level;

	contract_context();
	OK(cuMipmappedArrayCreate, &mipmap, &desc, 100);
	for (unsigned int i = 0; i < 7; i++) {
		OK(cuMipmappedArrayGetLevel, &level, mipmap, i);
		OK(cuArray3DGetDescriptor_v2, &out, level);
		HOLDS(out.Width, ==, 64u >> i);
		HOLDS(out.Height, ==, 16u >> i ? 16u >> i : 1);
	}
	IS(ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel, &level, mipmap, 7);
	OK(cuMipmappedArrayDestroy, mipmap);
}

FACT(mipmap_apart, MANUAL, SAME, "levels keep what was written, and go with the whole")
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {1024, 1024, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
	uint32_t in[512], out[512] = {0};
	CUarray level[3];
	CUmipmappedArray mipmap;
	size_t before;

	contract_context();
	before = contract_free_bytes();
	OK(cuMipmappedArrayCreate, &mipmap, &desc, 3);
	HOLDS(contract_free_bytes() + (5 << 20), <=, before);
	for (unsigned int i = 0; i < 3; i++) {
		OK(cuMipmappedArrayGetLevel, &level[i], mipmap, i);
		count_up(in, 256, 1000 * i);
		OK(cuMemcpyHtoA_v2, level[i], 0, in, 1024);
	}
	for (unsigned int i = 0; i < 3; i++) {
		OK(cuMemcpyAtoH_v2, out, level[i], 0, 1024);
		HOLDS(out[255], ==, 1000 * i + 255);
	}
	FAILS(cuArrayDestroy, level[1]);
	OK(cuMipmappedArrayDestroy, mipmap);
	HOLDS(contract_free_bytes(), >=, before);
}

/* An array without memory, or the end of the fact where there are none. */
static CUarray deferred(size_t width, size_t height)
{
	int can = 0;

	contract_context();
	OK(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 0);
	if (!can)
		contract_skip("no deferred mapping here");
	return array_of(width, height, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
}

static CUarrayMapInfo map_info(CUarray array, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.resource.array = array,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandle.memHandle = handle,
		.deviceBitMask = 1};

	return info;
}

static CUmemGenericAllocationHandle tiles(size_t bytes)
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;

	prop.allocFlags.usage = 1; /* a pool of tiles */
	OK(cuMemCreate, &handle, bytes, &prop, 0);
	return handle;
}

FACT(array_deferred, MANUAL, SAME,
	"an array mapped later takes nothing, and says what it needs")
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
	size_t before;
	CUarray array;

	deferred(64, 64);
	before = contract_free_bytes();
	array = deferred(2048, 2048);
	HOLDS(contract_free_bytes() + (8 << 20), >=, before);
	OK(cuArrayGetMemoryRequirements, &needs, array, 0);
	HOLDS(needs.size, >=, 16 << 20);
	HOLDS(needs.size % needs.alignment, ==, 0);
	OK(cuArrayDestroy, array);
}

FACT(array_map, MANUAL, SAME,
	"a handle's memory is an array's while it is mapped into it")
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUmemGenericAllocationHandle handle;
	CUarrayMapInfo info;
	CUarray first, second;
	uint32_t in[16], out[16] = {0};
	size_t bytes;

	first = deferred(256, 256);
	second = deferred(256, 256);
	OK(cuArrayGetMemoryRequirements, &needs, first, 0);
	bytes = sl_round_up(2 * needs.size, contract_grain());
	handle = tiles(bytes);
	info = map_info(first, handle);
	OK(cuMemMapArrayAsync, &info, 1, NULL);
	count_up(in, 16, 90);
	OK(cuMemcpyHtoA_v2, first, 0, in, sizeof(in));
	info = map_info(first, 0);
	OK(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(second, handle);
	OK(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(first, handle);
	info.offset = needs.size;
	OK(cuMemMapArrayAsync, &info, 1, NULL);
	OK(cuMemcpyHtoA_v2, first, 0, out, sizeof(out));
	OK(cuMemcpyAtoH_v2, out, second, 0, sizeof(out));
	HOLDS(out[15], ==, 105);
	OK(cuArrayDestroy, first);
	OK(cuArrayDestroy, second);
	OK(cuMemRelease, handle);
}

FACT(array_map_bad, MANUAL, SAME, "only memory made for tiles is mapped, where it fits")
{
	CUmemGenericAllocationHandle handle;
	CUarrayMapInfo info;
	CUarray array, plain;

	array = deferred(256, 256);
	plain = array_of(256, 256, 0, 0);
	info = map_info(array, contract_handle(contract_grain()));
	FAILS(cuMemMapArrayAsync, &info, 1, NULL);
	handle = tiles(contract_grain());
	info = map_info(plain, handle);
	FAILS(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, handle);
	info.deviceBitMask = 2;
	FAILS(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, handle);
	info.offset = contract_grain();
	FAILS(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, 0);
	FAILS(cuMemMapArrayAsync, &info, 1, NULL);
}

FACT(mipmap_map, MANUAL, SAME, "a mipmapped array is mapped as a whole")
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1,
		CUDA_ARRAY3D_DEFERRED_MAPPING};
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUmipmappedArray mipmap;
	CUarrayMapInfo info;
	uint32_t in[16], out[16] = {0};
	CUarray level;

	deferred(64, 64);
	OK(cuMipmappedArrayCreate, &mipmap, &desc, 3);
	OK(cuMipmappedArrayGetMemoryRequirements, &needs, mipmap, 0);
	info = map_info(NULL, tiles(sl_round_up(needs.size, contract_grain())));
	info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	info.resource.mipmap = mipmap;
	OK(cuMemMapArrayAsync, &info, 1, NULL);
	OK(cuMipmappedArrayGetLevel, &level, mipmap, 2);
	count_up(in, 16, 33);
	OK(cuMemcpyHtoA_v2, level, 0, in, sizeof(in));
	OK(cuMemcpyAtoH_v2, out, level, 0, sizeof(out));
	HOLDS(out[15], ==, 48);
	OK(cuMipmappedArrayDestroy, mipmap);
}

FACT(texture_array, MANUAL, SAME, "a texture tells what it was made of")
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, seen;
	CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT,
				  .addressMode = {CU_TR_ADDRESS_MODE_CLAMP}},
			  told;
	CUDA_RESOURCE_VIEW_DESC view;
	CUtexObject texture;

	contract_context();
	resource.res.array.hArray = array_of(64, 64, 0, 0);
	OK(cuTexObjectCreate, &texture, &resource, &desc, NULL);
	OK(cuTexObjectGetResourceDesc, &seen, texture);
	HOLDS((uintptr_t)seen.res.array.hArray, ==, (uintptr_t)resource.res.array.hArray);
	OK(cuTexObjectGetTextureDesc, &told, texture);
	HOLDS(told.addressMode[0], ==, CU_TR_ADDRESS_MODE_CLAMP);
	FAILS(cuTexObjectGetResourceViewDesc, &view, texture);
	OK(cuTexObjectDestroy, texture);
}

FACT(texture_linear, MANUAL, SAME,
	"memory can be a texture where it is aligned and there")
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};
	CUDA_RESOURCE_VIEW_DESC view = {.width = 16};
	CUtexObject texture;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(1 << 20);
	resource.res.linear.devPtr = at;
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = 4096;
	OK(cuTexObjectCreate, &texture, &resource, &desc, NULL);
	OK(cuTexObjectDestroy, texture);
	FAILS(cuTexObjectCreate, &texture, &resource, &desc, &view);
	resource.res.linear.devPtr = at + 4;
	FAILS(cuTexObjectCreate, &texture, &resource, &desc, NULL);
	resource.res.linear.devPtr = at;
	resource.res.linear.numChannels = 3;
	FAILS(cuTexObjectCreate, &texture, &resource, &desc, NULL);
}

FACT(surface_array, MANUAL, SAME, "a surface needs an array made for it")
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, seen;
	CUsurfObject surface;

	contract_context();
	resource.res.array.hArray = array_of(64, 64, 0, CUDA_ARRAY3D_SURFACE_LDST);
	OK(cuSurfObjectCreate, &surface, &resource);
	OK(cuSurfObjectGetResourceDesc, &seen, surface);
	HOLDS((uintptr_t)seen.res.array.hArray, ==, (uintptr_t)resource.res.array.hArray);
	OK(cuSurfObjectDestroy, surface);
	resource.res.array.hArray = array_of(64, 64, 0, 0);
	FAILS(cuSurfObjectCreate, &surface, &resource);
}
