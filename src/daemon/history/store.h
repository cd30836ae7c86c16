/*
 * store - the file of the history: data_dir/history.db
 *
 * SQLite in WAL mode. One thread (the scribe) owns a struct sl_history_store and is the only
 * writer; readers open the file themselves, read-only (history/read.h). Each write is one
 * transaction: after a crash the file has all of it or none.
 *
 * Three levels: seconds, minutes, hours. Rows enter at seconds, are rolled up into the next level
 * when a minute or hour is over, and are deleted once older than configured. The table `meta` holds
 * how far minutes and hours are rolled up, and changes in the same transaction. So each roll-up
 * happens exactly once, and no row is deleted before it is rolled up. Seconds are deleted by the
 * minute, and minutes by the hour, so a level has all of its rows from its first one on.
 *
 * Times are seconds of the history (history/sample.h), which never go back.
 */
#ifndef SL_DAEMON_HISTORY_STORE_H
#define SL_DAEMON_HISTORY_STORE_H

#include <sqlite3.h>
#include <time.h>

#include "base/error.h"
#include "wire/wire.h"

#define SL_HISTORY_FILE "history.db"

enum sl_history_use_column {
#define SL_HISTORY_USE(name, fold, what) SL_HISTORY_USE_##name,
#define SL_HISTORY_GPU(name, fold, what)
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
	SL_HISTORY_USE_COLUMNS
};
enum sl_history_gpu_column {
#define SL_HISTORY_USE(name, fold, what)
#define SL_HISTORY_GPU(name, fold, what) SL_HISTORY_GPU_##name,
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
	SL_HISTORY_GPU_COLUMNS
};
#define SL_HISTORY_COLUMNS_MAX 23

enum sl_history_kind { SL_HISTORY_USES = 0, SL_HISTORY_GPUS, SL_HISTORY_KINDS };
enum sl_history_level {
	SL_HISTORY_SECONDS = 0,
	SL_HISTORY_MINUTES,
	SL_HISTORY_HOURS,
	SL_HISTORY_LEVELS
};

/* The columns of a kind of row. */
struct sl_history_column {
	const char *name;
	bool is_max; /* rolled up by its maximum, not its sum */
};
struct sl_history_columns {
	const struct sl_history_column *all;
	uint32_t count;
};
extern const struct sl_history_columns sl_history_columns[SL_HISTORY_KINDS];
/* Appends sum or max for each column, as it is rolled up; its name replaces up to four %s. */
void sl_history_sql_columns(
	sqlite3_str *sql, enum sl_history_kind kind, const char *sum, const char *max);
/* names of tables: "seconds", "gpu_hours" */
extern const char *const sl_history_tables[SL_HISTORY_KINDS][SL_HISTORY_LEVELS];
/* Most seconds that a row of a level spans; t of minutes and hours is a multiple of it. */
extern const int64_t sl_history_grains[SL_HISTORY_LEVELS];

/* gpu, workload: numbers in the tables of those names; workload 0 in SL_HISTORY_GPUS. span: seconds
 * with figures. */
struct sl_history_row {
	int64_t t, span, gpu, workload;
	int64_t value[SL_HISTORY_COLUMNS_MAX];
};

struct sl_history_gpu {
	int64_t id;
	char uuid[41], name[64];
};

struct sl_history_workload {
	int64_t id;
	uint64_t number; /* the daemon's */
	uint32_t uid, pid, gpus;
	int32_t priority;
	bool observed;
	uint64_t begun_ms, ended_ms; /* ended_ms 0: still alive, as far as is known */
	char name[64], project[64], program[128], command[128], user[64];
};

/* What one transaction writes; the memory is the caller's. */
struct sl_history_batch {
	const struct sl_history_gpu *gpus;
	size_t gpu_count;
	/* Ends all living workloads at this second first; 0: does not. */
	int64_t living_end;
	const struct sl_history_workload *workloads;
	size_t workload_count;
	const struct sl_history_row *rows[SL_HISTORY_KINDS];
	size_t row_count[SL_HISTORY_KINDS];
	const struct sl_msg_event_row *events;
	size_t event_count;
};

/* How long rows stay, and how large the file may get. 0 seconds: rows are deleted once rolled up; 0
 * for hours: none are kept. */
struct sl_history_keep {
	int64_t seconds[SL_HISTORY_LEVELS];
	uint64_t bytes, events;
};

enum sl_history_store_outcome {
	SL_HISTORY_STORE_OK = 0,
	SL_HISTORY_STORE_BUSY, /* another process holds its lock; try later */
	SL_HISTORY_STORE_FULL, /* the disk is full or failing; try later */
	SL_HISTORY_STORE_DAMAGED, /* not a database any more; see sl_history_store_set_aside */
	SL_HISTORY_STORE_OTHER, /* of another version of sluiced; set it aside */
	SL_HISTORY_STORE_BAD    /* of a question: it cannot be answered */
};

void sl_history_take_text(sqlite3_stmt *statement, int column, char *out, size_t size);
/* Makes room for one more item of size bytes; NULL: no memory. */
void *sl_history_grow(void *all, size_t count, size_t *room, size_t size);

struct sl_history_store;

/* Opens or creates the file. On all but OK, err says what is wrong and the remedy. */
SL_MUST_CHECK int sl_history_store_open(
	const char *path, struct sl_history_store **out, struct sl_error *err);
/* NULL is fine; returns NULL. */
struct sl_history_store *sl_history_store_close(struct sl_history_store *store);
/* Moves a closed file to PATH.damaged-DATE or PATH.other-DATE, by outcome. Of damaged ones the
 * newest three are kept. err says what was done. 0 or negative errno. */
SL_MUST_CHECK int sl_history_store_set_aside(
	const char *path, int outcome, time_t now, struct sl_error *err);

/* Reads what a new daemon must know of the file. out must be freed: gpus, living. */
struct sl_history_known {
	int64_t end;                 /* where its rows end; 0: it has none */
	int64_t workload_id, gpu_id; /* highest in use */
	uint64_t event_serial;       /* highest in use */
	struct sl_history_gpu *gpus;
	size_t gpu_count;
	/* That have not ended, as far as it knows; without texts. */
	struct sl_history_workload *living;
	size_t living_count;
};
SL_MUST_CHECK int sl_history_store_known(struct sl_history_store *store,
	struct sl_history_known *out, struct sl_error *err);
/* Lowers the serials of stored events from first on, in the same order, to make room for this
 * daemon's. */
SL_MUST_CHECK int sl_history_store_events_before(
	struct sl_history_store *store, uint64_t first, struct sl_error *err);

/* Writes a batch, replacing rows with the same key; then rolls up what is complete at `now`, and
 * deletes some of what is too old. It deletes only a part, to stay short; later calls continue. All
 * or nothing. */
SL_MUST_CHECK int sl_history_store_write(struct sl_history_store *store,
	const struct sl_history_batch *batch, int64_t now,
	const struct sl_history_keep *keep, struct sl_error *err);
/* Checks the whole file after a reader found damage: OK or DAMAGED. Takes CHECK_S at most; if that
 * is too short, the reader is believed. */
SL_MUST_CHECK int sl_history_store_check(
	struct sl_history_store *store, struct sl_error *err);
/* Bytes in the -wal that are not in the file yet. Readers keep the -wal from starting over. */
uint64_t sl_history_store_wal_bytes(const struct sl_history_store *store);
/* Copies the -wal into the file and starts it over, waiting for readers up to patience_ms. False: a
 * reader prevented it. */
SL_MUST_CHECK bool sl_history_store_checkpoint(
	struct sl_history_store *store, int patience_ms);
/* Bytes in use in the file. */
uint64_t sl_history_store_bytes(struct sl_history_store *store);

#endif
