/*
 * recover - finds the processes of the journal that still live
 *
 * A pid with the same start time in the same boot is the same process. Dead clients are ignored:
 * what they still hold counts as unmanaged until the driver has cleaned up.
 */
#include "daemon/loop/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/clients/client.h"
#include "daemon/swap/place.h"
#include "daemon/control/entry.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/jobs.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/container.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

static void read_boot(char boot[40])
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;

	memset(boot, 0, 40);
	if (sl_file_read("/proc/sys/kernel/random/boot_id", 64, &text, &size) == 0 &&
		size < 40)
		sl_wire_str(boot, size, text); /* without the newline */
}

/* --- saving ------------------------------------------------------------------------------- */

static void save_gpus(const struct sl_daemon *daemon, struct sl_journal *journal)
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];
		struct sl_journal_gpu *out = &journal->gpus[i];

		memcpy(out->uuid, gpu->uuid, sizeof(out->uuid));
		memcpy(out->name, gpu->name, sizeof(out->name));
		memcpy(out->pci, gpu->pci, sizeof(out->pci));
		out->pci_key = gpu->pci_key;
		out->capacity_bytes = gpu->capacity_bytes;
		out->reserve_bytes = gpu->reserve_bytes;
	}
}

static void save_uuids(const struct sl_daemon *daemon, const uint8_t numbers[],
	uint32_t count, uint8_t out[][SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < count; i++)
		memcpy(out[i], daemon->gpus[numbers[i]].uuid, SL_WIRE_UUID_BYTES);
}

static void save_reach(
	const struct sl_daemon *daemon, uint32_t gpus, uint8_t out[][SL_WIRE_UUID_BYTES])
{
	memset(out, 0, SL_NODE_GPUS_MAX * sizeof(out[0]));
	for (; gpus; gpus &= gpus - 1)
		memcpy(*out++, daemon->gpus[__builtin_ctz(gpus)].uuid,
			SL_WIRE_UUID_BYTES);
}

static void save_workload(const struct sl_daemon *daemon,
	const struct sl_workload *workload, struct sl_journal_workload *out)
{
	out->id = workload->id;
	memcpy(out->token, workload->token, sizeof(out->token));
	out->uid = workload->uid;
	out->root_pid = workload->root_pid;
	out->root_start = workload->root ? workload->root_start : 0;
	memcpy(out->name, workload->name, sizeof(out->name));
	memcpy(out->project, workload->project, sizeof(out->project));
	memcpy(out->command, workload->command, sizeof(out->command));
	sl_wire_str(out->entry, sizeof(out->entry), sl_entry_key(workload));
	out->request = workload->request;
	out->limit = workload->limit;
	out->request_bytes = workload->request_bytes;
	out->limit_bytes = workload->limit_bytes;
	out->born = workload->born;
	out->priority = workload->priority;
	out->flags = workload->flags;
	out->wait_max = workload->wait_max;
	out->kill_at = workload->kill_at;
	out->warm_after = workload->warm_after;
	out->detach_after = workload->detach_after;
	out->idle_grace = workload->idle_grace;
	out->compute_request_pm = workload->compute.request_pm;
	out->compute_limit_pm = workload->compute.limit_pm;
	out->park = workload->park;
	out->by_queue = sl_jobs_keeps_run(workload);
	out->leaving = sl_jobs_run_leaves(workload);
	out->former_limit_bytes = workload->former_limit_bytes;
	out->gpu_count = workload->gpu_count;
	memset(out->gpus, 0, sizeof(out->gpus));
	memset(out->first, 0, sizeof(out->first));
	save_uuids(daemon, workload->gpus, workload->gpu_count, out->gpus);
	save_uuids(daemon, workload->first, workload->gpu_count, out->first);
	save_reach(daemon, workload->reach, out->reach);
}

static void save_all(const struct sl_daemon *daemon, struct sl_journal *journal)
{
	size_t workloads = 0, clients = 0;

	sl_list_foreach (at, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		save_workload(daemon, workload, &journal->workloads[workloads++]);
		sl_list_foreach (link, &workload->clients) {
			const struct sl_client *client =
				SL_LIST_ENTRY(link, struct sl_client, link);

			struct sl_journal_client *out = &journal->clients[clients++];

			*out = (struct sl_journal_client){
				.id = client->id,
				.workload = workload->id,
				.pid = client->pid,
				.swaps = client->swaps,
				.start_ticks = client->start_ticks,
				.away_bytes = client->away_bytes,
			};
			save_uuids(daemon, client->home, client->gpu_count, out->home);
		}
	}
}

int sl_recover_save(struct sl_daemon *daemon)
{
	struct sl_journal *journal = &daemon->commit.journal;
	int r = sl_journal_reserve(
		journal, daemon->gpu_count, daemon->workload_count, daemon->client_count);

	if (r < 0)
		return r;
	if (!journal->boot[0])
		read_boot(journal->boot);
	journal->next_workload = daemon->next_workload;
	journal->next_client = daemon->next_client;
	save_gpus(daemon, journal);
	save_all(daemon, journal);
	return 0;
}

/* --- loading ------------------------------------------------------------------------------ */

/* Logs that a GPU of the workload is missing: its processes can neither move to another GPU nor
 * lose one that their ordinals name. */
static void note_lost(const struct sl_daemon *daemon,
	const struct sl_journal_workload *in, const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	int number = sl_inventory_find(daemon, uuid);
	const char *why = number >= 0 ? daemon->gpus[number].why_not : "";
	char text[41];

	sl_wire_uuid_format(uuid, text);
	sl_warning("workload %" PRIu64 " (%s) could not be taken in again: %s is not "
		   "managed%s%s; its processes keep their memory, which counts as "
		   "unmanaged, and get no more: start them anew",
		in->id, in->name, text, why[0] ? ": " : "", why);
}

/* The number of a recorded GPU; -1: the journal does not describe it. */
static int recall(struct sl_daemon *daemon, const struct sl_journal *journal,
	const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (size_t i = 0; i < journal->gpu_count; i++) {
		const struct sl_journal_gpu *gpu = &journal->gpus[i];

		if (memcmp(gpu->uuid, uuid, sizeof(gpu->uuid)) == 0)
			return sl_inventory_recall(daemon, gpu->uuid, gpu->name, gpu->pci,
				gpu->pci_key, gpu->capacity_bytes, gpu->reserve_bytes);
	}
	return -1;
}

/* Sets those that are known. */
static void recall_all(struct sl_daemon *daemon, const struct sl_journal *journal,
	const uint8_t uuids[][SL_WIRE_UUID_BYTES], uint32_t count, uint8_t numbers[])
{
	for (uint32_t i = 0; i < count; i++) {
		int number = recall(daemon, journal, uuids[i]);

		if (number >= 0)
			numbers[i] = (uint8_t)number;
	}
}

static uint32_t recall_reach(struct sl_daemon *daemon, const struct sl_journal *journal,
	const uint8_t uuids[][SL_WIRE_UUID_BYTES])
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < SL_NODE_GPUS_MAX; i++) {
		int number = recall(daemon, journal, uuids[i]);

		if (number >= 0)
			mask |= 1u << number;
	}
	return mask;
}

/* The policy's mask of a recorded workload's GPUs; 0 if one is missing. */
static uint32_t recall_gpus(struct sl_daemon *daemon, const struct sl_journal *journal,
	const struct sl_journal_workload *in)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < in->gpu_count; i++) {
		int number = recall(daemon, journal, in->gpus[i]);

		if (number < 0 || mask & 1u << number) {
			note_lost(daemon, in, in->gpus[i]);
			return 0;
		}
		mask |= 1u << number;
	}
	return mask;
}

static bool has_living(struct sl_daemon *daemon, const struct sl_journal *journal,
	const struct sl_journal_workload *in)
{
	uint64_t start = 0;

	if (in->entry[0])
		return true;
	if (in->root_start && sl_file_pid_start(in->root_pid, &start) == 0 &&
		start == in->root_start)
		return true;
	for (size_t i = 0; i < journal->client_count; i++) {
		const struct sl_journal_client *client = &journal->clients[i];

		if (client->workload == in->id &&
			sl_file_pid_start(client->pid, &start) == 0 &&
			start == client->start_ticks)
			return true;
	}
	return false;
}

static bool policy_takes(
	struct sl_daemon *daemon, struct sl_workload *workload, uint32_t mask)
{
	struct sl_event event =
		sl_workload_event(workload, (uint32_t)__builtin_popcount(mask), mask);

	/* The guarantee was in bytes; the same fraction of today's share could differ. */
	event.workload_add.request = (struct sl_amount){
		.kind = SL_AMOUNT_BYTES, .value = workload->request_bytes};
	event.workload_add.limit = (struct sl_amount){
		.kind = SL_AMOUNT_BYTES, .value = workload->limit_bytes};
	event.workload_add.recovered = 1;
	return sl_workload_propose(daemon, &event);
}

static void load_workload(struct sl_daemon *daemon, const struct sl_journal *journal,
	const struct sl_journal_workload *in)
{
	uint32_t mask =
		has_living(daemon, journal, in) ? recall_gpus(daemon, journal, in) : 0;
	struct sl_workload *workload = NULL;
	struct sl_process *root = NULL;
	int pidfd = -1;

	if (!mask || sl_map_get(&daemon->workloads, in->id))
		return;
	workload = sl_workload_new(daemon, in->id);
	if (!workload)
		return;
	memcpy(workload->token, in->token, sizeof(workload->token));
	memcpy(workload->name, in->name, sizeof(workload->name));
	memcpy(workload->project, in->project, sizeof(workload->project));
	memcpy(workload->command, in->command, sizeof(workload->command));
	workload->uid = in->uid;
	workload->root_pid = in->root_pid;
	workload->request = in->request;
	workload->limit = in->limit;
	workload->request_bytes = in->request_bytes;
	workload->limit_bytes = in->limit_bytes;
	workload->priority = in->priority;
	workload->flags = in->flags;
	workload->wait_max = in->wait_max;
	workload->kill_at = in->kill_at;
	workload->warm_after = in->warm_after;
	workload->detach_after = in->detach_after;
	workload->idle_grace = in->idle_grace;
	workload->compute.request_pm = in->compute_request_pm;
	workload->compute.limit_pm = in->compute_limit_pm;
	workload->park = in->park;
	workload->by_queue = in->by_queue;
	workload->leaving = in->leaving;
	workload->former_limit_bytes = in->former_limit_bytes;
	workload->born = in->born;
	if (in->entry[0] && sl_entry_recover(daemon, workload, in->entry) < 0)
		sl_warning("workload %" PRIu64
			   " (%s) keeps no socket of its own: no memory",
			in->id, in->name);
	if (!policy_takes(daemon, workload, mask)) {
		char why[512];

		sl_warning("workload %" PRIu64 " (%s) could not be taken in again: %s",
			in->id, in->name,
			sl_refusal_sentence(daemon, in->name, why, sizeof(why)));
		sl_workload_discard(daemon, workload);
		return;
	}
	sl_workload_bind(daemon, workload, daemon->admission.gpu_mask);
	/* Its ordinals stay, even if it has moved. */
	recall_all(daemon, journal, in->gpus, in->gpu_count, workload->gpus);
	recall_all(daemon, journal, in->first, in->gpu_count, workload->first);
	workload->reach = recall_reach(daemon, journal, in->reach);
	if (in->root_start && sl_process_get(daemon, in->root_pid, &pidfd, in->root_start,
				      &root) == SL_PROCESS_OK)
		sl_workload_set_root(workload, root);
	else
		(void)sl_container_follow(workload);
}

static void load_client(struct sl_daemon *daemon, const struct sl_journal *journal,
	const struct sl_journal_client *in)
{
	struct sl_workload *workload = sl_map_get(&daemon->workloads, in->workload);
	struct sl_process *process = NULL;
	struct sl_client *client;
	int pidfd = -1;

	if (!workload || sl_process_get(daemon, in->pid, &pidfd, in->start_ticks,
				 &process) != SL_PROCESS_OK)
		return;
	if (process->client) {
		process = sl_process_put(process);
		return;
	}
	client = sl_client_new(daemon, workload, process, in->id);
	if (!client)
		return;
	client->swaps = in->swaps != 0;
	recall_all(daemon, journal, in->home, client->gpu_count, client->home);
	sl_client_join(client, NULL);
	sl_place_recovered(client, in->away_bytes);
}

/*
 * Continues stops that users asked for, because a stop that was acknowledged must happen. The clock
 * is the boot's, so the grace period goes on. SIGTERM is sent again, because the earlier daemon may
 * have died before sending it. Stops that the policy decided itself, of borrowers, are not
 * continued: the policy decides anew from the present state.
 */
static void stop_again(struct sl_daemon *daemon)
{
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);
		struct sl_event event = {.type = SL_EVENT_WORKLOAD_STOP};

		if (!workload->kill_at)
			continue;
		sl_info("workload %" PRIu64 " (%s) was being stopped: going on",
			workload->id, workload->name);
		event.workload_stop.workload = workload->id;
		event.workload_stop.grace = sl_sub_sat(workload->kill_at, sl_clock_now());
		sl_drive(daemon, &event);
	}
}

static void load_clients(
	struct sl_daemon *daemon, const struct sl_journal *journal, uint64_t workload)
{
	for (size_t i = 0; i < journal->client_count; i++) {
		if (journal->clients[i].workload == workload)
			load_client(daemon, journal, &journal->clients[i]);
	}
}

/*
 * Loads the parked workloads, each of which gives up its request at once, before the others: these
 * may use that request by now, and together they would exceed the GPU. No process has reported yet,
 * so no memory of parked workloads is restored unasked.
 */
static void load_parked(struct sl_daemon *daemon, const struct sl_journal *journal)
{
	for (size_t i = 0; i < journal->workload_count; i++) {
		uint64_t id = journal->workloads[i].id;

		if (journal->workloads[i].park == SL_PARK_NOT)
			continue;
		load_workload(daemon, journal, &journal->workloads[i]);
		load_clients(daemon, journal, id);
		if (sl_map_get(&daemon->workloads, id))
			sl_park_again(daemon, sl_map_get(&daemon->workloads, id));
	}
}

/* Once all requests are known. */
static void resume_again(struct sl_daemon *daemon)
{
	sl_list_foreach (link, &daemon->workload_list) {
		sl_park_resume_again(
			daemon, SL_LIST_ENTRY(link, struct sl_workload, link));
	}
}

/* Ends workloads whose last process died while they were taken in. */
static void end_empty(struct sl_daemon *daemon)
{
	sl_list_foreach_safe (link, &daemon->workload_list) {
		sl_workload_check_end(
			daemon, SL_LIST_ENTRY(link, struct sl_workload, link));
	}
}

int sl_recover_load(struct sl_daemon *daemon, struct sl_error *err)
{
	sl_cleanup(sl_journal_fini) struct sl_journal journal = {0};
	char boot[40];
	int r;

	daemon->next_workload = daemon->next_client = 1;
	r = sl_journal_load(daemon->store, &journal, err);
	if (r == SL_STORE_BAD) {
		sl_warning(
			"%s; starting without it, what lives of its workloads counts as "
			"unmanaged",
			err->text);
		err->text[0] = '\0';
		/* Clients may use ids of the lost journal: choose ids far from them. */
		daemon->next_workload = daemon->next_client = sl_clock_now() / SL_MS;
		return 0;
	}
	if (r == SL_STORE_PARTLY) {
		sl_warning("%s; what is left out counts as unmanaged; there are %zu "
			   "workloads and %zu clients",
			err->text, journal.workload_count, journal.client_count);
		err->text[0] = '\0';
	}
	/* The journal's folder does not outlive a reboot; the jobs' folder does. */
	daemon->rebooted = !journal.boot[0];
	if (daemon->rebooted)
		return 0;
	daemon->next_workload = sl_max_u64(1, journal.next_workload);
	daemon->next_client = sl_max_u64(1, journal.next_client);
	read_boot(boot);
	daemon->rebooted = strcmp(boot, journal.boot) != 0;
	if (daemon->rebooted)
		return 0; /* after a reboot none of its processes lives */
	sl_step(D_JOURNAL_READ);
	load_parked(daemon, &journal);
	for (size_t i = 0; i < journal.workload_count; i++) {
		if (journal.workloads[i].park == SL_PARK_NOT)
			load_workload(daemon, &journal, &journal.workloads[i]);
	}
	sl_step(D_WORKLOADS_TAKEN);
	for (size_t i = 0; i < journal.client_count; i++)
		load_client(daemon, &journal, &journal.clients[i]);
	sl_step(D_CLIENTS_TAKEN);
	end_empty(daemon);
	resume_again(daemon);
	stop_again(daemon);
	if (daemon->workload_count)
		sl_info("took in %u workloads and %u clients of the daemon before",
			daemon->workload_count, daemon->client_count);
	return 0;
}
