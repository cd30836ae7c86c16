/*
 * print - figures of the past as JSON or CSV
 *
 * history/answer.c puts the table together; here it is sorted and written.
 */
#ifndef SL_DAEMON_HISTORY_PRINT_H
#define SL_DAEMON_HISTORY_PRINT_H

#include "daemon/core/map.h"
#include "daemon/history/query.h"

/* Sums (or the largest), as rows of the history have them. */
struct sl_history_figures {
	int64_t use[SL_HISTORY_USE_COLUMNS];
	int64_t gpu[SL_HISTORY_GPU_COLUMNS];
};

/* What a row of the answer is of. */
struct sl_history_key {
	char key[128], name[128];
	size_t number,
		rank; /* in the order they were found; among all, when it is written */
	int64_t first, last; /* seconds: it has rows between the two at most */
	size_t cell;         /* the one that was added to last, + 1; 0: none yet */
	bool any;            /* it has rows */
	struct sl_history_figures total;
};

/* A step of time of one key: only where there is something to say. */
struct sl_history_cell {
	struct sl_history_key *key;
	size_t step;
	struct sl_history_figures figures;
};

struct sl_history_table {
	const struct sl_history_ask *ask;
	struct sl_error *err;
	int64_t from, to, step, first; /* seconds; first: where the first step begins */
	struct sl_history_cell *cells;
	size_t cell_count, cell_room, cells_most;
	struct sl_map by_place; /* of cells: index + 1, by key and step */
	struct sl_history_key **keys;
	size_t key_count;
	struct sl_map by_id; /* numbers of the database to keys */
	bool failed, too_many;
};

/* Rows as of ask->format, sorted by time, and totals by what was allocated. */
void sl_history_print(struct sl_history_table *table, FILE *out);

#endif
