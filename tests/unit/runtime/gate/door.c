/*
 * door - a closed door lets no call in, and is drained only when all are out
 */
#include "../child.h"

#include "runtime/gate/door.h"
#include "runtime/process/mode.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define THREADS 4
#define ROUNDS  100

static int stop, inside, handled;
/* Written by the closer while no thread is inside, read inside: TSan sees every hole. */
static long guarded;

static void start(bool use_membarrier)
{
	setenv("SLUICE_SOCKET", "/none", 1);
	sl_gate_start(use_membarrier);
}

static void drain(void)
{
	while (!sl_door_is_drained())
		sched_yield();
}

static void wait_for(const int *what)
{
	while (!__atomic_load_n(what, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void wait_for_parked(void)
{
	while (sl_gate_parked() == 0)
		usleep(100);
}

static void *call(void *arg)
{
	long seen = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		SL_DOOR;

		__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
		seen += guarded;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
	}
	return (void *)seen;
}

/* Some threads submit, too: the door is drained of both. */
static void *submit(void *arg)
{
	struct sl_gate_thread *self = sl_gate_attach();
	long seen = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		sl_gate_enter(self);
		seen += guarded;
		sl_gate_leave(self);
	}
	return (void *)seen;
}

static void under_load(bool use_membarrier)
{
	pthread_t threads[THREADS];

	start(use_membarrier);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, i % 2 ? submit : call, NULL),
			0);
	for (int i = 0; i < ROUNDS; i++) {
		sl_door_close();
		CHECK(sl_door_is_closed());
		drain();
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		guarded++;
		sl_door_open();
		CHECK(!sl_door_is_closed());
		sched_yield();
	}
	CHECK_EQ(sl_gate_word, use_membarrier ? 0 : SL_GATE_FENCED);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(sl_door_is_drained());
}

static void body_membarrier(void)
{
	under_load(true);
}

static void body_fenced(void)
{
	under_load(false);
}

static void call_once(void)
{
	SL_DOOR;

	errno = 77;
}

static void body_nested(void)
{
	struct sl_gate_thread *self;

	start(true);
	{
		SL_DOOR;

		sl_door_close();
		CHECK(!sl_door_is_drained());
		call_once();
		CHECK(!sl_door_is_drained());
	}
	CHECK(sl_door_is_drained());
	sl_door_open();
	/* So does a call from within the gate, which is closed, too. */
	self = sl_gate_attach();
	sl_gate_enter(self);
	sl_door_close();
	CHECK(!sl_door_is_drained());
	call_once();
	CHECK(!sl_door_is_drained());
	sl_gate_leave(self);
	CHECK(sl_door_is_drained());
	CHECK(!sl_gate_try(self));
	sl_gate_give_up(self);
	sl_door_open();
}

static void *enter_once(void *arg)
{
	errno = 77;
	{
		SL_DOOR;

		CHECK_EQ(errno, 77);
	}
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void body_waits(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;
	int done = 0;

	start(true);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	sl_door_close();
	CHECK_EQ(pthread_create(&thread, NULL, enter_once, &done), 0);
	wait_for_parked();
	for (int i = 1; i <= 200; i++) {
		pthread_kill(thread, SIGUSR1);
		while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < i)
			sched_yield();
	}
	CHECK(sl_door_is_drained());
	CHECK_EQ(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(sl_gate_parked(), 1);
	/* Another closer keeps the gate closed: that is not the door. */
	sl_gate_close();
	sl_door_open();
	pthread_join(thread, NULL);
	CHECK_EQ(done, 1);
	CHECK_EQ(sl_gate_parked(), 0);
	sl_gate_open();
}

/* A call that waits at the closed gate, as for memory on the host, is not in the driver. */
static void *need(void *arg)
{
	SL_DOOR;
	struct sl_gate_thread *self = sl_gate_attach();

	sl_gate_enter(self);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	sl_gate_leave(self);
	return NULL;
}

static void body_parked_at_gate(void)
{
	pthread_t thread;
	int done = 0;

	start(true);
	sl_gate_close();
	CHECK_EQ(pthread_create(&thread, NULL, need, &done), 0);
	wait_for_parked();
	sl_door_close();
	drain();
	sl_gate_open();
	usleep(2000);
	CHECK_EQ(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	sl_door_open();
	pthread_join(thread, NULL);
	CHECK_EQ(done, 1);
	CHECK(sl_door_is_drained());
}

/* A call that waits for the daemon steps out meanwhile, and waits at the closed door afterwards. */
static int out, in;

static void *step(void *arg)
{
	SL_DOOR;
	uint32_t calls = sl_door_step_out();

	CHECK_EQ(calls, 1);
	__atomic_store_n(&out, 1, __ATOMIC_RELEASE);
	wait_for(&stop);
	sl_door_step_in(calls);
	__atomic_store_n(&in, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void body_steps(void)
{
	pthread_t thread;

	start(true);
	CHECK_EQ(pthread_create(&thread, NULL, step, NULL), 0);
	wait_for(&out);
	sl_door_close();
	CHECK(sl_door_is_drained());
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	wait_for_parked();
	CHECK(sl_door_is_drained());
	CHECK_EQ(__atomic_load_n(&in, __ATOMIC_ACQUIRE), 0);
	sl_door_open();
	pthread_join(thread, NULL);
	CHECK_EQ(in, 1);
	CHECK(sl_door_is_drained());
}

static void in_forked_child(void)
{
	sl_gate_forget();
	CHECK(!sl_door_is_closed());
	CHECK(sl_door_is_drained());
	call_once();
	sl_door_close();
	CHECK(sl_door_is_drained());
}

/* In a child the door is open, and the parent's threads are not inside. */
static void body_fork(void)
{
	struct sl_gate_thread *entered;

	start(true);
	entered = sl_door_enter();
	sl_door_close();
	in_child(in_forked_child, 20);
	CHECK(!sl_door_is_drained());
	sl_door_leave(&entered);
	CHECK(sl_door_is_drained());
	sl_door_open();
}

static void *die_inside(void *arg)
{
	CHECK(sl_door_enter());
	return NULL;
}

static void body_thread_dies_inside(void)
{
	pthread_t thread;

	start(true);
	sl_gate_listen();
	CHECK_EQ(pthread_create(&thread, NULL, die_inside, NULL), 0);
	pthread_join(thread, NULL);
	sl_door_close();
	CHECK(sl_door_is_drained());
	sl_door_open();
	/* Passing the door is not work. */
	CHECK(sl_gate_is_listening());
	CHECK_EQ(sl_gate_submissions(), 0);
}

static void body_bypass(void)
{
	unsetenv("SLUICE_SOCKET");
	unsetenv("SLUICE_WORKLOAD");
	CHECK(!sl_mode_is_active());
	CHECK(!sl_door_enter());
	CHECK_EQ(sl_gate_records(), 0);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
TEST(membarrier)
TEST(fenced)
TEST(nested)
TEST(waits)
TEST(parked_at_gate)
TEST(steps)
TEST(fork)
TEST(thread_dies_inside)
TEST(bypass)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_membarrier),
		cmocka_unit_test(test_fenced),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_parked_at_gate),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_thread_dies_inside),
		cmocka_unit_test(test_bypass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
