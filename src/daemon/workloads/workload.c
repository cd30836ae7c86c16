/*
 * workload - lists, look-ups, and the end
 *
 * The policy keeps counting bytes of dead clients as dying after the workload is over. The
 * workload's request is given back at once: the driver takes milliseconds to clean up, and the next
 * `sluice run` in a script must not be refused for that.
 */
#include "daemon/workloads/workload.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/link/peer.h"
#include "daemon/report/events.h"
#include "daemon/state/client.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/process.h"

/* The search for the `sluice run` above a process stops after this many generations. */
#define ANCESTORS_MAX 256

struct sl_workload *sl_workload_new(struct sl_daemon *daemon, uint64_t id)
{
	struct sl_workload *workload = calloc(1, sizeof(*workload));
	struct sl_link *place = daemon->workload_list.prev;

	if (!workload || sl_map_put(&daemon->workloads, id, workload) < 0) {
		free(workload);
		return NULL;
	}
	workload->daemon = daemon;
	workload->id = id;
	workload->born = sl_clock_now();
	sl_list_init(&workload->root_link);
	sl_list_init(&workload->idle.link);
	sl_list_init(&workload->clients);
	sl_list_init(&workload->view_link);
	sl_list_init(&workload->move_link);
	sl_list_init(&workload->grave);
	/* By id. Ids grow, so this is the tail, except for a shuffled journal. */
	while (place != &daemon->workload_list &&
		SL_LIST_ENTRY(place, struct sl_workload, link)->id > id)
		place = place->prev;
	sl_list_insert_before(place->next, &workload->link);
	daemon->workload_count++;
	return workload;
}

void sl_workload_bind(
	struct sl_daemon *daemon, struct sl_workload *workload, uint32_t gpu_mask)
{
	workload->gpu_count = 0;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		uint32_t place = workload->gpu_count;

		if (!(gpu_mask & 1u << gpu))
			continue;
		for (; place > 0 && daemon->gpus[workload->gpus[place - 1]].pci_key >
					    daemon->gpus[gpu].pci_key;
			place--)
			workload->gpus[place] = workload->gpus[place - 1];
		workload->gpus[place] = (uint8_t)gpu;
		workload->gpu_count++;
	}
	memcpy(workload->first, workload->gpus, sizeof(workload->first));
}

uint32_t sl_workload_gpus(const struct sl_workload *workload)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < workload->gpu_count; i++)
		mask |= 1u << workload->gpus[i];
	return mask;
}

void sl_workload_set_root(struct sl_workload *workload, struct sl_process *process)
{
	workload->root = process;
	workload->root_pid = process->pid;
	workload->root_start = process->start_ticks;
	sl_list_push_tail(&process->roots, &workload->root_link);
}

static void unlink_all(struct sl_daemon *daemon, struct sl_workload *workload)
{
	daemon->up->workload_over(daemon, workload);
	workload->over = true;
	(void)sl_map_take(&daemon->workloads, workload->id);
	sl_list_unlink(&workload->link);
	sl_list_unlink(&workload->view_link);
	sl_list_unlink(&workload->move_link);
	sl_list_unlink(&workload->root_link);
	workload->root = sl_process_put(workload->root);
	daemon->workload_count--;
	sl_list_push_tail(&daemon->dead_workloads, &workload->grave);
}

void sl_workload_discard(struct sl_daemon *daemon, struct sl_workload *workload)
{
	unlink_all(daemon, workload);
}

void sl_workload_dismiss(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_REMOVE};

	event.workload_remove.workload = workload->id;
	sl_drive(daemon, &event);
	workload->task = NULL;
	sl_workload_discard(daemon, workload);
}

uint32_t sl_workload_compute_pm(
	const struct sl_daemon *daemon, uint32_t gpu, const struct sl_workload *but)
{
	uint32_t sum = 0;

	sl_list_foreach (link, &daemon->workload_list) {
		const struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload != but && workload->park == SL_PARK_NOT &&
			sl_workload_gpus(workload) >> gpu & 1)
			sum += workload->compute.request_pm;
	}
	return sum;
}

uint32_t sl_workload_compute_full(const struct sl_workload *workload, uint32_t request_pm)
{
	const struct sl_daemon *daemon = workload->daemon;
	uint32_t gpus = 0;

	for (uint32_t gpu = 0; request_pm && gpu < daemon->gpu_count; gpu++)
		gpus |= (uint32_t)sl_compute_is_full(
				sl_workload_compute_pm(daemon, gpu, workload), request_pm)
			<< gpu;
	return gpus;
}

struct sl_event sl_workload_event(
	const struct sl_workload *workload, uint32_t gpu_count, uint32_t gpu_mask)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_ADD};

	event.workload_add.workload = workload->id;
	event.workload_add.request = workload->request;
	event.workload_add.limit = workload->limit;
	event.workload_add.gpu_count = gpu_count;
	event.workload_add.gpu_mask = gpu_mask;
	event.workload_add.priority = workload->priority;
	event.workload_add.flags = workload->flags;
	event.workload_add.wait_max = workload->wait_max;
	event.workload_add.warm_after = workload->warm_after;
	event.workload_add.detach_after = workload->detach_after;
	event.workload_add.idle_grace = workload->idle_grace;
	event.workload_add.compute_pm = workload->compute.request_pm;
	return event;
}

bool sl_workload_propose(struct sl_daemon *daemon, const struct sl_event *event)
{
	daemon->admission =
		(struct sl_admission){.workload = event->workload_add.workload};
	sl_drive(daemon, event);
	return daemon->admission.admitted;
}

uint32_t sl_workload_processes(const struct sl_workload *workload)
{
	const struct sl_process *root = workload->root;
	uint32_t count = root != NULL;

	sl_list_foreach (link, &workload->clients) {
		struct sl_client *client = SL_LIST_ENTRY(link, struct sl_client, link);

		count += client->process != root;
	}
	return count;
}

/* Of two requests the earlier end counts; a request after that end begins anew. */
void sl_workload_note_stop(
	struct sl_daemon *daemon, struct sl_workload *workload, sl_ns grace)
{
	sl_ns now = sl_clock_now(), kill_at = now + grace;

	if (workload->kill_at > now)
		kill_at = sl_min_u64(kill_at, workload->kill_at);
	workload->kill_at = kill_at;
	sl_commit_soon(daemon);
}

uint32_t sl_workload_stop(
	struct sl_daemon *daemon, struct sl_workload *workload, sl_ns grace)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_STOP};
	uint32_t processes = sl_workload_processes(workload);

	event.workload_stop.workload = workload->id;
	event.workload_stop.grace = grace;
	sl_workload_note_stop(daemon, workload, grace);
	sl_drive(daemon, &event);
	return processes;
}

void sl_workload_check_end(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_REMOVE};

	if (workload->over || workload->root || workload->is_claimed ||
		!sl_list_is_empty(&workload->clients))
		return;
	if (sl_peer_may_log(daemon, SL_LOG_INFO))
		sl_info("workload %" PRIu64 " (%s) is over", workload->id,
			workload->name);
	sl_events_add(
		daemon, &(struct sl_node_because){.reason = SL_REASON_ENDED,
				.workload = workload->id,
				.span = sl_sub_sat(sl_clock_now(), workload->born)});
	event.workload_remove.workload = workload->id;
	sl_drive(daemon, &event);
	sl_list_foreach (link, &daemon->dying) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, state_link);

		if (client->workload == workload)
			client->workload = NULL;
	}
	unlink_all(daemon, workload);
	sl_step(D_WORKLOAD_OVER);
	sl_commit_soon(daemon);
}

void sl_workload_root_died(struct sl_workload *workload)
{
	struct sl_daemon *daemon = workload->root->daemon;

	sl_list_unlink(&workload->root_link);
	workload->root = sl_process_put(workload->root);
	sl_commit_soon(daemon);
	sl_workload_check_end(daemon, workload);
}

void sl_workload_visible(const struct sl_daemon *daemon,
	const struct sl_workload *workload, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	/* At most 32 GPUs of two digits each: fits. */
	for (uint32_t i = 0; i < workload->gpu_count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, i ? ",%u" : "%u",
			daemon->gpus[workload->gpus[i]].rank);
}

uint32_t sl_workload_flags(const struct sl_daemon *daemon, uint32_t flags)
{
	bool oom_first = flags & SL_RUN_OOM_FIRST ||
			 (daemon->config.oom_first && !(flags & SL_RUN_OOM_WAIT));

	_Static_assert(SL_RUN_CHAIN_SHIFT == SL_WORKLOAD_CHAIN_SHIFT, "copied below");
	return (flags & SL_RUN_CHAIN) |
	       (flags & SL_RUN_RDMA ? SL_WORKLOAD_RDMA | SL_WORKLOAD_NO_SWAP : 0) |
	       (flags & SL_RUN_NO_SWAP ? SL_WORKLOAD_NO_SWAP : 0) |
	       (flags & SL_RUN_OBSERVE ? SL_WORKLOAD_OBSERVED : 0) |
	       (oom_first ? SL_WORKLOAD_OOM_FIRST : 0);
}

static struct sl_workload *by_token(
	struct sl_daemon *daemon, const uint8_t token[SL_WIRE_TOKEN_BYTES])
{
	static const uint8_t none[SL_WIRE_TOKEN_BYTES];

	if (memcmp(token, none, sizeof(none)) == 0)
		return NULL;
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (memcmp(workload->token, token, SL_WIRE_TOKEN_BYTES) == 0)
			return workload;
	}
	return NULL;
}

/* The workload that has this very process as root or client; the newest wins. */
static struct sl_workload *of_process(struct sl_daemon *daemon, pid_t pid)
{
	struct sl_process *process = sl_map_get(&daemon->processes, (uint64_t)pid);
	uint64_t start = 0;

	if (!process || sl_file_pid_start(pid, &start) < 0 ||
		start != process->start_ticks)
		return NULL;
	if (!sl_list_is_empty(&process->roots))
		return SL_LIST_ENTRY(process->roots.prev, struct sl_workload, root_link);
	return process->client ? process->client->workload : NULL;
}

int sl_workload_find(struct sl_daemon *daemon, const uint8_t token[SL_WIRE_TOKEN_BYTES],
	pid_t pid, uid_t uid, struct sl_workload **out)
{
	struct sl_workload *workload = by_token(daemon, token);

	for (int i = 0; !workload && pid > 1 && i < ANCESTORS_MAX; i++) {
		workload = of_process(daemon, pid);
		pid = sl_file_pid_parent(pid);
	}
	if (!workload)
		return SL_WORKLOAD_NONE;
	if (workload->uid != uid)
		return SL_WORKLOAD_USER;
	*out = workload;
	return SL_WORKLOAD_OK;
}

struct sl_workload *sl_workload_named(
	struct sl_daemon *daemon, uid_t uid, const char *name)
{
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload->uid == uid && strcmp(workload->name, name) == 0)
			return workload;
	}
	return NULL;
}

/* The number, if the name has only digits; else 0. */
static uint64_t number_of(const char *name)
{
	char *end = NULL;
	uint64_t id;

	if (!isdigit((unsigned char)name[0]))
		return 0;
	errno = 0;
	id = strtoull(name, &end, 10);
	return *end || errno ? 0 : id;
}

/* The name is ambiguous: names some of the workloads, and how to choose. */
static void say_many(struct sl_daemon *daemon, const char *name, struct sl_error *err)
{
	char list[160] = "";
	size_t used = 0;

	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (strcmp(workload->name, name) == 0 && used + 48 < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used,
				"%s%" PRIu64 " of user %u", used ? ", " : "",
				workload->id, (unsigned int)workload->uid);
	}
	sl_error_set(err,
		"several users have a workload named %.64s: %s; give the number", name,
		list);
}

int sl_workload_pick(struct sl_daemon *daemon, uid_t uid, uint64_t id, const char *name,
	struct sl_workload **out, struct sl_error *err)
{
	struct sl_workload *found = id ? sl_map_get(&daemon->workloads, id)
				       : sl_workload_named(daemon, uid, name);
	uint32_t others = 0;

	if (!id && !found) {
		sl_list_foreach (link, &daemon->workload_list) {
			struct sl_workload *workload =
				SL_LIST_ENTRY(link, struct sl_workload, link);

			if (strcmp(workload->name, name) != 0)
				continue;
			found = workload;
			others++;
		}
	}
	if (others > 1) {
		say_many(daemon, name, err);
		return SL_WORKLOAD_MANY;
	}
	if (!id && !found)
		found = sl_map_get(&daemon->workloads, number_of(name));
	if (!found) {
		if (id)
			sl_error_set(err,
				"there is no workload %" PRIu64 "; see sluice ps", id);
		else
			sl_error_set(
				err, "there is no workload '%.64s'; see sluice ps", name);
		return SL_WORKLOAD_NONE;
	}
	*out = found;
	return SL_WORKLOAD_OK;
}

int sl_workload_ordinal(const struct sl_workload *workload, uint32_t gpu)
{
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		if (workload->gpus[i] == gpu)
			return (int)i;
	}
	return -1;
}

void sl_workload_bury(struct sl_daemon *daemon)
{
	sl_list_foreach_safe (link, &daemon->dead_workloads) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, grave);

		sl_list_unlink(link);
		sl_list_unlink(&workload->idle.link);
		free(workload);
	}
}
