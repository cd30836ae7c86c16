/*
 * residency - threads that keep their memory on the GPU for a moment: orders are refused for as
 * long, and no longer
 */
#include "../swap-test.h"

#include "runtime/gate/residency.h"

#include <setjmp.h>
#include <signal.h>

#define ORDERS 20

/* Memory that a thread has just made sure of stays until that thread lets go. */
static void body_kept(void)
{
	start();
	sl_residency_keep();
	order(SL_MSG_EVICT, 1);
	check_refused(1, SL_WIRE_SWAP_BUSY);
	CHECK(gate_opens());
	sl_residency_keep_end();
	order(SL_MSG_EVICT, 2);
	check_ok(2, BYTES);
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 1);
	stop();
}

static void *keep_and_die(void *arg)
{
	sl_residency_keep();
	return arg;
}

/* A thread that ends in between keeps nothing. */
static void body_dies(void)
{
	pthread_t thread;

	start();
	CHECK_EQ(pthread_create(&thread, NULL, keep_and_die, NULL), 0);
	pthread_join(thread, NULL);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	stop();
}

/* --- signal handlers -------------------------------------------------------------------------- */

static sigjmp_buf outside;

static void jump_out(int number)
{
	(void)number;
	siglongjmp(outside, 1);
}

static void keep_under(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	sl_residency_keep();
	(void)raise(SIGUSR1);
	sl_residency_keep_end();
}

static void *keep_and_jump(void *arg)
{
	struct submitter *s = arg;

	if (sigsetjmp(outside, 1) == 0)
		keep_under(jump_out);
	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->done, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(launch(), CUDA_SUCCESS);
		usleep(100);
	}
	return NULL;
}

/* A thread that jumped out in between is found out when it comes to the closed gate. One that goes
 * on is not. */
static void body_jumps(void)
{
	struct submitter s = {0};
	uint64_t number = 0;

	start();
	CHECK_EQ(pthread_create(&s.thread, NULL, keep_and_jump, &s), 0);
	CHECK(becomes(&s.begun, 1));
	do {
		CHECK(number < 1000);
		order(SL_MSG_EVICT, ++number);
	} while (answer_to(number).outcome != SL_WIRE_SWAP_OK);
	__atomic_store_n(&s.done, 1, __ATOMIC_RELEASE);
	order(SL_MSG_RESTORE, ++number);
	check_ok(number, 0);
	CHECK_EQ(pthread_join(s.thread, NULL), 0);
	sl_residency_keep();
	order(SL_MSG_EVICT, ++number);
	check_refused(number, SL_WIRE_SWAP_BUSY);
	sl_residency_keep_end();
	stop();
}

/* A second jump out of the same place is no second thread. */
static void body_jumps_again(void)
{
	volatile int jumps = 0;

	start();
	(void)sigsetjmp(outside, 1);
	if (++jumps < 4)
		keep_under(jump_out);
	keep_under(SIG_IGN);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	stop();
}

static void launch_within(int signal_number)
{
	(void)signal_number;
	for (uint64_t number = 1; number <= ORDERS; number++) {
		order(SL_MSG_EVICT, number);
		while (FAKE(last_swapped).order != number)
			CHECK_EQ(launch(), CUDA_SUCCESS);
		check_refused(number, SL_WIRE_SWAP_BUSY);
	}
}

/* A handler in between ends nothing, even if it waits at the gate. */
static void body_handles(void)
{
	start();
	keep_under(launch_within);
	order(SL_MSG_EVICT, ORDERS + 1);
	check_ok(ORDERS + 1, BYTES);
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 1);
	stop();
}

/* The child of a fork has no keepers, and an end without a beginning is none. */
static void body_fork(void)
{
	int status;
	pid_t pid;

	start();
	sl_residency_keep();
	pid = fork();
	if (pid == 0) {
		CHECK(!sl_residency_is_kept());
		sl_residency_keep_end();
		CHECK(!sl_residency_is_kept());
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(sl_residency_is_kept());
	sl_residency_keep_end();
	CHECK(!sl_residency_is_kept());
	stop();
}

#define TESTS(X)       \
	X(kept)        \
	X(dies)        \
	X(jumps)       \
	X(jumps_again) \
	X(handles)     \
	X(fork)
#define TEST(name)                         \
	static void test_##name(void **x)  \
	{                                  \
		in_child(body_##name, 30); \
	}
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
