/*
 * sluice why: one sentence for each thing in a workload's way now, then for each that was.
 *
 * An ended workload is in no list. Its name is looked up among the daemon's events, then in the
 * history; if both lack it, it is unknown. Jobs have a list of their own, where the daemon says why
 * a job waits or how it ended. While a job runs, it is also a workload.
 */
#include "cli/line/cli.h"
#include "cli/conn/jobs.h"
#include "cli/conn/named.h"
#include "cli/conn/past.h"
#include "cli/conn/state.h"
#include "cli/line/table.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include "policy/words/reason.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Limits for the history: how far back, how many events are read, and how many that explain are
 * shown. */
#define PAST_MS    (7ull * 86400 * 1000)
#define PAST_READ  1000
#define PAST_SHOWN 32

struct settings {
	const char *name;
	bool json;
};

const struct sl_option sl_verb_why_options[] = {
	SL_OPT_OPERAND(struct settings, name, "NAME",
		"The workload or job: its name or ID, as sluice ps shows it."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object."),
	SL_OPT_END,
};

static uint64_t age_ms(const struct sl_msg_event_row *row)
{
	struct timespec now = {0};
	uint64_t now_ms;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	return now_ms > row->realtime_ms ? now_ms - row->realtime_ms : 0;
}

static size_t count(const struct sl_rows *rows, bool current)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->count; i++)
		n += !!rows->all[i].event_row.current == current;
	return n;
}

/* Its state if nothing is in its way. */
static const char *doing(const struct sl_msg_use_row *use)
{
	switch (use->residency) {
	case SL_WIRE_LEAVING: return "is being moved to the host";
	case SL_WIRE_EVICTED: return "is on the host";
	case SL_WIRE_PARTIAL: return "rests";
	case SL_WIRE_WARM: return "is warm and comes back with its next call";
	case SL_WIRE_RETURNING: return "is coming back";
	case SL_WIRE_PARKED: return "is parked";
	case SL_WIRE_PARKING: return "is being parked";
	case SL_WIRE_DETACHED: return "is detached and comes back with its next call";
	case SL_WIRE_RESUMING: return "is being resumed";
	default: return use->clients ? "runs" : "holds nothing yet";
	}
}

/* Why its wait has no bound; a newer daemon may send causes that are unknown here. */
static const char *endless_because(uint32_t endless)
{
	switch (endless) {
	case SL_WIRE_ENDLESS_STAYS: return ": the workload in its way cannot be evicted";
	case SL_WIRE_ENDLESS_HOST:
		return ": the host has no memory for the workload in its way";
	case SL_WIRE_ENDLESS_POOL:
		return ": the host pool has no space for the workload in its way "
		       "(host_memory)";
	case SL_WIRE_ENDLESS_BOUND:
		return ": the workload in its way may use no more host memory "
		       "(host_memory_workload)";
	case SL_WIRE_ENDLESS_WHOLE:
		return ": it holds more on a GPU than the GPU can share now";
	case SL_WIRE_ENDLESS_REQUESTS:
		return ": it is above its request, and workloads within theirs are moved "
		       "for it only once idle (--idle-grace)";
	default: return "";
	}
}

/* The longest wait, now or after an eviction, if other workloads compete with it. */
static void print_longest(const struct sl_msg_use_row *row)
{
	char longest[16];

	if (!row->longest_wait_ms)
		return;
	if (row->longest_wait_ms == UINT64_MAX)
		printf("Longest wait for its turn: no bound%s.\n",
			endless_because(row->endless));
	else
		printf("Longest wait for its turn: %s.\n",
			sl_state_longest(row, longest, sizeof(longest)));
}

/* Nothing is in its way: prints its state on each GPU. */
static void print_free(
	const struct sl_rows *uses, const struct sl_msg_use_row *found, bool by_queue)
{
	for (size_t i = 0; i < uses->count; i++) {
		const struct sl_msg_use_row *row = &uses->all[i].use_row;
		uint64_t used = row->backing_bytes + row->hidden_bytes;
		char name[64], host[48] = "", a[32], b[32], c[32];

		if (uses->all[i].head.type != SL_MSG_USE_ROW ||
			row->workload != found->workload)
			continue;
		snprintf(name, sizeof(name), "%s", row->name);
		sl_text_tame(name);
		if (row->evicted_bytes)
			snprintf(host, sizeof(host), ", %s of it on the host",
				sl_bytes_format(row->evicted_bytes, a, sizeof(a)));
		printf("%s %s on GPU %u: %s of request %s%s, limit %s%s; %s.\n", name,
			doing(row), row->gpu, sl_bytes_format(used, a, sizeof(a)),
			sl_bytes_format(row->request_bytes, b, sizeof(b)),
			sl_wire_gave_up_request(row->residency) ? " (given up meanwhile)"
								: "",
			sl_bytes_format(row->limit_bytes, c, sizeof(c)), host,
			row->residency != SL_WIRE_PARKED ? "nothing is in its way"
			: by_queue ? "it comes back by itself when its GPUs are free"
				   : "`sluice resume` brings it back");
	}
}

/* True if the queue parked the job to which the workload belongs as a task. */
static bool is_parked_task(const struct sl_rows *known, const struct sl_msg_use_row *use)
{
	const struct sl_msg_job_row *job = sl_named_task(known, use->name, use->uid);

	for (size_t i = 0; i < known->count && !job; i++)
		if (known->all[i].head.type == SL_MSG_JOB_ROW &&
			known->all[i].job_row.workload == use->workload)
			job = &known->all[i].job_row;
	return job && job->state == SL_JOB_PARKED;
}

/* The last row of an ended workload. */
static const struct sl_msg_event_row *last(const struct sl_rows *rows)
{
	return rows->count ? &rows->all[rows->count - 1].event_row : NULL;
}

static void print_ended(const struct sl_rows *rows)
{
	char name[64];

	snprintf(name, sizeof(name), "%s", last(rows)->name);
	sl_text_tame(name);
	printf("%s has ended.\n", name);
}

/* The result of the search: a workload, a job, a job with its workload, or neither if it has
 * ended. */
struct found {
	const struct sl_msg_use_row *use;
	const struct sl_msg_job_row *job;
};

static void print_job(const struct sl_msg_job_row *row)
{
	struct sl_msg_job_row job = *row;
	bool over = sl_tell_job_is_over(job.state), ran = job.started_ms;
	bool in_part = job.state == SL_JOB_RUNNING && (job.queued || job.parked);
	char how[96], age[16], span[16], tasks[64] = "", title[32];

	sl_text_tame(job.name);
	sl_text_tame(job.why);
	if (job.state == SL_JOB_RUNNING && job.tasks > 1)
		snprintf(tasks, sizeof(tasks), " with %u of its %u tasks", job.running,
			job.tasks);
	if (!over) {
		printf("%s: %s %s%s, submitted %s ago%s%s\n", job.name,
			sl_jobs_title(job.job, title, sizeof(title)),
			sl_tell_ending(job.state, job.exit_status, how, sizeof(how)),
			tasks, sl_table_age(sl_jobs_age_ms(&job), age, sizeof(age)),
			!job.why[0] ? ""
			: in_part   ? "; of the rest: "
				    : "; ",
			job.why);
		return;
	}
	printf("%s: job %llu %s", job.name, (unsigned long long)job.job,
		sl_tell_ending(job.state, job.exit_status, how, sizeof(how)));
	if (ran)
		printf(", after %s",
			sl_table_age(sl_jobs_span_ms(&job), span, sizeof(span)));
	if (job.why[0])
		printf("; %s", job.why);
	if (job.state == SL_JOB_FAILED && ran)
		printf("; sluice logs %s shows its output", job.name);
	putchar('\n');
}

static int print(const struct sl_rows *rows, const struct sl_rows *uses, struct found it)
{
	const struct sl_msg_use_row *found = it.use;
	char text[SL_TELL_TEXT_MAX], age[16];
	/* The queue parked it and resumes it; the user need not. */
	bool by_queue = it.job && it.job->state == SL_JOB_PARKED;
	bool titled = false;

	if (it.job)
		print_job(it.job);
	for (size_t i = 0; i < rows->count; i++)
		if (rows->all[i].event_row.current &&
			!(by_queue && rows->all[i].event_row.reason ==
					      SL_REASON_PARKED_FOR_JOB_WAITS))
			printf("%s.\n", sl_tell_sentence(&rows->all[i].event_row, text,
						sizeof(text)));
	if (!found && !it.job)
		print_ended(rows);
	else if (found && !by_queue && !count(rows, true))
		print_free(uses, found, is_parked_task(uses, found));
	if (found && !by_queue)
		print_longest(found);
	for (size_t i = 0; i < rows->count; i++) {
		const struct sl_msg_event_row *row = &rows->all[i].event_row;

		if (row->current)
			continue;
		if (!titled)
			puts("Before:");
		titled = true;
		printf("%6s ago  %s.\n", sl_table_age(age_ms(row), age, sizeof(age)),
			sl_tell_sentence(row, text, sizeof(text)));
	}
	return sl_cli_finish(SL_VERB_why, SL_EXIT_OK);
}

static json_t *some(const struct sl_rows *rows, bool current)
{
	json_t *array = json_array();

	for (size_t i = 0; i < rows->count; i++) {
		const struct sl_msg_event_row *row = &rows->all[i].event_row;
		json_t *object;

		if (!!row->current != current)
			continue;
		object = sl_tell_event(row);
		if (!current && object)
			json_object_set_new(
				object, "age_ms", json_integer((json_int_t)age_ms(row)));
		json_array_append_new(array, object);
	}
	return array;
}

static int print_json(const struct sl_rows *rows, struct found it)
{
	const char *name = it.use   ? it.use->name
			   : it.job ? it.job->name
				    : last(rows)->name;
	uint64_t workload = it.use   ? it.use->workload
			    : it.job ? it.job->workload
				     : last(rows)->workload;
	bool queued = it.job && it.job->state == SL_JOB_QUEUED,
	     over = it.job ? sl_tell_job_is_over(it.job->state) : !it.use;
	json_t *object = json_pack("{s:o, s:I, s:b, s:b, s:o, s:o, s:o}", "name",
		sl_text_json(name), "workload", (json_int_t)workload, "ended", over,
		"in_its_way", queued || count(rows, true) > 0, "now", some(rows, true),
		"before", some(rows, false), "job",
		it.job ? sl_tell_job(it.job, sl_tell_now_ms()) : json_null());

	if (object)
		json_object_set_new(object, "residency",
			it.use ? json_string(sl_tell_residency(it.use->residency))
			       : json_null());
	return sl_rows_print_json(SL_VERB_why, object);
}

/* A name is free again after its workload has ended, so the events may be of several workloads;
 * keep the last one's. */
static void keep_last(struct sl_rows *rows)
{
	uint64_t workload = last(rows)->workload;
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (rows->all[i].event_row.workload == workload)
			rows->all[kept++] = rows->all[i];
	rows->count = kept;
}

/* Asks the history if the daemon has no events; most often it was restarted since. */
static void ask_history(struct sl_rows *rows, uint64_t workload, const char *name)
{
	sl_cleanup(sl_rows_fini) struct sl_rows past = {0};
	struct sl_msg_history ask = {.what = SL_HISTORY_EVENTS,
		.last = PAST_READ,
		.from_ms = sl_sub_sat(sl_tell_now_ms(), PAST_MS)};
	struct sl_error ignored = {0};
	size_t n = 0;

	sl_wire_str(ask.name, sizeof(ask.name), name);
	if (sl_past_events(&ask, &past, &ignored, &ignored) != SL_EXIT_OK)
		return;
	/* Only events about it, not those with it on the other side. */
	for (size_t i = 0; i < past.count; i++) {
		const struct sl_msg_event_row *row = &past.all[i].event_row;

		if (sl_reason_explains(row->reason) && !strcmp(row->name, name) &&
			(!workload || row->workload == workload))
			past.all[n++] = past.all[i];
	}
	for (size_t i = n > PAST_SHOWN ? n - PAST_SHOWN : 0; i < n; i++)
		sl_rows_add(rows, &past.all[i]);
}

/* Asks the daemon for its reasons; for an ended workload, for the stored ones. unknown: the error
 * about the name, or NULL. */
static int ask(struct sl_conn *conn, const struct settings *s, struct found it,
	const struct sl_error *unknown, struct sl_rows *rows, struct sl_error *err)
{
	union sl_msg msg;
	int status;

	/* A job without a workload has no events. */
	if (it.job && !it.use && !it.job->workload)
		return SL_EXIT_OK;
	sl_wire_init(&msg, SL_MSG_WHY);
	msg.why.workload = it.use ? it.use->workload : it.job ? it.job->workload : 0;
	sl_wire_str(msg.why.name, sizeof(msg.why.name), it.job ? it.job->name : s->name);
	status = sl_rows_ask(rows, conn, &msg, SL_MSG_EVENT_ROW, err);
	if (!status && !count(rows, false))
		ask_history(rows, msg.why.workload, it.use ? it.use->name : msg.why.name);
	if (status || !unknown)
		return status;
	if (!rows->count) {
		*err = *unknown;
		return SL_EXIT_REFUSED;
	}
	keep_last(rows);
	return SL_EXIT_OK;
}

static struct found found_in(const struct sl_rows *rows, const union sl_msg *row)
{
	struct found it = {0};

	if (row->head.type == SL_MSG_USE_ROW)
		return (struct found){.use = &row->use_row};
	it.job = &row->job_row;
	for (size_t i = 0; i < rows->count && it.job->workload && !it.use; i++)
		if (rows->all[i].head.type == SL_MSG_USE_ROW &&
			rows->all[i].use_row.workload == it.job->workload)
			it.use = &rows->all[i].use_row;
	return it;
}

/* The name is in no list: a task of a job that does not run (the job has the reason), or an ended
 * workload. err: the error about the name. */
static int ask_unlisted(struct sl_conn *conn, const struct settings *s,
	const struct sl_rows *known, struct found *it, struct sl_rows *rows,
	struct sl_error *err)
{
	const struct sl_msg_job_row *job = sl_named_task(known, s->name, geteuid());
	const struct sl_error unknown = *err;
	const union sl_msg *row;
	int status;

	if (!job && sl_named_find_any(known, "workload", s->name, geteuid(), &row, err) !=
			    SL_NAMED_NONE)
		return SL_EXIT_REFUSED;
	status = ask(conn, s, *it, &unknown, rows, err);
	it->job = job;
	return job && status == SL_EXIT_REFUSED ? SL_EXIT_OK : status;
}

int sl_verb_why(int argc, char **argv)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_rows_fini) struct sl_rows known = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	struct settings s = {0};
	struct found it = {0};
	const union sl_msg *row;
	int first, status;

	status = sl_cli_parse(SL_VERB_why, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	status = sl_named_open_job(&conn, &known, s.name, true, &row, &err);
	if (!status) {
		it = found_in(&known, row);
		status = ask(&conn, &s, it, NULL, &rows, &err);
	} else if (status == SL_EXIT_REFUSED) {
		status = ask_unlisted(&conn, &s, &known, &it, &rows, &err);
	}
	if (status)
		return sl_cli_fail(
			SL_VERB_why, s.json, (enum sl_exit)status, "%s", err.text);
	return s.json ? print_json(&rows, it) : print(&rows, &known, it);
}
