/*
 * dump - phases, each a list of objects, each object one line of text
 *
 * Ids are collected when the dump begins; an object that is gone when its turn comes is left out.
 * Bytes and times carry their unit in the key, as everywhere.
 */
#include "daemon/control/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs/jobs.h"
#include "daemon/link/share.h"
#include "daemon/report/events.h"
#include "daemon/report/tell.h"
#include "daemon/state/client.h"
#include "daemon/state/drive.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostpool.h"

enum phase { HEAD = 0, GPUS, WORKLOADS, CLIENTS, JOBS, DEMANDS, TAIL, DONE };

struct dump {
	struct sl_daemon *daemon;
	enum phase phase;
	bool opened, any; /* the phase's bracket; an object in it */
	uint64_t *workloads, *clients;
	size_t workload_count, client_count, index;
	struct sl_node_demand_view *demands;
	size_t demand_count, demand_room;
	uint64_t demands_left_out;
	uint64_t job; /* the last one sent */
	bool demands_taken, failed;
	char *text;
	size_t size, room, sent;
};

static void free_dump(void *state)
{
	struct dump *dump = state;

	if (!dump)
		return;
	dump->daemon->dump_count--;
	free(dump->workloads);
	free(dump->clients);
	free(dump->demands);
	free(dump->text);
	free(dump);
}

/* --- text --------------------------------------------------------------------------------- */

static void put(struct dump *dump, const char *text, size_t length)
{
	if (dump->size + length > dump->room) {
		size_t room = 2 * (dump->size + length) + 4096;
		char *grown = realloc(dump->text, room);

		if (!grown) {
			dump->failed = true;
			return;
		}
		dump->text = grown;
		dump->room = room;
	}
	memcpy(dump->text + dump->size, text, length);
	dump->size += length;
}

static void put_text(struct dump *dump, const char *text)
{
	put(dump, text, strlen(text));
}

static int put_piece(const char *text, size_t length, void *context)
{
	struct dump *dump = context;

	put(dump, text, length);
	return dump->failed ? -1 : 0;
}

/* Takes json over. */
static void put_object(struct dump *dump, json_t *json)
{
	put_text(dump, dump->any ? ",\n" : "\n");
	dump->any = true;
	if (json_dump_callback(json, put_piece, dump, JSON_COMPACT) < 0)
		dump->failed = true;
	json_decref(json);
}

static void put_key(struct dump *dump, const char *key, json_t *json)
{
	put_text(dump, "\"");
	put_text(dump, key);
	put_text(dump, "\":");
	if (json_dump_callback(json, put_piece, dump, JSON_COMPACT | JSON_ENCODE_ANY) < 0)
		dump->failed = true;
	put_text(dump, ",\n");
	json_decref(json);
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)sl_min_u64(value, INT64_MAX));
}

/* Commands are the user's bytes; anything but UTF-8 is shown as "?". */
static json_t *string(const char *text)
{
	json_t *json = json_string(text);

	return json ? json : json_string("?");
}

static void set(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

#define NUMBER(object, from, field) set(object, #field, number((uint64_t)(from).field))
#define FLAG(object, from, field)   set(object, #field, json_boolean((from).field))
#define MS(object, from, field)     set(object, #field "_ms", number((from).field / SL_MS))

/* --- the daemon --------------------------------------------------------------------------- */

static json_t *options_json(const struct sl_daemon *daemon)
{
	json_t *object = json_object();
	const char *key;

	for (size_t i = 0; (key = sl_config_key(i)); i++) {
		char text[2048];

		set(object, key,
			string(sl_config_show(&daemon->config, key, text, sizeof(text))));
	}
	return object;
}

static json_t *peers_json(const struct sl_daemon *daemon)
{
	uint64_t greeting = 0, control = 0, clients = 0, followers = 0;

	sl_list_foreach (link, &daemon->peers->greeting)
		greeting++;
	sl_list_foreach (link, &daemon->peers->all) {
		struct sl_peer *peer = SL_LIST_ENTRY(link, struct sl_peer, link);

		control += peer->control;
		clients += !peer->control;
		followers += peer->list.active && peer->list.follows;
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "greeting", number(greeting), "control",
		number(control), "clients", number(clients), "followers",
		number(followers));
}

/* How long the loop was busy with one thing, while everything else waited. */
static json_t *turns_json(const struct sl_daemon *daemon,
	uint64_t (*turn_ns)(const struct sl_daemon *, enum sl_share_kind))
{
	json_t *object = json_object();

	for (int kind = 0; kind < SL_SHARE_KINDS; kind++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "%s_us",
			sl_share_kind_name((enum sl_share_kind)kind));
		set(object, key,
			number(turn_ns(daemon, (enum sl_share_kind)kind) / SL_US));
	}
	return object;
}

static json_t *pool_json(const struct sl_daemon *daemon)
{
	const struct sl_hostpool *pool = daemon->hostpool;
	struct sl_node_pool_view view = sl_node_pool(daemon->node);
	json_t *object = json_object();

	set(object, "swap_on", json_boolean(sl_hostpool_swap_is_on(daemon)));
	NUMBER(object, *pool, configured_bytes);
	NUMBER(object, view, pool_bytes);
	NUMBER(object, view, slack_bytes);
	NUMBER(object, view, evicted_bytes);
	NUMBER(object, view, leaving_bytes);
	NUMBER(object, view, copies_bytes);
	NUMBER(object, view, overlap_bytes);
	NUMBER(object, *pool, made_bytes);
	NUMBER(object, *pool, making_bytes);
	NUMBER(object, *pool, huge_bytes);
	NUMBER(object, *pool, files);
	NUMBER(object, *pool, files_max);
	NUMBER(object, *pool, failures);
	NUMBER(object, pool->room, available_bytes);
	NUMBER(object, pool->room, total_bytes);
	return object;
}

static void put_head(struct dump *dump)
{
	const struct sl_daemon *daemon = dump->daemon;
	struct sl_events_span span = sl_events_span(daemon);
	sl_ns now = sl_clock_now();

	put_text(dump, "{\n");
	put_key(dump, "version", json_string(SL_VERSION));
	put_key(dump, "protocol", number(SL_PROTOCOL_VERSION));
	put_key(dump, "pid", number((uint64_t)getpid()));
	put_key(dump, "daemon_epoch",
		json_sprintf(
			"%016" PRIx64, daemon->epoch)); /* 64 bits are no JSON number */
	put_key(dump, "uptime_ms", number(sl_sub_sat(now, daemon->started) / SL_MS));
	put_key(dump, "socket", string(daemon->socket_path));
	put_key(dump, "state_dir", string(daemon->state_dir));
	put_key(dump, "config_path", string(daemon->config_path));
	put_key(dump, "options", options_json(daemon));
	put_key(dump, "driver", string(daemon->driver));
	put_key(dump, "nvml_ok", json_boolean(daemon->nvml_ok));
	put_key(dump, "nvml_text", string(daemon->nvml_text));
	put_key(dump, "recovering", number(daemon->expected_count));
	put_key(dump, "counters",
		json_pack("{s:o, s:o, s:o, s:o, s:o}", "messages",
			number(daemon->messages), "grants", number(daemon->grants),
			"denials", number(daemon->denials), "next_workload",
			number(daemon->next_workload), "next_client",
			number(daemon->next_client)));
	put_key(dump, "longest_turns", turns_json(daemon, sl_share_longest_ns));
	put_key(dump, "long_turns", turns_json(daemon, sl_share_long_ns));
	put_key(dump, "peers", peers_json(daemon));
	put_key(dump, "host_memory", pool_json(daemon));
	put_key(dump, "events",
		json_pack("{s:o, s:o, s:o}", "kept", number(span.next - span.oldest),
			"room", number(daemon->config.events_kept), "next_serial",
			number(span.next)));
	put_key(dump, "journal",
		json_pack("{s:b, s:b}", "failed", daemon->commit.error != 0, "pending",
			daemon->commit.pending || daemon->commit.writing));
}

/* --- GPUs, workloads, clients, demands ---------------------------------------------------- */

static json_t *age_json(sl_ns at)
{
	return at ? number(sl_sub_sat(sl_clock_now(), at) / SL_MS) : json_null();
}

static void put_gpu(struct dump *dump, uint32_t index)
{
	const struct sl_gpu *gpu = &dump->daemon->gpus[index];
	struct sl_node_gpu_view view = sl_node_gpu(dump->daemon->node, index);
	json_t *object = json_object();
	char uuid[41];

	sl_wire_uuid_format(gpu->uuid, uuid);
	set(object, "gpu", number(index));
	set(object, "uuid", json_string(uuid));
	set(object, "name", string(gpu->name));
	set(object, "pci", string(gpu->pci));
	FLAG(object, *gpu, managed);
	FLAG(object, *gpu, present);
	set(object, "why_not", string(gpu->why_not));
	FLAG(object, view, degraded);
	FLAG(object, view, lost);
	NUMBER(object, view, capacity_bytes);
	NUMBER(object, view, reserve_bytes);
	NUMBER(object, view, unmanaged_bytes);
	NUMBER(object, view, shareable_bytes);
	NUMBER(object, view, requests_bytes);
	NUMBER(object, view, backing_bytes);
	NUMBER(object, view, granted_bytes);
	NUMBER(object, view, hidden_bytes);
	NUMBER(object, view, paid_bytes);
	NUMBER(object, view, held_bytes);
	NUMBER(object, view, evicted_bytes);
	NUMBER(object, view, returning_bytes);
	NUMBER(object, view, dying_bytes);
	NUMBER(object, view, free_bytes);
	NUMBER(object, view, workloads);
	NUMBER(object, view, waiting);
	NUMBER(object, *gpu, utilisation_pct);
	NUMBER(object, *gpu, used_bytes);
	set(object, "link_out_bytes_s", number(gpu->link_out.measured));
	set(object, "link_in_bytes_s", number(gpu->link_in.measured));
	set(object, "measured_age_ms", age_json(gpu->measured_at));
	set(object, "measured_whole_age_ms", age_json(gpu->full_at));
	set(object, "measured_silent", json_boolean(gpu->complained));
	put_object(dump, object);
}

static json_t *gpus_json(uint32_t mask)
{
	json_t *array = json_array();

	for (; mask; mask &= mask - 1)
		(void)json_array_append_new(array, number((uint64_t)__builtin_ctz(mask)));
	return array;
}

static json_t *use_json(const struct sl_node_use_view *use, uint32_t gpu)
{
	json_t *object = json_object();

	set(object, "gpu", number(gpu));
	NUMBER(object, *use, backing_bytes);
	NUMBER(object, *use, granted_bytes);
	NUMBER(object, *use, hidden_bytes);
	NUMBER(object, *use, paid_bytes);
	NUMBER(object, *use, held_bytes);
	NUMBER(object, *use, evicted_bytes);
	NUMBER(object, *use, returning_bytes);
	NUMBER(object, *use, dying_bytes);
	NUMBER(object, *use, waiting_bytes);
	NUMBER(object, *use, waiting);
	return object;
}

static const char *residency_word(enum sl_residency residency)
{
	static const char *const words[SL_RESIDENCIES] = {"reserved", "bound", "leaving",
		"evicted", "warm", "returning", "parked", "resuming", "partial",
		"parking", "detached"};

	return (uint32_t)residency < SL_RESIDENCIES ? words[residency] : "?";
}

/* As the journal has it. */
static const char *park_word(enum sl_park_state park)
{
	static const char *const words[SL_PARK_STATES] = {
		"no", "parked", "resuming", "detached", "moving"};

	return (uint32_t)park < SL_PARK_STATES ? words[park] : "?";
}

static void put_workload(struct dump *dump, const struct sl_workload *workload)
{
	const struct sl_daemon *daemon = dump->daemon;
	struct sl_node_workload_view view = sl_node_workload(daemon->node, workload->id);
	json_t *object = json_object(), *uses = json_array();

	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		struct sl_node_use_view use =
			sl_node_use(daemon->node, workload->id, workload->gpus[i]);

		(void)json_array_append_new(uses, use_json(&use, workload->gpus[i]));
	}
	set(object, "workload", number(workload->id));
	set(object, "name", string(workload->name));
	set(object, "project", string(workload->project));
	set(object, "command", string(workload->command));
	set(object, "uid", number(workload->uid));
	set(object, "root_pid", number((uint64_t)workload->root_pid));
	set(object, "root_lives", json_boolean(workload->root != NULL));
	set(object, "age_ms", age_json(workload->born));
	NUMBER(object, view, request_bytes);
	NUMBER(object, view, limit_bytes);
	set(object, "priority", json_integer(view.priority));
	set(object, "no_swap", json_boolean(view.flags & SL_WORKLOAD_NO_SWAP));
	set(object, "oom_first", json_boolean(view.flags & SL_WORKLOAD_OOM_FIRST));
	set(object, "rdma", json_boolean(view.flags & SL_WORKLOAD_RDMA));
	set(object, "on_collision", sl_tell_chain(view.flags));
	set(object, "longest_wait_ms", number(view.wait_max / SL_MS));
	set(object, "residency", json_string(residency_word(view.residency)));
	set(object, "parked", json_string(park_word(workload->park)));
	MS(object, view, warm_after);
	MS(object, view, detach_after);
	MS(object, view, idle_grace);
	MS(object, view, turn_left);
	MS(object, view, wants_since);
	NUMBER(object, view, turns);
	FLAG(object, view, stopping);
	NUMBER(object, view, untakeable);
	NUMBER(object, view, clients);
	set(object, "planned_gpus", gpus_json(view.gpu_mask));
	set(object, "actual_gpus", gpus_json(view.actual_mask));
	set(object, "uses", uses);
	put_object(dump, object);
}

static const char *condition_word(enum sl_client_condition condition)
{
	static const char *const words[SL_CONDITIONS] = {
		"running", "stopped", "traced", "silent"};

	return (uint32_t)condition < SL_CONDITIONS ? words[condition] : "?";
}

static const char *state_word(enum sl_client_state state)
{
	static const char *const words[] = {"expected", "joined", "live", "dying"};

	return (uint32_t)state < SL_ARRAY_LEN(words) ? words[state] : "?";
}

/* The client's open order to move memory; null: none. */
static json_t *order_json(const struct sl_client_order *order)
{
	static const char *const states[] = {[SL_ORDER_NONE] = "none",
		[SL_ORDER_MAKING] = "host memory is made",
		[SL_ORDER_SENT] = "sent",
		[SL_ORDER_OVER] = "over"};

	if (order->state == SL_ORDER_NONE)
		return json_null();
	return json_pack("{s:o, s:s, s:s, s:o, s:o}", "order", number(order->id), "kind",
		order->restore ? "restore" : "evict", "state", states[order->state],
		"bytes", number(order->bytes), "age_ms", age_json(order->since));
}

static void put_client(struct dump *dump, const struct sl_client *client)
{
	static const char *const probes[SL_PROBES] = {"off", "watch", "prove"};
	const struct sl_daemon *daemon = dump->daemon;
	struct sl_node_client_view view = sl_node_client(daemon->node, client->id);
	json_t *object = json_object(), *uses = json_array();

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		struct sl_node_use_view use = sl_node_client_use(
			daemon->node, client->id, client->gpu_numbers[i]);

		(void)json_array_append_new(uses, use_json(&use, client->gpu_numbers[i]));
	}
	set(object, "client", number(client->id));
	set(object, "workload", number(client->workload ? client->workload->id : 0));
	set(object, "pid", number((uint64_t)client->pid));
	set(object, "start_ticks", number(client->start_ticks));
	set(object, "state", json_string(state_word(client->state)));
	set(object, "connected", json_boolean(client->peer != NULL));
	set(object, "condition", json_string(condition_word(view.condition)));
	set(object, "probe",
		json_string((uint32_t)view.probe < SL_PROBES ? probes[view.probe] : "?"));
	FLAG(object, view, expected);
	FLAG(object, view, waits);
	FLAG(object, view, stopping);
	FLAG(object, view, killed);
	FLAG(object, view, untakeable);
	FLAG(object, view, proven);
	set(object, "stop_reason", json_string(sl_reason_name(view.stop_reason)));
	FLAG(object, view, swaps);
	FLAG(object, view, wants);
	set(object, "order", order_json(&client->order));
	NUMBER(object, *client, host_bytes);
	NUMBER(object, *client, host_making_bytes);
	MS(object, view, idle);
	MS(object, view, busy);
	set(object, "uses", uses);
	put_object(dump, object);
}

static void put_demand(struct dump *dump, const struct sl_node_demand_view *demand)
{
	json_t *object = json_object();

	NUMBER(object, *demand, gpu);
	NUMBER(object, *demand, workload);
	NUMBER(object, *demand, client);
	NUMBER(object, *demand, ask);
	NUMBER(object, *demand, bytes);
	set(object, "priority", json_integer(demand->priority));
	set(object, "granted", json_boolean(demand->epoch != 0));
	FLAG(object, *demand, entitled);
	FLAG(object, *demand, head);
	MS(object, *demand, waited);
	put_object(dump, object);
}

static void take_demand(void *context, const struct sl_node_demand_view *demand)
{
	struct dump *dump = context;

	if (dump->demand_count == dump->demand_room &&
		dump->demand_count < SL_DUMP_DEMANDS) {
		size_t room = 2 * dump->demand_room + 64;
		void *grown = realloc(dump->demands, room * sizeof(*dump->demands));

		if (!grown) {
			dump->failed = true;
			return;
		}
		dump->demands = grown;
		dump->demand_room = room;
	}
	if (dump->demand_count < SL_DUMP_DEMANDS)
		dump->demands[dump->demand_count++] = *demand;
	else
		dump->demands_left_out++;
}

/* Sends jobs by number, including those that arrive meanwhile. */
static void put_job(struct dump *dump)
{
	json_t *object;
	union sl_msg msg;

	if (!sl_jobs_row_at(dump->daemon, &dump->job, &msg)) {
		dump->job = UINT64_MAX;
		return;
	}
	object = json_object();
#define JOB(field) set(object, #field, number(msg.job_row.field))
	msg.job_row.job &= ~SL_JOB_FOREGROUND; /* JSON has no such numbers */
	JOB(job);
	JOB(workload);
	JOB(state);
	JOB(flags);
	JOB(uid);
	JOB(tasks);
	JOB(least);
	JOB(queued);
	JOB(running);
	JOB(parked);
	JOB(ended);
	JOB(gpu_count);
	JOB(exit_status);
	JOB(started);
	JOB(submitted_ms);
	JOB(started_ms);
	JOB(ended_ms);
#undef JOB
	set(object, "name", string(msg.job_row.name));
	set(object, "project", string(msg.job_row.project));
	set(object, "command", string(msg.job_row.command));
	set(object, "why", string(msg.job_row.why));
	put_object(dump, object);
}

/* --- phases ------------------------------------------------------------------------------- */

static size_t count_of(struct dump *dump)
{
	switch (dump->phase) {
	case GPUS: return dump->daemon->gpu_count;
	case WORKLOADS: return dump->workload_count;
	case CLIENTS: return dump->client_count;
	case JOBS: return dump->job == UINT64_MAX ? dump->index : dump->index + 1;
	case DEMANDS:
		if (!dump->demands_taken) {
			dump->demands_taken = true;
			sl_drive_time(dump->daemon);
			sl_node_each_demand(dump->daemon->node, take_demand, dump);
		}
		return dump->demand_count;
	default: return 0;
	}
}

static void put_one(struct dump *dump, size_t index)
{
	const struct sl_workload *workload;
	const struct sl_client *client;

	switch (dump->phase) {
	case GPUS: put_gpu(dump, (uint32_t)index); return;
	case WORKLOADS:
		workload = sl_map_get(&dump->daemon->workloads, dump->workloads[index]);
		if (workload)
			put_workload(dump, workload);
		return;
	case CLIENTS:
		client = sl_map_get(&dump->daemon->clients, dump->clients[index]);
		if (client)
			put_client(dump, client);
		return;
	case JOBS: put_job(dump); return;
	case DEMANDS: put_demand(dump, &dump->demands[index]); return;
	default: return;
	}
}

/* At most SL_DUMP_SLICE objects of a list; the phase ends with its last one. */
static void put_slice(struct dump *dump)
{
	static const char *const keys[] = {
		[GPUS] = "\"gpus\":[",
		[WORKLOADS] = "\"workloads\":[",
		[CLIENTS] = "\"clients\":[",
		[JOBS] = "\"jobs\":[",
		[DEMANDS] = "\"demands\":[",
	};

	if (!dump->opened)
		put_text(dump, keys[dump->phase]);
	dump->opened = true;
	for (int i = 0; i < SL_DUMP_SLICE && dump->index < count_of(dump); i++)
		put_one(dump, dump->index++);
	if (dump->index < count_of(dump))
		return;
	put_text(dump, dump->any ? "\n],\n" : "],\n");
	dump->opened = dump->any = false;
	dump->index = 0;
	dump->phase++;
}

static void put_more(struct dump *dump)
{
	char tail[64];

	dump->size = dump->sent = 0;
	switch (dump->phase) {
	case HEAD:
		put_head(dump);
		dump->phase++;
		return;
	case TAIL:
		(void)snprintf(tail, sizeof(tail),
			"\"demands_left_out\":%" PRIu64 "\n}\n", dump->demands_left_out);
		put_text(dump, tail);
		dump->phase++;
		return;
	default: put_slice(dump);
	}
}

static bool take_ids(struct dump *dump)
{
	const struct sl_daemon *daemon = dump->daemon;

	dump->workloads = calloc(daemon->workload_count + 1, sizeof(uint64_t));
	dump->clients = calloc(daemon->clients.used + 1, sizeof(uint64_t));
	if (!dump->workloads || !dump->clients)
		return false;
	sl_list_foreach (at, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		dump->workloads[dump->workload_count++] = workload->id;
		sl_list_foreach (link, &workload->clients)
			dump->clients[dump->client_count++] =
				SL_LIST_ENTRY(link, struct sl_client, link)->id;
	}
	sl_list_foreach (link, &daemon->dying)
		dump->clients[dump->client_count++] =
			SL_LIST_ENTRY(link, struct sl_client, state_link)->id;
	return true;
}

static struct dump *new_dump(struct sl_daemon *daemon)
{
	struct dump *dump = calloc(1, sizeof(*dump));

	if (!dump)
		return NULL;
	dump->daemon = daemon;
	daemon->dump_count++;
	if (take_ids(dump))
		return dump;
	free_dump(dump);
	return NULL;
}

void sl_dump_begin(struct sl_peer *peer)
{
	struct sl_daemon *daemon = peer->daemon;
	struct dump *dump;

	if (daemon->dump_count >= SL_DUMP_MOST && peer->uid != 0 &&
		peer->uid != geteuid()) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"%u dumps are being made at the moment; try again",
			daemon->dump_count);
		return;
	}
	dump = new_dump(daemon);
	if (!dump) {
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return;
	}
	peer->list = (struct sl_peer_list){.active = true,
		.kind = SL_STREAM_DUMP,
		.state = dump,
		.free_state = free_dump};
}

enum sl_stream_outcome sl_dump_next(struct sl_peer *peer, union sl_msg *msg)
{
	struct dump *dump = peer->list.state;
	size_t size = sl_min_u64(dump->size - dump->sent, sizeof(msg->dump_row.text));

	if (dump->failed) {
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return SL_STREAM_AGAIN;
	}
	if (size == 0) {
		if (dump->phase == DONE)
			return SL_STREAM_END;
		put_more(dump);
		return SL_STREAM_AGAIN;
	}
	sl_wire_init(msg, SL_MSG_DUMP_ROW);
	msg->dump_row.size = (uint32_t)size;
	memcpy(msg->dump_row.text, dump->text + dump->sent, size);
	dump->sent += size;
	return SL_STREAM_ROW;
}
