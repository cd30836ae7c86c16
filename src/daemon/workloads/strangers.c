/*
 * strangers - a table by number and by id
 *
 * Start times are read when a process is first seen and when its memory has changed. Reading them
 * at every sample would cost the loop milliseconds per second with a thousand unmanaged processes.
 * If a number has passed to another process in between, stopper.c notices before it signals.
 */
#include "daemon/workloads/strangers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "daemon/report/events.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/container.h"
#include "daemon/workloads/workload.h"

struct sl_stranger *sl_strangers_find(struct sl_daemon *daemon, uint64_t id)
{
	sl_list_foreach (link, &daemon->strangers->all) {
		struct sl_stranger *stranger =
			SL_LIST_ENTRY(link, struct sl_stranger, link);

		if (stranger->id == id)
			return stranger;
	}
	return NULL;
}

static uint64_t start_of(uint32_t pid)
{
	uint64_t ticks = 0;

	return sl_file_pid_start((int)pid, &ticks) == 0 ? ticks : 0;
}

static void tell(struct sl_daemon *daemon, struct sl_stranger *stranger, uint32_t gpu,
	uint64_t bytes)
{
	struct sl_event event = {.type = SL_EVENT_STRANGER};

	if (stranger->told_bytes[gpu] == bytes)
		return;
	stranger->told_bytes[gpu] = bytes;
	event.stranger.stranger = stranger->id;
	event.stranger.gpu = gpu;
	event.stranger.bytes = bytes;
	sl_drive(daemon, &event);
}

/* The process is gone, as far as can be seen: the policy forgets it, and so does the table. */
static void forget(struct sl_daemon *daemon, struct sl_stranger *stranger)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		tell(daemon, stranger, gpu, 0);
	(void)sl_map_take(&daemon->strangers->by_pid, (uint64_t)stranger->pid);
	sl_list_unlink(&stranger->link);
	daemon->strangers->count--;
	free(stranger);
}

static struct sl_stranger *meet(struct sl_daemon *daemon, uint32_t pid)
{
	struct sl_stranger *stranger;

	if (daemon->strangers->count >= SL_STRANGERS_MAX)
		return NULL;
	stranger = calloc(1, sizeof(*stranger));
	if (!stranger || sl_map_put(&daemon->strangers->by_pid, pid, stranger) < 0) {
		free(stranger);
		return NULL;
	}
	stranger->id = ++daemon->strangers->last_id;
	stranger->pid = (pid_t)pid;
	stranger->start_ticks = start_of(pid);
	stranger->since = sl_clock_now();
	sl_list_push_tail(&daemon->strangers->all, &stranger->link);
	daemon->strangers->count++;
	return stranger;
}

static uid_t user_of(pid_t pid)
{
	struct stat stat_now = {0};
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &stat_now) == 0 ? stat_now.st_uid : 0;
}

/* A process is first seen with little more than its context, so the event is repeated whenever the
 * process's memory has doubled. (peer-failures row 23: a limit that is silently absent.) */
static void warn(struct sl_daemon *daemon, struct sl_stranger *stranger, uint32_t gpu)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct sl_node_because because = {.reason = SL_REASON_UNMANAGED_SEEN,
		.gpu = gpu,
		.bytes = stranger->seen_bytes[gpu]};
	struct sl_workload *workload = NULL;
	int r;

	if (stranger->seen_bytes[gpu] < 2 * stranger->warned_bytes[gpu] ||
		daemon->config.unmanaged == SL_UNMANAGED_IGNORE)
		return;
	stranger->warned_bytes[gpu] = stranger->seen_bytes[gpu];
	r = sl_workload_find(
		daemon, no_token, stranger->pid, user_of(stranger->pid), &workload);
	if (r == SL_WORKLOAD_NONE)
		workload = sl_container_workload(daemon, stranger->pid);
	if (!stranger->start_ticks)
		because.reason = SL_REASON_UNMANAGED_GONE;
	else if (r != SL_WORKLOAD_NONE || workload)
		because.reason = SL_REASON_UNMANAGED_OURS;
	because.workload = workload ? workload->id : 0;
	sl_events_add_of(daemon, &because, stranger->pid);
}

void sl_strangers_begin(struct sl_daemon *daemon)
{
	daemon->strangers->round++;
}

void sl_strangers_seen(
	struct sl_daemon *daemon, uint32_t gpu, uint32_t pid, uint64_t bytes)
{
	struct sl_stranger *stranger = sl_map_get(&daemon->strangers->by_pid, pid);

	if (stranger && stranger->seen_bytes[gpu] != bytes &&
		start_of(pid) != stranger->start_ticks) {
		forget(daemon, stranger);
		stranger = NULL;
	}
	if (!stranger)
		stranger = meet(daemon, pid);
	if (!stranger)
		return;
	stranger->round = daemon->strangers->round;
	stranger->seen_bytes[gpu] = bytes;
}

static bool is_anywhere(const struct sl_stranger *stranger)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (stranger->seen_bytes[gpu])
			return true;
	}
	return false;
}

/* A client may not have connected yet: after our start, and right after its first memory. */
static bool is_certain(const struct sl_daemon *daemon, const struct sl_stranger *stranger)
{
	sl_ns now = sl_clock_now();

	return stranger->start_ticks &&
	       now >= stranger->since + SL_STRANGERS_PATIENCE_NS &&
	       now >= daemon->started + daemon->config.recover_wait +
			       SL_STRANGERS_PATIENCE_NS;
}

void sl_strangers_end(struct sl_daemon *daemon, uint32_t gpu)
{
	sl_list_foreach_safe (link, &daemon->strangers->all) {
		struct sl_stranger *stranger =
			SL_LIST_ENTRY(link, struct sl_stranger, link);

		if (stranger->round != daemon->strangers->round)
			stranger->seen_bytes[gpu] = 0;
		if (!is_anywhere(stranger)) {
			forget(daemon, stranger);
			continue;
		}
		if (stranger->seen_bytes[gpu])
			warn(daemon, stranger, gpu);
		if (!stranger->seen_bytes[gpu] || is_certain(daemon, stranger))
			tell(daemon, stranger, gpu, stranger->seen_bytes[gpu]);
	}
}

void sl_strangers_lost(struct sl_daemon *daemon, uint32_t gpu)
{
	sl_list_foreach (link, &daemon->strangers->all) {
		SL_LIST_ENTRY(link, struct sl_stranger, link)->told_bytes[gpu] = 0;
	}
}

int sl_strangers_open(struct sl_daemon *daemon)
{
	daemon->strangers = calloc(1, sizeof(*daemon->strangers));
	if (!daemon->strangers)
		return sl_err_origin(-ENOMEM);
	sl_list_init(&daemon->strangers->all);
	return 0;
}

void sl_strangers_close(struct sl_daemon *daemon)
{
	struct sl_strangers *strangers = sl_steal(&daemon->strangers);

	if (!strangers)
		return;
	sl_list_foreach_safe (link, &strangers->all) {
		sl_list_unlink(link);
		free(SL_LIST_ENTRY(link, struct sl_stranger, link));
	}
	sl_map_fini(&strangers->by_pid);
	free(strangers);
}
