/* history_runs - see the header */
#include "daemon/history/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sl_history_rows_add(struct sl_history_rows *rows, const struct sl_history_row *row)
{
	struct sl_history_row *all =
		sl_history_grow(rows->all, rows->count, &rows->room, sizeof(*all));

	if (!all)
		return sl_err_origin(-ENOMEM);
	rows->all = all;
	rows->all[rows->count++] = *row;
	return 0;
}

void sl_history_rows_fini(struct sl_history_rows *rows)
{
	free(rows->all);
	*rows = (struct sl_history_rows){0};
}

/* GPU numbers are small, so both fit one key. */
static uint64_t key_of(const struct sl_history_row *row)
{
	return (uint64_t)row->workload << 16 | ((uint64_t)row->gpu & 0xffff);
}

static bool is_alike(const struct sl_history_runs *runs, const struct sl_history_run *run,
	const struct sl_history_row *row)
{
	const struct sl_history_row *last = &run->last;

	return last->t + last->span == row->t && last->span == row->span &&
	       memcmp(last->value, row->value,
		       sl_history_columns[runs->kind].count * sizeof(row->value[0])) == 0;
}

static void lengthen(const struct sl_history_runs *runs, struct sl_history_run *run,
	const struct sl_history_row *row)
{
	const struct sl_history_columns *columns = &sl_history_columns[runs->kind];

	run->row.span += row->span;
	for (uint32_t i = 0; i < columns->count; i++) {
		if (!columns->all[i].is_max)
			run->row.value[i] += row->value[i];
	}
}

static void drop(struct sl_history_runs *runs, size_t i)
{
	struct sl_history_run *run = runs->all[i];

	(void)sl_map_take(&runs->by_key, key_of(&run->row));
	runs->all[i] = runs->all[--runs->count];
	free(run);
}

/* NULL: no memory; nothing has changed. */
static struct sl_history_run *begin(
	struct sl_history_runs *runs, const struct sl_history_row *row)
{
	struct sl_history_run *run,
		**all = sl_history_grow(runs->all, runs->count, &runs->room, sizeof(run));

	if (!all)
		return NULL;
	runs->all = all;
	run = calloc(1, sizeof(*run));
	if (!run || sl_map_put(&runs->by_key, key_of(row), run) < 0) {
		free(run);
		return NULL;
	}
	runs->all[runs->count++] = run;
	return run;
}

int sl_history_runs_add(struct sl_history_runs *runs, const struct sl_history_row *row,
	struct sl_history_rows *out)
{
	struct sl_history_run *run = sl_map_get(&runs->by_key, key_of(row));
	int r = 0;

	if (run && run->row.span && is_alike(runs, run, row)) {
		lengthen(runs, run, row);
	} else {
		if (run && run->row.span && !run->told)
			r = sl_history_rows_add(out, &run->row);
		if (!run)
			run = begin(runs, row);
		if (!run)
			return sl_err_origin(-ENOMEM);
		run->row = *row;
	}
	run->last = *row;
	run->told = false;
	/* A minute is rolled up as soon as it is over, so the run ends. Its memory stays: the next
	 * minute needs it at once. */
	if ((row->t + row->span) % 60 == 0 && r == 0) {
		r = sl_history_rows_add(out, &run->row);
		run->row.span = 0;
	}
	return r;
}

int sl_history_runs_sweep(
	struct sl_history_runs *runs, int64_t end, struct sl_history_rows *out)
{
	int r = 0;

	for (size_t i = runs->count; i-- > 0;) {
		struct sl_history_run *run = runs->all[i];

		if (run->last.t + run->last.span >= end)
			continue;
		if (run->row.span && !run->told && r == 0)
			r = sl_history_rows_add(out, &run->row);
		drop(runs, i);
	}
	return r;
}

int sl_history_runs_tell(struct sl_history_runs *runs, struct sl_history_rows *out)
{
	int r = 0;

	for (size_t i = 0; i < runs->count && r == 0; i++) {
		struct sl_history_run *run = runs->all[i];

		if (!run->row.span || run->told)
			continue;
		r = sl_history_rows_add(out, &run->row);
		run->told = r == 0;
	}
	return r;
}

void sl_history_runs_fini(struct sl_history_runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		free(runs->all[i]);
	free(runs->all);
	sl_map_fini(&runs->by_key);
	*runs = (struct sl_history_runs){.kind = runs->kind};
}
