/*
 * tell - tables of keys and fields
 */
#include "daemon/report/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/text.h"
#include "daemon/projects/wire.h"
#include "policy/words/chain.h"
#include "policy/quota/explain.h"
#include "policy/words/reason.h"

/* The daemon measures several times a second; an older figure is marked. */
#define STALE_MS 5000

static json_t *share(uint32_t pm, uint32_t none)
{
	return pm == none ? json_null() : json_real(pm / 1000.0);
}

json_t *sl_tell_compute(const struct sl_msg_use_row *row)
{
	return json_pack("{s:o, s:o, s:o}", "request", share(row->compute_request_pm, 0),
		"limit", share(row->compute_limit_pm, 0), "used",
		share(row->compute_used_pm, UINT32_MAX));
}

/* --- words ------------------------------------------------------------------------------------ */

const char *sl_tell_state(uint32_t state)
{
	static const char *const names[SL_STATES] = {
		[SL_STATE_RESERVED] = "reserved",
		[SL_STATE_BOUND] = "bound",
		[SL_STATE_WAITING] = "waiting",
		[SL_STATE_GONE] = "gone",
	};

	return state < SL_STATES ? names[state] : "?";
}

const char *sl_tell_residency(uint32_t residency)
{
	static const char *const names[SL_WIRE_RESIDENCIES] = {
		[SL_WIRE_RESERVED] = "reserved",
		[SL_WIRE_BOUND] = "bound",
		[SL_WIRE_LEAVING] = "leaving",
		[SL_WIRE_EVICTED] = "evicted",
		[SL_WIRE_WARM] = "warm",
		[SL_WIRE_RETURNING] = "returning",
		[SL_WIRE_PARKED] = "parked",
		[SL_WIRE_RESUMING] = "resuming",
		[SL_WIRE_PARTIAL] = "partial",
		[SL_WIRE_PARKING] = "parking",
		[SL_WIRE_DETACHED] = "detached",
	};

	return residency < SL_WIRE_RESIDENCIES ? names[residency] : "?";
}

bool sl_tell_is_away(const struct sl_msg_use_row *row)
{
	return row->residency > SL_WIRE_BOUND;
}

const char *sl_tell_shown(const struct sl_msg_use_row *row)
{
	if (row->flags & SL_USE_STOPPING)
		return "stopping";
	if (row->flags & SL_USE_LOST)
		return "gpu lost";
	if (row->flags & SL_USE_UNTAKEABLE)
		return "untakeable";
	/* "Over limit" matters only once its memory is back. */
	if (sl_tell_is_away(row) && row->state != SL_STATE_GONE)
		return sl_tell_residency(row->residency);
	if (row->flags & SL_USE_OVER_LIMIT)
		return "over limit";
	return sl_tell_state(row->state);
}

const char *sl_tell_gpu_state(const struct sl_msg_gpu_row *row)
{
	if (row->condition & SL_GPU_LOST)
		return "lost";
	if (row->condition & SL_GPU_DEGRADED)
		return "degraded";
	return row->measured_age_ms > STALE_MS ? "stale" : "ok";
}

bool sl_tell_job_is_over(uint32_t state)
{
	return state >= SL_JOB_DONE;
}

int sl_tell_exit(uint32_t exit_status)
{
	if (exit_status == SL_JOB_LOST)
		return 0;
	if (WIFSIGNALED((int)exit_status))
		return 128 + WTERMSIG((int)exit_status);
	return WIFEXITED((int)exit_status) ? WEXITSTATUS((int)exit_status) : 0;
}

const char *sl_tell_ending(uint32_t state, uint32_t exit_status, char *buf, size_t size)
{
	const char *how = state == SL_JOB_STOPPED ? "was stopped" : "failed";
	int number = WIFSIGNALED((int)exit_status) ? WTERMSIG((int)exit_status) : 0;
	/* strsignal() is not thread-safe. */
	const char *signal = number ? sigdescr_np(number) : NULL;

	if (!sl_tell_job_is_over(state))
		(void)snprintf(buf, size, "is %s", sl_wire_job_state(state));
	else if (state == SL_JOB_DONE)
		(void)snprintf(buf, size, "is done");
	else if (exit_status == SL_JOB_LOST)
		(void)snprintf(buf, size, "%s; its exit status is not known", how);
	else if (number)
		(void)snprintf(buf, size, "%s: killed by signal %d%s%s%s", how, number,
			signal ? " (" : "", signal ? signal : "", signal ? ")" : "");
	else if (sl_tell_exit(exit_status))
		(void)snprintf(
			buf, size, "%s: exit status %d", how, sl_tell_exit(exit_status));
	else
		(void)snprintf(buf, size, "%s", how);
	return buf;
}

/* Users choose the names in an event, so the finished sentence is tamed. */
const char *sl_tell_sentence(const struct sl_msg_event_row *row, char *buf, size_t size)
{
	const struct sl_reason_facts facts = {
		.reason = row->reason,
		.gpu = row->gpu,
		.name = row->name,
		.other = row->other_name,
		.bytes = row->bytes,
		.available_bytes = row->available_bytes,
		.other_bytes = row->other_bytes,
		.span = row->span_ms * SL_MS,
		.pid = row->pid,
	};

	if (row->reason >= SL_REASONS)
		(void)snprintf(buf, size,
			"reason %u, which a newer sluice than this one can explain",
			row->reason);
	else
		(void)sl_reason_sentence(&facts, buf, size);
	sl_text_tame(buf);
	return buf;
}

uint64_t sl_tell_now_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- rows ------------------------------------------------------------------------------------- */

json_t *sl_tell_event(const struct sl_msg_event_row *row)
{
	char sentence[SL_TELL_TEXT_MAX];

	return json_pack("{s:I, s:I, s:s, s:i, s:s, s:s, s:b, s:i, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:i, s:i, s:i, s:o, s:o}",
		"serial", (json_int_t)row->serial, "realtime_ms",
		(json_int_t)row->realtime_ms, "reason", sl_reason_name(row->reason),
		"reason_number", (int)row->reason, "kind",
		sl_reason_kind_name(sl_reason_kind(row->reason)), "sentence",
		sl_tell_sentence(row, sentence, sizeof(sentence)), "current",
		(int)row->current, "gpu", (int)row->gpu, "workload",
		(json_int_t)row->workload, "other", (json_int_t)row->other, "bytes",
		(json_int_t)row->bytes, "available_bytes",
		(json_int_t)row->available_bytes, "other_bytes",
		(json_int_t)row->other_bytes, "span_ms", (json_int_t)row->span_ms, "pid",
		(int)row->pid, "uid", (int)row->uid, "lost", (int)row->lost, "name",
		sl_text_json(row->name), "other_name", sl_text_json(row->other_name));
}

static uint64_t number_in(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void name_in(const json_t *object, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	sl_wire_str(out, size, text ? text : "");
}

struct sl_msg_event_row sl_tell_event_row(const json_t *object)
{
	struct sl_msg_event_row row = {
#define NUMBER(field) .field = (__typeof__(row.field))number_in(object, #field)
		NUMBER(serial),
		NUMBER(realtime_ms),
		NUMBER(gpu),
		NUMBER(workload),
		NUMBER(other),
		NUMBER(bytes),
		NUMBER(available_bytes),
		NUMBER(other_bytes),
		NUMBER(span_ms),
		NUMBER(pid),
		NUMBER(uid),
		NUMBER(lost),
#undef NUMBER
		.reason = (uint32_t)number_in(object, "reason_number"),
	};

	name_in(object, "name", row.name, sizeof(row.name));
	name_in(object, "other_name", row.other_name, sizeof(row.other_name));
	return row;
}

struct number {
	const char *key;
	uint64_t value;
};

static void add_numbers(json_t *object, const struct number *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)json_object_set_new(object, numbers[i].key,
			json_integer((json_int_t)numbers[i].value));
}

json_t *sl_tell_gpu(const struct sl_msg_gpu_row *row)
{
	json_t *object = json_object();
	char uuid[41];
	const struct number numbers[] = {
#define NUMBER(field) {#field, row->field}
		NUMBER(gpu),
		NUMBER(capacity_bytes),
		NUMBER(reserve_bytes),
		NUMBER(unmanaged_bytes),
		NUMBER(shareable_bytes),
		NUMBER(requests_bytes),
		NUMBER(backing_bytes),
		NUMBER(evicted_bytes),
		NUMBER(granted_bytes),
		NUMBER(hidden_bytes),
		NUMBER(paid_bytes),
		NUMBER(dying_bytes),
		NUMBER(free_bytes),
		NUMBER(utilisation_pct),
		NUMBER(measured_age_ms),
		NUMBER(workloads),
		NUMBER(waiting),
#undef NUMBER
		{"resident_bytes", row->backing_bytes - row->evicted_bytes},
	};

	sl_wire_uuid_format(row->uuid, uuid);
	(void)json_object_set_new(object, "uuid", json_string(uuid));
	(void)json_object_set_new(object, "name", sl_text_json(row->name));
	(void)json_object_set_new(object, "pci", sl_text_json(row->pci));
	(void)json_object_set_new(object, "state", json_string(sl_tell_gpu_state(row)));
	(void)json_object_set_new(
		object, "degraded", json_boolean(row->condition & SL_GPU_DEGRADED));
	(void)json_object_set_new(
		object, "swap", json_boolean(!(row->condition & SL_GPU_FIXED)));
	(void)json_object_set_new(
		object, "lost", json_boolean(row->condition & SL_GPU_LOST));
	add_numbers(object, numbers, SL_ARRAY_LEN(numbers));
	return object;
}

json_t *sl_tell_pool(const struct sl_msg_pool_row *row)
{
	json_t *object = json_object();
	const struct number numbers[] = {
#define NUMBER(field) {#field, row->field}
		NUMBER(pool_bytes),
		NUMBER(slack_bytes),
		NUMBER(evicted_bytes),
		NUMBER(copies_bytes),
		NUMBER(lent_bytes),
		NUMBER(made_bytes),
		NUMBER(huge_bytes),
		NUMBER(available_bytes),
		NUMBER(member_bytes),
#undef NUMBER
	};

	add_numbers(object, numbers, SL_ARRAY_LEN(numbers));
	(void)json_object_set_new(object, "swap_on", json_boolean(row->swap_on));
	return object;
}

json_t *sl_tell_chain(uint32_t flags)
{
	char text[2 * SL_CHAIN_TEXT_MAX];

	return flags & SL_RUN_CHAIN
		       ? json_string(sl_chain_format(
				 flags >> SL_RUN_CHAIN_SHIFT, text, sizeof(text)))
		       : json_null();
}

json_t *sl_tell_amount(uint32_t kind, uint64_t value)
{
	const struct sl_amount amount = {.kind = kind, .value = value};
	char text[32];

	return kind ? json_string(sl_amount_format(&amount, text, sizeof(text)))
		    : json_null();
}

/* Null until it has happened. */
static json_t *moment(uint64_t ms)
{
	return ms ? json_integer((json_int_t)ms) : json_null();
}

/* The real-time clock may have been set back. */
uint64_t sl_tell_job_age_ms(const struct sl_msg_job_row *row, uint64_t now_ms)
{
	return sl_sub_sat(now_ms, row->submitted_ms);
}

uint64_t sl_tell_job_ran_ms(const struct sl_msg_job_row *row, uint64_t now_ms)
{
	uint64_t end_ms = row->ended_ms ? row->ended_ms : now_ms;

	return row->started_ms ? sl_sub_sat(end_ms, row->started_ms) : 0;
}

json_t *sl_tell_job_number(uint64_t job)
{
	return job & SL_JOB_FOREGROUND ? json_null() : json_integer((json_int_t)job);
}

json_t *sl_tell_job(const struct sl_msg_job_row *row, uint64_t now_ms)
{
	bool over = sl_tell_job_is_over(row->state);
	json_t *status = over && row->exit_status != SL_JOB_LOST
				 ? json_integer(sl_tell_exit(row->exit_status))
				 : json_null();
	char ending[96];

	return json_pack(
		"{s:o, s:o, s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, "
		"s:o, s:b, s:s, s:b, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
		"s:o, "
		"s:o}",
		"job", sl_tell_job_number(row->job), "name", sl_text_json(row->name),
		"project", sl_text_json(row->project), "state",
		sl_wire_job_state(row->state), "uid", (int)row->uid, "priority",
		(int)(row->priority_biased - SL_PRIORITY_BIAS), "tasks", (int)row->tasks,
		"least", (int)row->least, "queued", (int)row->queued, "running",
		(int)row->running, "parked", (int)row->parked, "ended", (int)row->ended,
		"gpus", (int)row->gpu_count, "request",
		sl_tell_amount(row->request_kind, row->request_value), "limit",
		sl_tell_amount(row->limit_kind, row->limit_value), "preemptible",
		!!(row->flags & SL_SUBMIT_PREEMPTIBLE), "on_reclaim",
		row->flags & SL_SUBMIT_TERMINATES ? "terminate" : "park", "swap",
		!(row->flags & SL_RUN_NO_SWAP), "on_collision", sl_tell_chain(row->flags),
		"started", (int)row->started, "retries", (int)row->retries, "exit_status",
		status, "ending",
		over ? json_string(sl_tell_ending(
			       row->state, row->exit_status, ending, sizeof(ending)))
		     : json_null(),
		"submitted_ms", moment(row->submitted_ms), "started_ms",
		moment(row->started_ms), "ended_ms", moment(row->ended_ms), "age_ms",
		(json_int_t)sl_tell_job_age_ms(row, now_ms), "ran_ms",
		(json_int_t)sl_tell_job_ran_ms(row, now_ms), "why",
		sl_text_json(row->why), "command", sl_text_json(row->command));
}

static json_t *names(const char *list)
{
	json_t *array = json_array();

	while (array && *list) {
		size_t length = strcspn(list, ",");

		(void)json_array_append_new(array, json_stringn(list, length));
		list += length + (list[length] == ',');
	}
	return array;
}

static json_t *quota(int64_t value, bool milli)
{
	if (value == SL_QUOTA_ALL)
		return json_null();
	return milli ? json_real((double)value / 1000)
		     : json_integer((json_int_t)value * (json_int_t)SL_MIB);
}

json_t *sl_tell_project(const struct sl_msg_project_row *msg)
{
	struct sl_project_row row;
	json_t *object;

	sl_project_from_row(msg, &row);
	object = json_pack("{s:o, s:o, s:i, s:b, s:o, s:o, s:o, s:I, s:I, s:i}",
		"project", sl_text_json(row.name), "parent",
		row.parent[0] ? sl_text_json(row.parent) : json_null(), "priority",
		row.priority, "swap", !row.no_swap, "users", names(row.users), "groups",
		names(row.groups), "pools", names(row.pools), "preempt_min_runtime_ms",
		(json_int_t)(row.preempt_min_runtime / SL_MS), "reclaim_min_runtime_ms",
		(json_int_t)(row.reclaim_min_runtime / SL_MS), "workloads",
		(int)msg->workloads);
	for (uint32_t r = 0; object && r < SL_RESOURCES; r++)
		(void)json_object_set_new(object, sl_resource_name(r),
			json_pack("{s:o, s:o, s:i}", "quota",
				quota(row.quota.of[r], r != SL_RES_MEMORY), "limit",
				quota(row.limit.of[r], r != SL_RES_MEMORY),
				"over_quota_weight", (int)row.weight[r]));
	return object;
}

json_t *sl_tell_resource(const struct sl_msg_resource_row *row)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:i}", "name",
		sl_text_json(row->name), "owner",
		row->shared ? json_null() : json_integer((json_int_t)row->owner),
		"project", sl_text_json(row->project), "request",
		sl_tell_amount(row->request_kind, row->request_value), "limit",
		sl_tell_amount(row->limit_kind, row->limit_value), "gpus",
		(int)row->gpu_count, "priority",
		(int)(row->priority_biased - SL_PRIORITY_BIAS));
}

bool sl_tell_resource_is(
	const struct sl_msg_resource_row *row, const char *name, uint32_t uid)
{
	return strcmp(row->name, name) == 0 && (row->shared || row->owner == uid);
}

json_t *sl_tell_journal_trouble(const struct sl_msg_status_row *row)
{
	char buf[128];

	return json_pack("{s:s, s:i, s:s, s:o}", "what", "journal", "errno",
		(int)row->journal_error, "error",
		strerror_r((int)row->journal_error, buf, sizeof(buf)), "path",
		sl_text_json(row->journal));
}
