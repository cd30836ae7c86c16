/*
 * The screen of sluice top without a terminal: bars whose cells sum up, ticks where requests end,
 * and whole screens of any size.
 */
#include "../../base/test.h"

#include "cli/top/top.h"

#include "policy/words/reason.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* --- spread --- */

static const struct {
	const char *row;
	uint64_t bytes[6];
	unsigned int width, cells[6];
} spreads[] = {
	{"nothing", {0, 0, 0}, 10, {0, 0, 0}},
	{"one", {5}, 10, {10}},
	{"thirds", {1, 1, 1}, 10, {4, 3, 3}},
	{"halves of an odd width", {7, 7}, 9, {5, 4}},
	{"the small one stays", {1, 1000}, 10, {1, 9}},
	{"all small ones stay", {1, 1, 1, 100000}, 10, {1, 1, 1, 7}},
	{"more parts than cells", {1, 1, 1, 1, 1, 1}, 3, {1, 1, 1, 0, 0, 0}},
	{"zeros get none", {0, 3, 0, 1}, 8, {0, 6, 0, 2}},
	{"no width", {1, 2}, 0, {0, 0}},
	{"huge", {UINT64_MAX, UINT64_MAX}, 80, {40, 40}},
};

static void test_spread(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(spreads); i++) {
		unsigned int cells[6];

		sl_top_spread(spreads[i].bytes, 6, spreads[i].width, cells);
		for (size_t j = 0; j < 6; j++)
			assert_row_u64(spreads[i].row, cells[j], spreads[i].cells[j]);
	}
}

/* Any parts, any width: the cells sum up, and each is off by less than what small parts took. */
static void test_spread_sums(void **state)
{
	uint64_t seed = 12345;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint64_t bytes[20], total = 0;
		unsigned int cells[20], width, sum = 0, small = 0;

		for (size_t i = 0; i < 20; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			bytes[i] = seed >> 63 ? 0 : (seed >> 33) >> (seed >> 60);
			total += bytes[i];
		}
		width = (unsigned int)(seed >> 40) % 200;
		sl_top_spread(bytes, 20, width, cells);
		for (size_t i = 0; i < 20; i++)
			small += bytes[i] && bytes[i] * width < total;
		for (size_t i = 0; i < 20; i++) {
			sum += cells[i];
			assert_true(bytes[i] || !cells[i]);
			if (width >= 20 && bytes[i])
				assert_true(cells[i] > 0);
			if (total)
				assert_true(
					cells[i] <= bytes[i] * width / total + 1 &&
					cells[i] + small + 1 >= bytes[i] * width / total);
		}
		assert_int_equal(sum, total ? width : 0);
	}
}

/* --- a machine made up --- */

struct world {
	struct sl_top_data data;
	struct sl_top_view view;
	union sl_msg gpus[8], uses[64], clients[64], whys[4];
};

static struct world *new_world(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->data.gpus.all = w->gpus;
	w->data.uses.all = w->uses;
	w->data.clients.all = w->clients;
	w->data.whys.all = w->whys;
	w->view.is_connected = true;
	w->view.interval = SL_S;
	strcpy(w->view.clock, "12:00:05");
	return w;
}

static void free_world(struct world *w)
{
	free(w->data.lines);
	free(w);
}

static struct sl_msg_gpu_row *add_gpu(struct world *w, uint64_t free_gib)
{
	uint32_t number = (uint32_t)w->data.gpus.count++;
	struct sl_msg_gpu_row *gpu = &w->gpus[number].gpu_row;

	gpu->gpu = number;
	gpu->capacity_bytes = 40 * SL_GIB;
	gpu->reserve_bytes = 2 * SL_GIB;
	gpu->shareable_bytes = 38 * SL_GIB;
	gpu->free_bytes = free_gib * SL_GIB;
	gpu->utilisation_pct = 42;
	strcpy(gpu->name, "Some GPU 40GB");
	return gpu;
}

static struct sl_msg_use_row *add_use(struct world *w, const char *name, uint32_t gpu,
	uint64_t request_gib, uint64_t backing_gib, uint64_t hidden_gib)
{
	size_t i = w->data.uses.count++;
	struct sl_msg_use_row *use = &w->uses[i].use_row;

	use->workload = i + 1;
	use->gpu = gpu;
	use->state = SL_STATE_BOUND;
	use->clients = 1;
	use->priority_biased = SL_PRIORITY_BIAS;
	use->request_bytes = request_gib * SL_GIB;
	use->limit_bytes = 30 * SL_GIB;
	use->backing_bytes = backing_gib * SL_GIB;
	use->hidden_bytes = hidden_gib * SL_GIB;
	use->compute_used_pm = UINT32_MAX;
	snprintf(use->name, sizeof(use->name), "%s", name);
	return use;
}

/* Of the use that was added last, so much is on the host. */
static void set_swap(
	struct world *w, uint32_t residency, uint64_t evicted_gib, uint64_t returning_gib)
{
	struct sl_msg_use_row *use = &w->uses[w->data.uses.count - 1].use_row;

	use->residency = residency;
	use->evicted_bytes = evicted_gib * SL_GIB;
	use->returning_bytes = returning_gib * SL_GIB;
}

static void add_client(struct world *w, uint64_t workload, uint32_t gpu, uint32_t flags,
	uint64_t idle_ms, uint64_t busy_ms)
{
	struct sl_msg_client_row *client =
		&w->clients[w->data.clients.count++].client_row;

	client->workload = workload;
	client->gpu = gpu;
	client->flags = flags;
	client->idle_ms = idle_ms;
	client->busy_ms = busy_ms;
	client->pid = 4711;
}

static void join(struct world *w)
{
	assert_true(sl_top_join(&w->data));
	sl_top_sort(&w->data, &w->view, 0, 0);
}

/* --- bars --- */

static void bar_text(const struct world *w, unsigned int width, char *bar, char *ticks)
{
	struct sl_top_piece pieces[SL_TOP_PIECES_MAX];
	size_t n = sl_top_bar(
		&w->gpus[0].gpu_row, w->data.lines, w->data.count, width, true, pieces);
	unsigned int at = 0, end = 0;

	memset(ticks, ' ', width);
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].tick) {
			assert_true(pieces[i].tick <= pieces[i].cells);
			end = at + pieces[i].tick;
			ticks[end - 1] = '^';
		}
		for (unsigned int c = 0; c < pieces[i].cells; c++)
			bar[at++] = (char)pieces[i].glyph;
	}
	assert_int_equal(at, width);
	bar[at] = ticks[end] = '\0';
}

static void check_bar(const char *row, struct world *w, unsigned int width,
	const char *want, const char *want_ticks)
{
	char bar[512], ticks[512];

	join(w);
	bar_text(w, width, bar, ticks);
	assert_row_text(row, bar, want);
	assert_row_text(row, ticks, want_ticks);
	free_world(w);
}

static void test_bar(void **state)
{
	struct world *w;
	struct sl_msg_gpu_row *gpu;

	(void)state;
	/* A uses 4 of 8, B bursts 6 above its 4, with 2 hidden: one cell per GiB. */
	w = new_world();
	add_gpu(w, 24);
	add_use(w, "a", 0, 8, 3, 1);
	add_use(w, "b", 0, 4, 8, 2);
	add_use(w, "elsewhere", 1, 4, 8, 2);
	check_bar("mixed", w, 40, "AAAa----BBBBBBBBbb....................##",
		"       ^   ^");
	w = new_world();
	gpu = add_gpu(w, 26);
	gpu->dying_bytes = 2 * SL_GIB;
	gpu->unmanaged_bytes = 3 * SL_GIB;
	gpu->granted_bytes = SL_GIB;
	add_use(w, "a", 0, 0, 6, 0);
	check_bar("nobody's", w, 40, "AAAAAA+~~..........................???##", "");
	/* 10 unused, 5 of them lent to B: half of A's is shown. */
	w = new_world();
	add_gpu(w, 5);
	add_use(w, "a", 0, 10, 0, 0);
	add_use(w, "b", 0, 0, 33, 0);
	check_bar("lent", w, 40, "-----BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB##", "    ^");
	/* Evicted bytes are not in the bar; returning bytes have their place; parked is no
	 * request. */
	w = new_world();
	add_gpu(w, 29);
	add_use(w, "a", 0, 8, 6, 1);
	set_swap(w, SL_WIRE_EVICTED, 4, 0);
	add_use(w, "b", 0, 4, 4, 0);
	set_swap(w, SL_WIRE_RETURNING, 4, 4);
	add_use(w, "c", 0, 10, 10, 2);
	set_swap(w, SL_WIRE_PARKED, 10, 0);
	check_bar(
		"evicted", w, 40, "AAa-----cc++++........................##", "       ^");
	w = new_world();
	add_gpu(w, 38);
	check_bar("empty", w, 20, "...................#", "");
	w = new_world();
	add_gpu(w, 0);
	add_use(w, "a", 0, 38, 60, 0);
	check_bar("more than there is", w, 31, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA#",
		"                  ^");
}

/* 64 workloads: the cells sum up, letters run out without harm. */
static void test_many(void **state)
{
	struct world *w = new_world();
	char bar[512], ticks[512];

	(void)state;
	add_gpu(w, 6);
	for (int i = 0; i < 64; i++)
		add_use(w, "many", 0, 1, 0, 0)->backing_bytes = SL_GIB / 2;
	join(w);
	for (unsigned int width = 1; width < 200; width++)
		bar_text(w, width, bar, ticks);
	assert_int_equal(w->data.lines[25].letter, 'Z');
	assert_int_equal(w->data.lines[26].letter, SL_TOP_NO_LETTER);
	free_world(w);
}

/* Letters stay while others end. */
static void test_letters(void **state)
{
	struct world *w = new_world();

	(void)state;
	add_use(w, "one", 0, 1, 1, 0)->workload = 3;
	add_use(w, "one", 1, 1, 1, 0)->workload = 3;
	add_use(w, "two", 0, 1, 1, 0)->workload = 29; /* wants C too */
	add_use(w, "three", 0, 1, 1, 0)->workload = 30;
	assert_true(sl_top_join(&w->data));
	assert_int_equal(w->data.lines[0].letter, 'C');
	assert_int_equal(w->data.lines[1].letter, 'C');
	assert_int_equal(w->data.lines[2].letter, 'D');
	assert_int_equal(w->data.lines[3].letter, 'E');
	free_world(w);
}

static void test_idle(void **state)
{
	struct world *w = new_world();

	(void)state;
	for (int i = 0; i < 4; i++)
		add_use(w, "w", 0, 1, 1, 0);
	add_client(w, 1, 0, SL_CLIENT_IDLE, 9000, 0);
	add_client(w, 1, 0, SL_CLIENT_IDLE, 4000, 0);
	add_client(w, 2, 0, SL_CLIENT_IDLE, 9000, 0);
	add_client(w, 2, 0, 0, 0, 70);
	add_client(w, 3, 0, 0, 0, 0);
	add_client(w, 3, 1, SL_CLIENT_IDLE, 5, 0);
	assert_true(sl_top_join(&w->data));
	assert_true(w->data.lines[0].is_idle);
	assert_int_equal(w->data.lines[0].idle_ms, 4000);
	assert_true(!w->data.lines[1].is_idle && w->data.lines[1].is_busy);
	assert_true(!w->data.lines[2].is_idle && !w->data.lines[2].is_busy);
	assert_true(!w->data.lines[3].is_idle);
	free_world(w);
}

static void test_sort(void **state)
{
	static const char *const want[SL_TOP_SORT_COUNT] = {
		[SL_TOP_SORT_gpu] = "bca",
		[SL_TOP_SORT_name] = "abc",
		[SL_TOP_SORT_used] = "cba",
		[SL_TOP_SORT_evicted] = "bca",
		[SL_TOP_SORT_waiting] = "abc",
		[SL_TOP_SORT_idle] = "cba",
	};
	struct world *w = new_world();

	(void)state;
	add_use(w, "b", 0, 1, 2, 0);
	set_swap(w, SL_WIRE_WARM, 1, 0);
	add_use(w, "c", 0, 1, 3, 0);
	add_use(w, "a", 1, 1, 1, 0)->waiting_bytes = 5;
	add_client(w, 2, 0, SL_CLIENT_IDLE, 0, 0);
	join(w);
	for (int sort = 0; sort < SL_TOP_SORT_COUNT; sort++) {
		char got[4] = "";

		w->view.sort = (enum sl_top_sort)sort;
		sl_top_sort(&w->data, &w->view, 3, 1);
		for (size_t i = 0; i < 3; i++)
			got[i] = w->data.lines[i].use->name[0];
		assert_row_text(sl_top_sort_name(w->view.sort), got, want[sort]);
		assert_string_equal(w->data.lines[w->view.selected].use->name, "a");
	}
	/* The selected workload is gone. */
	w->data.uses.count = 1;
	join(w);
	assert_int_equal(w->view.selected, 0);
	free_world(w);
}

/* --- screens --- */

static struct world *busy_world(void)
{
	struct world *w = new_world();
	struct sl_msg_use_row *use;
	struct sl_msg_event_row *why = &w->whys[0].event_row;

	add_gpu(w, 20)->backing_bytes = 16 * SL_GIB;
	add_gpu(w, 38)->condition = SL_GPU_LOST;
	add_use(w, "model-server", 0, 8, 12, 1);
	use = add_use(w, "note\x1b[31mbook", 0, 4, 3, 0);
	use->waiting = 1;
	use->waiting_bytes = 22 * SL_GIB;
	use->state = SL_STATE_WAITING;
	add_use(w, "train", 1, 0, 0, 0)->flags = SL_USE_STOPPING | SL_USE_OVER_LIMIT;
	add_client(w, 1, 0, SL_CLIENT_IDLE, 65000, 0);
	why->reason = SL_REASON_BURST_WAITS;
	why->current = 1;
	why->bytes = 22 * SL_GIB;
	why->available_bytes = 20 * SL_GIB;
	why->other_bytes = 5 * SL_GIB;
	why->span_ms = 12500;
	strcpy(why->name, "note\x1b[31mbook");
	strcpy(why->other_name, "model-server");
	w->data.whys.count = 1;
	join(w);
	return w;
}

static void check_lines(const char *row, struct world *w, unsigned int width,
	unsigned int height, const char *const *want)
{
	struct sl_canvas canvas;

	assert_true(sl_canvas_init(&canvas, width, height, true));
	sl_top_draw(&canvas, &w->data, &w->view);
	for (unsigned int y = 0; y < height; y++) {
		char line[1024];

		assert_row_text(
			row, sl_canvas_line(&canvas, y, line, sizeof(line)), want[y]);
	}
	sl_canvas_fini(&canvas);
}

static void test_screen(void **state)
{
	static const char *const at_80[24] = {
		"sluice top  2 GPUs  3 lines  1 waiting  by gpu                every 1s  "
		"12:00:05",
		"GPU 0 ok  busy 42%  16GiB of 38GiB used, 0B requested  Some GPU 40GB",
		"[AAAAAAAAAAAAAAAAAAAAAAAAAaaBBBBBB--...................................."
		"...####]",
		"                ^                  ^",
		"GPU 1 lost  busy 42%  0B of 38GiB used, 0B requested  Some GPU 40GB",
		"[......................................................................."
		"...####]",
		"",
		"A held a hidden - unused request ^ its end . free ~ dying ? unmanaged # "
		"reserve",
		"  WORKLOAD      GPU STATE      REQUEST   LIMIT    USED WAITING  IDLE",
		"A>model-server    0 bound         8GiB   30GiB   13GiB       -   65s",
		"B note?[31mbook   0 waiting       4GiB   30GiB    3GiB   22GiB     "
		"-",
		"C train           1 stopping        0B   30GiB      0B       -     -",
		"Waiting",
		"  note?[31mbook has waited 12.5s for 22 GiB above its request on GPU "
		"0: 20 GiB",
		"  is free for it, and model-server has 5 GiB above its request.",
		"",
		"",
		"",
		"",
		"",
		"",
		"",
		"",
		"q quit  arrows select  s sort  w why  d details  p pause  +/- interval  "
		"? help",
	};
	static const char *const at_40[12] = {
		"sluice top  2 GPUs  3 lines  1 waiting..",
		"GPU 0 ok  busy 42%  16GiB of 38GiB use..",
		"[AAAAAAAAAAAAaBBB-...................##]",
		"        ^        ^",
		"GPU 1 lost  busy 42%  0B of 38GiB used..",
		"[....................................##]",
		"",
		"  WORKLOAD      GPU STATE         USED",
		"A>model-server    0 bound        13GiB",
		"Waiting",
		"  note?[31mbook has waited 12.5s  (more)",
		"q quit  s sort  w why  d details  ? help",
	};
	struct world *w = busy_world();

	(void)state;
	check_lines("80x24", w, 80, 24, at_80);
	check_lines("40x12", w, 40, 12, at_40);
	free_world(w);
}

/* Evicted bytes stand beside the bar, and in a column of their own if the screen is wide enough. */
static void test_evicted(void **state)
{
	static const struct {
		unsigned int width, y;
		const char *line;
	} rows[] = {
		{80, 1,
			"GPU 0 ok  busy 42%  6GiB of 38GiB used, 0B requested, 10GiB "
			"evicted "
			" Some GPU .."},
		{80, 5,
			"  WORKLOAD     GPU STATE      REQUEST   LIMIT    USED EVICTED "
			"WAITING  IDLE"},
		{80, 6,
			"A>model-server   0 evicted       8GiB   30GiB   13GiB   "
			"10GiB   "
			"    -     -"},
		{60, 5, "  WORKLOAD    GPU STATE      REQUEST    USED EVICTED WAITING"},
		{50, 5, "  WORKLOAD     GPU STATE         USED EVICTED"},
	};
	struct world *w = new_world();
	struct sl_canvas canvas;
	char line[1024];

	(void)state;
	add_gpu(w, 20)->backing_bytes = 16 * SL_GIB;
	add_use(w, "model-server", 0, 8, 12, 1);
	set_swap(w, SL_WIRE_EVICTED, 10, 0);
	add_use(w, "notebook", 0, 4, 4, 0);
	set_swap(w, SL_WIRE_BOUND, 0, 0);
	join(w);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		assert_true(sl_canvas_init(&canvas, rows[i].width, 24, true));
		sl_top_draw(&canvas, &w->data, &w->view);
		assert_row_text("evicted",
			sl_canvas_line(&canvas, rows[i].y, line, sizeof(line)),
			rows[i].line);
		sl_canvas_fini(&canvas);
	}
	free_world(w);
}

/* Shares of the GPU's time have a column, while a workload has one. */
static void test_compute(void **state)
{
	static const struct {
		unsigned int width, y;
		const char *line;
	} rows[] = {
		{80, 5,
			"  WORKLOAD    GPU STATE      REQUEST   LIMIT    USED WAITING  "
			"     COMPUTE  IDLE"},
		{80, 6,
			"A>model-ser..   0 bound         8GiB   30GiB   13GiB       -  "
			" 0.3-0.5 31%     -"},
		{80, 7,
			"B notebook      0 bound         4GiB   30GiB    4GiB       -  "
			"    rest 69%     -"},
		{60, 5, "  WORKLOAD     GPU STATE      REQUEST    USED WAITING"},
	};
	struct world *w = new_world();
	struct sl_msg_use_row *use;
	struct sl_canvas canvas;
	char line[1024];

	(void)state;
	add_gpu(w, 20);
	use = add_use(w, "model-server", 0, 8, 12, 1);
	use->compute_request_pm = 300;
	use->compute_limit_pm = 500;
	use->compute_used_pm = 314;
	add_use(w, "notebook", 0, 4, 4, 0)->compute_used_pm = 685;
	join(w);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		assert_true(sl_canvas_init(&canvas, rows[i].width, 24, true));
		sl_top_draw(&canvas, &w->data, &w->view);
		assert_row_text("compute",
			sl_canvas_line(&canvas, rows[i].y, line, sizeof(line)),
			rows[i].line);
		sl_canvas_fini(&canvas);
	}
	free_world(w);
}

/* Below the reasons: how many jobs wait, the first of them, each with the first clause of its
 * reason. */
static void test_queue(void **state)
{
	static const char *const want[] = {"Waiting",
		"  7 jobs in the queue, the first of them:",
		"    first (text): it wants 1 GPU", "    second (vision)"};
	struct world *w = new_world();
	union sl_msg queue[2] = {0};
	struct sl_canvas canvas;
	char line[1024];
	unsigned int y = 0;

	(void)state;
	add_gpu(w, 20);
	join(w);
	for (size_t i = 0; i < 2; i++)
		queue[i].queue_row.waiting = 7;
	strcpy(queue[0].queue_row.name, "first");
	strcpy(queue[0].queue_row.project, "text");
	strcpy(queue[0].queue_row.why, "it wants 1 GPU; it runs when jobs end");
	strcpy(queue[1].queue_row.name, "second");
	strcpy(queue[1].queue_row.project, "vision");
	w->data.queue.all = queue;
	w->data.queue.count = 2;
	assert_true(sl_canvas_init(&canvas, 80, 24, true));
	sl_top_draw(&canvas, &w->data, &w->view);
	assert_row_contains("title", sl_canvas_line(&canvas, 0, line, sizeof(line)),
		"0 waiting  7 queued  by gpu");
	while (y < 24 && strcmp(sl_canvas_line(&canvas, y, line, sizeof(line)), want[0]))
		y++;
	for (size_t i = 0; i < SL_ARRAY_LEN(want); i++)
		assert_row_text("queue",
			sl_canvas_line(&canvas, y + (unsigned int)i, line, sizeof(line)),
			want[i]);
	sl_canvas_fini(&canvas);
	free_world(w);
}

/* For any size, any pane and any number of lines: nothing is drawn outside of the canvas, no
 * control character appears, the selected line is shown, and the keys are in the last line. */
static void test_sizes(void **state)
{
	(void)state;
	for (int uses = 0; uses < 60; uses += 13)
		for (unsigned int width = 1; width < 140; width += 3)
			for (unsigned int height = 1; height < 50; height += 2) {
				struct world *w = busy_world();
				struct sl_canvas canvas;
				char line[1024];
				bool shown = false;

				for (int i = 0; i < uses; i++)
					add_use(w, "more", (uint32_t)i % 3, 1, 1, 1);
				join(w);
				w->view.selected = w->data.count - 1;
				w->view.pane = (enum sl_top_pane)((width + height) % 4);
				assert_true(sl_canvas_init(
					&canvas, width, height, width % 2));
				sl_top_draw(&canvas, &w->data, &w->view);
				for (unsigned int y = 0; y < height; y++) {
					sl_canvas_line(&canvas, y, line, sizeof(line));
					shown |= line[0] && line[1] == '>';
				}
				for (size_t i = 0; i < (size_t)width * height; i++)
					assert_true(canvas.cells[i].c >= ' ' &&
						    canvas.cells[i].style < SL_STYLES);
				if (width >= 20 && height >= 8) {
					assert_true(shown);
					assert_row_contains("keys",
						sl_canvas_line(&canvas, height - 1, line,
							sizeof(line)),
						"q quit");
				}
				sl_canvas_fini(&canvas);
				free_world(w);
			}
}

static void test_waiting_for_the_daemon(void **state)
{
	struct world *w = busy_world();
	struct sl_canvas canvas;
	char line[1024];

	(void)state;
	w->view.is_connected = false;
	strcpy(w->view.trouble, "nobody listens");
	assert_true(sl_canvas_init(&canvas, 80, 24, true));
	sl_top_draw(&canvas, &w->data, &w->view);
	assert_row_text("title", sl_canvas_line(&canvas, 0, line, sizeof(line)),
		"sluice top  waiting for the daemon: nobody listens");
	/* The last data stays. */
	assert_row_contains(
		"list", sl_canvas_line(&canvas, 9, line, sizeof(line)), "model-server");
	sl_canvas_fini(&canvas);
	free_world(w);
}

/* --- the canvas --- */

static void test_text(void **state)
{
	static const struct {
		const char *row, *text, *want;
		unsigned int width;
		bool ascii;
	} cases[] = {
		{"fits", "hello", "hello", 5, true},
		{"cut", "hello there", "hello..", 7, true},
		{"too narrow for dots", "hello", "hel", 3, true},
		{"control", "a\x1b[2Jb", "a?[2Jb", 9, true},
		{"ascii", "caf\xc3\xa9", "caf?", 9, true},
		{"utf-8", "caf\xc3\xa9", "caf\xc3\xa9", 9, false},
		{"no utf-8", "a\xff", "a?", 9, false},
		{"wide", "\xe6\xbc\xa2\xe5\xad\x97", "\xe6\xbc\xa2", 3, false},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct sl_canvas canvas;
		char line[64];

		assert_true(sl_canvas_init(&canvas, 20, 1, cases[i].ascii));
		assert_true(sl_canvas_text(&canvas, 0, 0, cases[i].width, 0,
				    cases[i].text) <= cases[i].width);
		assert_row_text(cases[i].row,
			sl_canvas_line(&canvas, 0, line, sizeof(line)), cases[i].want);
		sl_canvas_fini(&canvas);
	}
}

static void test_wrapped(void **state)
{
	struct sl_canvas canvas;
	char line[64];

	(void)state;
	assert_true(sl_canvas_init(&canvas, 10, 4, true));
	assert_int_equal(sl_canvas_wrapped(&canvas, 0, 0, 3, 10, 0,
				 "one two three fourteenletters x"),
		4);
	assert_string_equal(sl_canvas_line(&canvas, 0, line, sizeof(line)), "one two");
	assert_string_equal(sl_canvas_line(&canvas, 1, line, sizeof(line)), "three");
	assert_string_equal(sl_canvas_line(&canvas, 2, line, sizeof(line)), "fourteenle");
	assert_string_equal(sl_canvas_line(&canvas, 3, line, sizeof(line)), "");
	assert_int_equal(sl_canvas_wrapped(NULL, 0, 0, 0, 10, 0, ""), 0);
	assert_int_equal(sl_canvas_wrapped(NULL, 0, 0, 0, 1, 0, "abc"), 3);
	sl_canvas_fini(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_spread_sums),
		cmocka_unit_test(test_bar),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_letters),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_compute),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_waiting_for_the_daemon),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_wrapped),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
