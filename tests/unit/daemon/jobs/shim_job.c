/*
 * shim_job - one task under its supervisor, from its start to its record
 */
#include "shim_job.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

char folder[] = "/tmp/sluice-shim-XXXXXX";

int open_new(char *path, size_t size, const char *what, int flags)
{
	static unsigned int number;
	int fd;

	(void)snprintf(path, size, "%s/%s.%d.%u", folder, what, (int)getpid(), number++);
	fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

void add(struct sl_jobspec *spec, const char *key, const char *value)
{
	assert_int_equal(sl_jobspec_add(spec, key, value), 0);
}

void add_user(struct sl_jobspec *spec, uid_t uid, gid_t gid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", (unsigned int)uid);
	add(spec, SL_JOBSPEC_UID, text);
	(void)snprintf(text, sizeof(text), "%u", (unsigned int)gid);
	add(spec, SL_JOBSPEC_GID, text);
}

/* Of this user, in /, with a PATH. */
struct sl_jobspec spec_of(const char *const *words)
{
	struct sl_jobspec spec = {0};

	for (; *words; words++)
		add(&spec, SL_JOBSPEC_ARG, *words);
	add(&spec, SL_JOBSPEC_DIR, "/");
	add(&spec, SL_JOBSPEC_ENV, "PATH=/usr/bin:/bin");
	add_user(&spec, geteuid(), getegid());
	return spec;
}

struct sl_jobspec shell(const char *script)
{
	const char *words[] = {"sh", "-c", script, NULL};

	return spec_of(words);
}

struct job started(struct sl_jobspec *spec)
{
	struct job job;
	struct sl_error err = {{0}};
	struct sl_shim_start start = {.spec = spec};

	job.log =
		open_new(job.log_path, sizeof(job.log_path), "log", O_WRONLY | O_APPEND);
	job.record =
		open_new(job.record_path, sizeof(job.record_path), "record", O_WRONLY);
	start.log_fd = job.log;
	start.record_fd = job.record;
	if (sl_shim_start(&start, &job.shim, &err) != 0)
		fail_msg("%s", err.text);
	sl_jobspec_fini(spec);
	close(job.log);
	close(job.record);
	return job;
}

struct job going(struct sl_jobspec spec)
{
	struct job job = started(&spec);

	sl_shim_go(&job.shim);
	return job;
}

bool ends_within(int pidfd, int span_ms)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};

	return poll(&death, 1, span_ms) == 1;
}

struct sl_shim_record record_of(const struct job *job)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;

	assert_int_equal(sl_file_read(job->record_path, 4096, &text, &size), 0);
	return sl_shim_record_parse(text, size);
}

struct sl_shim_record over(struct job *job)
{
	if (!ends_within(job->shim.pidfd, PATIENCE_MS))
		fail_msg("it does not end");
	sl_shim_reap(job->shim.pid);
	/* Nothing of it is left. */
	assert_int_equal(syscall(SYS_pidfd_send_signal, job->shim.pidfd, 0, NULL, 0), -1);
	sl_shim_forget(&job->shim);
	return record_of(job);
}

/* Its output; static. */
const char *said(const struct job *job)
{
	static char text[65536];
	sl_cleanup(sl_freep) char *read = NULL;

	assert_int_equal(sl_file_read(job->log_path, sizeof(text) - 1, &read, NULL), 0);
	(void)snprintf(text, sizeof(text), "%s", read);
	return text;
}

/* Waits until the log has a line. */
const char *hear(const struct job *job)
{
	for (int i = 0; i < PATIENCE_MS / 5; i++) {
		if (strchr(said(job), '\n'))
			return said(job);
		sl_clock_sleep(5 * SL_MS);
	}
	fail_msg("nothing in the log");
	return NULL;
}

bool is_gone(pid_t pid)
{
	struct sl_pid_stat stat;

	return sl_file_pid_stat(pid, &stat) < 0 || stat.state == 'Z' || stat.state == 'X';
}

void await_end_of(pid_t pid)
{
	for (int i = 0; i < PATIENCE_MS / 5 && !is_gone(pid); i++)
		sl_clock_sleep(5 * SL_MS);
	assert_true(is_gone(pid));
}
