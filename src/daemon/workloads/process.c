/*
 * process - pidfds with a count of users
 *
 * A workload's root usually is its first client as well (`sluice run` execs the program in
 * its own process), so both share one watch.
 */
#include "daemon/workloads/process.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/aside.h"
#include "daemon/core/host_budget.h"
#include "daemon/core/identity.h"
#include "daemon/link/share.h"

/* A process maps a few thousand files at most; a look gives up beyond this. */
#define MAPS_BYTES_MAX (16u << 20)

/* Shared by the process and the thread that looks at it; the last one frees it. */
struct sl_process_look {
	atomic_uint users;
	atomic_int outcome;
	pid_t pid;
};

enum { LOOKING, WITH_CUDA, WITHOUT_CUDA };

static bool maps_no_cuda(pid_t pid)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t bytes = 0;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	/* Empty: the process is ending, which its pidfd will tell. */
	return sl_file_read(path, MAPS_BYTES_MAX, &text, &bytes) == 0 && bytes &&
	       !strstr(text, "/libcuda.so") && !strstr(text, SL_HOST_FILE_NAME);
}

static struct sl_process_look *look_unref(struct sl_process_look *look)
{
	if (look && atomic_fetch_sub(&look->users, 1) == 1)
		free(look);
	return NULL;
}

static void look_at(void *work)
{
	struct sl_process_look *look = work;

	atomic_store(&look->outcome, maps_no_cuda(look->pid) ? WITHOUT_CUDA : WITH_CUDA);
	(void)look_unref(look);
}

bool sl_process_is_without_cuda(struct sl_process *process, uid_t uid)
{
	int outcome = process->look ? atomic_load(&process->look->outcome) : WITH_CUDA;

	if (outcome == LOOKING)
		return false;
	process->look = look_unref(process->look);
	if (outcome == WITHOUT_CUDA)
		return true;
	process->look = calloc(1, sizeof(*process->look));
	if (!process->look)
		return false;
	process->look->pid = process->pid;
	atomic_store(&process->look->users, 2);
	if (!sl_aside(uid, look_at, process->look)) {
		free(process->look);
		process->look = NULL;
	}
	return false;
}

void sl_process_died(struct sl_process *process)
{
	if (process->dead)
		return;
	sl_debug("process %d is dead", (int)process->pid);
	process->dead = true;
	(void)sl_map_take(&process->daemon->processes, (uint64_t)process->pid);
	process->source = sd_event_source_disable_unref(process->source);
	/* Keeps the process until this function is done. */
	process->users++;
	process->daemon->up->process_died(process);
	(void)sl_process_put(process);
}

static int on_death(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_process *process = context;
	struct sl_daemon *daemon = process->daemon;
	struct sl_share_turn turn = sl_share_begin();

	sl_process_died(process);
	daemon->up->settle(daemon);
	sl_share_note(daemon, SL_SHARE_DEATH, &turn);
	return 0;
}

/* The pidfd was opened by number after the start time was read: is it the same process? */
static bool is_same(pid_t pid, uint64_t start_ticks)
{
	uint64_t now_ticks = 0;

	return sl_file_pid_start(pid, &now_ticks) == 0 && now_ticks == start_ticks;
}

static int watch(struct sl_daemon *daemon, pid_t pid, int *pidfd, uint64_t start_ticks,
	struct sl_process **out)
{
	sl_cleanup(sl_closep) int fd = sl_steal_fd(pidfd);
	sl_cleanup(sl_freep) struct sl_process *process = calloc(1, sizeof(*process));
	int r;

	if (!process)
		return sl_err_origin(-ENOMEM);
	if (fd < 0) {
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			return errno == ESRCH ? SL_PROCESS_GONE : sl_err_origin(-errno);
		if (!is_same(pid, start_ticks))
			return SL_PROCESS_GONE;
	}
	process->daemon = daemon;
	process->pid = pid;
	process->start_ticks = start_ticks;
	process->users = 1;
	sl_list_init(&process->roots);
	sl_list_init(&process->grave);
	r = sl_map_put(&daemon->processes, (uint64_t)pid, process);
	if (r < 0)
		return r;
	r = sd_event_add_io(
		daemon->loop, &process->source, fd, EPOLLIN, on_death, process);
	if (r < 0) {
		(void)sl_map_take(&daemon->processes, (uint64_t)pid);
		return sl_err_origin(r);
	}
	(void)sd_event_source_set_priority(process->source, SL_PRIORITY_DEATH);
	process->pidfd = sl_steal_fd(&fd);
	*out = sl_steal(&process);
	return SL_PROCESS_OK;
}

/* If the pidfd shows the process alive, /proc need not be read. */
static int start_of(pid_t pid, int pidfd, uint64_t start_ticks, uint64_t *out)
{
	if (pidfd < 0 || !start_ticks)
		return sl_file_pid_start(pid, out);
	*out = start_ticks;
	return sl_identity_is_alive(pidfd) ? 0 : -ESRCH;
}

int sl_process_get(struct sl_daemon *daemon, pid_t pid, int *pidfd, uint64_t start_ticks,
	struct sl_process **out)
{
	struct sl_process *process = sl_map_get(&daemon->processes, (uint64_t)pid);
	uint64_t now_ticks = 0;
	int r = start_of(pid, *pidfd, start_ticks, &now_ticks);

	if (r < 0 || (start_ticks && now_ticks != start_ticks))
		return SL_PROCESS_GONE;
	if (process && process->start_ticks != now_ticks) {
		/* Another process has the number; the old one's death was not handled yet. */
		sl_process_died(process);
		process = NULL;
	}
	if (process) {
		process->users++;
		*out = process;
		return SL_PROCESS_OK;
	}
	return watch(daemon, pid, pidfd, now_ticks, out);
}

struct sl_process *sl_process_put(struct sl_process *process)
{
	if (!process || --process->users > 0)
		return NULL;
	if (!process->dead)
		(void)sl_map_take(&process->daemon->processes, (uint64_t)process->pid);
	process->source = sd_event_source_disable_unref(process->source);
	sl_closep(&process->pidfd);
	process->look = look_unref(process->look);
	sl_list_push_tail(&process->daemon->dead_processes, &process->grave);
	return NULL;
}

void sl_process_bury(struct sl_daemon *daemon)
{
	sl_list_foreach_safe (link, &daemon->dead_processes) {
		sl_list_unlink(link);
		free(SL_LIST_ENTRY(link, struct sl_process, grave));
	}
}
