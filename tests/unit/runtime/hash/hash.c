/*
 * hash - the hash of chunks: against a slow one, against fixed vectors, and on a software GPU
 *
 * argv[1] is the folder of the software GPU's libraries, argv[2] the kernel built so that it
 * works as on a GPU. Clients are processes of their own, in which the runtime's unit runs by
 * itself, with nothing hooked.
 */
#include "../../softgpu/boxed.h"

#include "base/hostmodule.h"
#include "runtime/gate/control.h"
#include "runtime/hash/hash.h"
#include "runtime/hash/math.h"
#include "runtime/real/real.h"

#define UNIT SL_HASH_UNIT_BYTES

static const struct sl_hash_key key = {
	{0x0123456789abcdef, 0xfedcba9876543210, 0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0}};

static void pattern(uint8_t *data, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * i * 7 + i * 13 + (i >> 8));
}

/* --- the slow one: bit by bit, from the definition alone ------------------------------------ */

static uint64_t slow_add(uint64_t x, uint64_t y)
{
	return (x + y) % ((1ull << 61) - 1);
}

static uint64_t slow_times(uint64_t x, uint64_t y)
{
	uint64_t out = 0;

	for (int bit = 60; bit >= 0; bit--) {
		out = slow_add(out, out);
		if (y >> bit & 1)
			out = slow_add(out, x);
	}
	return out;
}

static uint64_t slow_half(uint64_t a, uint64_t b, const uint8_t *data, uint64_t bytes)
{
	uint64_t sum = 0, column = 1, line = 1;

	a = (a & ((1ull << 61) - 1)) % ((1ull << 61) - 1);
	b = (b & ((1ull << 61) - 1)) % ((1ull << 61) - 1);
	for (uint64_t i = 0; i < bytes / 4; i++) {
		uint64_t word = data[4 * i] | (uint64_t)data[4 * i + 1] << 8 |
				(uint64_t)data[4 * i + 2] << 16 |
				(uint64_t)data[4 * i + 3] << 24;

		if (i && i % 1024 == 0) {
			line = slow_times(line, b);
			column = 1;
		}
		sum = slow_add(sum, slow_times(slow_times(column, line), word));
		column = slow_times(column, a);
	}
	return sum;
}

static void test_against_the_slow_one(void **state)
{
	static const uint64_t edge[] = {0, 1, (1ull << 61) - 2, (1ull << 61) - 1,
		1ull << 61, UINT64_MAX, 0x123456789abcdef0};
	static const uint64_t sizes[] = {
		4, 8, 12, 16, 20, 4092, 4096, 4100, 12288, 65540};
	static uint8_t data[65540] __attribute__((aligned(4)));
	struct sl_hash got;

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		memset(data, 0xff, sizeof(data));
		if (kind)
			pattern(data, sizeof(data));
		for (size_t s = 0; s < SL_ARRAY_LEN(sizes); s++) {
			const uint64_t *e = &edge[s % SL_ARRAY_LEN(edge)];
			struct sl_hash_key k = {{e[0], edge[(s * 3 + kind) % 7],
				edge[(s + 5) % 7], edge[(s + 2) % 7]}};

			sl_hash_bytes(&k, data, sizes[s], &got);
			assert_row_u64("low", got.low,
				slow_half(k.word[0], k.word[1], data, sizes[s]));
			assert_row_u64("high", got.high,
				slow_half(k.word[2], k.word[3], data, sizes[s]));
		}
	}
}

/* Worked out by a program in another language. The pattern under the key above. */
static void test_vectors(void **state)
{
	static const struct {
		uint64_t bytes, low, high;
	} row[] = {
		{4, 0x0000000066361400, 0x0000000066361400},
		{8, 0x1950c83f64c2ed4a, 0x199026bdafed67f7},
		{16, 0x0449192156eba2dc, 0x0d354fe77363ccac},
		{20, 0x16f1c9906d70d3c7, 0x13b50e683611edea},
		{4096, 0x072a8691687ad236, 0x16680bfc5bea1e0d},
		{4100, 0x0b6ecad62739c8e8, 0x00d092a0c48a2230},
		{65536, 0x1bcb2330bb7f7fa2, 0x1e7b30aa6f41ced4},
	};
	static uint8_t data[65536] __attribute__((aligned(4)));
	struct sl_hash got;
	char name[40];

	(void)state;
	pattern(data, sizeof(data));
	for (size_t i = 0; i < SL_ARRAY_LEN(row); i++) {
		snprintf(name, sizeof(name), "%" PRIu64 " bytes", row[i].bytes);
		sl_hash_bytes(&key, data, row[i].bytes, &got);
		assert_row_u64(name, got.low, row[i].low);
		assert_row_u64(name, got.high, row[i].high);
		assert_row_u64(name, got.zero, false);
	}
}

static void test_what_must_differ(void **state)
{
	static uint8_t data[3 * 4096] __attribute__((aligned(4)));
	struct sl_hash was, is;

	(void)state;
	sl_hash_bytes(&key, data, sizeof(data), &was);
	assert_row_u64("zeros", was.zero, true);
	assert_row_u64("zeros", was.low | was.high, 0);
	for (uint64_t bit = 0; bit < 8 * sizeof(data); bit += 61) {
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		sl_hash_bytes(&key, data, sizeof(data), &is);
		assert_row_u64("one bit is not zeros", is.zero, false);
		if (is.low == was.low || is.high == was.high)
			fail_msg("bit %" PRIu64 " makes no difference", bit);
		was = is;
	}
	/* Pages that changed places. */
	pattern(data, sizeof(data));
	sl_hash_bytes(&key, data, sizeof(data), &was);
	for (int i = 0; i < 4096; i++) {
		uint8_t first = data[i];

		data[i] = data[4096 + i];
		data[4096 + i] = first;
	}
	sl_hash_bytes(&key, data, sizeof(data), &is);
	assert_row_u64("other order", is.low == was.low || is.high == was.high, false);
}

static void test_own_key(void **state)
{
	const struct sl_hash_key *own = sl_hash_own_key();
	struct sl_hash_key was;

	(void)state;
	assert_non_null(own);
	assert_ptr_equal(own, sl_hash_own_key());
	was = *own;
	sl_hash_forget();
	own = sl_hash_own_key();
	assert_row_u64("a new one", memcmp(own, &was, sizeof(was)) == 0, false);
}

/* --- the kernel as it runs on GPUs ------------------------------------------------------------ */

#define TILE SL_HASH_TILE_BYTES

static const char *kernel_path;

static void run_blocks(const struct sl_host_module *m, uint32_t blocks, uint32_t count)
{
	struct sl_hash_key k = key;
	void *params[] = {&k.word[0], &k.word[1], &k.word[2], &k.word[3], &count};

	for (uint32_t i = blocks; i-- > 0;) {
		struct sl_kernel_ctx ctx = {
			{i, 0, 0}, {SL_HASH_THREADS, 1, 1}, {blocks, 1, 1}};

		m->kernels[0]->run(&ctx, params);
	}
}

static uint64_t whole(const struct sl_hash_job *job, int half)
{
	return (uint64_t)(((unsigned __int128)job->top[half] << 32) + job->bottom[half]) %
	       SL_HASH_PRIME;
}

static void test_kernel_as_on_gpus(void **state)
{
	void *library = dlopen(kernel_path, RTLD_NOW | RTLD_LOCAL);
	const struct sl_host_module *m =
		library ? dlsym(library, "sl_host_module") : NULL;
	static struct sl_hash_job job[SL_HASH_JOBS];
	uint8_t *data = aligned_alloc(4096, 6 * TILE);
	/* Tiles of each job. */
	static const uint64_t tiles[] = {1, 3, 1, 1};
	uint64_t tile = 0;

	(void)state;
	assert_non_null(m);
	assert_non_null(data);
	*m->globals[0]->where = job;
	assert_row_u64("jobs", m->globals[0]->bytes, sizeof(job));
	run_blocks(m, 1, 0);
	pattern(data, 6 * TILE);
	memset(data + 4 * TILE, 0, TILE);
	data[6 * TILE - 1] ^= 0x40;
	for (size_t i = 0; i < SL_ARRAY_LEN(tiles); i++) {
		job[i].address = (uintptr_t)data + tile * TILE;
		job[i].tile = tile;
		tile += tiles[i];
	}
	run_blocks(m, 6, SL_ARRAY_LEN(tiles));
	for (size_t i = 0; i < SL_ARRAY_LEN(tiles); i++) {
		struct sl_hash want;

		sl_hash_bytes(&key, data + job[i].tile * TILE, tiles[i] * TILE, &want);
		assert_row_u64("low", whole(&job[i], 0), want.low);
		assert_row_u64("high", whole(&job[i], 1), want.high);
		assert_row_u64("zero", job[i].bits == 0, want.zero);
		assert_row_u64("zero", want.zero, i == 2);
	}
	free(data);
}

/* --- on a software GPU ------------------------------------------------------------------------ */

static CUcontext start_runtime(void)
{
	CUcontext ctx = client_start();

	sl_real_offer(open_library("libcuda.so.1"));
	sl_control_start();
	return ctx;
}

static bool becomes_ready(CUcontext want, unsigned patience_ms)
{
	CUcontext ctx = NULL;

	for (unsigned ms = 0; ms < patience_ms; ms += 5) {
		if (sl_hasher_ready(0, &ctx)) {
			MUST(ctx == want, true);
			return true;
		}
		nap_ms(5);
	}
	return false;
}

static void must_be_hash_of(const struct sl_hash_item *item, const uint8_t *data)
{
	struct sl_hash want;

	sl_hash_bytes(sl_hash_own_key(), data, item->bytes, &want);
	MUST(item->out.low, want.low);
	MUST(item->out.high, want.high);
	MUST(item->out.zero, want.zero);
}

/* 1: rubbish, 2: zeros, 3: one byte at the very end, 4: two units of a pattern. */
static CUdeviceptr lay_out(uint8_t *data)
{
	CUdeviceptr at;

	srandom(1);
	for (uint64_t i = 0; i < UNIT; i++)
		data[i] = (uint8_t)random();
	data[3 * UNIT - 1] = 0x80;
	pattern(data + 3 * UNIT, 2 * UNIT);
	MUST(CU(cuMemAlloc_v2)(&at, 5 * UNIT), CUDA_SUCCESS);
	MUST(CU(cuMemcpyHtoD_v2)(at, data, 5 * UNIT), CUDA_SUCCESS);
	return at;
}

enum { MANY = SL_HASH_JOBS + 6 };

static void body_of_run(int say)
{
	static struct sl_hash_item item[MANY];
	uint8_t *data = calloc(5, UNIT);
	CUcontext ctx = start_runtime();
	CUdeviceptr at = lay_out(data);

	(void)say;
	sl_hasher_context(ctx, 0);
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, PATIENCE_MS), true);
	for (uint32_t i = 0; i < 4; i++) {
		item[i].address = at + i * UNIT;
		item[i].bytes = i == 3 ? 2 * UNIT : UNIT;
	}
	for (int again = 0; again < 2; again++) {
		MUST(sl_hasher_run(ctx, item, 4), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 4; i++)
			must_be_hash_of(&item[i], data + i * UNIT);
	}
	MUST(item[1].out.zero, true);
	MUST(item[2].out.zero, false);
	/* More than one launch takes. */
	for (uint32_t i = 0; i < MANY; i++)
		item[i] = (struct sl_hash_item){
			at + UNIT * (i % 7 == 0 ? 2 : 1), UNIT, {1, 1, false}};
	MUST(sl_hasher_run(ctx, item, MANY), CUDA_SUCCESS);
	for (uint32_t i = 0; i < MANY; i++)
		MUST(item[i].out.zero, i % 7 != 0);
	must_be_hash_of(&item[MANY / 7 * 7], data + 2 * UNIT);
	MUST(sl_hasher_run(ctx, item, 0), CUDA_SUCCESS);
	item[1].bytes = UNIT / 2;
	MUST(sl_hasher_run(ctx, item, 2), CUDA_ERROR_INVALID_VALUE);
	sl_hasher_drop_context(NULL);
	sl_hasher_drop_context(ctx);
	MUST(sl_hasher_ready(0, &ctx), false);
	MUST(sl_hasher_run(ctx, item, 1), CUDA_ERROR_INVALID_CONTEXT);
}

/* While something is being moved nothing is loaded; afterwards it is. */
static void body_of_moving(int say)
{
	CUcontext ctx = start_runtime();

	(void)say;
	MUST(sl_control_close(SL_S), true);
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, 600), false);
	/* A thread that drops a context is not kept waiting by that. */
	sl_hasher_drop_context(ctx);
	sl_hasher_context(ctx, 0);
	sl_control_open();
	MUST(becomes_ready(ctx, PATIENCE_MS), true);
}

/* A context that goes while the code is being loaded into it. */
static void body_of_going(int say)
{
	CUcontext ctx = start_runtime(), own;

	(void)say;
	for (int i = 0; i < 4; i++) {
		MUST(CU(cuCtxCreate_v2)(&own, 0, 0), CUDA_SUCCESS);
		sl_hasher_context(own, 0);
		nap_ms(199 + (unsigned)i);
		sl_hasher_drop_context(own);
		MUST(CU(cuCtxDestroy_v2)(own), CUDA_SUCCESS);
	}
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, PATIENCE_MS), true);
}

/* What the environment has go wrong is the row's affair. */
static void body_of_late(int say)
{
	CUcontext ctx = start_runtime();

	(void)say;
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, PATIENCE_MS), true);
}

static void body_of_never(int say)
{
	CUcontext ctx = start_runtime();
	CUdeviceptr at;

	(void)say;
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, 700), false);
	MUST(CU(cuMemAlloc_v2)(&at, UNIT), CUDA_SUCCESS);
}

/* The program makes no calls of that name here, so the plan counts ours. */
static void body_of_failing_run(int say)
{
	struct sl_hash_item item = {0, UNIT, {0, 0, false}};
	CUcontext ctx = start_runtime();

	(void)say;
	MUST(CU(cuMemAlloc_v2)(&item.address, UNIT), CUDA_SUCCESS);
	sl_hasher_context(ctx, 0);
	MUST(becomes_ready(ctx, PATIENCE_MS), true);
	MUST(sl_hasher_run(ctx, &item, 1) != CUDA_SUCCESS, true);
	MUST(sl_hasher_run(ctx, &item, 1), CUDA_SUCCESS);
}

static void test_on_the_gpu(void **state)
{
	static const struct {
		const char *name, *faults;
		void (*body)(int say);
	} row[] = {
		{"run", NULL, body_of_run},
		{"while something is moved", NULL, body_of_moving},
		{"a context that goes", NULL, body_of_going},
		{"no memory at first", "cuModuleLoadData:1=oom", body_of_late},
		{"no memory for the first launch", "cuLaunchKernel:1=oom", body_of_late},
		{"no image is taken", "cuModuleLoadData:@1=invalid_image", body_of_never},
		{"no stream", "cuStreamCreate:@1=unknown", body_of_never},
		{"list not copied", "cuMemcpyHtoDAsync_v2:1=unknown",
			body_of_failing_run},
		{"not launched", "cuLaunchKernel:2=unknown", body_of_failing_run},
		{"not copied back", "cuMemcpyDtoHAsync_v2:1=unknown",
			body_of_failing_run},
		{"not waited for", "cuStreamSynchronize:1=unknown", body_of_failing_run},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(row); i++) {
		if (row[i].faults)
			assert_int_equal(
				setenv(SL_SOFTGPU_ENV_FAULTS, row[i].faults, 1), 0);
		client_must_succeed(row[i].name, row[i].body);
		assert_int_equal(unsetenv(SL_SOFTGPU_ENV_FAULTS), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_against_the_slow_one),
		cmocka_unit_test(test_what_must_differ),
		cmocka_unit_test(test_own_key),
		cmocka_unit_test(test_kernel_as_on_gpus),
		cmocka_unit_test_setup_teardown(test_on_the_gpu, box_start, box_stop),
	};

	if (argc != 3)
		return 2;
	folder = argv[1];
	kernel_path = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
