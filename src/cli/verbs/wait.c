/*
 * sluice wait: waits until jobs have ended, one after the other, which takes as long as the longest
 * of them.
 */
#include "cli/line/interrupt.h"
#include "cli/conn/jobs.h"
#include "cli/conn/named.h"
#include "cli/line/text.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_MS 1000
#define YEAR_MS (365LL * 24 * 3600 * 1000)

struct settings {
	struct sl_strings names;
	sl_ns timeout;
	bool json;
};

const struct sl_option sl_verb_wait_options[] = {
	SL_OPT(struct settings, timeout, DURATION, "TIME", 0, YEAR_MS,
		"Longest wait for all of them. Default: none."),
	SL_OPT_JSON(struct settings),
	SL_OPT_OPERANDS(struct settings, names, "NAME",
		"The jobs: their names or IDs, as sluice ps shows them."),
	SL_OPT_END,
};

#define VERB SL_VERB_wait

static json_t *to_json(const struct sl_msg_job_reply *end)
{
	return json_pack("{s:I, s:o, s:s, s:i, s:o}", "job", (json_int_t)end->job, "name",
		sl_text_json(end->name), "state", sl_wire_job_state(end->state), "exit",
		sl_jobs_exit(end->state, end->exit_status), "text",
		sl_text_json(end->text));
}

static void print_end(struct sl_msg_job_reply *end)
{
	char text[SL_JOBS_END_MAX];

	puts(sl_jobs_end_text(end, text, sizeof(text)));
	fflush(stdout);
}

/* Length of a step, so that the wait ends in time. */
static unsigned int step_ms(sl_ns until)
{
	sl_ns now = sl_clock_now();

	if (until == SL_NS_NEVER || until > now + STEP_MS * SL_MS)
		return STEP_MS;
	return until > now ? (unsigned int)((until - now) / SL_MS) + 1 : 0;
}

/* Waits for one job. Returns -1 with its end in *end, else the exit status. */
static int wait_for(const struct settings *s, struct sl_jobs_watch *watch, sl_ns until,
	struct sl_msg_job_reply *end)
{
	struct sl_error err = {0};
	char span[32];
	int outcome;

	do
		outcome = sl_jobs_watch_step(watch, step_ms(until), &err);
	while (outcome == SL_JOBS_WATCH_ON && !sl_interrupt_came() &&
		sl_clock_now() < until);
	if (outcome == SL_JOBS_WATCH_OVER) {
		*end = watch->end;
		return -1;
	}
	if (outcome == SL_JOBS_WATCH_FAILED)
		return sl_cli_fail(
			VERB, s->json, (enum sl_exit)watch->status, "%s", err.text);
	if (sl_interrupt_came()) {
		fflush(stdout);
		sl_interrupt_die();
	}
	return sl_cli_fail(VERB, s->json, SL_EXIT_TIMEOUT,
		"job %llu has not ended after %s; it goes on",
		(unsigned long long)watch->job,
		sl_duration_format(s->timeout, span, sizeof(span)));
}

/* Finds ids by names; -1 to go on. */
static int find(const struct settings *s, uint64_t *ids, struct sl_conn *conn)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	const union sl_msg *row;
	int status = sl_named_open_job(conn, &rows, s->names.all[0], false, &row, &err);

	for (size_t i = 0; i < s->names.count && !status; i++)
		if (sl_named_find_any(
			    &rows, "job", s->names.all[i], geteuid(), &row, &err))
			status = SL_EXIT_REFUSED;
		else
			ids[i] = row->job_row.job;
	return status ? sl_cli_fail(VERB, s->json, (enum sl_exit)status, "%s", err.text)
		      : -1;
}

static int wait_for_all(
	const struct settings *s, struct sl_conn *conn, const uint64_t *ids)
{
	sl_ns until =
		s->timeout == SL_NS_NEVER ? SL_NS_NEVER : sl_clock_now() + s->timeout;
	json_t *array = s->json ? json_array() : NULL;
	struct sl_jobs_watch watch = {.conn = *conn, .verb = VERB};
	int first_failed = SL_EXIT_OK, status = -1;
	sigset_t unblocked;

	conn->fd = -1;
	sl_interrupt_catch(&unblocked);
	watch.unblocked = &unblocked;
	for (size_t i = 0; i < s->names.count && status < 0; i++) {
		struct sl_msg_job_reply end;

		watch.job = ids[i];
		watch.asked = false;
		status = wait_for(s, &watch, until, &end);
		if (status >= 0)
			break;
		if (!first_failed)
			first_failed = sl_jobs_exit(end.state, end.exit_status);
		if (s->json)
			json_array_append_new(array, to_json(&end));
		else
			print_end(&end);
	}
	sl_jobs_watch_fini(&watch);
	if (status >= 0) {
		json_decref(array);
		return status;
	}
	status = s->json ? sl_rows_print_json(VERB, array)
			 : sl_cli_finish(VERB, SL_EXIT_OK);
	return status ? status : first_failed;
}

static int wait_for_named(const struct settings *s)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_freep) uint64_t *ids = NULL;
	int status;

	if (!s->names.count)
		return sl_cli_fail(VERB, s->json, SL_EXIT_USAGE,
			"no NAME: say which jobs are meant (sluice ps --all)");
	ids = calloc(s->names.count, sizeof(*ids));
	if (!ids)
		return sl_cli_fail(VERB, s->json, SL_EXIT_SYSTEM, "out of memory");
	status = find(s, ids, &conn);
	return status < 0 ? wait_for_all(s, &conn, ids) : status;
}

int sl_verb_wait(int argc, char **argv)
{
	struct settings s = {.timeout = SL_NS_NEVER};
	int first, status = sl_cli_parse(VERB, &s, argc, argv, &first);

	if (status < 0)
		status = wait_for_named(&s);
	sl_strings_fini(&s.names);
	return status;
}
