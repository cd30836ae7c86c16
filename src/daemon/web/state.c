/*
 * state - makes one object of all lists
 *
 * A workload has a row per GPU in two lists. Both are in the order of workloads, but are taken
 * moments apart, so a workload may be missing in one. An array sorted by id finds its object.
 */
#include "daemon/web/state.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/projects/projects.h"
#include "daemon/report/tell.h"
#include "policy/node.h"

#define USER_REMEMBERED (300 * SL_S)
/* Most ended jobs that are shown; living ones are all shown. */
#define ENDED_JOBS 200

struct gpu {
	bool known;
	char uuid[41];
	struct sl_msg_gpu_row row;
};

struct place {
	uint64_t id;
	json_t *workload; /* borrowed from the array */
};

struct draft {
	struct sl_page_users *users;
	struct gpu gpus[SL_NODE_GPUS_MAX];
	json_t *workloads, *jobs, *ended_jobs, *projects, *resources, *troubles, *pool,
		*daemon;
	struct place *places;
	size_t place_count, place_room;
	uint64_t now_ms;
	bool failed; /* no memory */
};

const char *sl_page_user(
	struct sl_page_users *users, uint32_t uid, char *buf, size_t size)
{
	__typeof__(&users->all[0]) user = &users->all[uid % SL_ARRAY_LEN(users->all)];
	sl_ns now = sl_clock_now();
	struct passwd entry, *found = NULL;
	char room[4096];

	if (user->until <= now || user->uid != uid) {
		user->uid = uid;
		user->until = now + USER_REMEMBERED;
		if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
			(void)snprintf(
				user->name, sizeof(user->name), "%s", found->pw_name);
		else
			(void)snprintf(user->name, sizeof(user->name), "%u", uid);
	}
	(void)snprintf(buf, size, "%s", user->name);
	return buf;
}

static void put(struct draft *draft, json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value) < 0)
		draft->failed = true;
}

static void append(struct draft *draft, json_t *array, json_t *value)
{
	if (!value || json_array_append_new(array, value) < 0)
		draft->failed = true;
}

static json_t *number(uint64_t value)
{
	/* So large only if unlimited. */
	return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

/* --- workloads -------------------------------------------------------------------------------- */

static json_t *flags_of(const struct sl_msg_use_row *row)
{
	static const struct {
		uint32_t bit;
		const char *word;
	} words[] = {
		{SL_USE_NO_SWAP | SL_USE_FIXED, "no-swap"},
		{SL_USE_OOM_FIRST, "oom-first"},
		{SL_USE_OVER_LIMIT, "over-limit"},
		{SL_USE_STOPPING, "stopping"},
		{SL_USE_UNTAKEABLE, "untakeable"},
		{SL_USE_LOST, "gpu-lost"},
		{SL_USE_OBSERVED, "observed"},
	};
	json_t *array = json_array();

	for (size_t i = 0; array && i < SL_ARRAY_LEN(words); i++) {
		if (row->flags & words[i].bit)
			(void)json_array_append_new(array, json_string(words[i].word));
	}
	return array;
}

/* Figures of the whole workload; they are in the row of its first GPU. */
static void put_residency(
	struct draft *draft, json_t *workload, const struct sl_msg_use_row *row)
{
	put(draft, workload, "residency", json_string(sl_tell_residency(row->residency)));
	put(draft, workload, "on_collision", sl_tell_chain(row->flags));
	put(draft, workload, "longest_wait_ms", number(row->longest_wait_ms));
	put(draft, workload, "turns", number(row->turns));
	put(draft, workload, "turn_left_ms", number(row->turn_left_ms));
	put(draft, workload, "waited_ms", number(row->waited_ms));
	put(draft, workload, "warm_after_ms", number(row->warm_after_ms));
	put(draft, workload, "detach_after_ms", number(row->detach_after_ms));
	put(draft, workload, "idle_grace_ms", number(row->idle_grace_ms));
	put(draft, workload, "host_bytes", number(row->host_bytes));
	put(draft, workload, "compute", sl_tell_compute(row));
}

static json_t *add_workload(struct draft *draft, const struct sl_msg_use_row *row)
{
	char user[64];
	json_t *object = json_pack(
		"{s:I, s:o, s:i, s:o, s:o, s:o, s:i, s:i, s:i, s:s, s:o, s:I, s:[]}",
		"id", (json_int_t)row->workload, "name", sl_text_json(row->name), "uid",
		(int)row->uid, "user",
		sl_text_json(sl_page_user(draft->users, row->uid, user, sizeof(user))),
		"project", sl_text_json(row->project), "command",
		sl_text_json(row->command), "priority",
		(int)(row->priority_biased - SL_PRIORITY_BIAS), "pid", (int)row->pid,
		"clients", (int)row->clients, "state", sl_tell_state(row->state), "flags",
		flags_of(row), "age_ms", (json_int_t)row->age_ms, "uses");

	append(draft, draft->workloads, object);
	if (object)
		put_residency(draft, object, row);
	return object;
}

static void remember(struct draft *draft, uint64_t id, json_t *workload)
{
	if (draft->place_count == draft->place_room) {
		size_t room = draft->place_room ? 2 * draft->place_room : 64;
		struct place *places =
			reallocarray(draft->places, room, sizeof(places[0]));

		if (!places) {
			draft->failed = true;
			return;
		}
		draft->places = places;
		draft->place_room = room;
	}
	draft->places[draft->place_count++] = (struct place){id, workload};
}

static void take_use(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;
	const struct sl_msg_use_row *row = &msg->use_row;
	struct place *last =
		draft->place_count ? &draft->places[draft->place_count - 1] : NULL;
	json_t *workload = last && last->id == row->workload ? last->workload : NULL;

	if (row->gpu >= SL_NODE_GPUS_MAX)
		return;
	if (!workload) {
		workload = add_workload(draft, row);
		if (!workload)
			return;
		remember(draft, row->workload, workload);
	} else if (row->state == SL_STATE_WAITING) {
		/* Waiting on one GPU means that the workload waits. */
		put(draft, workload, "state", json_string(sl_tell_state(row->state)));
	}
	append(draft, json_object_get(workload, "uses"),
		json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:i}",
			"gpu", draft->gpus[row->gpu].uuid, "gpu_number", (int)row->gpu,
			"request_bytes", (json_int_t)row->request_bytes, "limit_bytes",
			(json_int_t)row->limit_bytes, "backing_bytes",
			(json_int_t)row->backing_bytes, "resident_bytes",
			(json_int_t)(row->backing_bytes - row->evicted_bytes),
			"evicted_bytes", (json_int_t)row->evicted_bytes, "hidden_bytes",
			(json_int_t)row->hidden_bytes, "dying_bytes",
			(json_int_t)row->dying_bytes, "waiting_bytes",
			(json_int_t)row->waiting_bytes, "returning_bytes",
			(json_int_t)row->returning_bytes, "out_bytes",
			(json_int_t)row->out_bytes, "in_bytes", (json_int_t)row->in_bytes,
			"clean_bytes", (json_int_t)row->clean_bytes, "waiting",
			(int)row->waiting));
}

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return left->id < right->id ? -1 : left->id > right->id;
}

static struct place *find_place(const struct draft *draft, uint64_t id)
{
	struct place key = {.id = id};

	return draft->place_count ? bsearch(&key, draft->places, draft->place_count,
					    sizeof(key), compare_places)
				  : NULL;
}

/* --- the rest --------------------------------------------------------------------------------- */

static void take_gpu(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;
	uint32_t number_of = msg->gpu_row.gpu;

	if (number_of >= SL_NODE_GPUS_MAX)
		return;
	draft->gpus[number_of].known = true;
	draft->gpus[number_of].row = msg->gpu_row;
	sl_wire_uuid_format(msg->gpu_row.uuid, draft->gpus[number_of].uuid);
}

static void take_pool(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;

	json_decref(draft->pool);
	draft->pool = sl_tell_pool(&msg->pool_row);
}

static void take_project(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;

	append(draft, draft->projects, sl_tell_project(&msg->project_row));
}

static void take_job(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;
	const struct sl_msg_job_row *row = &msg->job_row;
	bool over = sl_tell_job_is_over(row->state);
	json_t *job = sl_tell_job(row, draft->now_ms);
	struct place *place;
	char user[64], id[32];

	if (job) {
		/* A workload in the foreground has no job number, but it is in the queue and can be
		 * stopped. */
		(void)snprintf(id, sizeof(id), "%s%" PRIu64,
			row->job & SL_JOB_FOREGROUND ? "front-" : "",
			row->job & ~(uint64_t)SL_JOB_FOREGROUND);
		put(draft, job, "id", json_string(id));
		put(draft, job, "user",
			sl_text_json(sl_page_user(
				draft->users, row->uid, user, sizeof(user))));
		put(draft, job, "workload",
			row->workload ? number(row->workload) : json_null());
	}
	place = !over && row->workload ? find_place(draft, row->workload) : NULL;
	if (place)
		put(draft, place->workload, "job", sl_tell_job_number(row->job));
	append(draft, over ? draft->ended_jobs : draft->jobs, job);
	/* By age, so the first is the oldest. */
	if (json_array_size(draft->ended_jobs) > ENDED_JOBS)
		(void)json_array_remove(draft->ended_jobs, 0);
}

static void take_resource(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;

	/* A state is the same for all users, so it has shared resources only. */
	if (msg->resource_row.shared)
		append(draft, draft->resources, sl_tell_resource(&msg->resource_row));
}

static void take_status(void *context, const union sl_msg *msg)
{
	struct draft *draft = context;
	const struct sl_msg_status_row *row = &msg->status_row;
	char epoch[24];

	/* JSON numbers cannot hold 64 bits safely. */
	(void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, row->daemon_epoch);
	json_decref(draft->daemon);
	draft->daemon = json_pack("{s:o, s:s, s:o, s:I, s:b, s:o, s:i}", "version",
		sl_text_json(row->version), "epoch", epoch, "driver",
		sl_text_json(row->driver), "uptime_ms", (json_int_t)row->uptime_ms,
		"nvml_ok", row->nvml_ok != 0, "nvml_text", sl_text_json(row->nvml_text),
		"recovering", (int)row->recovering);
	if (row->journal_error)
		append(draft, draft->troubles, sl_tell_journal_trouble(row));
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Requests of a project's workloads in GPUs: fractions of what each GPU can share. */
static double gpus_of_project(const struct draft *draft, const char *project)
{
	double gpus = 0;

	for (size_t i = 0; i < draft->place_count; i++) {
		const json_t *workload = draft->places[i].workload,
			     *uses = json_object_get(workload, "uses");
		const char *of = json_string_value(json_object_get(workload, "project"));
		const char *residency =
			json_string_value(json_object_get(workload, "residency"));
		double time;

		/* A workload counts by the larger of its shares of memory and of time. */
		time = json_number_value(
			json_object_get(json_object_get(workload, "compute"), "request"));
		if (!of || strcmp(of[0] ? of : SL_PROJECT_DEFAULT, project) != 0 ||
			(residency && (strcmp(residency, "parked") == 0 ||
					      strcmp(residency, "parking") == 0 ||
					      strcmp(residency, "detached") == 0)))
			continue;
		for (size_t j = 0; j < json_array_size(uses); j++) {
			const json_t *use = json_array_get(uses, j);
			const struct gpu *gpu = &draft->gpus[json_integer_value(
				json_object_get(use, "gpu_number"))];

			if (gpu->row.shareable_bytes)
				gpus += larger((double)json_integer_value(json_object_get(
						       use, "request_bytes")) /
						       (double)gpu->row.shareable_bytes,
					time);
		}
	}
	return gpus;
}

static void add_used(struct draft *draft)
{
	for (size_t i = 0; i < json_array_size(draft->projects); i++) {
		json_t *project = json_array_get(draft->projects, i);
		const char *name = json_string_value(json_object_get(project, "project"));

		put(draft, project, "used_gpus",
			json_real(name ? gpus_of_project(draft, name) : 0));
	}
}

static json_t *gpus_json(struct draft *draft)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < SL_NODE_GPUS_MAX; i++) {
		if (draft->gpus[i].known)
			append(draft, array, sl_tell_gpu(&draft->gpus[i].row));
	}
	return array;
}

/* Workloads come after GPUs, because their rows get the UUIDs. */
static int gather(struct draft *draft, struct sl_inside *line, struct sl_error *err)
{
	static const struct {
		enum sl_list_what what;
		uint32_t row_type;
		sl_inside_row_fn fn;
	} lists[] = {
		{SL_LIST_STATUS, SL_MSG_STATUS_ROW, take_status},
		{SL_LIST_GPUS, SL_MSG_GPU_ROW, take_gpu},
		{SL_LIST_USES, SL_MSG_USE_ROW, take_use},
		{SL_LIST_POOL, SL_MSG_POOL_ROW, take_pool},
		{SL_LIST_PROJECTS, SL_MSG_PROJECT_ROW, take_project},
		{SL_LIST_JOBS, SL_MSG_JOB_ROW, take_job},
		{SL_LIST_RESOURCES, SL_MSG_RESOURCE_ROW, take_resource},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(lists); i++) {
		int r = sl_inside_list(
			line, lists[i].what, lists[i].row_type, lists[i].fn, draft, err);

		if (r != SL_INSIDE_OK)
			return r;
	}
	return SL_INSIDE_OK;
}

/* --- has it changed? -------------------------------------------------------------------------- */

/* Removes what changes with time alone, or with other processes: it is no change to report. */
static void still(json_t *json)
{
	static const char *const moving[] = {"now_ms", "uptime_ms", "age_ms",
		"measured_age_ms", "ran_ms", "available_bytes"};
	const char *key;
	json_t *value;
	size_t i;

	for (i = 0; json_is_object(json) && i < SL_ARRAY_LEN(moving); i++)
		(void)json_object_del(json, moving[i]);
	json_object_foreach(json, key, value) still(value);
	json_array_foreach(json, i, value) still(value);
}

/* FNV-1a */
static int add_to_digest(const char *text, size_t size, void *context)
{
	uint64_t *digest = context;

	for (size_t i = 0; i < size; i++)
		*digest = (*digest ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return 0;
}

/* Removes members that do not count. */
static uint64_t digest_of(json_t *root)
{
	uint64_t digest = 0xcbf29ce484222325ull;

	still(root);
	(void)json_dump_callback(root, add_to_digest, &digest, JSON_COMPACT);
	return digest;
}

static char *assemble(struct draft *draft, uint64_t *digest)
{
	json_t *root;
	char *text = NULL;

	add_used(draft);
	(void)json_array_extend(draft->jobs, draft->ended_jobs);
	root = json_pack("{s:I, s:O*, s:o, s:O, s:O*, s:O, s:O, s:O, s:O}", "now_ms",
		(json_int_t)draft->now_ms, "daemon", draft->daemon, "gpus",
		gpus_json(draft), "workloads", draft->workloads, "pool", draft->pool,
		"projects", draft->projects, "jobs", draft->jobs, "resources",
		draft->resources, "troubles", draft->troubles);
	if (root && !draft->failed)
		text = json_dumps(root, JSON_COMPACT);
	*digest = text ? digest_of(root) : 0;
	json_decref(root);
	if (text)
		memmove(text, text + 1, strlen(text));
	return text;
}

static void draft_fini(struct draft *draft)
{
	json_t *all[] = {draft->workloads, draft->jobs, draft->ended_jobs,
		draft->projects, draft->resources, draft->troubles, draft->pool,
		draft->daemon};

	for (size_t i = 0; i < SL_ARRAY_LEN(all); i++)
		json_decref(all[i]);
	free(draft->places);
}

int sl_page_state_make(struct sl_inside *line, struct sl_page_users *users, char **text,
	uint64_t *digest, struct sl_error *err)
{
	struct draft draft = {.users = users,
		.workloads = json_array(),
		.jobs = json_array(),
		.ended_jobs = json_array(),
		.projects = json_array(),
		.resources = json_array(),
		.troubles = json_array(),
		.now_ms = sl_tell_now_ms()};
	int r = gather(&draft, line, err);

	*text = r == SL_INSIDE_OK ? assemble(&draft, digest) : NULL;
	if (r == SL_INSIDE_OK && !*text) {
		sl_error_set(err, "sluiced is out of memory");
		r = SL_INSIDE_SYSTEM;
	}
	draft_fini(&draft);
	return r;
}
