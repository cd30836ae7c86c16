/*
 * left - kills what a task's program left behind when its supervisor was killed
 *
 * The kernel kills the program along with the supervisor; the program's descendants become init's.
 * All that still identifies them is the workload's token in their initial environment, which no
 * other process has. A descendant started with another environment is not found, and runs on.
 *
 * A thread examines all processes of the user, and only if a supervisor was killed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/aside.h"
#include "daemon/jobs/internal.h"
#include "daemon/workloads/workload.h"

/* Processes born while others are killed are found in the next pass. */
#define LOOKS_MOST 4
/* The most that execve takes. */
#define ENVIRONMENT_MOST (6u << 20)

struct sweep {
	uid_t uid;
	char entry[64];
};

/* Does its initial environment have that entry? */
static bool has_entry(pid_t pid, const char *entry)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0, length = strlen(entry) + 1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (sl_file_read(path, ENVIRONMENT_MOST, &text, &size) < 0)
		return false;
	for (const char *at = text; at < text + size; at += strlen(at) + 1) {
		if ((size_t)(text + size - at) >= length &&
			memcmp(at, entry, length) == 0)
			return true;
	}
	return false;
}

/* Opens the pidfd first, so that /proc and the signal mean the same process. */
static bool kill_one(int proc, const char *name, uid_t uid, const char *entry)
{
	pid_t pid = (pid_t)strtol(name, NULL, 10);
	sl_cleanup(sl_closep) int fd = -1;
	struct stat owner;

	if (fstatat(proc, name, &owner, 0) < 0 || owner.st_uid != uid)
		return false;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || !has_entry(pid, entry) ||
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0)
		return false;
	sl_info("SIGKILL to process %d", (int)pid);
	return true;
}

static unsigned int kill_all(uid_t uid, const char *entry)
{
	DIR *proc = opendir("/proc");
	unsigned int killed = 0;
	struct dirent *file;

	while (proc && (file = readdir(proc))) {
		if (isdigit((unsigned char)file->d_name[0]))
			killed += kill_one(dirfd(proc), file->d_name, uid, entry);
	}
	if (proc)
		(void)closedir(proc);
	return killed;
}

static void sweep_up(void *work)
{
	struct sweep *sweep = work;

	for (int i = 0; i < LOOKS_MOST && kill_all(sweep->uid, sweep->entry) > 0; i++)
		;
	free(sweep);
}

void sl_jobs_supervisor_gone(struct sl_daemon *daemon, const struct sl_workload *workload)
{
	const struct sl_job_task *task = workload->task;
	struct sweep *sweep;

	if (!daemon->jobs || !task || !workload->has_shim ||
		!sl_jobs_was_killed(daemon->jobs, task))
		return;
	sl_warning("job %" PRIu64 " (%s): the supervisor of task %u was killed; what its "
		   "program has started is killed, too",
		task->job->row.id, task->job->row.name, task->number);
	sweep = calloc(1, sizeof(*sweep));
	if (sweep) {
		sweep->uid = task->job->row.uid;
		(void)strcpy(sweep->entry, "SLUICE_WORKLOAD=");
		sl_wire_token_format(
			workload->token, sweep->entry + strlen(sweep->entry));
	}
	if (sweep && sl_aside(sweep->uid, sweep_up, sweep))
		return;
	free(sweep);
	sl_warning("job %" PRIu64 " (%s): processes of user %u cannot be looked at now; "
		   "end what it left behind by hand",
		task->job->row.id, task->job->row.name, task->job->row.uid);
}
