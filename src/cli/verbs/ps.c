/*
 * sluice ps: one line per workload and GPU, and one per queued job. --jobs: one per job.
 *
 * USED is what counts against request and limit: backing plus hidden bytes, also those on the host
 * (EVICTED). So USED, REQUEST and LIMIT can be compared by eye. --json has the components.
 */
#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/conn/jobs.h"
#include "cli/conn/ps_jobs.h"
#include "cli/conn/rows.h"
#include "cli/conn/state.h"
#include "cli/line/table.h"
#include "cli/line/text.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
	bool json, clients, jobs, all;
	sl_ns watch;
};

const struct sl_option sl_verb_ps_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON array."),
	SL_OPT(struct settings, clients, FLAG, NULL, 0, 0,
		"List the processes on the GPUs instead."),
	SL_OPT(struct settings, jobs, FLAG, NULL, 0, 0,
		"List waiting and running jobs instead."),
	SL_OPT(struct settings, all, FLAG, NULL, 0, 0,
		"List jobs, also ended ones, with exit status and time."),
	SL_OPT(struct settings, watch, SECONDS, "SECONDS", 1000, 3600000,
		"Print again every SECONDS (1) until interrupted."),
	SL_OPT_END,
};

/* Columns, and when they are dropped on a narrow terminal. All are printed to a pipe, in this
 * order. */
enum {
	ID,
	NAME,
	PROJECT,
	GPU,
	PRIO,
	STATE,
	REQUEST,
	LIMIT,
	USED,
	EVICTED,
	WAITING,
	MAX_WAIT,
	CLIENTS,
	AGE,
	COMPUTE,
	COMMAND,
	WHY, /* only if a job waits */
	COLUMNS
};
static const struct sl_column columns[COLUMNS] = {
	[ID] = {"ID", true, 0, 0},
	[NAME] = {"NAME", false, 10, 0},
	[PROJECT] = {"PROJECT", false, 7, 1},
	[GPU] = {"GPU", true, 0, 0},
	[PRIO] = {"PRIO", true, 0, 4},
	[STATE] = {"STATE", false, 0, 0},
	[REQUEST] = {"REQUEST", true, 0, 0},
	[LIMIT] = {"LIMIT", true, 0, 0},
	[USED] = {"USED", true, 0, 0},
	[EVICTED] = {"EVICTED", true, 0, 8},
	[WAITING] = {"WAITING", true, 0, 9},
	[MAX_WAIT] = {"MAX-WAIT", true, 0, 3},
	[CLIENTS] = {"CLIENTS", true, 0, 2},
	[AGE] = {"AGE", true, 0, 6},
	[COMPUTE] = {"COMPUTE", true, 0, 2, .hides = true},
	[COMMAND] = {"COMMAND", false, 8, 5},
	[WHY] = {"WHY", false, 12, 7},
};

static int32_t priority(const struct sl_msg_use_row *row)
{
	return (int32_t)(row->priority_biased - SL_PRIORITY_BIAS);
}

/* The answers of the daemon; all but rows only if needed and known. */
struct lists {
	struct sl_rows rows, gpus, jobs;
	bool waits; /* one of the jobs waits */
};

static void set_why(struct sl_table *table, const struct sl_msg_job_row *job,
	const struct lists *lists)
{
	char why[sizeof(job->why)];

	if (lists->waits)
		sl_table_set(table, WHY, "%s",
			job ? sl_ps_job_why(job, why, sizeof(why)) : "");
}

/* A job of one task and its workload are the same, with the number that submit printed. */
static uint64_t id_of(const struct sl_msg_use_row *row, const struct sl_rows *jobs)
{
	const struct sl_msg_job_row *job = sl_ps_job_of(jobs, row);

	return job && job->tasks == 1 ? job->job & ~SL_JOB_FOREGROUND : row->workload;
}

static bool add_row(struct sl_table *table, const struct sl_msg_use_row *row,
	const struct lists *lists)
{
	const struct sl_msg_job_row *job;
	char text[64];

	sl_table_set(table, ID, "%llu", (unsigned long long)id_of(row, &lists->jobs));
	sl_state_set_name(table, NAME, row->uid, row->name);
	sl_table_set(table, PROJECT, "%s", row->project);
	sl_table_set(table, GPU, "%u", row->gpu);
	sl_table_set(table, PRIO, "%d", priority(row));
	sl_table_set(table, STATE, "%s", sl_tell_shown(row));
	sl_table_set(table, REQUEST, "%s", sl_state_request(row, text, sizeof(text)));
	sl_table_set(
		table, LIMIT, "%s", sl_bytes_short(row->limit_bytes, text, sizeof(text)));
	sl_table_set(table, USED, "%s",
		sl_bytes_short(
			row->backing_bytes + row->hidden_bytes, text, sizeof(text)));
	sl_table_set(table, EVICTED, "%s",
		row->evicted_bytes
			? sl_bytes_short(row->evicted_bytes, text, sizeof(text))
			: "-");
	sl_table_set(table, MAX_WAIT, "%s", sl_state_longest(row, text, sizeof(text)));
	sl_table_set(table, WAITING, "%s",
		row->waiting ? sl_bytes_short(row->waiting_bytes, text, sizeof(text))
			     : "-");
	sl_table_set(table, CLIENTS, "%u", row->clients);
	sl_table_set(table, AGE, "%s", sl_table_age(row->age_ms, text, sizeof(text)));
	sl_table_set(table, COMPUTE, "%s", sl_state_compute(row, text, sizeof(text)));
	sl_table_set(table, COMMAND, "%s", row->command);
	/* Of a running job, its parked tasks wait. */
	job = sl_ps_job_of(&lists->jobs, row);
	if (job && job->state == SL_JOB_RUNNING && !sl_wire_is_parked(row->residency))
		job = NULL;
	set_why(table, job, lists);
	return sl_table_end_row(table);
}

static const char *amount(uint32_t kind, uint64_t value, char *buf, size_t size)
{
	const struct sl_amount amount = {.kind = kind, .value = value};

	if (amount.kind == SL_AMOUNT_BYTES)
		return sl_bytes_short(value, buf, size);
	return kind ? sl_amount_format(&amount, buf, size) : "-";
}

/* A job without a workload now: it has no GPU and no memory. */
static bool add_job(struct sl_table *table, const struct sl_msg_job_row *row,
	const struct lists *lists)
{
	static const int nothing[] = {GPU, EVICTED, WAITING, MAX_WAIT, COMPUTE};
	bool same = !row->limit_kind; /* a limit alone is the request, too */
	char text[64];

	for (size_t i = 0; i < SL_ARRAY_LEN(nothing); i++)
		sl_table_set(table, (size_t)nothing[i], "-");
	sl_table_set(
		table, ID, "%llu", (unsigned long long)(row->job & ~SL_JOB_FOREGROUND));
	sl_state_set_name(table, NAME, row->uid, row->name);
	sl_table_set(table, PROJECT, "%s", row->project);
	sl_table_set(table, PRIO, "%d", (int)(row->priority_biased - SL_PRIORITY_BIAS));
	sl_table_set(table, STATE, "%s", sl_wire_job_state(row->state));
	sl_table_set(table, REQUEST, "%s",
		amount(row->request_kind, row->request_value, text, sizeof(text)));
	sl_table_set(table, LIMIT, "%s",
		amount(same ? row->request_kind : row->limit_kind,
			same ? row->request_value : row->limit_value, text,
			sizeof(text)));
	sl_table_set(table, USED, "0");
	sl_table_set(table, CLIENTS, "0");
	sl_table_set(
		table, AGE, "%s", sl_table_age(sl_jobs_age_ms(row), text, sizeof(text)));
	sl_table_set(table, COMMAND, "%s", row->command);
	set_why(table, row, lists);
	return sl_table_end_row(table);
}

/* The GPU's UUID, which stays when the order of GPUs changes; NULL if the daemon no longer lists
 * it. */
static const char *gpu_uuid(const struct sl_rows *gpus, uint32_t gpu, char text[41])
{
	for (size_t i = 0; i < gpus->count; i++)
		if (gpus->all[i].gpu_row.gpu == gpu) {
			sl_wire_uuid_format(gpus->all[i].gpu_row.uuid, text);
			return text;
		}
	return NULL;
}

/* Adds the figures of its memory on the host. */
static void add_swap_json(json_t *object, const struct sl_msg_use_row *row)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
#define NUMBER(field) {#field, row->field}
		NUMBER(evicted_bytes),
		NUMBER(returning_bytes),
		NUMBER(host_bytes),
		NUMBER(turn_left_ms),
		NUMBER(waited_ms),
		NUMBER(longest_wait_ms),
		NUMBER(turns),
		NUMBER(out_bytes),
		NUMBER(in_bytes),
		NUMBER(clean_bytes),
		NUMBER(warm_after_ms),
		NUMBER(detach_after_ms),
#undef NUMBER
	};

	json_object_set_new(object, "compute", sl_tell_compute(row));
	json_object_set_new(
		object, "residency", json_string(sl_tell_residency(row->residency)));
	/* Only the longest wait may have no bound. */
	for (size_t i = 0; i < SL_ARRAY_LEN(numbers); i++)
		json_object_set_new(object, numbers[i].key,
			numbers[i].value == UINT64_MAX
				? json_null()
				: json_integer((json_int_t)numbers[i].value));
}

static json_t *to_json(const struct sl_msg_use_row *row, const struct lists *lists)
{
	char user[64], uuid[41];
	json_t *object;

	sl_state_user(row->uid, user, sizeof(user));
	object = json_pack(
		"{s:I, s:o, s:o, s:s, s:i, s:i, s:i, s:s?, s:i, s:s, s:I, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:i, s:i, s:I, s:b, s:b, s:b, s:b, s:b, s:b, s:o}",
		"workload", (json_int_t)row->workload, "name", sl_text_json(row->name),
		"project", sl_text_json(row->project), "user", user, "uid", (int)row->uid,
		"pid", (int)row->pid, "gpu", (int)row->gpu, "gpu_uuid",
		gpu_uuid(&lists->gpus, row->gpu, uuid), "priority", (int)priority(row),
		"state", sl_tell_state(row->state), "request_bytes",
		(json_int_t)row->request_bytes, "limit_bytes",
		(json_int_t)row->limit_bytes, "backing_bytes",
		(json_int_t)row->backing_bytes, "hidden_bytes",
		(json_int_t)row->hidden_bytes, "held_bytes", (json_int_t)row->held_bytes,
		"dying_bytes", (json_int_t)row->dying_bytes, "waiting_bytes",
		(json_int_t)row->waiting_bytes, "waiting", (int)row->waiting, "clients",
		(int)row->clients, "age_ms", (json_int_t)row->age_ms, "swap",
		!(row->flags & (SL_USE_NO_SWAP | SL_USE_FIXED)), "oom_first",
		!!(row->flags & SL_USE_OOM_FIRST), "over_limit",
		!!(row->flags & SL_USE_OVER_LIMIT), "stopping",
		!!(row->flags & SL_USE_STOPPING), "untakeable",
		!!(row->flags & SL_USE_UNTAKEABLE), "gpu_lost",
		!!(row->flags & SL_USE_LOST), "command", sl_text_json(row->command));
	if (object) {
		const struct sl_msg_job_row *job = sl_ps_job_of(&lists->jobs, row);

		add_swap_json(object, row);
		json_object_set_new(object, "on_collision", sl_tell_chain(row->flags));
		json_object_set_new(
			object, "job", job ? sl_tell_job_number(job->job) : json_null());
		json_object_set_new(
			object, "id", json_integer((json_int_t)id_of(row, &lists->jobs)));
	}
	return object;
}

/* --- ps --clients --- */

enum {
	C_NAME,
	C_PID,
	C_GPU,
	C_STATE,
	C_BACKING,
	C_HIDDEN,
	C_HELD,
	C_GRANTED,
	C_WAITING,
	C_IDLE,
	C_BUSY,
	C_COLUMNS
};
static const struct sl_column client_columns[C_COLUMNS] = {
	[C_NAME] = {"NAME", false, 10, 0},
	[C_PID] = {"PID", true, 0, 0},
	[C_GPU] = {"GPU", true, 0, 0},
	[C_STATE] = {"STATE", false, 0, 0},
	[C_BACKING] = {"BACKING", true, 0, 0},
	[C_HIDDEN] = {"HIDDEN", true, 0, 0},
	[C_HELD] = {"HELD", true, 0, 4},
	[C_GRANTED] = {"GRANTED", true, 0, 1},
	[C_WAITING] = {"WAITING", true, 0, 0},
	[C_IDLE] = {"IDLE", true, 0, 3},
	[C_BUSY] = {"BUSY", true, 0, 2},
};

static bool add_client(struct sl_table *table, const struct sl_msg_client_row *row)
{
	char text[32];

	sl_table_set(table, C_NAME, "%s", row->name);
	sl_table_set(table, C_PID, "%u", row->pid);
	sl_table_set(table, C_GPU, "%u", row->gpu);
	sl_table_set(table, C_STATE, "%s", sl_state_of_client(row, text, sizeof(text)));
	sl_table_set(table, C_BACKING, "%s",
		sl_bytes_short(row->backing_bytes, text, sizeof(text)));
	sl_table_set(table, C_HIDDEN, "%s",
		sl_bytes_short(row->hidden_bytes, text, sizeof(text)));
	sl_table_set(table, C_HELD, "%s",
		row->held_bytes ? sl_bytes_short(row->held_bytes, text, sizeof(text))
				: "-");
	sl_table_set(table, C_GRANTED, "%s",
		sl_bytes_short(row->granted_bytes, text, sizeof(text)));
	sl_table_set(table, C_WAITING, "%s",
		row->waiting_bytes
			? sl_bytes_short(row->waiting_bytes, text, sizeof(text))
			: "-");
	sl_table_set(table, C_IDLE, "%s",
		row->flags & SL_CLIENT_IDLE
			? sl_table_age(row->idle_ms, text, sizeof(text))
			: "-");
	sl_table_set(table, C_BUSY, "%s",
		row->busy_ms ? sl_table_age(row->busy_ms, text, sizeof(text)) : "-");
	return sl_table_end_row(table);
}

static json_t *client_to_json(const struct sl_msg_client_row *row)
{
	json_t *idle = row->flags & SL_CLIENT_IDLE
			       ? json_integer((json_int_t)row->idle_ms)
			       : json_null();

	return json_pack("{s:I, s:I, s:o, s:i, s:i, s:s, s:b, s:b, s:b, s:I, s:I, s:I, "
			 "s:I, s:I, s:o, s:I}",
		"client", (json_int_t)row->client, "workload", (json_int_t)row->workload,
		"name", sl_text_json(row->name), "pid", (int)row->pid, "gpu",
		(int)row->gpu, "condition", sl_state_condition(row->condition), "waits",
		!!(row->flags & SL_CLIENT_WAITS), "stopping",
		!!(row->flags & SL_CLIENT_STOPPING), "untakeable",
		!!(row->flags & SL_CLIENT_UNTAKEABLE), "backing_bytes",
		(json_int_t)row->backing_bytes, "hidden_bytes",
		(json_int_t)row->hidden_bytes, "held_bytes", (json_int_t)row->held_bytes,
		"granted_bytes", (json_int_t)row->granted_bytes, "waiting_bytes",
		(json_int_t)row->waiting_bytes, "idle_ms", idle, "busy_ms",
		(json_int_t)row->busy_ms);
}

/* --- the whole list --- */

/* A queued job in the form of a workload, as far as it has those fields. */
static json_t *job_to_json(const struct sl_msg_job_row *row)
{
	json_t *object = sl_tell_job(row, sl_tell_now_ms());
	char user[64];

	if (!object)
		return NULL;
	sl_ps_set_id(object, row);
	json_object_set_new(object, "workload", json_null());
	json_object_set_new(object, "gpu", json_null());
	json_object_set_new(
		object, "user", json_string(sl_state_user(row->uid, user, sizeof(user))));
	return object;
}

static int print_json(const struct settings *s, const struct lists *lists)
{
	const struct sl_rows *rows = &lists->rows;
	json_t *array;

	if (s->jobs)
		return sl_rows_print_json(
			SL_VERB_ps, sl_ps_jobs_json(&lists->jobs, s->all));

	array = json_array();
	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(
			array, s->clients ? client_to_json(&rows->all[i].client_row)
					  : to_json(&rows->all[i].use_row, lists));
	for (size_t i = 0; i < lists->jobs.count; i++)
		if (sl_ps_job_is_alone(&lists->jobs.all[i].job_row, rows))
			json_array_append_new(
				array, job_to_json(&lists->jobs.all[i].job_row));
	return sl_rows_print_json(SL_VERB_ps, array);
}

static struct sl_table *make_table(const struct settings *s, const struct lists *lists)
{
	const struct sl_rows *rows = &lists->rows, *jobs = &lists->jobs;
	struct sl_table *table;

	if (s->jobs)
		return sl_ps_jobs_table(jobs, s->all);
	table = s->clients ? sl_table_new(client_columns, C_COLUMNS)
			   : sl_table_new(columns, lists->waits ? COLUMNS : WHY);
	for (size_t i = 0; table && i < rows->count; i++)
		if (!(s->clients ? add_client(table, &rows->all[i].client_row)
				 : add_row(table, &rows->all[i].use_row, lists)))
			table = sl_table_free(table);
	for (size_t i = 0; table && i < jobs->count; i++)
		if (sl_ps_job_is_alone(&jobs->all[i].job_row, rows) &&
			!add_job(table, &jobs->all[i].job_row, lists))
			table = sl_table_free(table);
	return table;
}

static int print_table(const struct settings *s, const struct lists *lists, bool clear)
{
	sl_cleanup(sl_table_freep) struct sl_table *table = make_table(s, lists);

	if (!table)
		return sl_cli_fail(SL_VERB_ps, false, SL_EXIT_SYSTEM, "out of memory");
	if (clear)
		fputs("\033[H\033[J", stdout);
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_ps, SL_EXIT_OK);
}

static void fini_lists(struct lists *lists)
{
	sl_rows_fini(&lists->rows);
	sl_rows_fini(&lists->gpus);
	sl_rows_fini(&lists->jobs);
}

static void look_for_waiting(struct lists *lists)
{
	char why[2];

	for (size_t i = 0; i < lists->jobs.count; i++) {
		const struct sl_msg_job_row *job = &lists->jobs.all[i].job_row;

		if (job->state != SL_JOB_RUNNING || job->parked)
			lists->waits |= *sl_ps_job_why(job, why, sizeof(why)) != 0;
	}
}

static int fetch(const struct settings *s, struct lists *lists, struct sl_error *err)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	int status = sl_conn_open(&conn, err);

	/* Jobs first, so one that starts in between is still seen. */
	if (!status && !s->clients)
		status = sl_rows_list(&lists->jobs, &conn, SL_LIST_JOBS, err);
	look_for_waiting(lists);
	if (status || s->jobs)
		return status;
	status = sl_rows_list(
		&lists->rows, &conn, s->clients ? SL_LIST_CLIENTS : SL_LIST_USES, err);
	if (!status && s->json && !s->clients)
		status = sl_rows_list(&lists->gpus, &conn, SL_LIST_GPUS, err);
	return status;
}

static int print_once(const struct settings *s, bool clear)
{
	sl_cleanup(fini_lists) struct lists lists = {0};
	struct sl_error err = {0};
	int status = fetch(s, &lists, &err);

	if (status)
		return sl_cli_fail(
			SL_VERB_ps, s->json, (enum sl_exit)status, "%s", err.text);
	return s->json ? print_json(s, &lists) : print_table(s, &lists, clear);
}

int sl_verb_ps(int argc, char **argv)
{
	struct settings s = {0};
	bool terminal = isatty(STDOUT_FILENO);
	int first, status;

	status = sl_cli_parse(SL_VERB_ps, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	s.jobs |= s.all;
	if (s.jobs && s.clients)
		return sl_cli_fail(SL_VERB_ps, s.json, SL_EXIT_USAGE,
			"--clients and --%s are lists of their own; give one of them",
			s.all ? "all" : "jobs");
	for (;;) {
		status = print_once(&s, s.watch && terminal && !s.json);
		if (!s.watch || status || ferror(stdout))
			return status;
		sl_clock_sleep(s.watch);
	}
}
