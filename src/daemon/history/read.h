/*
 * read - reads history.db by SQL
 *
 * Any thread, each with a reader of its own. The file is opened read-only, and a reader sees it as
 * of one moment, whatever is written meanwhile. A reader gives up after SL_HISTORY_READ_MS, because
 * an open reader keeps the file from being tidied. It has tables of its own, in memory.
 */
#ifndef SL_DAEMON_HISTORY_READ_H
#define SL_DAEMON_HISTORY_READ_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/history/store.h"

#define SL_HISTORY_READ_MS 20000

struct sl_history_reader {
	sqlite3 *db;
	char path[4096];
	sl_ns give_up;
	const atomic_bool *cancel; /* ends the reading when it turns true; may be NULL */
	/* Where rows of a level begin (older ones were deleted) and end (rolled up to). */
	int64_t from[SL_HISTORY_LEVELS], done[SL_HISTORY_LEVELS];
};

/* SL_HISTORY_STORE_*; close *reader after every outcome. cancel: reading ends when it turns true;
 * may be NULL. */
SL_MUST_CHECK int sl_history_reader_open(struct sl_history_reader *reader,
	const char *path, const atomic_bool *cancel, struct sl_error *err);
void sl_history_reader_close(struct sl_history_reader *reader);
/* The outcome and error of the last call on its database. */
SL_MUST_CHECK int sl_history_reader_failed(
	struct sl_history_reader *reader, struct sl_error *err);
/* Runs SQL; takes a printf format of SQLite, which has %Q for a quoted text. False: see failed. */
SL_MUST_CHECK bool sl_history_reader_run(
	struct sl_history_reader *reader, const char *format, ...);
/* NULL: see failed. */
SL_MUST_CHECK sqlite3_stmt *sl_history_reader_ask(
	struct sl_history_reader *reader, const char *format, ...);
/* For sl_cleanup. */
void sl_history_statement_end(sqlite3_stmt **statement);

/* A part of a question's time that one level answers. */
struct sl_history_part {
	enum sl_history_level level;
	int64_t from, to;
};
#define SL_HISTORY_PARTS_MAX 8
/* Divides [from, to) into parts, so that each second is read from one level only. `level` serves
 * what it has in whole rows; finer levels serve the ends and what is not rolled up yet; the coarser
 * level serves what `level` no longer has. Returns the number of parts. */
size_t sl_history_parts(const struct sl_history_reader *reader,
	enum sl_history_level level, int64_t from, int64_t to,
	struct sl_history_part out[SL_HISTORY_PARTS_MAX]);

/* --- cells: figures by key and step of time --------------------------------------------------- */

struct sl_history_cut {
	int64_t from, to;    /* seconds */
	int64_t first, step; /* start of step 0, length of each */
	enum sl_history_level level;
	int64_t only;   /* a single workload; 0: all */
	bool by_gpu;    /* keys are of GPUs, not of workloads */
	uint64_t steps; /* numbers in the table n, at least */
	uint64_t most;  /* cells */
};
/* Makes the empty tables
 *	keys (id, key, name, begun, ended)  id: of a workload or GPU; times in seconds
 *	cells (s, key, name, covered, ...)  step, key, seconds with figures, and all columns; by
 *					    GPU, also those of GPUs, as gpu_...
 *	n (i)                               0, 1, 2, ... */
SL_MUST_CHECK bool sl_history_cells_make(struct sl_history_reader *reader, bool by_gpu);
/* Adds the rows of this kind to cells. A row that spans several steps gives each its part, so cells
 * add up to exactly the rows. SL_HISTORY_STORE_*; FULL: more than `most` cells. */
SL_MUST_CHECK int sl_history_cells_fill(struct sl_history_reader *reader,
	enum sl_history_kind kind, const struct sl_history_cut *cut,
	struct sl_error *err);

/* --- printing --------------------------------------------------------------------------------- */

/* Writes the first columns of the current row as members of a JSON object, without braces. */
void sl_history_print_members(sqlite3_stmt *statement, int columns, FILE *out);
/* Writes all rows, as JSON objects with a comma between two, or as CSV with a head; ends the
 * statement. False: see failed. */
SL_MUST_CHECK bool sl_history_print_rows(sqlite3_stmt *statement, bool csv, FILE *out);

#endif
