/*
 * client - a translator with a short memory
 *
 * Only demands between ASK and COMMIT are remembered here. A client that reconnects reports what it
 * holds, including grants that reached it, and asks again for the rest. So its report replaces the
 * grants of the old connection: each grant is committed as backing just before the report corrects
 * the backing. In between, no byte is free by mistake or booked twice. Demands that still waited
 * were cancelled when the connection broke.
 */
#include "daemon/clients/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/clients/claim.h"
#include "daemon/clients/ipc.h"
#include "daemon/clients/views.h"
#include "daemon/gpu/asking.h"
#include "daemon/link/pids.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/swap/hostpool.h"
#include "daemon/swap/place.h"
#include "daemon/swap/swap.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/probing.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

/* --- demands ------------------------------------------------------------------------------ */

static struct sl_client_demand *demand_of(struct sl_client *client, uint64_t ask)
{
	for (uint32_t i = 0; i < client->demand_count; i++) {
		if (client->demands[i].ask == ask)
			return &client->demands[i];
	}
	return NULL;
}

/* Epoch 0: one that waits. */
static struct sl_client_demand *demand_of_epoch(struct sl_client *client, uint64_t epoch)
{
	for (uint32_t i = 0; i < client->demand_count; i++) {
		if (client->demands[i].epoch == epoch)
			return &client->demands[i];
	}
	return NULL;
}

static struct sl_client_demand *demand_add(
	struct sl_client *client, uint64_t ask, uint32_t ordinal)
{
	if (client->demand_count == client->demand_room) {
		uint32_t room = client->demand_room ? client->demand_room * 2 : 4;
		void *grown = NULL;

		if (room <= SL_CLIENT_DEMANDS_MAX)
			grown = realloc(client->demands, room * sizeof(*client->demands));
		if (!grown)
			return NULL;
		client->demands = grown;
		client->demand_room = room;
	}
	client->demands[client->demand_count] =
		(struct sl_client_demand){.ask = ask, .ordinal = ordinal};
	return &client->demands[client->demand_count++];
}

static void demand_remove(struct sl_client *client, struct sl_client_demand *demand)
{
	*demand = client->demands[--client->demand_count];
}

bool sl_client_has_grant(const struct sl_client *client)
{
	for (uint32_t i = 0; i < client->demand_count; i++) {
		if (client->demands[i].epoch && client->demands[i].bytes)
			return true;
	}
	return false;
}

/* --- joining and leaving ------------------------------------------------------------------ */

struct sl_client *sl_client_new(struct sl_daemon *daemon, struct sl_workload *workload,
	struct sl_process *process, uint64_t id)
{
	struct sl_client *client = calloc(
		1, sizeof(*client) + workload->gpu_count * sizeof(client->gpus[0]));

	if (!client || sl_map_put(&daemon->clients, id, client) < 0) {
		(void)sl_process_put(process);
		free(client);
		return NULL;
	}
	client->daemon = daemon;
	client->id = id;
	client->workload = workload;
	client->process = process;
	client->pid = process->pid;
	client->uid = workload->uid;
	client->start_ticks = process->start_ticks;
	client->gpu_count = workload->gpu_count;
	memcpy(client->gpu_numbers, workload->gpus, sizeof(client->gpu_numbers));
	memcpy(client->home, workload->gpus, sizeof(client->home));
	client->lost_at = sl_clock_now();
	process->client = client;
	sl_list_init(&client->state_link);
	sl_list_init(&client->probe_link);
	sl_list_init(&client->offers);
	sl_list_init(&client->order_over.link);
	sl_list_init(&client->stop_failed.link);
	sl_list_init(&client->place.link);
	sl_list_init(&client->place.over.link);
	sl_list_init(&client->host_files);
	sl_list_init(&client->grave);
	sl_list_push_tail(&workload->clients, &client->link);
	daemon->client_count++;
	return client;
}

void sl_client_join(struct sl_client *client, struct sl_peer *peer)
{
	struct sl_daemon *daemon = client->daemon;
	struct sl_event event = {.type = SL_EVENT_CLIENT_JOIN};

	client->state = peer ? SL_CLIENT_JOINED : SL_CLIENT_EXPECTED;
	client->expected = client->outlived = !peer;
	client->peer = peer;
	if (peer) {
		client->swaps = true;
		client->uid = peer->uid;
	}
	client->changed_at = sl_clock_now();
	if (peer)
		peer->client = client;
	else
		daemon->expected_count++;
	event.client_join.client = client->id;
	event.client_join.workload = client->workload->id;
	event.client_join.expected = client->expected;
	event.client_join.swaps = client->swaps;
	sl_drive(daemon, &event);
	if (peer)
		sl_events_add(
			daemon, &(struct sl_node_because){.reason = SL_REASON_JOINED,
					.workload = client->workload->id,
					.client = client->id});
}

void sl_client_reconnected(struct sl_client *client, struct sl_peer *peer)
{
	struct sl_peer *old = client->peer;

	client->peer = NULL;
	/* The old connection's loss may not have been noticed yet. */
	sl_swap_lost(client);
	sl_place_lost(client);
	sl_meters_left(client);
	if (old) {
		old->client = NULL;
		sl_peer_doom(old);
	}
	sl_debug("client %" PRIu64 " (process %d) is back", client->id, (int)client->pid);
	client->peer = peer;
	client->uid = peer->uid;
	client->state = SL_CLIENT_JOINED;
	client->changed_at = sl_clock_now();
	for (uint32_t i = 0; i < client->demand_count; i++)
		client->demands[i].former = client->demands[i].epoch != 0;
	for (uint32_t i = 0; i < client->gpu_count; i++)
		client->gpus[i].reported = false;
	peer->client = client;
	sl_hostpool_reconnected(client);
	sl_ipc_client_back(client);
}

void sl_client_disconnected(struct sl_client *client)
{
	struct sl_daemon *daemon = client->daemon;
	struct sl_client_demand *demand;

	/* Noticed while settling: the client may be back, or dead, by now. */
	if (client->peer || client->state == SL_CLIENT_DYING)
		return;
	client->lost_at = sl_clock_now();
	sl_swap_lost(client);
	sl_place_lost(client);
	sl_meters_left(client);
	/* The client asks again when it is back; it cannot take a grant meanwhile. Grants stay:
	 * their bytes may exist already. */
	while ((demand = demand_of_epoch(client, 0))) {
		struct sl_event event = {.type = SL_EVENT_CANCEL};

		event.cancel.client = client->id;
		event.cancel.ask = demand->ask;
		demand_remove(client, demand);
		/* May grant or deny other demands of the client. */
		sl_drive(daemon, &event);
	}
	sl_asking_soon(daemon, client, SL_S);
}

static void no_longer_expected(struct sl_daemon *daemon, struct sl_client *client)
{
	if (!client->expected)
		return;
	client->expected = false;
	if (--daemon->expected_count == 0)
		daemon->up->recovered(daemon);
}

static void forget(struct sl_daemon *daemon, struct sl_client *client)
{
	(void)sl_map_take(&daemon->clients, client->id);
	sl_list_unlink(&client->state_link);
	sl_list_push_tail(&daemon->dead_clients, &client->grave);
}

/* A dead client's bytes, with what the reserve pays for until they are gone. */
static uint64_t dying_of(const struct sl_client *client, uint32_t ordinal)
{
	struct sl_node_use_view use = sl_node_client_use(
		client->daemon->node, client->id, client->gpu_numbers[ordinal]);

	return use.dying_bytes + use.paid_bytes;
}

/* Notes the bytes that are dying now; false if the client held none. */
static bool start_dying(struct sl_daemon *daemon, struct sl_client *client)
{
	bool any = false;

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		struct sl_client_gpu *gpu = &client->gpus[i];

		gpu->measure_by = 0;
		gpu->dying_bytes = dying_of(client, i);
		any |= gpu->dying_bytes > 0;
	}
	if (any)
		sl_asking_dying(daemon, client);
	return any;
}

void sl_client_exit(struct sl_client *client, bool superseded)
{
	struct sl_process *process = client->process;
	struct sl_daemon *daemon = client->daemon;
	struct sl_workload *workload = client->workload;
	struct sl_event event = {.type = SL_EVENT_CLIENT_EXIT};

	sl_step(D_DEATH_SEEN);
	client->state = SL_CLIENT_DYING;
	sl_probing_end(client);
	sl_meters_left(client);
	sl_ipc_client_gone(client);
	sl_swap_lost(client);
	sl_place_gone(client);
	sl_hostpool_gone(client);
	client->superseded = superseded;
	client->died_at = sl_clock_now();
	client->demand_count = 0;
	no_longer_expected(daemon, client);
	daemon->client_count--;
	sl_list_unlink(&client->link);
	sl_list_unlink(&client->state_link);
	sl_list_push_tail(&daemon->dying, &client->state_link);
	if (client->peer) {
		client->peer->client = NULL;
		sl_peer_doom(client->peer);
		client->peer = NULL;
	}
	process->client = NULL;
	client->process = sl_process_put(process);
	event.client_exit.client = client->id;
	sl_drive(daemon, &event);
	if (!start_dying(daemon, client))
		forget(daemon, client);
	sl_step(D_DEATH_BOOKED);
	sl_claim_forget_former(daemon, workload);
	sl_commit_soon(daemon);
	sl_workload_check_end(daemon, workload);
}

void sl_client_bury(struct sl_daemon *daemon)
{
	sl_list_foreach_safe (link, &daemon->dead_clients) {
		struct sl_client *client = SL_LIST_ENTRY(link, struct sl_client, grave);

		sl_list_unlink(link);
		sl_list_unlink(&client->order_over.link);
		sl_list_unlink(&client->stop_failed.link);
		sl_list_unlink(&client->place.link);
		sl_list_unlink(&client->place.over.link);
		free(client->demands);
		free(client);
	}
}

/* --- messages ----------------------------------------------------------------------------- */

/* The GPU number, or -1 after dooming the peer. */
static int gpu_of(struct sl_peer *peer, uint32_t ordinal)
{
	if (ordinal < peer->client->gpu_count)
		return peer->client->gpu_numbers[ordinal];
	sl_peer_reject(peer, SL_REJECT_PROTOCOL, "GPU ordinal %u of %u", ordinal,
		peer->client->gpu_count);
	return -1;
}

static struct sl_client_demand *former_grant(
	struct sl_client *client, uint32_t ordinal, bool all)
{
	for (uint32_t i = 0; i < client->demand_count; i++) {
		struct sl_client_demand *demand = &client->demands[i];

		if (demand->former && (all || demand->ordinal == ordinal))
			return demand;
	}
	return NULL;
}

/* Ends the grants of the old connection on one GPU; all: on every GPU that no report named. */
static void end_former(struct sl_client *client, uint32_t ordinal, bool all)
{
	struct sl_client_demand *demand;

	while ((demand = former_grant(client, ordinal, all))) {
		struct sl_event event = {.type = SL_EVENT_COMMIT};

		event.commit.client = client->id;
		event.commit.epoch = demand->epoch;
		event.commit.used_bytes = all ? 0 : demand->bytes;
		demand_remove(client, demand);
		sl_drive(client->daemon, &event);
	}
}

/* Books a REPORT. Its evicted bytes are not on the GPU; the rest must be believable. */
static void book_report(struct sl_client *client, uint32_t ordinal, uint64_t evicted)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];
	struct sl_event report = {.type = SL_EVENT_CLIENT_REPORT};
	struct sl_event on_host = {.type = SL_EVENT_CLIENT_EVICTED};
	uint64_t resident;

	gpu->reported = false;
	end_former(client, ordinal, false);
	resident = sl_claim_believe(
		client, ordinal, gpu->reported_bytes - evicted, &evicted);
	report.client_report.client = client->id;
	report.client_report.gpu = client->gpu_numbers[ordinal];
	report.client_report.bytes = resident + evicted;
	sl_drive(client->daemon, &report);
	on_host.client_evicted.client = client->id;
	on_host.client_evicted.gpu = client->gpu_numbers[ordinal];
	on_host.client_evicted.bytes = evicted;
	sl_drive(client->daemon, &on_host);
	sl_step(D_REPORT_BOOKED);
	/* Earlier samples took these bytes for hidden ones. */
	sl_claim_reported(client->daemon, client, ordinal, resident);
}

/* A report of all GPUs is from one moment, so one sample serves it. */
uint32_t sl_client_unseen(const struct sl_client *client)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpus[i].reported)
			return 0;
		mask |= 1u << client->gpu_numbers[i];
	}
	return client->known ? 0 : mask;
}

static void on_report(struct sl_peer *peer, const struct sl_msg_report *report)
{
	struct sl_client *client = peer->client;

	if (gpu_of(peer, report->ordinal) < 0)
		return;
	if (client->state != SL_CLIENT_JOINED) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "REPORT after REPORTED");
		return;
	}
	client->gpus[report->ordinal].reported = true;
	client->gpus[report->ordinal].reported_bytes = report->backing_bytes;
}

static void on_evicted(struct sl_peer *peer, const struct sl_msg_evicted *evicted)
{
	struct sl_client *client = peer->client;
	const struct sl_client_gpu *gpu;

	if (gpu_of(peer, evicted->ordinal) < 0)
		return;
	gpu = &client->gpus[evicted->ordinal];
	if (!gpu->reported || evicted->evicted_bytes > gpu->reported_bytes) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"EVICTED of more than was reported for GPU ordinal %u",
			evicted->ordinal);
		return;
	}
	if (evicted->evicted_bytes && !client->known && !client->outlived) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"EVICTED from a process that no daemon had evicted anything of");
		return;
	}
	book_report(client, evicted->ordinal, evicted->evicted_bytes);
	sl_step(D_EVICTED_BOOKED);
}

static void tell_reported(struct sl_client *client)
{
	struct sl_event event = {.type = SL_EVENT_CLIENT_REPORTED};

	event.client_reported.client = client->id;
	sl_drive(client->daemon, &event);
}

static void on_reported(struct sl_peer *peer)
{
	struct sl_client *client = peer->client;

	if (client->state != SL_CLIENT_JOINED)
		return;
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpus[i].reported)
			book_report(client, i, 0);
	}
	client->state = SL_CLIENT_LIVE;
	client->known = true;
	end_former(client, 0, true);
	sl_hostpool_reported(client);
	sl_step(D_REPORTED);
	sl_probing_connected(client);
	sl_meters_joined(client);
	if (!client->expected) {
		tell_reported(client);
		return;
	}
	/* The report lacks hidden memory, so the policy waits until that is measured, too.
	 * Otherwise it would give the memory of the client's context to others. */
	for (uint32_t i = 0; i < client->gpu_count; i++)
		sl_asking_measure(peer->daemon, client, i);
}

void sl_client_measured(struct sl_client *client)
{
	if (!client->expected || client->state != SL_CLIENT_LIVE)
		return;
	no_longer_expected(client->daemon, client);
	tell_reported(client);
	if (!client->daemon->expected_count)
		sl_step(D_RECOVERED);
}

static uint32_t flags_of(const struct sl_msg_ask *ask)
{
	return (ask->flags & SL_ASK_HELD ? SL_NODE_ASK_HELD : 0) |
	       (ask->flags & SL_ASK_THERE ? SL_NODE_ASK_THERE : 0) |
	       (ask->flags & SL_ASK_CONTEXT ? SL_NODE_ASK_CONTEXT : 0) |
	       (ask->flags & SL_ASK_NOW ? SL_NODE_ASK_NOW : 0);
}

static void on_ask(struct sl_peer *peer, const struct sl_msg_ask *ask)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_ASK};
	struct sl_client_demand *demand = demand_of(client, ask->ask);
	int gpu = gpu_of(peer, ask->ordinal);

	if (gpu < 0)
		return;
	if (demand)
		return; /* the demand waits already, or its GRANT is on the way */
	demand = demand_add(client, ask->ask, ask->ordinal);
	if (!demand) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "more than %d open demands",
			SL_CLIENT_DEMANDS_MAX);
		return;
	}
	sl_step(D_ASK_TAKEN);
	event.ask.client = client->id;
	event.ask.ask = ask->ask;
	event.ask.gpu = (uint32_t)gpu;
	event.ask.bytes = ask->bytes;
	event.ask.flags = flags_of(ask);
	sl_drive(peer->daemon, &event);
	sl_step(D_ASK_DECIDED);
}

static void on_cancel(struct sl_peer *peer, const struct sl_msg_cancel *cancel)
{
	struct sl_event event = {.type = SL_EVENT_CANCEL};
	struct sl_client_demand *demand = demand_of(peer->client, cancel->ask);

	/* The client itself answers a grant that crossed the cancel on the wire. */
	if (!demand || demand->epoch)
		return;
	event.cancel.client = peer->client->id;
	event.cancel.ask = cancel->ask;
	sl_drive(peer->daemon, &event);
}

static void on_commit(struct sl_peer *peer, const struct sl_msg_commit *commit)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_COMMIT};
	uint64_t epoch = commit->epoch - peer->daemon->grant_salt;
	struct sl_client_demand *demand = epoch ? demand_of_epoch(client, epoch) : NULL;

	if (!demand) {
		/* A grant of an earlier daemon: its bytes are in the client's report. */
		sl_debug("client %" PRIu64 " commits a grant that is not open",
			client->id);
		return;
	}
	sl_step(D_COMMIT_TAKEN);
	demand_remove(client, demand);
	client->changed_at = sl_clock_now();
	event.commit.client = client->id;
	event.commit.epoch = epoch;
	event.commit.used_bytes = commit->used_bytes;
	sl_drive(peer->daemon, &event);
	sl_step(D_COMMITTED);
}

static void on_create_failed(
	struct sl_peer *peer, const struct sl_msg_create_failed *failed)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_CREATE_FAILED};
	uint64_t epoch = failed->epoch - peer->daemon->grant_salt;
	struct sl_client_demand *demand = epoch ? demand_of_epoch(client, epoch) : NULL;

	if (!demand)
		return;
	/* The demand waits again under the same number. */
	demand->epoch = 0;
	client->changed_at = sl_clock_now();
	event.create_failed.client = client->id;
	event.create_failed.epoch = epoch;
	sl_drive(peer->daemon, &event);
	sl_step(D_CREATE_FAILED);
}

static void on_freed(struct sl_peer *peer, const struct sl_msg_freed *freed)
{
	struct sl_event event = {.type = SL_EVENT_FREED};
	int gpu = gpu_of(peer, freed->ordinal);

	if (gpu < 0)
		return;
	sl_step(D_FREED_TAKEN);
	peer->client->changed_at = sl_clock_now();
	event.freed.client = peer->client->id;
	event.freed.gpu = (uint32_t)gpu;
	event.freed.bytes = freed->bytes;
	event.freed.evicted = freed->flags & SL_FREED_EVICTED;
	sl_drive(peer->daemon, &event);
	sl_claim_forget_former(peer->daemon, peer->client->workload);
	sl_step(D_FREED);
}

/* A measurement takes the driver milliseconds, in which all other clients wait. */
static bool asks_too_often(struct sl_client *client)
{
	sl_ns now = sl_clock_now();

	if (now >= client->measure_second + SL_S) {
		client->measure_second = now;
		client->measure_asked = 0;
	}
	return ++client->measure_asked > SL_CLIENT_MEASURES_MAX;
}

static void on_measure(struct sl_peer *peer, const struct sl_msg_measure *measure)
{
	if (gpu_of(peer, measure->ordinal) < 0)
		return;
	if (asks_too_often(peer->client))
		sl_views_answer(peer->client, measure->ordinal);
	else
		sl_asking_measure(peer->daemon, peer->client, measure->ordinal);
}

static void on_held(struct sl_peer *peer, const struct sl_msg_held *held)
{
	struct sl_event event = {.type = SL_EVENT_HELD};
	int gpu = gpu_of(peer, held->ordinal);

	if (gpu < 0)
		return;
	if (peer->client->gpus[held->ordinal].reported)
		book_report(peer->client, held->ordinal, 0);
	event.held.client = peer->client->id;
	event.held.gpu = (uint32_t)gpu;
	event.held.bytes = held->held_bytes;
	sl_drive(peer->daemon, &event);
}

static void on_chunk(struct sl_peer *peer, const struct sl_msg_chunk *chunk)
{
	struct sl_event event = {.type = SL_EVENT_CHUNK};

	peer->client->chunk_bytes = chunk->bytes;
	event.chunk.client = peer->client->id;
	event.chunk.bytes = chunk->bytes;
	sl_drive(peer->daemon, &event);
}

static void on_work(struct sl_peer *peer)
{
	struct sl_event event = {.type = SL_EVENT_WORK};

	event.work.client = peer->client->id;
	sl_drive(peer->daemon, &event);
}

void sl_client_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	if (!peer->client)
		return; /* the process is dead; a child reads on with its socket */
	switch (msg->head.type) {
	case SL_MSG_REPORT: on_report(peer, &msg->report); break;
	case SL_MSG_REPORTED: on_reported(peer); break;
	case SL_MSG_ASK: on_ask(peer, &msg->ask); break;
	case SL_MSG_CANCEL: on_cancel(peer, &msg->cancel); break;
	case SL_MSG_COMMIT: on_commit(peer, &msg->commit); break;
	case SL_MSG_CREATE_FAILED: on_create_failed(peer, &msg->create_failed); break;
	case SL_MSG_FREED: on_freed(peer, &msg->freed); break;
	case SL_MSG_WORK: on_work(peer); break;
	case SL_MSG_PULSE: sl_probing_pulse(peer->client, &msg->pulse); break;
	case SL_MSG_METERED: sl_meters_message(peer->client, &msg->metered); break;
	case SL_MSG_MEASURE: on_measure(peer, &msg->measure); break;
	case SL_MSG_PIDS: sl_pids_tell(peer, &msg->pids); break;
	case SL_MSG_HELD: on_held(peer, &msg->held); break;
	case SL_MSG_CHUNK: on_chunk(peer, &msg->chunk); break;
	case SL_MSG_SWAPPED: sl_swap_on_swapped(peer, &msg->swapped); break;
	case SL_MSG_MOVED: sl_swap_on_moved(peer, &msg->moved); break;
	case SL_MSG_WANT: sl_swap_on_want(peer, &msg->want); break;
	case SL_MSG_EVICTED: on_evicted(peer, &msg->evicted); break;
	case SL_MSG_STORE_BACK: sl_hostpool_on_store_back(peer, &msg->store_back); break;
	case SL_MSG_STORE_HELD:
		sl_hostpool_on_store_held(peer, &msg->store_held, fds);
		break;
	case SL_MSG_GATE_DONE: sl_place_on_gate_done(peer, &msg->gate_done); break;
	case SL_MSG_IPC_OFFER:
	case SL_MSG_IPC_GIVE:
	case SL_MSG_IPC_WITHDRAW:
	case SL_MSG_IPC_OPEN:
	case SL_MSG_IPC_SETTLED: sl_ipc_message(peer, msg, fds); break;
	default:
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "%s twice",
			sl_wire_name(msg->head.type));
	}
}

/* --- the policy's answers ----------------------------------------------------------------- */

void sl_client_granted(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint64_t epoch, uint64_t bytes)
{
	struct sl_client *client = sl_map_get(&daemon->clients, id);
	struct sl_client_demand *demand = client ? demand_of(client, ask) : NULL;
	union sl_msg msg;

	if (!demand)
		return;
	demand->epoch = epoch;
	demand->bytes = bytes;
	client->changed_at = sl_clock_now();
	sl_step(D_GRANTED);
	if (!client->peer)
		return; /* the client has not heard of it: its next report lacks it */
	sl_wire_init(&msg, SL_MSG_GRANT);
	msg.grant.ask = ask;
	msg.grant.epoch = epoch + daemon->grant_salt;
	msg.grant.bytes = bytes;
	sl_peer_send(client->peer, &msg);
	sl_step(D_GRANT_SENT);
}

void sl_client_denied(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint32_t reason, uint64_t available_bytes)
{
	struct sl_client *client = sl_map_get(&daemon->clients, id);
	struct sl_client_demand *demand = client ? demand_of(client, ask) : NULL;
	union sl_msg msg;

	if (!demand)
		return;
	demand_remove(client, demand);
	sl_step(D_DENIED);
	if (!client->peer)
		return;
	sl_wire_init(&msg, SL_MSG_DENY);
	msg.deny.ask = ask;
	msg.deny.reason = reason;
	msg.deny.flags = reason == SL_REASON_GPU_LOST ? SL_DENY_GPU_LOST : 0;
	msg.deny.available_bytes = available_bytes;
	sl_peer_send(client->peer, &msg);
}

static uint64_t dying_anywhere(const struct sl_client *client)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < client->gpu_count; i++)
		left += client->gpus[i].dying_bytes;
	return left;
}

void sl_client_gone_with_gpu(struct sl_client *client, uint32_t ordinal)
{
	if (!client->gpus[ordinal].dying_bytes)
		return;
	client->gpus[ordinal].dying_bytes = 0;
	if (dying_anywhere(client) == 0)
		forget(client->daemon, client);
}

bool sl_client_released(struct sl_client *client, uint32_t ordinal,
	uint64_t remaining_bytes, struct sl_event *event)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];

	if (remaining_bytes >= gpu->dying_bytes && remaining_bytes != 0)
		return false;
	gpu->dying_bytes = remaining_bytes;
	*event = (struct sl_event){.type = SL_EVENT_RELEASED,
		.released = {client->id, client->gpu_numbers[ordinal], remaining_bytes}};
	if (dying_anywhere(client) == 0)
		forget(client->daemon, client);
	return true;
}
