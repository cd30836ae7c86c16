/*
 * read - rows of history.db for those who read it
 *
 * Any thread, each with a reader of its own; the file is opened read-only, and what is read is as
 * of one moment, however long it takes and whatever is written meanwhile. A reader gives up after
 * SL_HISTORY_READ_MS, so that nobody keeps the file from being tidied up.
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
	const atomic_bool *cancel; /* NULL: nothing does */
	/* Levels end where they are rolled up to, and begin behind what was deleted. */
	int64_t minutes_done, hours_done, seconds_from, minutes_from;
	/* Of the workload that is asked for alone, as its row has it. 0: not known. */
	int64_t gpu_mask;
};

/* SL_HISTORY_STORE_*; *reader may be closed after every outcome. cancel: reading ends when it turns
 * true; may be NULL. */
SL_MUST_CHECK int sl_history_reader_open(struct sl_history_reader *reader,
	const char *path, const atomic_bool *cancel, struct sl_error *err);
void sl_history_reader_close(struct sl_history_reader *reader);
/* What the last call on its database said. */
SL_MUST_CHECK int sl_history_reader_failed(
	struct sl_history_reader *reader, struct sl_error *err);

/* False ends the reading; the caller knows why. */
typedef bool (*sl_history_row_fn)(void *context, const struct sl_history_row *row);
/* Every row that has a part in [from, to), of this level; of finer ones at the ends and where
 * nothing is rolled up yet, of the one above where it does not reach back any more.
 * No second of a GPU and workload comes twice. only: this workload, 0: all. SL_HISTORY_STORE_OK,
 * also where fn ended it. */
SL_MUST_CHECK int sl_history_read_rows(struct sl_history_reader *reader,
	enum sl_history_kind kind, enum sl_history_level level, int64_t from, int64_t to,
	int64_t only, sl_history_row_fn fn, void *context, struct sl_error *err);

/* The part of a row's value that lies in [from, to): parts of a row add up to the whole. */
int64_t sl_history_part(
	const struct sl_history_row *row, uint32_t column, int64_t from, int64_t to);

#endif
