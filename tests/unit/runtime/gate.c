/*
 * gate - held back means held back, whatever the threads do
 *
 * Row 30 of peer-failures (no drain before unmap) rests on this unit.
 */
#include "child.h"

#include "runtime/gate.h"
#include "runtime/mode.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define ROUNDS  100

static int stop;
static int inside;
/* Written by the closer while nobody is inside, read inside: TSan sees every hole. */
static long guarded;

static void start(bool use_membarrier)
{
	setenv("SLUICE_SOCKET", "/none", 1);
	sl_gate_start(use_membarrier);
}

static struct sl_gate_thread *self(void)
{
	return sl_gate_self ? sl_gate_self : sl_gate_attach();
}

static void *submit(void *arg)
{
	struct sl_gate_thread *me = self();
	long seen = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		sl_gate_enter(me);
		__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
		seen += guarded;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
		sl_gate_leave(me);
	}
	return (void *)seen;
}

static void close_and_open(void)
{
	sl_gate_close();
	CHECK(sl_gate_drain(10 * SL_S));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
	guarded++;
	sl_gate_open();
}

static void under_load(bool use_membarrier)
{
	pthread_t threads[THREADS];

	start(use_membarrier);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, submit, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before = sl_gate_submissions();

		close_and_open();
		/* In between somebody gets through, or the test would show nothing. */
		while (sl_gate_submissions() == before)
			sched_yield();
	}
	CHECK_EQ(sl_gate_word, use_membarrier ? 0 : SL_GATE_FENCED);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(sl_gate_submissions() >= ROUNDS);
}

static void body_membarrier(void)
{
	under_load(true);
}

static void body_fenced(void)
{
	under_load(false);
}

static void body_nested(void)
{
	struct sl_gate_thread *me;

	start(true);
	me = self();
	sl_gate_enter(me);
	sl_gate_close();
	CHECK(!sl_gate_is_drained());
	/* A call made inside a call goes through: it could never get out else. */
	sl_gate_enter(me);
	sl_gate_leave(me);
	CHECK_EQ(sl_gate_submissions(), 0);
	sl_gate_leave(me);
	CHECK(sl_gate_is_drained());
	CHECK_EQ(sl_gate_submissions(), 1);
	sl_gate_open();
}

static void *enter_once(void *arg)
{
	struct sl_gate_thread *me = self();

	errno = 77;
	sl_gate_enter(me);
	CHECK_EQ(errno, 77);
	sl_gate_leave(me);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void body_parked(void)
{
	pthread_t thread;
	int done = 0;

	start(true);
	sl_gate_close();
	sl_gate_close();
	CHECK_EQ(pthread_create(&thread, NULL, enter_once, &done), 0);
	while (sl_gate_parked() == 0)
		usleep(100);
	CHECK(sl_gate_is_drained());
	sl_gate_open();
	usleep(20000);
	/* Two closers, one open: still closed. */
	CHECK_EQ(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	sl_gate_open();
	pthread_join(thread, NULL);
	CHECK_EQ(done, 1);
}

/* Records of ended threads are used again; their submissions stay in the sum. */
static void body_threads_end(void)
{
	pthread_t thread;
	int done;

	start(true);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, enter_once, &done), 0);
		pthread_join(thread, NULL);
	}
	CHECK_EQ(sl_gate_submissions(), 500);
	CHECK_EQ(sl_gate_records(), 64);
}

static void *die_inside(void *arg)
{
	sl_gate_enter(self());
	pthread_exit(NULL);
}

/* A thread that is cancelled inside the driver does not keep the gate from draining. */
static void body_thread_dies_inside(void)
{
	pthread_t thread;

	start(true);
	CHECK_EQ(pthread_create(&thread, NULL, die_inside, NULL), 0);
	pthread_join(thread, NULL);
	sl_gate_close();
	CHECK(sl_gate_drain(SL_S));
}

static void body_bypass(void)
{
	unsetenv("SLUICE_SOCKET");
	unsetenv("SLUICE_WORKLOAD");
	CHECK(!sl_mode_is_active());
	CHECK(!sl_gate_attach());
	CHECK(!sl_gate_self);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
TEST(membarrier)
TEST(fenced)
TEST(nested)
TEST(parked)
TEST(threads_end)
TEST(thread_dies_inside)
TEST(bypass)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_membarrier),
		cmocka_unit_test(test_fenced),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_threads_end),
		cmocka_unit_test(test_thread_dies_inside),
		cmocka_unit_test(test_bypass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
