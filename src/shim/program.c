/*
 * program - fork, and execute the program of the spec
 *
 * A pipe that exec closes reports the result: its end without a message means success. Nothing
 * waits for it here, since chdir and exec may hang in a file system.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct prepared {
	char **args, **env;
	const char *dir;
	mode_t mask;
	struct sl_jobspec_limit limits[SL_JOBSPEC_LIMITS];
	size_t limits_count;
};

static void say_and_leave(int pipe_fd, const char *what)
{
	struct sl_shim_failure failure = {0};

	(void)sl_shim_fail(&failure, errno, what);
	if (write(pipe_fd, &failure, sizeof(failure)) < 0)
		(void)0;
	_exit(127);
}

/* The default signal handling that programs expect, whatever the daemon or its parent changed. */
static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The submitter's limits, as far as the daemon may set them. The last step, since they may leave
 * few resources. */
static void set_limits(const struct prepared *prepared)
{
	for (size_t i = 0; i < prepared->limits_count; i++) {
		const struct sl_jobspec_limit *limit = &prepared->limits[i];
		enum __rlimit_resource resource = (enum __rlimit_resource)limit->resource;
		struct rlimit now;

		if (getrlimit(resource, &now) < 0)
			continue;
		now.rlim_max = sl_min_u64(now.rlim_max, limit->hard);
		now.rlim_cur = sl_min_u64(now.rlim_max, limit->soft);
		(void)setrlimit(resource, &now);
	}
}

static void in_child(const struct prepared *prepared, pid_t shim, int pipe_fd)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		say_and_leave(pipe_fd, "prctl");
	/* The shim died before PR_SET_PDEATHSIG was set. */
	if (getppid() != shim)
		_exit(127);
	reset_signals();
	if (setsid() < 0)
		say_and_leave(pipe_fd, "setsid");
	(void)umask(prepared->mask);
	if (chdir(prepared->dir) < 0)
		say_and_leave(pipe_fd, "chdir");
	/* execvp searches the PATH of the job. */
	environ = prepared->env;
	set_limits(prepared);
	(void)execvp(prepared->args[0], prepared->args);
	say_and_leave(pipe_fd, "exec");
}

static int prepare(const struct sl_jobspec *spec, struct prepared *prepared)
{
	const char *value;
	size_t at = 0;

	*prepared = (struct prepared){
		.args = sl_jobspec_all(spec, SL_JOBSPEC_ARG),
		.env = sl_jobspec_env(spec),
		.dir = sl_jobspec_next(spec, SL_JOBSPEC_DIR, &at),
		.mask = (mode_t)sl_jobspec_number(spec, SL_JOBSPEC_UMASK, 022),
	};
	at = 0;
	while (prepared->limits_count < SL_JOBSPEC_LIMITS &&
		(value = sl_jobspec_next(spec, SL_JOBSPEC_LIMIT, &at)))
		prepared->limits_count += sl_jobspec_limit_parse(
			value, &prepared->limits[prepared->limits_count]);
	return prepared->args && prepared->env ? 0 : -ENOMEM;
}

int sl_shim_program(const struct sl_jobspec *spec, pid_t *out, int *exec_fd,
	struct sl_shim_failure *failure)
{
	sl_cleanup(sl_closep) int reading = -1;
	sl_cleanup(sl_closep) int writing = -1;
	struct prepared prepared;
	pid_t shim = getpid(), pid;
	int ends[2];

	if (prepare(spec, &prepared) < 0)
		return sl_shim_fail(failure, ENOMEM, "memory");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return sl_shim_fail(failure, errno, "pipe");
	reading = ends[0];
	writing = ends[1];
	(void)fcntl(reading, F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid < 0)
		return sl_shim_fail(failure, errno, "fork");
	if (pid == 0)
		in_child(&prepared, shim, writing);
	*out = pid;
	*exec_fd = sl_steal_fd(&reading);
	return SL_SHIM_OK;
}
