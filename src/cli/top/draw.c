/*
 * From top to bottom: a title, the GPUs with their bars, the workloads, their waits, the keys. On a
 * low screen the GPUs lose their ticks, then their title. On a narrow screen columns are dropped,
 * least important first. Letters, marks and words repeat everything that colours show.
 */
#include "cli/top/top.h"

#include "cli/conn/state.h"
#include "cli/line/table.h"

#include <stdio.h>
#include <string.h>

#define WIDTH_MIN     20
#define HEIGHT_MIN    6
#define LEGEND_HEIGHT 20 /* lower screens need the line for something else */
#define LIST_ROWS_MIN 3

/* --- layout --- */

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Lines that the pane needs, with its title. */
static unsigned int pane_height(const struct sl_top_said *pane, unsigned int width)
{
	unsigned int lines = pane->count ? 1 : 0;

	for (size_t i = 0; i < pane->count; i++)
		lines += sl_canvas_wrapped(NULL, 0, 0, 0, width - 2, 0, pane->text[i]);
	return lines;
}

static void lay_out_gpus(struct sl_top_layout *at, unsigned int gpus, unsigned int height)
{
	unsigned int room =
		height > 2 + LIST_ROWS_MIN + 1 ? height - 2 - LIST_ROWS_MIN - 1 : 1;

	/* GPUs get up to half of the screen with all their lines, or less with short ones. */
	at->gpus_y = 1;
	at->gpu_lines = 3;
	while (at->gpu_lines > 1 && gpus * at->gpu_lines > height / 2)
		at->gpu_lines--;
	at->gpus_shown = min(gpus, room / at->gpu_lines);
}

static struct sl_top_layout lay_out(const struct sl_top_data *data,
	const struct sl_top_said *pane, unsigned int width, unsigned int height)
{
	struct sl_top_layout at = {0};
	unsigned int needs = pane_height(pane, width), y, left, rows;

	lay_out_gpus(&at, (unsigned int)data->gpus.count, height);
	y = at.gpus_y + at.gpus_shown * at.gpu_lines;
	if (height >= LEGEND_HEIGHT)
		at.legend_y = y++;
	at.list_y = y++;
	left = height > y + 1 ? height - y - 1 : 0; /* the last line has the keys */
	rows = min((unsigned int)data->count, left);
	/* The pane takes what the list does not need, or else the larger half of the rest. */
	if (needs > left - rows)
		rows = min(rows, left > needs + LIST_ROWS_MIN ? left - needs
				 : left > 2 * LIST_ROWS_MIN   ? LIST_ROWS_MIN
							      : left / 2);
	at.list_rows = rows;
	at.pane_y = y + rows;
	at.pane_rows = min(needs, left - rows);
	return at;
}

static void scroll_to_selected(
	const struct sl_top_data *data, struct sl_top_view *view, size_t rows)
{
	if (view->selected < view->scroll)
		view->scroll = view->selected;
	if (rows && view->selected >= view->scroll + rows)
		view->scroll = view->selected - rows + 1;
	if (view->scroll + rows > data->count)
		view->scroll = data->count > rows ? data->count - rows : 0;
}

struct sl_top_layout sl_top_layout(const struct sl_top_data *data,
	struct sl_top_view *view, unsigned int width, unsigned int height)
{
	static struct sl_top_said
		pane; /* too large for a stack, and there is one thread */
	struct sl_top_layout at;

	sl_top_say(&pane, data, view);
	at = lay_out(data, &pane, width, height);
	scroll_to_selected(data, view, at.list_rows);
	return at;
}

/* --- GPUs --- */

static enum sl_style style_of_state(const char *state)
{
	if (!strcmp(state, "ok"))
		return SL_STYLE_GOOD;
	return !strcmp(state, "stale") ? SL_STYLE_WARN : SL_STYLE_BAD;
}

static uint64_t evicted_of(const struct sl_top_data *data, uint32_t gpu)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < data->count; i++)
		if (data->lines[i].use->gpu == gpu)
			bytes += data->lines[i].use->evicted_bytes;
	return bytes;
}

static void draw_gpu_title(struct sl_canvas *canvas, const struct sl_top_data *data,
	const struct sl_msg_gpu_row *gpu, unsigned int y)
{
	const char *state = sl_tell_gpu_state(gpu);
	uint64_t used = gpu->backing_bytes + gpu->hidden_bytes;
	uint64_t evicted = evicted_of(data, gpu->gpu);
	char text[160], beside[32] = "", a[16], b[16], c[16];
	unsigned int x;

	/* Backing includes memory on the host, which is not on the GPU. Saturates, since the lists
	 * are read moments apart. */
	used -= evicted < used ? evicted : used;
	if (evicted)
		snprintf(beside, sizeof(beside), ", %s evicted",
			sl_bytes_short(evicted, a, sizeof(a)));

	snprintf(text, sizeof(text), "GPU %u ", gpu->gpu);
	x = sl_canvas_text(canvas, 0, y, canvas->width, SL_STYLE_BOLD, text);
	x += sl_canvas_text(canvas, x, y, 10, style_of_state(state), state);
	snprintf(text, sizeof(text), "  busy %u%%  %s of %s used, %s requested%s",
		gpu->utilisation_pct, sl_bytes_short(used, a, sizeof(a)),
		sl_bytes_short(gpu->shareable_bytes, b, sizeof(b)),
		sl_bytes_short(gpu->requests_bytes, c, sizeof(c)), beside);
	x += sl_canvas_text(canvas, x, y, canvas->width - x, SL_STYLE_PLAIN, text);
	if (x + 10 < canvas->width)
		sl_canvas_text(
			canvas, x + 2, y, canvas->width - x - 2, SL_STYLE_DIM, gpu->name);
}

static void draw_bar(struct sl_canvas *canvas, const struct sl_top_data *data,
	const struct sl_msg_gpu_row *gpu, unsigned int x, unsigned int y,
	unsigned int width, bool has_ticks)
{
	struct sl_top_piece pieces[SL_TOP_PIECES_MAX];
	size_t n;

	if (width < 3)
		return;
	n = sl_top_bar(gpu, data->lines, data->count, width - 2, canvas->ascii, pieces);
	sl_canvas_put(canvas, x++, y, '[', SL_STYLE_PLAIN);
	for (size_t i = 0; i < n; i++) {
		for (unsigned int c = 0; c < pieces[i].cells; c++)
			sl_canvas_put(canvas, x + c, y, pieces[i].glyph, pieces[i].style);
		if (pieces[i].tick && has_ticks)
			sl_canvas_put(canvas, x + pieces[i].tick - 1, y + 1, '^',
				pieces[i].style);
		x += pieces[i].cells;
	}
	sl_canvas_put(canvas, x, y, ']', SL_STYLE_PLAIN);
}

static void draw_gpus(struct sl_canvas *canvas, const struct sl_top_data *data,
	const struct sl_top_layout *at)
{
	for (unsigned int i = 0; i < at->gpus_shown; i++) {
		const struct sl_msg_gpu_row *gpu = &data->gpus.all[i].gpu_row;
		unsigned int y = at->gpus_y + i * at->gpu_lines, x = 0;
		char text[32];

		if (at->gpu_lines > 1) {
			draw_gpu_title(canvas, data, gpu, y);
			draw_bar(canvas, data, gpu, 0, y + 1, canvas->width,
				at->gpu_lines > 2);
			continue;
		}
		snprintf(
			text, sizeof(text), "%2u %3u%% ", gpu->gpu, gpu->utilisation_pct);
		x = sl_canvas_text(canvas, 0, y, canvas->width,
			style_of_state(sl_tell_gpu_state(gpu)), text);
		draw_bar(canvas, data, gpu, x, y, canvas->width - x, false);
	}
}

static void draw_legend(struct sl_canvas *canvas, unsigned int y)
{
	sl_canvas_text(canvas, 0, y, canvas->width, SL_STYLE_DIM,
		canvas->ascii
			? "A held a hidden - unused request ^ its end . free ~ dying "
			  "? unmanaged # reserve"
			: "A held a hidden - unused request ^ its end \xc2\xb7 free ~ "
			  "dying ? unmanaged # reserve");
}

/* --- the list --- */

enum { GPU, STATE, REQUEST, LIMIT, USED, EVICTED, WAITING, COMPUTE, IDLE, COLUMNS };
/* drop: order in which columns are dropped. EVICTED is shown only while some memory is evicted,
 * COMPUTE while some workload has a share of a GPU's time, or is metered. */
static const struct {
	const char *title;
	unsigned int width, drop;
} columns[COLUMNS] = {
	[GPU] = {"GPU", 3, 0},
	[STATE] = {"STATE", 10, 0},
	[REQUEST] = {"REQUEST", 7, 3},
	[LIMIT] = {"LIMIT", 7, 2},
	[USED] = {"USED", 7, 0},
	[EVICTED] = {"EVICTED", 7, 5},
	[WAITING] = {"WAITING", 7, 4},
	[COMPUTE] = {"COMPUTE", 13, 2},
	[IDLE] = {"IDLE", 5, 1},
};
#define NAME_LEAST    10
#define NAME_MOST     40
#define LETTER        2
#define DROPS         5
#define RANK          0xffu
#define EMPTY(column) (0x100u << (column))

/* dropped: the last rank that is left out, with EMPTY() of columns in which nothing stands. */
static bool is_dropped(unsigned int column, unsigned int dropped)
{
	unsigned int drop = columns[column].drop;

	return dropped & EMPTY(column) || (drop && drop <= (dropped & RANK));
}

static unsigned int columns_width(unsigned int dropped)
{
	unsigned int width = 0;

	for (unsigned int i = 0; i < COLUMNS; i++)
		if (!is_dropped(i, dropped))
			width += columns[i].width + 1;
	return width;
}

static const char *cell_text(
	const struct sl_top_line *line, unsigned int column, char *buf, size_t size)
{
	const struct sl_msg_use_row *use = line->use;

	switch (column) {
	case GPU: snprintf(buf, size, "%u", use->gpu); return buf;
	case STATE: return sl_tell_shown(use);
	case REQUEST: return sl_state_request(use, buf, size);
	case LIMIT: return sl_bytes_short(use->limit_bytes, buf, size);
	case USED:
		return sl_bytes_short(use->backing_bytes + use->hidden_bytes, buf, size);
	case EVICTED:
		return line->use->evicted_bytes
			       ? sl_bytes_short(line->use->evicted_bytes, buf, size)
			       : "-";
	case WAITING:
		return use->waiting ? sl_bytes_short(use->waiting_bytes, buf, size) : "-";
	case COMPUTE: return sl_state_compute(use, buf, size);
	default:
		if (line->is_idle)
			return sl_table_age(line->idle_ms, buf, size);
		return line->is_busy ? "busy" : "-";
	}
}

/* line NULL: the titles. */
static void draw_columns(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	const struct sl_top_line *line, unsigned int dropped, enum sl_style style)
{
	for (unsigned int i = 0; i < COLUMNS; i++) {
		char buf[32];
		const char *text =
			line ? cell_text(line, i, buf, sizeof(buf)) : columns[i].title;

		if (is_dropped(i, dropped))
			continue;
		x++;
		if (i == STATE)
			sl_canvas_text(canvas, x, y, columns[i].width, style, text);
		else
			sl_canvas_right(canvas, x, y, columns[i].width, style, text);
		x += columns[i].width;
	}
}

static enum sl_style style_of_line(const struct sl_top_line *line)
{
	if (line->use->flags & (SL_USE_STOPPING | SL_USE_UNTAKEABLE | SL_USE_LOST))
		return SL_STYLE_BAD;
	return line->use->waiting || line->use->flags & SL_USE_OVER_LIMIT ||
			       sl_tell_is_away(line->use)
		       ? SL_STYLE_WARN
		       : SL_STYLE_PLAIN;
}

static void draw_line(struct sl_canvas *canvas, const struct sl_top_line *line,
	unsigned int y, unsigned int name_width, unsigned int dropped, bool is_selected)
{
	enum sl_style letter =
		line->letter == SL_TOP_NO_LETTER
			? SL_STYLE_PLAIN
			: SL_STYLE_WORKLOAD +
				  (line->letter - 'A') % (SL_STYLES - SL_STYLE_WORKLOAD);
	enum sl_style style = style_of_line(line);

	sl_canvas_put(canvas, 0, y, (uint32_t)line->letter, letter);
	sl_canvas_put(canvas, 1, y, is_selected ? '>' : ' ', SL_STYLE_PLAIN);
	sl_canvas_text(canvas, LETTER, y, name_width, style, line->use->name);
	draw_columns(canvas, LETTER + name_width, y, line, dropped, style);
	if (is_selected)
		sl_canvas_style_line(canvas, y, SL_STYLE_SELECTED);
}

static unsigned int name_width_of(const struct sl_top_data *data, unsigned int room)
{
	unsigned int longest = NAME_LEAST;

	for (size_t i = 0; i < data->count; i++) {
		unsigned int length = (unsigned int)strlen(data->lines[i].use->name);

		if (length > longest)
			longest = length;
	}
	return min(min(longest, NAME_MOST), room);
}

static void draw_list(struct sl_canvas *canvas, const struct sl_top_data *data,
	const struct sl_top_view *view, const struct sl_top_layout *at)
{
	unsigned int dropped = (data->has_evicted ? 0 : EMPTY(EVICTED)) |
			       (data->has_compute ? 0 : EMPTY(COMPUTE));
	unsigned int name_width;

	while ((dropped & RANK) < DROPS &&
		LETTER + NAME_LEAST + columns_width(dropped) > canvas->width)
		dropped++;
	name_width = canvas->width > LETTER + columns_width(dropped)
			     ? name_width_of(data,
				       canvas->width - LETTER - columns_width(dropped))
			     : 1;
	sl_canvas_text(canvas, LETTER, at->list_y, name_width, SL_STYLE_BOLD, "WORKLOAD");
	draw_columns(
		canvas, LETTER + name_width, at->list_y, NULL, dropped, SL_STYLE_BOLD);
	for (unsigned int i = 0; i < at->list_rows && view->scroll + i < data->count; i++)
		draw_line(canvas, &data->lines[view->scroll + i], at->list_y + 1 + i,
			name_width, dropped, view->scroll + i == view->selected);
}

/* --- the rest --- */

static void draw_pane(struct sl_canvas *canvas, const struct sl_top_said *pane,
	const struct sl_top_view *view, const struct sl_top_layout *at)
{
	static const char *const titles[] = {
		[SL_TOP_NOTHING] = "Waiting",
		[SL_TOP_WHY] = "Why",
		[SL_TOP_DETAILS] = "Details",
		[SL_TOP_HELP] = "Help",
	};
	unsigned int y = at->pane_y, end = at->pane_y + at->pane_rows;

	if (!at->pane_rows)
		return;
	sl_canvas_text(canvas, 0, y++, canvas->width, SL_STYLE_BOLD, titles[view->pane]);
	for (size_t i = 0; i < pane->count && y < end; i++)
		y += sl_canvas_wrapped(canvas, 2, y, end, canvas->width - 2,
			SL_STYLE_PLAIN, pane->text[i]);
	/* Show that some lines did not fit. */
	if (y > end && end > at->pane_y + 1)
		sl_canvas_right(
			canvas, 0, end - 1, canvas->width, SL_STYLE_DIM, " (more)");
}

static void draw_title(struct sl_canvas *canvas, const struct sl_top_data *data,
	const struct sl_top_view *view, const struct sl_top_layout *at)
{
	size_t waiting = 0;
	char text[320], queued[32] = "", every[32];
	unsigned int x;

	for (size_t i = 0; i < data->count; i++)
		waiting += data->lines[i].use->waiting > 0;
	x = sl_canvas_text(canvas, 0, 0, canvas->width, SL_STYLE_BOLD, "sluice top");
	if (!view->is_connected) {
		snprintf(text, sizeof(text), "  waiting for the daemon: %s",
			view->trouble);
		sl_canvas_text(canvas, x, 0, canvas->width - x, SL_STYLE_BAD, text);
		return;
	}
	if (at->gpus_shown < data->gpus.count)
		snprintf(text, sizeof(text), "  %u of", at->gpus_shown);
	else
		text[0] = '\0';
	x += sl_canvas_text(canvas, x, 0, canvas->width - x, SL_STYLE_WARN, text);
	if (sl_top_queued(data))
		snprintf(queued, sizeof(queued), "  %llu queued",
			(unsigned long long)sl_top_queued(data));
	snprintf(text, sizeof(text), "%s%zu GPU%s  %zu line%s  %zu waiting%s  by %s",
		at->gpus_shown < data->gpus.count ? " " : "  ", data->gpus.count,
		data->gpus.count == 1 ? "" : "s", data->count,
		data->count == 1 ? "" : "s", waiting, queued,
		sl_top_sort_name(view->sort));
	x += sl_canvas_text(canvas, x, 0, canvas->width - x, SL_STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%severy %s  %s", view->is_paused ? "PAUSED  " : "",
		sl_duration_format(view->interval, every, sizeof(every)), view->clock);
	if (x + strlen(text) + 2 <= canvas->width)
		sl_canvas_right(canvas, x, 0, canvas->width - x,
			view->is_paused ? SL_STYLE_WARN : SL_STYLE_DIM, text);
	else if (view->is_paused)
		sl_canvas_right(canvas, 0, 0, canvas->width, SL_STYLE_WARN, " PAUSED");
}

static void draw_keys(struct sl_canvas *canvas)
{
	static const char *const texts[] = {
		("q quit  arrows select  s sort  w why  d details  p pause  +/- interval "
		 " ? help"),
		"q quit  s sort  w why  d details  ? help",
		"q quit  ? help",
	};
	size_t i = 0;

	while (i + 1 < SL_ARRAY_LEN(texts) && strlen(texts[i]) > canvas->width)
		i++;
	sl_canvas_text(
		canvas, 0, canvas->height - 1, canvas->width, SL_STYLE_DIM, texts[i]);
}

void sl_top_draw(struct sl_canvas *canvas, const struct sl_top_data *data,
	struct sl_top_view *view)
{
	static struct sl_top_said pane;
	struct sl_top_layout at;

	sl_canvas_clear(canvas);
	if (canvas->width < WIDTH_MIN || canvas->height < HEIGHT_MIN) {
		sl_canvas_wrapped(canvas, 0, 0, canvas->height, canvas->width,
			SL_STYLE_PLAIN, "too small: 20 x 6 at least; q quits");
		return;
	}
	sl_top_say(&pane, data, view);
	at = lay_out(data, &pane, canvas->width, canvas->height);
	scroll_to_selected(data, view, at.list_rows);
	draw_title(canvas, data, view, &at);
	draw_gpus(canvas, data, &at);
	if (at.legend_y)
		draw_legend(canvas, at.legend_y);
	draw_list(canvas, data, view, &at);
	draw_pane(canvas, &pane, view, &at);
	draw_keys(canvas);
}
