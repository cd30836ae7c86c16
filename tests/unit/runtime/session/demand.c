/*
 * demand - what the program gets when it is denied, when the driver fails, and when limits change
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/gate/gate.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"

#include <setjmp.h>

static CUcontext ctx;

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
}

static CUresult denied_with(uint32_t flags)
{
	CUdeviceptr a;

	fake_lock();
	fake.deny = true;
	fake.deny_flags = flags;
	fake_unlock();
	return cuMemAlloc_v2(&a, 32 * SL_MIB);
}

static void body_denials(void)
{
	CUdeviceptr a;

	start();
	CHECK_EQ(denied_with(0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(denied_with(SL_DENY_GPU_LOST), CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* A flag of a newer daemon. */
	CHECK_EQ(denied_with(0x80), CUDA_ERROR_OUT_OF_MEMORY);
	/* Lost GPUs may come back, and a denial is the affair of one demand. */
	CHECK_EQ(denied_with(SL_DENY_GPU_LOST), CUDA_ERROR_DEVICE_UNAVAILABLE);
	fake_lock();
	fake.deny = false;
	fake.deny_flags = 0;
	fake_unlock();
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	/* Above the limit the daemon says no, and remembers it. */
	CHECK_EQ(cuMemAlloc_v2(&a, 9 * SL_GIB), CUDA_ERROR_OUT_OF_MEMORY);
	fake_stop();
}

/* Granted, and the driver fails with an error of its own: the program gets that, and the grant
 * goes back whole. */
static void fails_with(CUresult error)
{
	unsigned int commits = FAKE(commits);
	CUdeviceptr a;

	stub_lock();
	stub.fault = error;
	stub.fault_at = stub.calls + 2; /* the reservation, then the creation */
	stub_unlock();
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), error);
	CHECK(fake_wait(&fake.commits, commits + 1));
	CHECK_EQ(FAKE(held_bytes), 0);
	CHECK_EQ(FAKE(fails), 0);
	CHECK_EQ(STUB(created_bytes), 0);
	CHECK(!FAKE(protocol_error));
}

static void body_driver_errors(void)
{
	start();
	fails_with(CUDA_ERROR_UNKNOWN);
	fails_with(CUDA_ERROR_DEVICE_UNAVAILABLE);
	fails_with(CUDA_ERROR_LAUNCH_FAILED);
	fake_stop();
}

static CUresult launch(void)
{
	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void fill_gpu(unsigned int calls)
{
	stub_lock();
	stub.no_room = calls;
	stub_unlock();
}

static CUresult (*launch_really)(CUfunction, unsigned int, unsigned int, unsigned int,
	unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void **,
	void **);
static unsigned int right, wrong;

static CUresult launch_looked_at(CUfunction f, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	bool same = f == (CUfunction)1 && grid_x == 2 && grid_y == 3 && grid_z == 4 &&
		    block_x == 5 && block_y == 6 && block_z == 7 && shared == 8 &&
		    stream == (CUstream)9 && params == (void **)10 &&
		    extra == (void **)11;

	right += same;
	wrong += !same;
	return launch_really(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
		stream, params, extra);
}

static CUresult launch_all_told(void)
{
	return cuLaunchKernel((CUfunction)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9,
		(void **)10, (void **)11);
}

/* A launch that is made again, or that had to wait or to be made known first, is the one that was
 * asked for. */
static void body_arguments(void)
{
	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	launch_really = sl_real.cuLaunchKernel;
	sl_real.cuLaunchKernel = launch_looked_at;
	CHECK_EQ(launch_all_told(), CUDA_SUCCESS);
	fill_gpu(3);
	CHECK_EQ(launch_all_told(), CUDA_SUCCESS);
	sl_gate_listen();
	CHECK_EQ(launch_all_told(), CUDA_SUCCESS);
	sl_gate_listen();
	fill_gpu(2);
	CHECK_EQ(launch_all_told(), CUDA_SUCCESS);
	CHECK_EQ(sl_gate_self->depth, 0);
	CHECK_EQ(right, 1 + 4 + 1 + 3);
	CHECK_EQ(wrong, 0);
	sl_real.cuLaunchKernel = launch_really;
	fake_stop();
}

static sigjmp_buf way_out;

static CUresult launch_left(CUfunction f, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	(void)f, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
	(void)block_z, (void)shared, (void)stream, (void)params, (void)extra;
	siglongjmp(way_out, 1);
}

/* A program's handler jumps out of a launch, and the same line launches again: that is no launch
 * within one. */
static void body_left_by_a_jump(void)
{
	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	launch_really = sl_real.cuLaunchKernel;
	sl_real.cuLaunchKernel = launch_left;
	for (volatile int i = 0; i < 3; i++) {
		if (!sigsetjmp(way_out, 0))
			(void)launch();
	}
	sl_real.cuLaunchKernel = launch_really;
	CHECK_EQ(sl_gate_self->depth, 1);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK_EQ(sl_gate_self->depth, 0);
	fake_stop();
}

/* Memory that the driver takes for itself is asked for as any other, and more of it each time. */
static void body_room(void)
{
	CUcontext other;
	unsigned int asks;

	start();
	fill_gpu(3);
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 3);
	CHECK_EQ(FAKE(asked_bytes), 64 * SL_MIB);
	CHECK_EQ(FAKE(held_bytes), 0);
	CHECK_EQ(FAKE(uncommitted_bytes), 0);
	fill_gpu(1);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&other, 0), CUDA_SUCCESS);
	asks = FAKE(asks);
	fill_gpu(1);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), asks + 1);
	CHECK_EQ(FAKE(asked_bytes), 2 * SL_MIB);
	CHECK_EQ(STUB(launches), 1);
	/* A denied call gets the driver's answer; so does one that asks in vain. */
	fake_lock();
	fake.deny = true;
	fake_unlock();
	asks = FAKE(asks);
	fill_gpu(1000);
	CHECK_EQ(launch(), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asks), asks + 1);
	fake_lock();
	fake.deny = false;
	fake_unlock();
	CHECK_EQ(launch(), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(FAKE(asks) > asks + 2);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	CHECK_EQ(FAKE(held_bytes), 0);
	fill_gpu(0);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

/* The first amount is asked for twice, since free memory may have been measured too long ago. Then
 * each is twice the last. Before it exceeds the rest of the request, exactly that rest is asked
 * for, and finally the rest of the limit. */
static void body_room_small(void)
{
	static const uint64_t asked_mib[] = {2, 2, 4, 8, 16, 24, 48, 58};

	start();
	fake_lock();
	fake.limit_bytes = 66 * SL_MIB; /* the request is half of it */
	fake.others_bytes = 8 * SL_MIB;
	fake_unlock();
	fake_send_gpu();
	for (unsigned int i = 0; i < SL_ARRAY_LEN(asked_mib); i++) {
		fill_gpu(i + 1);
		CHECK_EQ(launch(), CUDA_SUCCESS);
		CHECK_EQ(FAKE(asked_bytes), asked_mib[i] * SL_MIB);
	}
	fill_gpu(1000);
	CHECK_EQ(launch(), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asked_bytes), 58 * SL_MIB);
	fake_stop();
}

static void body_room_capture(void)
{
	CUgraph graph;

	start();
	CHECK_EQ(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	fill_gpu(1);
	CHECK_EQ(launch(), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asks), 0);
	CHECK_EQ(cuStreamEndCapture(NULL, &graph), CUDA_SUCCESS);
	fake_stop();
}

/* A GPU message counts at once, in everything that tells figures or knows a limit. */
static void set_limit(uint64_t bytes)
{
	uint8_t uuid[16];
	struct sl_gpu *gpu;

	stub_uuid(0, uuid);
	gpu = sl_session_gpu(uuid);
	fake_lock();
	fake.limit_bytes = bytes;
	fake_unlock();
	fake_send_gpu();
	for (int i = 0; i < 20000; i++) {
		uint64_t free_bytes, total_bytes;

		sl_session_view(gpu, &free_bytes, &total_bytes);
		if (total_bytes == bytes)
			return;
		usleep(100);
	}
	CHECK_EQ(bytes, 0);
}

static void check_figures(uint64_t total, uint64_t held)
{
	size_t free_bytes, total_bytes;

	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
	CHECK_EQ(total_bytes, total);
	CHECK_EQ(free_bytes, total > held ? total - held : 0);
	CHECK_EQ(cuDeviceTotalMem_v2(&total_bytes, 0), CUDA_SUCCESS);
	CHECK_EQ(total_bytes, total);
}

static void body_limits(void)
{
	CUdeviceptr a, b;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 512 * SL_MIB), CUDA_SUCCESS);
	check_figures(8 * SL_GIB, 512 * SL_MIB);
	/* Higher: a demand that was denied is granted. */
	CHECK_EQ(cuMemAlloc_v2(&b, 9 * SL_GIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asks), 2);
	set_limit(16 * SL_GIB);
	check_figures(16 * SL_GIB, 512 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&b, 9 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	/* Lower than the held memory: nothing is free, and held memory stays. */
	set_limit(256 * SL_MIB);
	check_figures(256 * SL_MIB, 512 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&b, 257 * SL_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	check_figures(256 * SL_MIB, 0);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)          \
	X(denials)        \
	X(driver_errors)  \
	X(room)           \
	X(arguments)      \
	X(left_by_a_jump) \
	X(room_small)     \
	X(room_capture)   \
	X(limits)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
