/*
 * children - every way in which a process makes another, or becomes another
 *
 *   children CASE
 *
 * A case must print the same with and without Sluice: statuses and errors, no pids. Cases that
 * hold memory say so and wait to be killed.
 */
#include "prog.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };
static char **self_argv;
static int stop;

/* What a child may do with the driver, told by its errors. */
static int tell(const char *who)
{
	CUresult init = cuInit(0), retain, set, alloc, release;
	CUcontext context = NULL;
	CUdeviceptr at = 0;

	retain = cuDevicePrimaryCtxRetain(&context, 0);
	set = cuCtxSetCurrent(context);
	alloc = cuMemAlloc_v2(&at, 1 << 20);
	release = at ? cuMemFree_v2(at) : CUDA_SUCCESS;
	prog_say("{\"who\":\"%s\",\"init\":%d,\"retain\":%d,\"set\":%d,\"alloc\":%d,"
		 "\"free\":%d}",
		who, init, retain, set, alloc, release);
	return PROG_OK;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void hold(const char *who)
{
	CUdeviceptr at;

	prog_context(0);
	PROG_MUST(cuMemAlloc_v2(&at, BYTES));
	prog_say("{\"event\":\"held\",\"who\":\"%s\"}", who);
}

static int fork_before(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(tell("child of a fork before the start"));
	prog_say("{\"status\":%d}", wait_for(pid));
	return tell("parent");
}

static int fork_after(void)
{
	pid_t pid;

	tell("parent");
	pid = fork();
	if (pid == 0)
		_exit(tell("child of a fork after the start"));
	prog_say("{\"status\":%d}", wait_for(pid));
	return tell("parent again");
}

/* Inside hooks all the time: allocates, sets, frees. */
static void *busy(void *context)
{
	CUdeviceptr at;

	PROG_MUST(cuCtxSetCurrent(context));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		PROG_MUST(cuMemAlloc_v2(&at, 1 << 16));
		PROG_MUST(cuMemsetD8_v2(at, 1, 1 << 16));
		PROG_MUST(cuMemFree_v2(at));
	}
	return NULL;
}

/* While other threads hold whatever they hold: locks of ours and the driver's. */
static int fork_busy(void)
{
	enum { THREADS = 8, FORKS = 40 };
	CUcontext context = prog_context(0);
	pthread_t threads[THREADS];
	int bad = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, busy, context))
			return PROG_USAGE;
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			CUdeviceptr at;

			alarm(20);
			_exit(cuMemAlloc_v2(&at, 1 << 20) == CUDA_SUCCESS);
		}
		bad += wait_for(pid) != 0;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	prog_say("{\"forks\":%d,\"bad\":%d}", FORKS, bad);
	return tell("parent");
}

static int by_vfork(void)
{
	pid_t pid;

	tell("parent");
	pid = vfork();
	if (pid == 0) {
		execl("/proc/self/exe", self_argv[0], "tell", (char *)NULL);
		_exit(PROG_USAGE);
	}
	prog_say("{\"status\":%d}", wait_for(pid));
	return tell("parent again");
}

static int by_spawn(void)
{
	char *argv[] = {self_argv[0], (char *)"tell", NULL};
	extern char **environ;
	pid_t pid = -1;

	tell("parent");
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
		return PROG_USAGE;
	prog_say("{\"status\":%d}", wait_for(pid));
	return tell("parent again");
}

static int fork_exec(void)
{
	pid_t pid;

	tell("parent");
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", self_argv[0], "tell", (char *)NULL);
		_exit(PROG_USAGE);
	}
	prog_say("{\"status\":%d}", wait_for(pid));
	return PROG_OK;
}

/* Same pid, another program: what the former one held is gone. */
static int becomes(void)
{
	hold("former");
	prog_sleep_ms(300);
	execl("/proc/self/exe", self_argv[0], "holds", (char *)NULL);
	return PROG_USAGE;
}

static int holds(void)
{
	hold("latter");
	prog_sleep_ms(60000);
	return PROG_OK;
}

/* As daemons start: two forks and a session of its own, then CUDA in the grandchild. */
static int daemonises(void)
{
	if (fork() != 0)
		return PROG_OK;
	setsid();
	if (fork() != 0)
		_exit(PROG_OK);
	hold("daemon");
	prog_sleep_ms(60000);
	return PROG_OK;
}

static int only_tell(void)
{
	return tell("exec");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {
		{"fork-before", fork_before},
		{"fork-after", fork_after},
		{"fork-busy", fork_busy},
		{"vfork", by_vfork},
		{"spawn", by_spawn},
		{"fork-exec", fork_exec},
		{"becomes", becomes},
		{"holds", holds},
		{"daemonises", daemonises},
		{"tell", only_tell},
	};

	self_argv = argv;
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1]))
			return cases[i].run();
	return PROG_USAGE;
}
