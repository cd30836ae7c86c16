/*
 * through - a trampoline passes everything on, and waits at the closed door
 */
#include "../child.h"

#include "runtime/gate/door.h"
#include "runtime/hooks/through.h"
#include "runtime/real/real.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <string.h>

extern void *sl_through_slots[];
extern const char sl_through_trampolines[];

/* More than any function of the driver takes. */
#define WORDS_PARAMS                                                                    \
	long a, long b, long c, long d, long e, long f, double p, double q, double r,   \
		double s, double t, double u, double v, double w, long s0, long s1,     \
		long s2, long s3, long s4, long s5, long s6, long s7, long s8, long s9, \
		long s10, long s11

static unsigned int called;

static int real_function(WORDS_PARAMS)
{
	void *frames[8];

	CHECK_EQ(a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f, 654321);
	CHECK_EQ(p + 10 * q + 100 * r + 1000 * s + 10000 * t + 100000 * u + 1000000 * v +
			 10000000 * w,
		87654321);
	CHECK_EQ(s0 == 100 && s1 == 101 && s2 == 102 && s3 == 103 && s4 == 104 &&
			 s5 == 105 && s6 == 106 && s7 == 107 && s8 == 108 && s9 == 109 &&
			 s10 == 110 && s11 == 111,
		1);
	CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
	/* Debuggers and profilers see the caller through the trampoline. */
	CHECK(backtrace(frames, (int)SL_ARRAY_LEN(frames)) >= 4);
	/* Inside of the door, unless in bypass. */
	CHECK_EQ(sl_door_self ? sl_door_self->calls : 1, 1);
	__atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
	errno = 78;
	return 4711;
}

static int call(void *trampoline)
{
	int (*function)(WORDS_PARAMS);

	*(void **)&function = trampoline;
	return function(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 100, 101, 102, 103, 104,
		105, 106, 107, 108, 109, 110, 111);
}

/* The trampoline of that name, which leads to real_function(). */
static void *prepare(const char *name)
{
	void *trampoline = sl_through_named(name);

	CHECK(trampoline);
	sl_through_slots[((const char *)trampoline - sl_through_trampolines) / 16] =
		(void *)real_function;
	CHECK_EQ(sl_through_of((void *)real_function) == trampoline, 1);
	return trampoline;
}

static void start(bool use_membarrier)
{
	setenv("SLUICE_SOCKET", "/none", 1);
	sl_gate_start(use_membarrier);
}

static void call_again(bool use_membarrier)
{
	void *trampoline = prepare("cuEventCreate");

	start(use_membarrier);
	/* The first call makes the thread's record. */
	for (int i = 0; i < 3; i++) {
		errno = 77;
		CHECK_EQ(call(trampoline), 4711);
		CHECK_EQ(errno, 78);
		CHECK_EQ(sl_door_self->calls, 0);
	}
	CHECK_EQ(called, 3);
}

static void body_arguments(void)
{
	call_again(true);
}

static void body_arguments_fenced(void)
{
	call_again(false);
}

static void body_bypass(void)
{
	void *trampoline = prepare("cuEventCreate");

	unsetenv("SLUICE_SOCKET");
	unsetenv("SLUICE_WORKLOAD");
	CHECK_EQ(call(trampoline), 4711);
	CHECK(!sl_door_self);
}

static int ready, closed;

static void *call_twice(void *trampoline)
{
	CHECK_EQ(call(trampoline), 4711);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&closed, __ATOMIC_ACQUIRE))
		usleep(100);
	CHECK_EQ(call(trampoline), 4711);
	return NULL;
}

/* Called for the first time by one thread, not so by the other. */
static void body_waits(void)
{
	void *trampoline = prepare("cuCtxGetCurrent");
	pthread_t threads[2];

	start(true);
	CHECK_EQ(pthread_create(&threads[0], NULL, call_twice, trampoline), 0);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(100);
	sl_door_close();
	__atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&threads[1], NULL, call_twice, trampoline), 0);
	while (sl_gate_parked() < 2)
		usleep(100);
	CHECK(sl_door_is_drained());
	CHECK_EQ(__atomic_load_n(&called, __ATOMIC_ACQUIRE), 1);
	sl_door_open();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(called, 4);
	CHECK(sl_door_is_drained());
}

/* Each row has the trampoline that is exported under its name. */
static void body_names(void)
{
	CHECK_EQ(sl_through_named("cuArray3DGetDescriptor") == sl_through_trampolines, 1);
	CHECK_EQ(sl_through_named("cuCtxGetCurrent") == (void *)cuCtxGetCurrent, 1);
	CHECK_EQ(sl_through_named("cuEventCreate") == (void *)cuEventCreate, 1);
	CHECK_EQ(sl_through_named("cuUserObjectRetain") == (void *)cuUserObjectRetain, 1);
	/* Hooked, direct, unknown. */
	CHECK(!sl_through_named("cuMemAlloc_v2"));
	CHECK(!sl_through_named("cuCheckpointProcessLock"));
	CHECK(!sl_through_named("cuCtxGetCurren"));
	CHECK(!sl_through_named("zu"));
	CHECK(!sl_through_named(""));
	CHECK(!sl_through_of((void *)real_function));
	/* No driver is loaded. */
	CHECK_EQ(cuEventCreate(NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
TEST(names)
TEST(arguments)
TEST(arguments_fenced)
TEST(bypass)
TEST(waits)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_arguments_fenced),
		cmocka_unit_test(test_bypass),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
