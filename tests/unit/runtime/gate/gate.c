/*
 * gate - held back means held back, whatever the threads do
 *
 * Row 30 of peer-failures (no drain before unmap) rests on this unit.
 */
#include "../child.h"

#include "runtime/gate/gate.h"
#include "runtime/process/mode.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define THREADS 4
#define ROUNDS  100

static int stop;
static int inside;
/* Written by the closer while no thread is inside, read inside: TSan sees every hole. */
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
		/* In between a thread gets through, or the test would show nothing. */
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

static __attribute__((noinline)) void enter_and_leave(void)
{
	sl_gate_enter(self());
	sl_gate_leave(self());
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
	enter_and_leave();
	CHECK_EQ(sl_gate_submissions(), 0);
	sl_gate_leave(me);
	CHECK(sl_gate_is_drained());
	CHECK_EQ(sl_gate_submissions(), 1);
	sl_gate_open();
}

static int entries;

static void count_entry(void)
{
	CHECK(!sl_gate_is_drained());
	entries++;
}

/* Once, by the next entry; a thread that waits at the closed gate has not entered. */
static void listen(bool use_membarrier)
{
	uint32_t word = use_membarrier ? 0 : SL_GATE_FENCED;

	start(use_membarrier);
	sl_gate_on_entry = count_entry;
	enter_and_leave();
	CHECK_EQ(entries, 0);
	sl_gate_listen();
	CHECK(sl_gate_is_listening());
	sl_gate_listen();
	sl_gate_close();
	CHECK(!sl_gate_try(self()));
	sl_gate_give_up(self());
	CHECK(sl_gate_is_listening());
	sl_gate_open();
	CHECK_EQ(entries, 0);
	enter_and_leave();
	CHECK_EQ(entries, 1);
	CHECK(!sl_gate_is_listening());
	enter_and_leave();
	CHECK_EQ(entries, 1);
	sl_gate_listen();
	CHECK(sl_gate_try(self()));
	CHECK_EQ(entries, 2);
	sl_gate_leave(self());
	CHECK_EQ(sl_gate_word, word);
}

static void body_listening(void)
{
	listen(true);
}

static void body_listening_fenced(void)
{
	listen(false);
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

static sigjmp_buf way_out;

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(way_out, 1);
}

static void catch (int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

/* Entered, and left by the program's own jump out of a signal handler. */
static __attribute__((noinline)) void leave_by_jump(void)
{
	/* Far below the entry that follows, however large a sanitizer makes its frames. */
	char below[16384];

	__asm__ volatile("" : : "r"(below) : "memory");
	if (sigsetjmp(way_out, 1) == 0) {
		sl_gate_enter(self());
		raise(SIGUSR1);
		CHECK(!"jumped");
	}
}

static void *jump_then_call(void *arg)
{
	leave_by_jump();
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	/* Must be held back by the gate that was closed meanwhile, as any first entry. */
	while (__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
	enter_and_leave();
	__atomic_store_n((int *)arg, 3, __ATOMIC_RELEASE);
	return NULL;
}

/* A depth that a jump left behind ends with the next call, and that call waits at the gate. */
static void body_jump(void)
{
	pthread_t thread;
	int state = 0;

	catch (SIGUSR1, jump_out, 0);
	start(true);
	CHECK_EQ(pthread_create(&thread, NULL, jump_then_call, &state), 0);
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 1)
		usleep(100);
	sl_gate_close();
	/* It might still be inside: the deadline ends this. */
	CHECK(!sl_gate_drain(20 * SL_MS));
	__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	CHECK(sl_gate_drain(20 * SL_S));
	while (sl_gate_parked() == 0)
		usleep(100);
	usleep(5000);
	CHECK_EQ(__atomic_load_n(&state, __ATOMIC_ACQUIRE), 2);
	sl_gate_open();
	pthread_join(thread, NULL);
	CHECK_EQ(state, 3);
	CHECK_EQ(sl_gate_submissions(), 1);
}

static int handled;

static void count(int signal)
{
	(void)signal;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* A signal ends no wait at the gate, and what opens it is not lost for it. */
static void body_parked_signals(void)
{
	pthread_t thread;
	int done = 0;

	catch (SIGUSR1, count, 0);
	start(true);
	sl_gate_close();
	CHECK_EQ(pthread_create(&thread, NULL, enter_once, &done), 0);
	while (sl_gate_parked() == 0)
		usleep(100);
	for (int i = 1; i <= 200; i++) {
		pthread_kill(thread, SIGUSR1);
		while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < i)
			sched_yield();
	}
	usleep(5000);
	CHECK_EQ(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(sl_gate_submissions(), 0);
	sl_gate_open();
	pthread_join(thread, NULL);
	CHECK_EQ(done, 1);
}

static void call_from_handler(int signal)
{
	(void)signal;
	enter_and_leave();
	CHECK(!sl_gate_is_drained());
}

/* A handler's stack may be anywhere: entries on it are nested all the same. */
static void body_signal_stack(void)
{
	enum { BYTES = 1 << 16 };
	char *low = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0),
	     *high = mmap((void *)((uintptr_t)__builtin_frame_address(0) + (1 << 24)),
		     BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stacks[] = {low, high};

	start(true);
	catch (SIGUSR1, call_from_handler, SA_ONSTACK);
	for (size_t i = 0; i < SL_ARRAY_LEN(stacks); i++) {
		stack_t there = {.ss_sp = stacks[i], .ss_size = BYTES};

		CHECK(stacks[i] != MAP_FAILED);
		CHECK_EQ(sigaltstack(&there, NULL), 0);
		sl_gate_enter(self());
		raise(SIGUSR1);
		CHECK(!sl_gate_is_drained());
		sl_gate_leave(self());
		CHECK(sl_gate_is_drained());
	}
	CHECK_EQ(sl_gate_submissions(), 2);
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
TEST(jump)
TEST(parked_signals)
TEST(listening)
TEST(listening_fenced)
TEST(signal_stack)
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
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_parked_signals),
		cmocka_unit_test(test_listening),
		cmocka_unit_test(test_listening_fenced),
		cmocka_unit_test(test_signal_stack),
		cmocka_unit_test(test_bypass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
