/*
 * waiting - threads and processes that meet a gate which stays closed because memory is on the host
 */
#include "../swap-test.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

/* --- signals and ends at the gate ------------------------------------------------------------- */

static uint32_t handled;
static sigjmp_buf outside;

static void on_signal(int number)
{
	(void)number;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void on_jump(int number)
{
	(void)number;
	siglongjmp(outside, 1);
}

static void on_exit_signal(int number)
{
	(void)number;
	exit(0);
}

/* A call that waits for nothing works in a handler above the gate. */
static void on_query(int number)
{
	CUdevice dev;

	(void)number;
	if (sl_real.cuCtxGetDevice(&dev) == CUDA_SUCCESS &&
		cuCtxSynchronize() == CUDA_SUCCESS)
		__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void handle_with(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void body_signal_runs(void)
{
	struct submitter s;

	start();
	handle_with(SIGINT, on_signal);
	handle_with(SIGTERM, on_query);
	evict_all();
	start_submitting(&s);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_kill(s.thread, SIGINT), 0);
	CHECK(becomes(&handled, 1));
	CHECK_EQ(pthread_kill(s.thread, SIGTERM), 0);
	CHECK(becomes(&handled, 2));
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	order(SL_MSG_RESTORE, 2);
	check_submitted(&s);
	stop();
}

static void *jump_out(void *arg)
{
	struct submitter *s = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	if (sigsetjmp(outside, 1) == 0)
		(void)launch();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	/* It can go on, and come back. */
	CHECK(becomes(&handled, 1));
	s->result = launch();
	return NULL;
}

static void body_jump(void)
{
	struct submitter s = {0};

	start();
	handle_with(SIGINT, on_jump);
	evict_all();
	CHECK_EQ(pthread_create(&s.thread, NULL, jump_out, &s), 0);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_kill(s.thread, SIGINT), 0);
	CHECK(becomes(&s.done, 1));
	CHECK(want_becomes(0));
	__atomic_store_n(&handled, 1, __ATOMIC_RELEASE);
	CHECK(want_becomes(1));
	order(SL_MSG_RESTORE, 2);
	check_submitted(&s);
	stop();
}

static void body_exit_in_handler(void)
{
	start();
	handle_with(SIGTERM, on_exit_signal);
	evict_all();
	alarm(10);
	{
		struct submitter s;

		start_submitting(&s);
		CHECK(want_becomes(1));
		CHECK_EQ(pthread_kill(s.thread, SIGTERM), 0);
		pthread_join(s.thread, NULL);
	}
	_exit(1);
}

static void *cancel_me(void *arg)
{
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	return submit(arg);
}

static void body_cancelled(void)
{
	struct submitter s = {0};

	start();
	evict_all();
	CHECK_EQ(pthread_create(&s.thread, NULL, cancel_me, &s), 0);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_cancel(s.thread), 0);
	CHECK_EQ(pthread_join(s.thread, NULL), 0);
	CHECK(want_becomes(0));
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 3);
	check_ok(3, BYTES);
	stop();
}

/* How often threads of this process went to sleep so far. */
static long sleeps(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* A waiting thread sleeps: eight threads at the gate wake for a moment once a second, and with
 * them the agent. */
static void body_waits_quietly(void)
{
	struct submitter many[8];
	long before;

	start();
	evict_all();
	for (size_t i = 0; i < SL_ARRAY_LEN(many); i++)
		start_submitting(&many[i]);
	CHECK(want_becomes(1));
	/* The fake daemon polls, so it is left out. */
	fake_die();
	before = sleeps();
	usleep(2000000);
	CHECK(sleeps() - before < 200);
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	order(SL_MSG_RESTORE, 2);
	for (size_t i = 0; i < SL_ARRAY_LEN(many); i++)
		check_submitted(&many[i]);
	stop();
}

/* --- threads and processes -------------------------------------------------------------------- */

static uint32_t coming_and_going = 1;

static void *come_and_go(void *arg)
{
	struct submitter s;

	(void)arg;
	while (__atomic_load_n(&coming_and_going, __ATOMIC_ACQUIRE)) {
		start_submitting(&s);
		check_submitted(&s);
	}
	return NULL;
}

static void body_threads_come_and_go(void)
{
	pthread_t threads[3];

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (uint64_t i = 1; i <= 60; i += 2) {
		order(SL_MSG_EVICT, i);
		check_ok(i, BYTES);
		order(SL_MSG_RESTORE, i + 1);
		check_ok(i + 1, 0);
	}
	__atomic_store_n(&coming_and_going, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK(want_becomes(0));
	stop();
}

/* A child of a fork has nothing on the host, and its gate is open. */
static void body_fork(void)
{
	int status;
	pid_t pid;

	start();
	evict_all();
	pid = fork();
	if (pid == 0) {
		CHECK(!sl_residency_is_partial());
		CHECK(sl_gate_word < SL_GATE_CLOSER);
		sl_residency_enter();
		sl_residency_leave();
		sl_control_enter();
		sl_control_leave();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(sl_residency_is_partial());
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	stop();
}

/* --- an agent that is late -------------------------------------------------------------------- */

static uint32_t working = 1;

static void *work(void *arg)
{
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	while (__atomic_load_n(&working, __ATOMIC_ACQUIRE))
		CHECK_EQ(launch(), CUDA_SUCCESS);
	return arg;
}

static void *keep_busy(void *arg)
{
	while (__atomic_load_n(&working, __ATOMIC_RELAXED))
		;
	return arg;
}

static pid_t agent(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	CHECK(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		comm = fopen(path, "re");
		if (!comm)
			continue;
		if (fgets(name, sizeof(name), comm) && !strcmp(name, "sluice-agent\n"))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		(void)fclose(comm);
	}
	(void)closedir(tasks);
	CHECK(found);
	return found;
}

/* On the same CPU; the agent only when no other thread wants it. */
static void starve(pid_t agent, pthread_t busy)
{
	const struct sched_param none = {0};
	cpu_set_t cpus, one;
	int cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(pthread_setaffinity_np(busy, sizeof(one), &one), 0);
	CHECK_EQ(sched_setaffinity(agent, sizeof(one), &one), 0);
	CHECK_EQ(sched_setscheduler(agent, SCHED_IDLE, &none), 0);
}

/* Memory comes back and leaves again before the agent looks. A thread wants it as before, and the
 * daemon must get a new WANT, since for the daemon the return ended the first. */
static void body_out_again(void)
{
	pthread_t worker, busy;

	start();
	evict_all();
	CHECK_EQ(pthread_create(&worker, NULL, work, NULL), 0);
	CHECK_EQ(pthread_create(&busy, NULL, keep_busy, NULL), 0);
	CHECK(SOON(FAKE(wanted) == 1));
	starve(agent(), busy);
	for (uint64_t i = 2; i <= 20; i += 2) {
		__atomic_store_n(&mover.hold, 1, __ATOMIC_RELEASE);
		order(SL_MSG_RESTORE, i);
		CHECK(becomes(&mover.inside, 1));
		order(SL_MSG_EVICT, i + 1);
		/* It is taken in that time, or later. */
		usleep(50000);
		__atomic_store_n(&mover.hold, 0, __ATOMIC_RELEASE);
		check_ok(i + 1, BYTES);
		CHECK(SOON(FAKE(wanted) == 1));
	}
	__atomic_store_n(&working, 0, __ATOMIC_RELEASE);
	order(SL_MSG_RESTORE, 30);
	CHECK_EQ(pthread_join(worker, NULL), 0);
	CHECK_EQ(pthread_join(busy, NULL), 0);
	stop();
}

#define TEST(name, limit_s)                     \
	static void test_##name(void **x)       \
	{                                       \
		in_child(body_##name, limit_s); \
	}
#define TESTS(X)                   \
	X(signal_runs, 30)         \
	X(jump, 30)                \
	X(exit_in_handler, 30)     \
	X(cancelled, 30)           \
	X(waits_quietly, 60)       \
	X(threads_come_and_go, 60) \
	X(fork, 30)                \
	X(out_again, 60)
TESTS(TEST)

#define ROW(name, limit_s) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
