/*
 * history - asks the history (history.h) in the connection's own thread
 *
 * A question about two years may take seconds of CPU time, and any user may ask. So at most PLACES
 * questions are worked on at a time; others wait.
 */
#include "daemon/web/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/report/tell.h"

#define PLACES 2
/* Longest wait for a place; then the client should try again. */
#define WAIT_NS (20 * SL_S)
/* Most rows of JSON: 10 MB, which a browser keeps as values. CSV goes to a file. */
#define ROWS_MOST 20000
/* The time asked for if from_ms is absent. */
#define SPAN_MS (3600 * 1000)

/* Waits for a place. One is reserved for users with a token. */
static bool take_place(struct sl_page *page, bool known)
{
	sl_ns end = sl_clock_now() + WAIT_NS;
	unsigned int places = known ? PLACES : PLACES - 1;

	while (!atomic_load(&page->ending) && sl_clock_now() < end) {
		if (atomic_fetch_add(&page->questions, 1) < places)
			return true;
		(void)atomic_fetch_sub(&page->questions, 1);
		sl_clock_sleep(20 * SL_MS);
	}
	return false;
}

struct sl_history_text *sl_page_ask_history(
	struct sl_page_request *request, struct sl_history_ask *ask, struct sl_error *err)
{
	struct sl_page *page = request->page;
	struct sl_history_text *text;

	/* Each waiting question holds a thread, and there are few. */
	if (sl_page_share_take(page->share, request->asker, SL_PAGE_QUESTIONS, 1) !=
		SL_PAGE_TAKEN) {
		sl_error_set(err,
			"too many questions to the history wait already%s; try again",
			request->who ? "" : " of those without a token");
		return NULL;
	}
	if (!take_place(page, request->asker.known)) {
		sl_page_share_give(page->share, request->asker, SL_PAGE_QUESTIONS, 1);
		sl_error_set(err, "others ask for the history, too; try again");
		return NULL;
	}
	ask->cancel = &page->ending;
	text = sl_history_answer(page->history, ask, sl_page_rate_key(request), err);
	(void)atomic_fetch_sub(&page->questions, 1);
	sl_page_share_give(page->share, request->asker, SL_PAGE_QUESTIONS, 1);
	return text;
}

static ssize_t read_some(void *context, uint64_t offset, char *buf, size_t room)
{
	const struct sl_history_text *text = context;

	ssize_t got = pread(text->fd, buf, room, (off_t)offset);

	return got > 0    ? got
	       : got == 0 ? MHD_CONTENT_READER_END_OF_STREAM
			  : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void let_go(void *context)
{
	(void)sl_history_text_free(context);
}

static enum MHD_Result answer(
	struct sl_page_request *request, struct sl_history_ask *ask, const char *type)
{
	static const unsigned int statuses[] = {[SL_HISTORY_FAULT_OURS] = 503,
		[SL_HISTORY_FAULT_ASKED] = 400,
		[SL_HISTORY_FAULT_UNKNOWN] = 404};
	enum sl_history_fault fault = SL_HISTORY_FAULT_OURS;
	struct MHD_Response *response;
	struct sl_history_text *text;
	struct sl_error err = {0};

	ask->fault = &fault;
	text = sl_page_ask_history(request, ask, &err);
	if (!text)
		return sl_page_refuse(request, statuses[fault], "%s", err.text);
	/* The text is freed when it was read, or the connection is closed. */
	response = MHD_create_response_from_callback(
		text->size, 64u << 10, read_some, text, let_go);
	if (!response)
		(void)sl_history_text_free(text);
	else if (ask->format == SL_HISTORY_CSV)
		(void)MHD_add_response_header(response, "Content-Disposition",
			"attachment; filename=\"sluice-history.csv\"");
	return sl_page_send(request, 200, response, type);
}

/* Reads from_ms, to_ms, step_s. */
static bool read_times(
	struct sl_page_request *request, struct sl_history_ask *ask, enum MHD_Result *r)
{
	uint64_t step;

	if (!sl_page_query_number(request, "to_ms", INT64_MAX, 0, &ask->to_ms, r) ||
		!sl_page_query_number(request, "from_ms", INT64_MAX,
			sl_sub_sat(ask->to_ms ? ask->to_ms : sl_tell_now_ms(), SPAN_MS),
			&ask->from_ms, r) ||
		!sl_page_query_number(request, "step_s", UINT32_MAX, 0, &step, r))
		return false;
	ask->step_s = (uint32_t)step;
	return true;
}

/* Reads one of the words; absent: the first. */
static bool read_word(struct sl_page_request *request, const char *key,
	const char *const words[], uint32_t *out, enum MHD_Result *r)
{
	const char *text = sl_page_query(request, key);
	char known[128] = "";
	size_t used = 0;

	*out = 0;
	if (!text || !text[0])
		return true;
	for (uint32_t i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*out = i;
			return true;
		}
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
			i ? ", " : "", words[i]);
	}
	*r = sl_page_refuse(request, 400, "%s must be one of %s", key, known);
	return false;
}

static bool read_name(
	struct sl_page_request *request, struct sl_history_ask *ask, enum MHD_Result *r)
{
	const char *name = sl_page_query(request, "name");

	if (name && strlen(name) >= sizeof(ask->name)) {
		*r = sl_page_refuse(request, 400, "name has more than %zu bytes",
			sizeof(ask->name) - 1);
		return false;
	}
	(void)snprintf(ask->name, sizeof(ask->name), "%s", name ? name : "");
	return true;
}

enum MHD_Result sl_page_history(struct sl_page_request *request)
{
	static const char *const bys[] = {
		"user", "project", "gpu", "workload", "program", NULL};
	static const char *const formats[] = {"json", "csv", NULL};
	static const char *const rows[] = {"yes", "no", NULL};
	struct sl_history_ask ask = {.what = SL_HISTORY_USAGE};
	enum MHD_Result r = MHD_NO;
	uint32_t by, format, without;
	uint64_t steps;

	if (!read_times(request, &ask, &r) || !read_word(request, "by", bys, &by, &r) ||
		!read_word(request, "format", formats, &format, &r) ||
		!read_word(request, "rows", rows, &without, &r) ||
		!sl_page_query_number(request, "steps", UINT32_MAX, 0, &steps, &r) ||
		!read_name(request, &ask, &r))
		return r;
	ask.steps_most = (uint32_t)steps;
	ask.only_totals = without != 0;
	ask.rows_most = format == SL_HISTORY_JSON ? ROWS_MOST : 0;
	if (ask.only_totals && format == SL_HISTORY_CSV)
		return sl_page_refuse(request, 400,
			"CSV has rows only; leave rows=no out, or ask for one step_s");
	ask.by = (enum sl_history_by)by;
	ask.format = (enum sl_history_format)format;
	return answer(request, &ask,
		ask.format == SL_HISTORY_CSV ? "text/csv; charset=utf-8"
					     : "application/json");
}

/* By the daemon's number, or by name; also workloads that have ended. */
enum MHD_Result sl_page_series(struct sl_page_request *request)
{
	struct sl_history_ask ask = {.what = SL_HISTORY_SERIES};
	enum MHD_Result r = MHD_NO;
	char *end = NULL;

	if (!read_times(request, &ask, &r))
		return r;
	ask.workload = strtoull(request->argument, &end, 10);
	if (*end) {
		ask.workload = 0;
		(void)snprintf(ask.name, sizeof(ask.name), "%s", request->argument);
	}
	return answer(request, &ask, "application/json");
}

enum MHD_Result sl_page_advice(struct sl_page_request *request)
{
	struct sl_history_ask ask = {.what = SL_HISTORY_ADVICE};
	enum MHD_Result r = MHD_NO;

	if (!read_times(request, &ask, &r))
		return r;
	/* A week, as `sluice advise` does. */
	if (!sl_page_query(request, "from_ms"))
		ask.from_ms = sl_sub_sat(
			ask.to_ms ? ask.to_ms : sl_tell_now_ms(), 7ull * 24 * SPAN_MS);
	return answer(request, &ask, "application/json");
}
