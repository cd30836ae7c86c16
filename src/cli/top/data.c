/*
 * The lists of one refresh are read moments apart. Rows that contradict each other (a workload on a
 * GPU that is gone) are shown as they are.
 *
 * The daemon is asked for reasons only for waiting workloads on the screen, so a queue of thousands
 * costs no more than a screenful.
 */
#include "cli/top/top.h"

#include "cli/conn/state.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS 26

static void move_rows(struct sl_rows *to, struct sl_rows *from)
{
	sl_rows_fini(to);
	*to = *from;
	*from = (struct sl_rows){0};
}

int sl_top_fetch(struct sl_top_data *data, struct sl_conn *conn, struct sl_error *err)
{
	sl_cleanup(sl_rows_fini) struct sl_rows gpus = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows clients = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows queue = {0};
	int status = sl_rows_list(&gpus, conn, SL_LIST_GPUS, err);

	if (!status)
		status = sl_rows_list(&uses, conn, SL_LIST_USES, err);
	if (!status)
		status = sl_rows_list(&clients, conn, SL_LIST_CLIENTS, err);
	if (!status)
		status = sl_rows_list(&queue, conn, SL_LIST_QUEUE, err);
	if (status)
		return status;
	move_rows(&data->gpus, &gpus);
	move_rows(&data->uses, &uses);
	move_rows(&data->clients, &clients);
	move_rows(&data->queue, &queue);
	if (sl_top_join(data))
		return SL_EXIT_OK;
	sl_error_set(err, "out of memory");
	return SL_EXIT_SYSTEM;
}

static int ask_why(struct sl_rows *rows, struct sl_conn *conn, uint64_t workload,
	struct sl_error *err)
{
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_WHY);
	ask.why.workload = workload;
	return sl_rows_ask(rows, conn, &ask, SL_MSG_EVENT_ROW, err);
}

/* May something be in its way? True if it waits for memory, or to be back on its GPU. */
static bool may_wait(const struct sl_top_line *line)
{
	return line->use->waiting || sl_tell_is_away(line->use);
}

/* Asks once for a workload on two GPUs. */
static bool asked_before(const struct sl_top_data *data, size_t from, size_t i)
{
	for (size_t j = from; j < i; j++)
		if (data->lines[j].use->workload == data->lines[i].use->workload &&
			may_wait(&data->lines[j]))
			return true;
	return false;
}

int sl_top_fetch_whys(struct sl_top_data *data, struct sl_conn *conn,
	const struct sl_top_view *view, size_t rows, struct sl_error *err)
{
	sl_cleanup(sl_rows_fini) struct sl_rows whys = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows pane = {0};
	size_t end = view->scroll + rows, asked = 0;
	int status = SL_EXIT_OK;

	for (size_t i = view->scroll; i < end && i < data->count && !status; i++) {
		if (!may_wait(&data->lines[i]) || asked == SL_TOP_WHYS_MAX ||
			asked_before(data, view->scroll, i))
			continue;
		asked++;
		status = ask_why(&whys, conn, data->lines[i].use->workload, err);
	}
	if (!status && view->pane == SL_TOP_WHY && view->selected < data->count)
		status = ask_why(
			&pane, conn, data->lines[view->selected].use->workload, err);
	if (status)
		return status;
	move_rows(&data->whys, &whys);
	move_rows(&data->pane, &pane);
	return SL_EXIT_OK;
}

/* --- lines --- */

/* Each workload wants the letter that its id gives, and takes the next free one. So its letter
 * stays while other workloads come and go. Rows of one workload must be neighbours. */
static void give_letters(struct sl_top_data *data)
{
	bool taken[LETTERS] = {0};

	for (size_t i = 0; i < data->count; i++) {
		struct sl_top_line *line = &data->lines[i];
		size_t wish = (line->use->workload - 1) % LETTERS, tries = 0;

		line->letter = SL_TOP_NO_LETTER;
		if (i && data->lines[i - 1].use->workload == line->use->workload) {
			line->letter = data->lines[i - 1].letter;
			continue;
		}
		while (tries < LETTERS && taken[(wish + tries) % LETTERS])
			tries++;
		if (tries == LETTERS)
			continue;
		taken[(wish + tries) % LETTERS] = true;
		line->letter = (char)('A' + (wish + tries) % LETTERS);
	}
}

/* A workload is idle only if all its clients on the GPU are idle; it became so with the last of
 * them. */
static void join_client(
	struct sl_top_line *line, const struct sl_msg_client_row *client, bool is_first)
{
	line->is_busy |= client->busy_ms > 0;
	if (is_first || client->idle_ms < line->idle_ms)
		line->idle_ms = client->idle_ms;
	line->is_idle = (is_first || line->is_idle) && (client->flags & SL_CLIENT_IDLE);
}

static void set_idle(struct sl_top_line *line, const struct sl_rows *clients)
{
	bool is_first = true;

	for (size_t i = 0; i < clients->count; i++) {
		const struct sl_msg_client_row *client = &clients->all[i].client_row;

		if (line->use->workload != client->workload ||
			line->use->gpu != client->gpu)
			continue;
		join_client(line, client, is_first);
		is_first = false;
	}
}

bool sl_top_join(struct sl_top_data *data)
{
	struct sl_top_line *lines =
		reallocarray(data->lines, data->uses.count + 1, sizeof(*lines));

	/* The old lines point into lists that are gone. */
	data->count = 0;
	data->has_evicted = data->has_compute = false;
	if (!lines)
		return false;
	data->lines = lines;
	data->count = data->uses.count;
	for (size_t i = 0; i < data->count; i++) {
		const struct sl_msg_use_row *use = &data->uses.all[i].use_row;

		lines[i] = (struct sl_top_line){.use = use};
		data->has_evicted |= use->evicted_bytes > 0;
		data->has_compute |= sl_state_has_compute(use);
		set_idle(&lines[i], &data->clients);
	}
	give_letters(data);
	return true;
}

uint64_t sl_top_queued(const struct sl_top_data *data)
{
	return data->queue.count ? data->queue.all[0].queue_row.waiting : 0;
}

/* --- order --- */

const char *sl_top_sort_name(enum sl_top_sort sort)
{
	static const char *const names[] = {
#define SL_TOP_SORT(name) #name,
		SL_TOP_SORTS(SL_TOP_SORT)
#undef SL_TOP_SORT
	};

	return sort < SL_TOP_SORT_COUNT ? names[sort] : "?";
}

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0; /* larger first */
}

static uint64_t idle_rank(const struct sl_top_line *line)
{
	return line->is_idle ? line->idle_ms + 1 : 0;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct sl_top_line *x = a, *y = b;
	int order = 0;

	switch (*(const enum sl_top_sort *)context) {
	case SL_TOP_SORT_name: order = strcmp(x->use->name, y->use->name); break;
	case SL_TOP_SORT_used:
		order = by_number(x->use->backing_bytes + x->use->hidden_bytes,
			y->use->backing_bytes + y->use->hidden_bytes);
		break;
	case SL_TOP_SORT_evicted:
		order = by_number(x->use->evicted_bytes, y->use->evicted_bytes);
		break;
	case SL_TOP_SORT_waiting:
		order = by_number(x->use->waiting_bytes, y->use->waiting_bytes);
		break;
	case SL_TOP_SORT_idle: order = by_number(idle_rank(x), idle_rank(y)); break;
	default: break;
	}
	if (!order)
		order = by_number(y->use->gpu, x->use->gpu);
	return order ? order : by_number(y->use->workload, x->use->workload);
}

void sl_top_sort(struct sl_top_data *data, struct sl_top_view *view,
	uint64_t selected_workload, uint32_t selected_gpu)
{
	if (data->count)
		qsort_r(data->lines, data->count, sizeof(*data->lines), compare,
			&view->sort);
	if (view->selected >= data->count)
		view->selected = data->count ? data->count - 1 : 0;
	for (size_t i = 0; i < data->count; i++)
		if (data->lines[i].use->workload == selected_workload &&
			data->lines[i].use->gpu == selected_gpu)
			view->selected = i;
}

void sl_top_fini(struct sl_top_data *data)
{
	sl_rows_fini(&data->gpus);
	sl_rows_fini(&data->uses);
	sl_rows_fini(&data->clients);
	sl_rows_fini(&data->queue);
	sl_rows_fini(&data->whys);
	sl_rows_fini(&data->pane);
	free(data->lines);
	*data = (struct sl_top_data){0};
}
