/*
 * array - arrays and managed memory: what is asked for them, and when it is given back
 *
 * Against a driver that hands out handles and fails when told to. peer-failures rows 7 (unmatched
 * frees) and 9 (out of memory by its name).
 */
#include "../books-test.h"

#include "runtime/real/real.h"
#include "runtime/session/held.h"

static CUcontext ctx;
static struct sl_gpu *gpu;
static uintptr_t next_handle = 0x9000;
static CUresult verdict; /* of the driver, on makings and ends */
static unsigned int makings, ends;

static CUresult make(void *out)
{
	makings++;
	if (verdict == CUDA_SUCCESS)
		*(uintptr_t *)out = next_handle;
	return verdict;
}

static CUresult create(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	return make(array);
}

static CUresult create3d(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return array && desc ? make(array) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create_mipmap(
	CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	return make(array);
}

static CUresult destroy(CUarray array)
{
	ends++;
	return verdict;
}

static CUresult destroy_mipmap(CUmipmappedArray array)
{
	ends++;
	return verdict;
}

static CUresult managed(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	return ptr && flags ? make(ptr) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_memory(CUdeviceptr ptr)
{
	ends++;
	return verdict;
}

static void start(void)
{
	stub_install();
	sl_real.cuArrayCreate_v2 = create;
	sl_real.cuArray3DCreate_v2 = create3d;
	sl_real.cuMipmappedArrayCreate = create_mipmap;
	sl_real.cuArrayDestroy = destroy;
	sl_real.cuMipmappedArrayDestroy = destroy_mipmap;
	sl_real.cuMemAllocManaged = managed;
	sl_real.cuMemFree_v2 = free_memory;
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
	gpu = books_gpu();
}

static void check_books(uint64_t bytes)
{
	check_daemon(bytes);
	CHECK_EQ(sl_held_bytes(gpu), bytes);
}

/* Whole MiB, so that they differ from charged bytes. */
static const struct {
	const char *name;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int levels;
	uint64_t bytes; /* 0: the daemon is not asked */
} rows[] = {
	{"line of floats", {131072, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 2 * SL_MIB},
	{"plane of bytes", {4096, 4096, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1,
		16 * SL_MIB},
	{"plane of halves", {4096, 4096, 0, CU_AD_FORMAT_HALF, 2, 0}, 1, 64 * SL_MIB},
	{"rows are padded to tiles", {1, 32768, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1,
		2 * SL_MIB},
	{"and columns", {65536, 9, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 16 * SL_MIB},
	{"volume", {256, 256, 256, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 64 * SL_MIB},
	{"layers", {1024, 1024, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, 1,
		24 * SL_MIB},
	{"layers of lines", {131072, 0, 4, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED},
		1, 8 * SL_MIB},
	{"cube", {1024, 1024, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, 1,
		24 * SL_MIB},
	{"NV12", {4096, 4096, 0, (CUarray_format)0xb0, 1, 0}, 1, 24 * SL_MIB},
	{"BC1", {4096, 4096, 0, (CUarray_format)0x91, 4, 0}, 1, 8 * SL_MIB},
	{"one level", {2048, 2048, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 64 * SL_MIB},
	{"four levels", {2048, 2048, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 4, 85 * SL_MIB},
	{"levels of a volume", {512, 512, 64, CU_AD_FORMAT_FLOAT, 1, 0}, 2, 72 * SL_MIB},
	{"levels of layers", {512, 512, 64, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
		2, 80 * SL_MIB},
	{"sparse", {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE}, 1, 0},
	{"deferred",
		{4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING}, 1,
		0},
	{"no such format", {4096, 4096, 0, (CUarray_format)0x7f, 4, 0}, 1, 0},
	{"no channels", {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 0, 0}, 1, 0},
	{"too wide for any GPU", {1 << 30, 4096, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 0},
	{"too deep", {64, 64, 1 << 20, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 0},
	{"too many layers", {64, 64, 4096, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED},
		1, 0},
};

static void body_sizes(void)
{
	CUmipmappedArray mipmap;
	CUarray array;

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		uint64_t bytes = sl_round_up(rows[i].bytes, 2 * SL_MIB);

		fprintf(stderr, "  %s\n", rows[i].name);
		if (rows[i].levels == 1) {
			CHECK_EQ(cuArray3DCreate_v2(&array, &rows[i].desc), CUDA_SUCCESS);
			check_books(bytes);
			CHECK_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
		} else {
			CHECK_EQ(cuMipmappedArrayCreate(
					 &mipmap, &rows[i].desc, rows[i].levels),
				CUDA_SUCCESS);
			check_books(bytes);
			CHECK_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
		}
		check_books(0);
	}
	fake_stop();
}

static const CUDA_ARRAY_DESCRIPTOR plane = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};

static void body_errors(void)
{
	CUDA_ARRAY3D_DESCRIPTOR huge = {
		16384, 16384, 16, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED};
	CUarray a, b;

	start();
	CHECK_EQ(cuArray3DCreate_v2(NULL, &huge), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuArray3DCreate_v2(&a, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(FAKE(asks), 0);
	/* 64 GiB: the driver is not called. */
	makings = 0;
	CHECK_EQ(cuArray3DCreate_v2(&a, &huge), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(makings, 0);
	verdict = CUDA_ERROR_UNKNOWN;
	CHECK_EQ(cuArrayCreate_v2(&a, &plane), CUDA_ERROR_UNKNOWN);
	check_books(0);
	verdict = CUDA_SUCCESS;
	CHECK_EQ(cuArrayCreate_v2(&a, &plane), CUDA_SUCCESS);
	check_books(4 * SL_MIB);
	/* What the driver does not end stays charged; what we do not know is its affair. */
	verdict = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_EQ(cuArrayDestroy(a), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_books(4 * SL_MIB);
	verdict = CUDA_SUCCESS;
	CHECK_EQ(cuArrayDestroy((CUarray)0x1234), CUDA_SUCCESS);
	check_books(4 * SL_MIB);
	CHECK_EQ(cuArrayDestroy(a), CUDA_SUCCESS);
	check_books(0);
	CHECK_EQ(cuArrayDestroy(a), CUDA_SUCCESS);
	check_books(0);
	/* A handle that comes again although its end was not seen. */
	CHECK_EQ(cuArrayCreate_v2(&a, &plane), CUDA_SUCCESS);
	CHECK_EQ(cuArrayCreate_v2(&b, &plane), CUDA_SUCCESS);
	CHECK_EQ((uintptr_t)a, (uintptr_t)b);
	check_books(4 * SL_MIB);
	fake_stop();
}

/* All that was made in a context goes with it, and nothing of another's. */
static void body_contexts(void)
{
	CUcontext other;
	CUdeviceptr at;
	CUarray array;

	start();
	CHECK_EQ(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	next_handle += 16;
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	next_handle += 16;
	CHECK_EQ(cuMemAllocManaged(&at, 6 * SL_MIB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	check_books(14 * SL_MIB);
	CHECK_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
	check_books(4 * SL_MIB);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	check_books(0);
	/* One that is not destroyed keeps its own. */
	CHECK_EQ(cuDevicePrimaryCtxRetain(&other, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
	CHECK_EQ(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	CHECK_EQ(cuCtxDestroy_v2(other), CUDA_ERROR_INVALID_VALUE);
	check_books(4 * SL_MIB);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	check_books(0);
	fake_stop();
}

static void body_managed(void)
{
	CUdeviceptr at;

	start();
	CHECK_EQ(cuMemAllocManaged(&at, 9 * SL_GIB, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAllocManaged(NULL, 9 * SL_GIB, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(FAKE(asks), 0);
	CHECK_EQ(cuMemAllocManaged(&at, 9 * SL_GIB, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocManaged(&at, 5 * SL_MIB, 1), CUDA_SUCCESS);
	check_books(6 * SL_MIB);
	verdict = CUDA_ERROR_INVALID_VALUE;
	CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
	check_books(6 * SL_MIB);
	verdict = CUDA_SUCCESS;
	CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
	check_books(0);
	CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
	check_books(0);
	fake_stop();
}

#define TEST(name, limit_s)                       \
	static void test_##name(void **state)     \
	{                                         \
		in_child(body_##name, (limit_s)); \
	}
TEST(sizes, 30)
TEST(errors, 20)
TEST(contexts, 20)
TEST(managed, 20)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_managed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
