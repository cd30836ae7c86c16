/*
 * read - reads rows of history.db
 *
 * Any thread, each with a reader of its own. The file is opened read-only, and a reader sees it as
 * of one moment, whatever is written meanwhile. A reader gives up after SL_HISTORY_READ_MS, because
 * an open reader keeps the file from being tidied.
 */
#ifndef SL_DAEMON_HISTORY_READ_H
#define SL_DAEMON_HISTORY_READ_H

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "daemon/history/store.h"

#define SL_HISTORY_READ_MS 20000

struct sl_history_reader {
	sqlite3 *db;
	char path[4096];
	sl_ns give_up;
	const atomic_bool *cancel; /* ends the reading when it turns true; may be NULL */
	/* Where rows of a level end (rolled up to) and begin (deleted up to). */
	int64_t minutes_done, hours_done, seconds_from, minutes_from;
	/* GPUs of the one workload asked for, from its row. 0: not known. */
	int64_t gpu_mask;
};

/* SL_HISTORY_STORE_*; close *reader after every outcome. cancel: reading ends when it turns true;
 * may be NULL. */
SL_MUST_CHECK int sl_history_reader_open(struct sl_history_reader *reader,
	const char *path, const atomic_bool *cancel, struct sl_error *err);
void sl_history_reader_close(struct sl_history_reader *reader);
/* The outcome and error of the last call on its database. */
SL_MUST_CHECK int sl_history_reader_failed(
	struct sl_history_reader *reader, struct sl_error *err);

/* Returns false to end the reading. */
typedef bool (*sl_history_row_fn)(void *context, const struct sl_history_row *row);
/* Calls fn with every row of this level that overlaps [from, to). Finer levels fill the ends and
 * what is not rolled up yet; the coarser level fills what this one no longer has. Each second of a
 * GPU and workload comes once. only: a single workload, 0: all. SL_HISTORY_STORE_OK, also if fn
 * ended it. */
SL_MUST_CHECK int sl_history_read_rows(struct sl_history_reader *reader,
	enum sl_history_kind kind, enum sl_history_level level, int64_t from, int64_t to,
	int64_t only, sl_history_row_fn fn, void *context, struct sl_error *err);

/* The part of a row's value that lies in [from, to): parts of a row add up to the whole. */
int64_t sl_history_part(
	const struct sl_history_row *row, uint32_t column, int64_t from, int64_t to);

#endif
