/*
 * top - the data and layout of sluice top; screen.h has the terminal
 *
 *   data.c   asks the daemon, joins its lists into lines, gives each workload a letter, sorts.
 *   bar.c    a GPU's memory as cells of a bar.
 *   pane.c   the text below the list.
 *   draw.c   all of it onto a canvas.
 *   top.c    keys, time, and the connection to the daemon.
 *
 * Only data.c asks the daemon; bar.c, pane.c and draw.c are pure.
 */
#ifndef SL_CLI_TOP_TOP_H
#define SL_CLI_TOP_TOP_H

#include "cli/line/canvas.h"
#include "cli/conn/rows.h"
#include "cli/conn/told.h"

/* Workloads on the screen whose reasons one refresh asks for; the rest wait for the next scroll. */
#define SL_TOP_WHYS_MAX 16
/* For workloads without a letter of their own. */
#define SL_TOP_NO_LETTER '*'

/* A workload on one GPU. */
struct sl_top_line {
	const struct sl_msg_use_row *use;
	char letter;
	uint64_t idle_ms;
	bool is_idle, is_busy; /* neither: unknown */
};

struct sl_top_data {
	struct sl_rows gpus, uses, clients;
	struct sl_rows queue; /* the first few jobs that wait */
	struct sl_rows whys;  /* EVENT_ROWs of waiting workloads on the screen */
	struct sl_rows
		pane; /* EVENT_ROWs about the selected workload, while the pane is open */
	struct sl_top_line *lines;
	size_t count;
	bool has_evicted; /* some memory is on the host */
	bool has_compute; /* a workload has a share of its GPU's time, or is metered */
};

#define SL_TOP_SORTS(X) X(gpu) X(name) X(used) X(evicted) X(waiting) X(idle)
enum sl_top_sort {
#define SL_TOP_SORT(name) SL_TOP_SORT_##name,
	SL_TOP_SORTS(SL_TOP_SORT)
#undef SL_TOP_SORT
		SL_TOP_SORT_COUNT
};

enum sl_top_pane { SL_TOP_NOTHING = 0, SL_TOP_WHY, SL_TOP_DETAILS, SL_TOP_HELP };

struct sl_top_view {
	enum sl_top_sort sort;
	enum sl_top_pane pane;
	size_t selected; /* index of a line, below count unless there is none */
	size_t scroll;   /* first line shown */
	bool is_paused, is_connected;
	sl_ns interval;
	char clock[16];    /* "12:00:05" */
	char trouble[200]; /* why there is no daemon, unless connected */
};

/* --- data --- */

/* Asks for all lists over an open connection; replaces the old ones only if all came. Outcomes of
 * sl_conn_open. */
SL_MUST_CHECK int sl_top_fetch(
	struct sl_top_data *data, struct sl_conn *conn, struct sl_error *err);
/* Asks for the reasons of those lines in from..from+count that wait, and of the selected workload
 * if its pane is open. Outcomes of sl_conn_open. */
SL_MUST_CHECK int sl_top_fetch_whys(struct sl_top_data *data, struct sl_conn *conn,
	const struct sl_top_view *view, size_t rows, struct sl_error *err);
/* Makes lines from the lists. False when out of memory. */
SL_MUST_CHECK bool sl_top_join(struct sl_top_data *data);
/* Sorts the lines and keeps the selection at the same workload and GPU. */
void sl_top_sort(struct sl_top_data *data, struct sl_top_view *view,
	uint64_t selected_workload, uint32_t selected_gpu);
/* Number of queued jobs. */
uint64_t sl_top_queued(const struct sl_top_data *data);
const char *sl_top_sort_name(enum sl_top_sort sort);
void sl_top_fini(struct sl_top_data *data);

/* --- bar --- */

/* Divides width cells among parts in proportion to their bytes. The cells sum up to width (unless
 * all parts are 0), and no part above 0 vanishes while there are enough cells. */
void sl_top_spread(
	const uint64_t *bytes, size_t count, unsigned int width, unsigned int *cells);

/* More than any screen has cells; workloads beyond are left out of the bar. */
#define SL_TOP_PIECES_MAX 256

/* One piece of a bar, from left to right. */
struct sl_top_piece {
	uint32_t glyph;
	uint8_t style;
	uint64_t bytes;
	unsigned int cells;
	unsigned int tick; /* cells until the request ends, 0: not in this piece */
};
/* The pieces of a GPU's bar. pieces has space for SL_TOP_PIECES_MAX. Returns their number; their
 * cells sum up to width. */
size_t sl_top_bar(const struct sl_msg_gpu_row *gpu, const struct sl_top_line *lines,
	size_t count, unsigned int width, bool ascii, struct sl_top_piece *pieces);

/* --- the pane below the list --- */

#define SL_TOP_SAID_MAX 64
/* Lines of one refresh, wrapped when they are drawn. */
struct sl_top_said {
	char text[SL_TOP_SAID_MAX][SL_TELL_TEXT_MAX];
	size_t count;
};
/* The pane that is open in view, or the reasons of waiting workloads. */
void sl_top_say(struct sl_top_said *pane, const struct sl_top_data *data,
	const struct sl_top_view *view);

/* --- drawing --- */

/* Where the parts of the screen are: rows from the top. */
struct sl_top_layout {
	unsigned int gpus_y, gpu_lines, gpus_shown; /* lines per GPU: 3, 2 or 1 */
	unsigned int legend_y;                      /* 0: none */
	unsigned int list_y, list_rows;             /* list_y: its title */
	unsigned int pane_y, pane_rows;             /* waits, or the open pane */
};
/* Computes the layout, and moves view->scroll so that the selected line is visible. */
struct sl_top_layout sl_top_layout(const struct sl_top_data *data,
	struct sl_top_view *view, unsigned int width, unsigned int height);
void sl_top_draw(struct sl_canvas *canvas, const struct sl_top_data *data,
	struct sl_top_view *view);

#endif
