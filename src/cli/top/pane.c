/*
 * The text below the list, as lines: reasons, details or help. Only builds text; draws nothing and
 * asks no daemon.
 */
#include "cli/top/top.h"

#include "cli/conn/state.h"
#include "cli/line/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void say(struct sl_top_said *pane, const char *format, ...) SL_PRINTF(2, 3);
static void say(struct sl_top_said *pane, const char *format, ...)
{
	va_list args;

	if (pane->count == SL_TOP_SAID_MAX)
		return;
	va_start(args, format);
	vsnprintf(pane->text[pane->count++], SL_TELL_TEXT_MAX, format, args);
	va_end(args);
}

static void say_reasons(struct sl_top_said *pane, const struct sl_rows *rows)
{
	char text[SL_TELL_TEXT_MAX - 4];

	for (size_t i = 0; i < rows->count; i++)
		if (rows->all[i].event_row.current)
			say(pane, "%s.",
				sl_tell_sentence(
					&rows->all[i].event_row, text, sizeof(text)));
}

/* The queue: its length, and the first few jobs with short reasons. */
static void say_queue(struct sl_top_said *pane, const struct sl_top_data *data)
{
	uint64_t waiting = sl_top_queued(data);

	if (!waiting)
		return;
	say(pane, "%llu job%s in the queue%s", (unsigned long long)waiting,
		waiting == 1 ? "" : "s",
		waiting > data->queue.count ? ", the first of them:" : ":");
	for (size_t i = 0; i < data->queue.count; i++) {
		const struct sl_msg_queue_row *row = &data->queue.all[i].queue_row;
		const char *end = strstr(row->why, "; ");

		say(pane, "  %s (%s)%s%.*s", row->name, row->project,
			row->why[0] ? ": " : "",
			(int)(end ? end - row->why : (long)strlen(row->why)), row->why);
	}
}

static uint64_t realtime_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void say_why(struct sl_top_said *pane, const struct sl_top_data *data,
	const struct sl_top_line *line)
{
	uint64_t now = realtime_ms();

	say_reasons(pane, &data->pane);
	if (!pane->count)
		say(pane, "Nothing is in the way of %s.", line->use->name);
	for (size_t i = data->pane.count; i-- > 0;) {
		const struct sl_msg_event_row *row = &data->pane.all[i].event_row;
		char text[SL_TELL_TEXT_MAX - 32], age[16];

		if (!row->current)
			say(pane, "%s ago: %s.",
				sl_table_age(now > row->realtime_ms
						     ? now - row->realtime_ms
						     : 0,
					age, sizeof(age)),
				sl_tell_sentence(row, text, sizeof(text)));
	}
}

/* Where its memory is, if any of it ever was on the host or may be moved there. */
static void say_swap(struct sl_top_said *pane, const struct sl_msg_use_row *use)
{
	char a[16], b[16], c[16], d[16], longest[16], left[40] = "";

	if (!use->evicted_bytes && !use->out_bytes && !use->turns && !use->warm_after_ms)
		return;
	if (use->turn_left_ms)
		snprintf(left, sizeof(left), ", %llu ms left of one",
			(unsigned long long)use->turn_left_ms);
	say(pane,
		"%s  evicted %s  host memory %s  copied out %s, in %s  turns %llu%s  "
		"max wait %s",
		sl_tell_residency(use->residency),
		sl_bytes_short(use->evicted_bytes, a, sizeof(a)),
		sl_bytes_short(use->host_bytes, b, sizeof(b)),
		sl_bytes_short(use->out_bytes, c, sizeof(c)),
		sl_bytes_short(use->in_bytes, d, sizeof(d)),
		(unsigned long long)use->turns, left,
		sl_state_longest(use, longest, sizeof(longest)));
	if (use->warm_after_ms)
		say(pane, "goes to the host after %s without work",
			sl_table_age(use->warm_after_ms, a, sizeof(a)));
}

static void say_compute(struct sl_top_said *pane, const struct sl_msg_use_row *use)
{
	char text[32];

	if (sl_state_has_compute(use))
		say(pane, "share of the GPU's time, and its use: %s",
			sl_state_compute(use, text, sizeof(text)));
}

static void say_details(struct sl_top_said *pane, const struct sl_top_data *data,
	const struct sl_top_line *line)
{
	const struct sl_msg_use_row *use = line->use;
	char a[16], b[16], c[16], d[16], state[32], user[64];

	say(pane, "%s  id %llu  project %s  user %s  process %u  priority %d  age %s",
		use->name, (unsigned long long)use->workload, use->project,
		sl_state_user(use->uid, user, sizeof(user)), use->pid,
		(int)(use->priority_biased - SL_PRIORITY_BIAS),
		sl_table_age(use->age_ms, a, sizeof(a)));
	say(pane, "GPU %u  state %s%s%s  backing %s  hidden %s  dying %s  waiting %s",
		use->gpu, sl_tell_shown(use),
		use->flags & (SL_USE_NO_SWAP | SL_USE_FIXED) ? "  no swap" : "",
		use->flags & SL_USE_OOM_FIRST ? "  out-of-memory first" : "",
		sl_bytes_short(use->backing_bytes, a, sizeof(a)),
		sl_bytes_short(use->hidden_bytes, b, sizeof(b)),
		sl_bytes_short(use->dying_bytes, c, sizeof(c)),
		sl_bytes_short(use->waiting_bytes, d, sizeof(d)));
	say_swap(pane, use);
	say_compute(pane, use);
	say(pane, "command %s", use->command);
	for (size_t i = 0; i < data->clients.count; i++) {
		const struct sl_msg_client_row *client = &data->clients.all[i].client_row;

		if (client->workload == use->workload && client->gpu == use->gpu)
			say(pane,
				"process %u  %s  backing %s  hidden %s  held %s  granted "
				"%s",
				client->pid,
				sl_state_of_client(client, state, sizeof(state)),
				sl_bytes_short(client->backing_bytes, a, sizeof(a)),
				sl_bytes_short(client->hidden_bytes, b, sizeof(b)),
				sl_bytes_short(client->held_bytes, d, sizeof(d)),
				sl_bytes_short(client->granted_bytes, c, sizeof(c)));
	}
}

static void say_help(struct sl_top_said *pane)
{
	say(pane, "q quit   up/down, page up/down, home, end: select   s sort   p pause");
	say(pane, "enter, w: why the selected one waits, was stopped or got less");
	say(pane, "d details   + - refresh more or less often   ? this   esc close");
	say(pane,
		"Bars: AAA held by A, aaa hidden (taken by the driver for A), --- unused "
		"request, ^ end of its request (right of it is burst), + granted or "
		"coming back now, ~ of dead processes, ? of processes outside Sluice, # "
		"reserve for the driver; the rest is free. Evicted memory is on the host "
		"and in no bar. * stands for workloads without a letter.");
}

void sl_top_say(struct sl_top_said *pane, const struct sl_top_data *data,
	const struct sl_top_view *view)
{
	const struct sl_top_line *line =
		view->selected < data->count ? &data->lines[view->selected] : NULL;

	pane->count = 0;
	switch (view->pane) {
	case SL_TOP_HELP: say_help(pane); return;
	case SL_TOP_WHY:
		if (line)
			say_why(pane, data, line);
		return;
	case SL_TOP_DETAILS:
		if (line)
			say_details(pane, data, line);
		return;
	case SL_TOP_NOTHING: break;
	}
	say_reasons(pane, &data->whys);
	say_queue(pane, data);
}
