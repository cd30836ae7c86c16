/*
 * sluice top: keys, time, and the connection to the daemon.
 *
 * One connection serves all refreshes. When it breaks, the last data stay on the screen under a
 * title that says so, and each refresh tries again. An answer may take 2 s at most, so a daemon
 * that hangs does not block the keys for long.
 */
#include "cli/top/top.h"

#include "base/clock.h"
#include "cli/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS    2000
#define INTERVAL_MIN (SL_S / 4)
#define INTERVAL_MAX (64 * SL_S)

struct settings {
	sl_ns interval;
};

const struct sl_option sl_verb_top_options[] = {
	SL_OPT(struct settings, interval, DURATION, "SECONDS", 250, 64000,
		"From one refresh to the next, such as 2 or 500ms. Default 1."),
	SL_OPT_END,
};

struct top {
	struct sl_conn conn;
	struct sl_top_data data;
	struct sl_top_view view;
	bool ascii, quits;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	/* No SA_RESTART, so poll() returns. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* --- the daemon --- */

static int fetch(struct top *top, struct sl_error *err)
{
	int status = SL_EXIT_OK;

	if (top->conn.fd < 0)
		status = sl_conn_open_within(&top->conn, ANSWER_MS, err);
	if (!status)
		status = sl_top_fetch(&top->data, &top->conn, err);
	return status;
}

/* The screen decides which reasons are asked for. */
static int fetch_whys(struct top *top, struct sl_error *err)
{
	struct sl_top_layout at;
	unsigned int width, height;

	sl_screen_size(&width, &height);
	at = sl_top_layout(&top->data, &top->view, width, height);
	return sl_top_fetch_whys(&top->data, &top->conn, &top->view, at.list_rows, err);
}

/* Remembers the selected workload before its line moves. */
static void selection(const struct top *top, uint64_t *workload, uint32_t *gpu)
{
	const struct sl_top_data *data = &top->data;
	bool some = top->view.selected < data->count;

	*workload = some ? data->lines[top->view.selected].use->workload : 0;
	*gpu = some ? data->lines[top->view.selected].use->gpu : 0;
}

static void refresh(struct top *top)
{
	struct sl_error err = {0};
	uint64_t workload;
	uint32_t gpu;
	int status;

	selection(top, &workload, &gpu);
	status = fetch(top, &err);
	if (!status) {
		sl_top_sort(&top->data, &top->view, workload, gpu);
		status = fetch_whys(top, &err);
	}
	top->view.is_connected = !status;
	if (status) {
		sl_conn_close(&top->conn);
		snprintf(
			top->view.trouble, sizeof(top->view.trouble), "%.199s", err.text);
	}
}

/* --- keys --- */

static void select_line(struct top *top, long by)
{
	long count = (long)top->data.count, at = (long)top->view.selected + by;

	top->view.selected = at < 0 || !count ? 0
			     : at >= count    ? (size_t)count - 1
					      : (size_t)at;
}

static void toggle(struct top *top, enum sl_top_pane pane)
{
	top->view.pane = top->view.pane == pane ? SL_TOP_NOTHING : pane;
}

static void next_order(struct top *top)
{
	uint64_t workload;
	uint32_t gpu;

	selection(top, &workload, &gpu);
	top->view.sort = (top->view.sort + 1) % SL_TOP_SORT_COUNT;
	sl_top_sort(&top->data, &top->view, workload, gpu);
}

/* True if the key needs new data for the selected line. */
static bool take_key(struct top *top, int key)
{
	struct sl_top_view *view = &top->view;
	unsigned int width, height;

	sl_screen_size(&width, &height);
	switch (key) {
	case 'q': top->quits = true; return false;
	case SL_KEY_UP:
	case 'k': select_line(top, -1); return view->pane == SL_TOP_WHY;
	case SL_KEY_DOWN:
	case 'j': select_line(top, 1); return view->pane == SL_TOP_WHY;
	case SL_KEY_PAGE_UP: select_line(top, -(long)height / 2); return true;
	case SL_KEY_PAGE_DOWN: select_line(top, (long)height / 2); return true;
	case SL_KEY_HOME: select_line(top, -(long)top->data.count); return true;
	case SL_KEY_END: select_line(top, (long)top->data.count); return true;
	case SL_KEY_ENTER:
	case 'w': toggle(top, SL_TOP_WHY); return true;
	case 'd': toggle(top, SL_TOP_DETAILS); return false;
	case '?':
	case 'h': toggle(top, SL_TOP_HELP); return false;
	case SL_KEY_ESCAPE: view->pane = SL_TOP_NOTHING; return false;
	case 's': next_order(top); return true;
	case 'p': view->is_paused = !view->is_paused; return false;
	case '+':
		if (view->interval / 2 >= INTERVAL_MIN)
			view->interval /= 2;
		return false;
	case '-':
		if (view->interval * 2 <= INTERVAL_MAX)
			view->interval *= 2;
		return false;
	default: return false;
	}
}

static void take_keys(struct top *top)
{
	bool asks = false;
	int key;

	while (!top->quits && (key = sl_screen_key()))
		asks |= take_key(top, key);
	if (asks && top->view.is_connected && !top->quits) {
		struct sl_error err = {0};

		if (fetch_whys(top, &err))
			refresh(top);
	}
}

/* --- the loop --- */

static void draw(struct top *top)
{
	sl_cleanup(sl_canvas_fini) struct sl_canvas canvas = {0};
	time_t now = time(NULL);
	unsigned int width, height;
	struct tm local;

	if (localtime_r(&now, &local))
		strftime(top->view.clock, sizeof(top->view.clock), "%T", &local);
	sl_screen_size(&width, &height);
	if (!sl_canvas_init(&canvas, width, height, top->ascii))
		return;
	sl_top_draw(&canvas, &top->data, &top->view);
	sl_screen_show(&canvas);
}

static void loop(struct top *top)
{
	sl_ns next = sl_clock_now() + top->view.interval;

	while (!top->quits && !interrupted) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		sl_ns now = sl_clock_now();

		draw(top);
		if (now < next && poll(&input, 1, (int)((next - now) / SL_MS) + 1) < 0 &&
			errno != EINTR)
			return;
		/* The terminal is gone. */
		if (input.revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		take_keys(top);
		now = sl_clock_now();
		if (now + top->view.interval < next)
			next = now + top->view.interval;
		if (now < next)
			continue;
		if (!top->view.is_paused || !top->view.is_connected)
			refresh(top);
		next = sl_clock_now() + top->view.interval;
	}
}

int sl_verb_top(int argc, char **argv)
{
	struct settings s = {.interval = SL_S};
	struct top top = {.conn = {.fd = -1}};
	struct sl_error err = {0};
	int first, status;

	status = sl_cli_parse(SL_VERB_top, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	/* At the start a missing daemon is an error, as with every verb; later top waits for it. */
	status = fetch(&top, &err);
	if (!status && sl_screen_open(&top.ascii, &err))
		status = SL_EXIT_USAGE;
	if (!status) {
		top.view.interval = s.interval;
		catch_signals();
		refresh(&top);
		loop(&top);
		sl_screen_close();
	}
	sl_conn_close(&top.conn);
	sl_top_fini(&top.data);
	if (status)
		return sl_cli_fail(
			SL_VERB_top, false, (enum sl_exit)status, "%s", err.text);
	return SL_EXIT_OK;
}
