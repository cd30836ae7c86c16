/*
 * print - sorts a table of figures and writes it as JSON or CSV
 *
 * history/answer.c fills the table.
 */
#ifndef SL_DAEMON_HISTORY_PRINT_H
#define SL_DAEMON_HISTORY_PRINT_H

#include "daemon/core/map.h"
#include "daemon/history/query.h"

/* Sums, or maxima, in the units of the history's rows. */
struct sl_history_figures {
	int64_t use[SL_HISTORY_USE_COLUMNS];
	int64_t gpu[SL_HISTORY_GPU_COLUMNS];
};

/* One group of the answer: a user, project, GPU, workload or program. */
struct sl_history_key {
	char key[128], name[128];
	size_t number, rank; /* in the order found; by total, once sorted */
	int64_t first, last; /* seconds: all its rows lie between the two */
	size_t cell;         /* the one added to last, + 1; 0: none yet */
	bool any;            /* it has rows */
	struct sl_history_figures total;
};

/* One time step of one key; steps without figures have no cell. */
struct sl_history_cell {
	struct sl_history_key *key;
	size_t step;
	struct sl_history_figures figures;
};

struct sl_history_table {
	const struct sl_history_ask *ask;
	struct sl_error *err;
	int64_t from, to, step, first; /* seconds; first: start of the first step */
	struct sl_history_cell *cells;
	size_t cell_count, cell_room, cells_most;
	struct sl_map by_place; /* of cells: index + 1, by key and step */
	struct sl_history_key **keys;
	size_t key_count;
	struct sl_map by_id; /* from numbers of the database to keys */
	bool failed, too_many;
};

/* Writes rows in ask->format sorted by time, and totals sorted by allocation. */
void sl_history_print(struct sl_history_table *table, FILE *out);

#endif
