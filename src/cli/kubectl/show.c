/* show: ps and top, from the claims' status alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "cli/kubectl/kubectl.h"
#include "cli/line/table.h"

#define TOP_EVERY (2 * SL_S)

enum { NAMESPACE, POD, NODE, GPU, STATE, REQUEST, LIMIT, RESIDENT, EVICTED, COLUMNS };
static const struct sl_column columns[COLUMNS] = {
	[NAMESPACE] = {"NAMESPACE", false, 0, 0},
	[POD] = {"POD", false, 16, 0},
	[NODE] = {"NODE", false, 8, 2},
	[GPU] = {"GPU", false, 8, 1},
	[STATE] = {"STATE", false, 0, 0},
	[REQUEST] = {"REQUEST", true, 0, 0},
	[LIMIT] = {"LIMIT", true, 0, 0},
	[RESIDENT] = {"RESIDENT", true, 0, 0},
	[EVICTED] = {"EVICTED", true, 0, 0},
};

struct rows {
	struct kubectl_row *all;
	size_t count, room;
	bool has_failed;
};

static void gather(void *context, const struct kubectl_row *row)
{
	struct rows *rows = context;

	if (rows->count == rows->room) {
		size_t room = 2 * rows->room + 64;
		struct kubectl_row *grown = realloc(rows->all, room * sizeof(*grown));

		if (!grown) {
			rows->has_failed = true;
			return;
		}
		rows->all = grown;
		rows->room = room;
	}
	rows->all[rows->count++] = *row;
}

static int by_name(const void *a, const void *b)
{
	const struct kubectl_row *one = a, *other = b;
	int order = strcmp(one->namespace, other->namespace);

	if (order == 0)
		order = strcmp(one->pod, other->pod);
	return order ? order : strcmp(one->device, other->device);
}

static int by_size(const void *a, const void *b)
{
	const struct kubectl_row *one = a, *other = b;

	if (one->resident_bytes != other->resident_bytes)
		return one->resident_bytes < other->resident_bytes ? 1 : -1;
	return by_name(a, b);
}

static bool set_row(struct sl_table *table, const struct kubectl_row *row, size_t from)
{
	char amount[16];

	if (!from)
		sl_table_set(table, NAMESPACE, "%s", row->namespace);
	sl_table_set(table, POD - from, "%s", row->pod[0] ? row->pod : "-");
	sl_table_set(table, NODE - from, "%s", row->node);
	sl_table_set(table, GPU - from, "%s", row->device);
	sl_table_set(table, STATE - from, "%s", row->state);
	sl_table_set(table, REQUEST - from, "%s",
		row->request_bytes
			? sl_bytes_short(row->request_bytes, amount, sizeof(amount))
			: "-");
	sl_table_set(table, LIMIT - from, "%s",
		row->is_known ? sl_bytes_short(row->limit_bytes, amount, sizeof(amount))
			      : "-");
	sl_table_set(table, RESIDENT - from, "%s",
		row->is_known
			? sl_bytes_short(row->resident_bytes, amount, sizeof(amount))
			: "-");
	sl_table_set(table, EVICTED - from, "%s",
		row->evicted_bytes
			? sl_bytes_short(row->evicted_bytes, amount, sizeof(amount))
			: "-");
	return sl_table_end_row(table);
}

/* Prints once: 0, or an exit status after a message. */
static int print(struct kubectl *k, int (*order)(const void *, const void *), bool clears)
{
	size_t from = k->namespace ? POD : NAMESPACE;
	struct sl_error err = {0};
	struct sl_table *table;
	struct rows rows = {0};
	json_t *claims;
	int r;

	if (kubectl_claims(k, &claims, &err) != 0)
		return kubectl_fail("%s", err.text);
	for (size_t i = 0; i < json_array_size(claims); i++)
		kubectl_rows(json_array_get(claims, i), gather, &rows);
	table = rows.has_failed ? NULL : sl_table_new(columns + from, COLUMNS - from);
	if (rows.count)
		qsort(rows.all, rows.count, sizeof(*rows.all), order);
	for (size_t i = 0; table && i < rows.count; i++) {
		if (!set_row(table, &rows.all[i], from))
			table = sl_table_free(table);
	}
	if (clears)
		(void)fputs("\033[H\033[J", stdout);
	if (table && !rows.count)
		(void)printf("No pod has memory of a GPU %s%s.\n",
			k->namespace ? "in namespace " : "in any namespace",
			k->namespace ? k->namespace : "");
	else if (table)
		sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	r = table && fflush(stdout) == 0 ? 0 : kubectl_fail("out of memory");
	table = sl_table_free(table);
	free(rows.all);
	json_decref(claims);
	return r;
}

int kubectl_ps(struct kubectl *k)
{
	return print(k, by_name, false);
}

/* Repeats until interrupted; prints once if the output is not a terminal. */
int kubectl_top(struct kubectl *k)
{
	bool goes_on = isatty(STDOUT_FILENO);
	int r;

	for (;;) {
		r = print(k, by_size, goes_on);
		if (r != 0 || !goes_on)
			return r;
		sl_clock_sleep(TOP_EVERY);
	}
}
