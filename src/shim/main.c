/*
 * sluice-shim - lives as long as one task, and records how it ended
 *
 * The daemon passes everything that the shim needs by descriptors. The shim writes the task's
 * result into one small file. It never waits for the daemon or writes to it, so the daemon may end
 * and start again meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "shim/shim.h"

enum { EXIT_USAGE = 64 };

/* From SIGTERM to SIGKILL for processes that the program left behind, as in daemon/jobs/shim.h. */
#define GRACE (2 * SL_S)
/* SIGKILL is repeated for processes born meanwhile. */
#define KILL_AGAIN (100 * SL_MS)
/* Then processes that survive SIGKILL (of another user by a setuid program, or stuck in the kernel)
 * are left behind. */
#define KILL_MOST (10 * SL_S)
/* How often the record is written, a second apart, if that fails (the disk is full). */
#define RECORD_TRIES 10

struct task {
	pid_t pid;
	int exec_fd; /* -1 once it is known whether the program was executed */
	struct sl_shim_failure failure;
	bool ended;
	int status;
	off_t begun_bytes; /* the first line of the record */
	uint64_t started_ms, ended_ms;
	/* From the end of the program, or the order to kill it, on. */
	enum { LEAVING_BE, TERMINATED, KILLED } stage;
	sl_ns next, give_up;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- The record. --- */

/* Written before the program exists: an empty record means that the task may be started again. It
 * need not reach the disk, since only a kill of this process matters here. */
static bool record_begin(struct task *task)
{
	char line[32];
	int size = snprintf(line, sizeof(line), "begun %" PRIu64 "\n", now_ms());

	if (pwrite(SL_SHIM_RECORD_FD, line, (size_t)size, 0) == size) {
		task->begun_bytes = size;
		return true;
	}
	(void)dprintf(STDERR_FILENO,
		"sluice-shim: cannot record the start of the program, so it is not "
		"started: %s\n",
		strerror(errno));
	/* A part of the line would read as a started task. */
	if (ftruncate(SL_SHIM_RECORD_FD, 0) < 0)
		(void)0;
	return false;
}

static void write_record(const struct task *task, const char *line)
{
	size_t size = strlen(line);

	for (int i = 0; i < RECORD_TRIES; i++) {
		/* Do not truncate: that would free the space preallocated behind the end. */
		if (pwrite(SL_SHIM_RECORD_FD, line, size, task->begun_bytes) ==
				(ssize_t)size &&
			fsync(SL_SHIM_RECORD_FD) == 0)
			return;
		(void)dprintf(STDERR_FILENO,
			"sluice-shim: cannot record how the program ended: %s\n",
			strerror(errno));
		sl_clock_sleep(SL_S);
	}
}

static void record_failure(const struct task *task)
{
	char line[64];

	(void)snprintf(line, sizeof(line), "error %d %s\n", task->failure.error,
		task->failure.what);
	write_record(task, line);
}

static void record_end(const struct task *task)
{
	char line[96];

	(void)snprintf(line, sizeof(line),
		"exit %d started %" PRIu64 " ended %" PRIu64 "\n", task->status,
		task->started_ms, task->ended_ms);
	write_record(task, line);
}

int sl_shim_fail(struct sl_shim_failure *failure, int error, const char *what)
{
	failure->error = error;
	(void)snprintf(failure->what, sizeof(failure->what), "%s", what);
	return SL_SHIM_FAILED;
}

/* --- Events. --- */

/* False once no descendant is left. */
static bool reap(struct task *task)
{
	for (;;) {
		int status = 0;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return pid == 0;
		/* The number may be reused by a later descendant. */
		if (pid == task->pid && !task->ended) {
			task->ended = true;
			task->status = status;
			task->ended_ms = now_ms();
		}
	}
}

/* Kills every descendant now, and waits for them at most KILL_MOST. */
static void kill_all(struct task *task)
{
	sl_ns now = sl_clock_now();

	if (task->stage != KILLED)
		task->give_up = now + KILL_MOST;
	task->stage = KILLED;
	(void)sl_shim_family_signal(SIGKILL);
	task->next = now + KILL_AGAIN;
}

static void pass_on(struct task *task, int number)
{
	if (number == SIGUSR1) {
		kill_all(task);
	} else if (!task->ended) {
		/* Without a process group yet, the program is a single process. */
		if (kill(-task->pid, number) < 0)
			(void)kill(task->pid, number);
		/* A stopped process does not react to the signal before SIGCONT. */
		(void)sl_shim_family_signal(SIGCONT);
	}
}

/* Advances the end of remaining descendants, or of the program itself. False: nothing more can be
 * done. */
static bool end_the_rest(struct task *task)
{
	sl_ns now = sl_clock_now();

	if (task->stage != LEAVING_BE && now < task->next)
		return true;
	if (task->stage == KILLED && now >= task->give_up)
		return false;
	if (task->stage != LEAVING_BE) {
		kill_all(task);
		return true;
	}
	(void)sl_shim_family_signal(SIGTERM);
	(void)sl_shim_family_signal(SIGCONT);
	task->stage = TERMINATED;
	task->next = now + GRACE;
	return true;
}

/* The pipe tells that the program was executed, has ended, or why it could not be executed. */
static void hear_of_exec(struct task *task)
{
	ssize_t n = read(task->exec_fd, &task->failure, sizeof(task->failure));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(task->failure))
		task->failure = (struct sl_shim_failure){0};
	sl_closep(&task->exec_fd);
}

static bool is_ending(const struct task *task)
{
	return task->ended || task->stage != LEAVING_BE;
}

/* Waits for a signal, the program's execution, or the next stage, whichever is first. So a folder
 * or program that hangs cannot block this process. */
static void wait_for_news(struct task *task, int signal_fd)
{
	struct pollfd news[] = {{.fd = signal_fd, .events = POLLIN},
		{.fd = task->exec_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	struct timespec span = {0};
	sl_ns rest = sl_sub_sat(task->next, sl_clock_now());

	span.tv_sec = (time_t)(rest / SL_S);
	span.tv_nsec = (long)(rest % SL_S);
	if (ppoll(news, SL_ARRAY_LEN(news), is_ending(task) ? &span : NULL, NULL) < 0)
		return;
	if (news[1].revents)
		hear_of_exec(task);
	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			pass_on(task, (int)info.ssi_signo);
	}
}

static void see_it_through(struct task *task, int signal_fd)
{
	while (reap(task)) {
		if (is_ending(task) && !end_the_rest(task)) {
			sl_shim_family_tell();
			break;
		}
		wait_for_news(task, signal_fd);
	}
	if (task->exec_fd >= 0)
		hear_of_exec(task);
	if (task->ended)
		return;
	/* Even SIGKILL has not ended it yet. */
	task->status = SIGKILL;
	task->ended_ms = now_ms();
}

/* --- The beginning. --- */

/* Closes descriptors beyond the three from the daemon: they were inherited by mistake. */
static void close_others(void)
{
	for (int fd = SL_SHIM_SPEC_FD; fd <= SL_SHIM_RECORD_FD; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (syscall(SYS_close_range, SL_SHIM_RECORD_FD + 1, ~0u, 0) == 0)
		return;
	/* Before Linux 5.9. */
	for (int fd = SL_SHIM_RECORD_FD + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		(void)close(fd);
}

/* A daemon that lost its data about this process asks the kernel which process holds this lock. The
 * kernel drops the lock when the process ends. On a file system without locks the task runs all the
 * same. */
static void lock_record(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	(void)fcntl(SL_SHIM_RECORD_FD, F_SETLK, &lock);
}

/* Opens the output a second time and keeps it open. The kernel then refuses the program a lease on
 * the file, so the daemon can always open it and drop its oldest part. Without /proc the program
 * runs all the same. */
static void keep_log_open(void)
{
	struct stat stat;

	if (fstat(STDOUT_FILENO, &stat) == 0 && S_ISREG(stat.st_mode))
		(void)open("/proc/self/fd/1", O_WRONLY | O_CLOEXEC);
}

/* Waits for the daemon's go. Without it the daemon has forgotten this task. */
static bool may_go(void)
{
	char byte;
	ssize_t n;

	do {
		n = read(SL_SHIM_GO_FD, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

static int start(struct task *task)
{
	struct sl_shim_failure *failure = &task->failure;
	struct sl_jobspec spec = {0};
	struct sl_error err = {{0}};
	struct stat stat;
	int r;

	r = fstat(SL_SHIM_SPEC_FD, &stat) < 0
		    ? -errno
		    : sl_jobspec_from_fd(
			      SL_SHIM_SPEC_FD, (size_t)stat.st_size, true, &spec, &err);
	if (r != SL_JOBSPEC_OK) {
		(void)dprintf(STDERR_FILENO, "sluice-shim: %s\n", err.text);
		return sl_shim_fail(failure, r < 0 ? -r : EINVAL, "spec");
	}
	(void)close(SL_SHIM_SPEC_FD);
	r = sl_shim_become(&spec, failure);
	if (r != SL_SHIM_OK)
		return r;
	task->started_ms = now_ms();
	r = sl_shim_program(&spec, &task->pid, &task->exec_fd, failure);
	sl_jobspec_fini(&spec);
	return r;
}

static bool is_from_the_daemon(void)
{
	for (int fd = SL_SHIM_SPEC_FD; fd <= SL_SHIM_RECORD_FD; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct task task = {.exec_fd = -1};
	sigset_t signals;
	int signal_fd;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)puts("sluice-shim " SL_VERSION);
		return EXIT_SUCCESS;
	}
	if (!is_from_the_daemon()) {
		(void)fputs("sluice-shim: only sluiced starts this program; see sluice "
			    "submit --help\n",
			stderr);
		return EXIT_USAGE;
	}
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigaddset(&signals, SIGUSR1);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
	close_others();
	lock_record();
	keep_log_open();
	(void)setsid();
	if (chdir("/") < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !may_go())
		_exit(EXIT_SUCCESS);
	(void)close(SL_SHIM_GO_FD);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0 || !record_begin(&task))
		_exit(EXIT_SUCCESS);
	if (start(&task) == SL_SHIM_OK)
		see_it_through(&task, signal_fd);
	if (task.failure.error)
		record_failure(&task);
	else
		record_end(&task);
	/* Not exit(3): nothing is buffered, and a memory checker cannot run in this kind of
	 * process. */
	_exit(EXIT_SUCCESS);
}
