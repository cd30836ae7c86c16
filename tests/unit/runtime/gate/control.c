/*
 * control - many inside together, or one alone, whatever the threads do
 */
#include "../child.h"

#include "runtime/gate/control.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define THREADS 4
#define ROUNDS  200

static uint32_t stop, inside, ready, go_on;
/* Written by the thread that is alone, read inside: TSan sees every hole. */
static long guarded;
static sigjmp_buf outside;

static __attribute__((noinline)) void go_deeper(void)
{
	sl_control_enter();
	__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
	sl_control_leave();
}

static void *come_and_go(void *arg)
{
	long seen = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		sl_control_enter();
		go_deeper();
		seen += guarded;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
		sl_control_leave();
		sched_yield();
	}
	return (void *)seen;
}

static void body_under_load(void)
{
	pthread_t threads[THREADS];

	sl_control_start();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(sl_control_close(60 * SL_S));
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		/* The thread that is alone may call functions that others call inside. */
		sl_control_enter();
		guarded++;
		sl_control_leave();
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		sl_control_open();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *stay(void *arg)
{
	sl_control_enter();
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
		sched_yield();
	/* A thread that ends inside is counted out. */
	return arg;
}

static void start_staying(pthread_t *thread)
{
	sl_control_start();
	CHECK_EQ(pthread_create(thread, NULL, stay, NULL), 0);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* Closing in vain leaves it as it was. */
static void body_late(void)
{
	pthread_t thread;

	start_staying(&thread);
	CHECK(!sl_control_close(SL_MS));
	sl_control_enter();
	sl_control_leave();
	__atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(sl_control_close(SL_MS));
	sl_control_open();
}

static void on_signal(int number)
{
	(void)number;
	siglongjmp(outside, 1);
}

/* A thread whose signal handler jumped out counts as inside until it comes again, and only once. */
static void body_jump(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sl_control_start();
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	if (sigsetjmp(outside, 1) == 0) {
		sl_control_enter();
		(void)raise(SIGUSR1);
	}
	sl_control_enter();
	sl_control_leave();
	errno = EDOM;
	CHECK(sl_control_close(SL_MS));
	sl_control_open();
	sl_control_enter();
	CHECK_EQ(errno, EDOM);
	sl_control_leave();
}

/* Before the join, and where a leave finds no entry, nothing happens. */
static void body_idle(void)
{
	sl_control_enter();
	sl_control_start();
	sl_control_leave();
	sl_control_leave();
	CHECK(sl_control_close(SL_MS));
	sl_control_open();
}

static void *wait_outside(void *arg)
{
	sl_control_enter();
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	sl_control_leave();
	return arg;
}

/* In the child of a fork no thread is inside and none is alone. */
static void body_fork(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	sl_control_start();
	CHECK(sl_control_close(SL_MS));
	CHECK_EQ(pthread_create(&thread, NULL, wait_outside, NULL), 0);
	usleep(10000);
	CHECK_EQ(__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0);
	pid = fork();
	if (pid == 0) {
		sl_control_forget();
		sl_control_start();
		sl_control_enter();
		sl_control_leave();
		CHECK(sl_control_close(SL_MS));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	sl_control_open();
	pthread_join(thread, NULL);
	CHECK_EQ(__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 1);
}

#define TESTS(X)      \
	X(under_load) \
	X(late)       \
	X(jump)       \
	X(idle)       \
	X(fork)
#define TEST(name)                         \
	static void test_##name(void **x)  \
	{                                  \
		in_child(body_##name, 60); \
	}
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
