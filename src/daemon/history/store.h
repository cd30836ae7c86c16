/*
 * store - what is kept of the past: data_dir/history.db
 *
 * SQLite in WAL mode. One thread (the scribe) owns a struct sl_history_store and is the only
 * writer; who reads opens the file by itself, read-only (history/query.h). Everything written at a
 * time is one transaction: after a crash the file has all of it or none.
 *
 * Three levels: seconds, minutes, hours. Rows are written to the first, rolled up into the next
 * when a minute or an hour is over, and deleted when they are older than what is to be kept; what
 * is not rolled up yet is never deleted. How far each level is rolled up stands in the table `meta`
 * and changes with it, so a roll-up happens exactly once, also when it has to be made up for after
 * a crash.
 *
 * Times are whole seconds since 1970 that do not go back without sl_history_store_go_back(); the
 * caller sees to that.
 */
#ifndef SL_DAEMON_HISTORY_STORE_H
#define SL_DAEMON_HISTORY_STORE_H

#include <time.h>

#include "base/error.h"
#include "wire/wire.h"

#define SL_HISTORY_FILE "history.db"
/* A clock that is further behind what is in the file is believed: the one before was ahead. */
#define SL_HISTORY_BEHIND_S 600

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
#define SL_HISTORY_COLUMNS_MAX 20

enum sl_history_kind { SL_HISTORY_USES = 0, SL_HISTORY_GPUS, SL_HISTORY_KINDS };
enum sl_history_level {
	SL_HISTORY_SECONDS = 0,
	SL_HISTORY_MINUTES,
	SL_HISTORY_HOURS,
	SL_HISTORY_LEVELS
};
enum sl_history_fold { SL_HISTORY_SUM = 0, SL_HISTORY_MAX };

/* What a kind is made of. */
struct sl_history_columns {
	const char *const *names;
	const uint8_t *folds; /* enum sl_history_fold */
	uint32_t count;
};
extern const struct sl_history_columns sl_history_columns[SL_HISTORY_KINDS];
/* "seconds", "gpu_hours" */
extern const char *const sl_history_tables[SL_HISTORY_KINDS][SL_HISTORY_LEVELS];
/* Seconds that a row of a level spans at most; t of minutes and hours is a multiple of it. */
extern const int64_t sl_history_grains[SL_HISTORY_LEVELS];

/* gpu, workload: numbers of the tables of those names. workload 0 for SL_HISTORY_GPUS. span: for so
 * long there was something to say; reach, of rows that were read: values are spread over so many
 * seconds from t. */
struct sl_history_row {
	int64_t t, span, reach, gpu, workload;
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
	int64_t gpu_mask; /* bit i: it has rows of GPU i; below 0: of nobody knows which */
	uint64_t begun_ms, ended_ms; /* ended_ms 0: it lives, as far as is known */
	char name[64], project[64], program[128], command[128], user[64];
};

/* One transaction. What is in it is the caller's. */
struct sl_history_batch {
	const struct sl_history_gpu *gpus;
	size_t gpu_count;
	const struct sl_history_workload *workloads;
	size_t workload_count;
	const struct sl_history_row *rows[SL_HISTORY_KINDS];
	size_t row_count[SL_HISTORY_KINDS];
	const struct sl_msg_event_row *events;
	size_t event_count;
};

/* How long rows stay, and how large it may get. 0 seconds: not longer than it takes to roll them
 * up; of hours: none. */
struct sl_history_keep {
	int64_t seconds[SL_HISTORY_LEVELS];
	uint64_t bytes, events;
};

enum sl_history_store_outcome {
	SL_HISTORY_STORE_OK = 0,
	SL_HISTORY_STORE_BUSY, /* somebody else holds it; again later */
	SL_HISTORY_STORE_FULL, /* no room on the disk, or it does not work; again later */
	SL_HISTORY_STORE_DAMAGED, /* it is no database any more; see sl_history_store_set_aside */
	SL_HISTORY_STORE_BAD /* it cannot be opened, or a newer sluiced made it */
};

/* For the mask of a workload that has a row of this GPU. */
static inline int64_t sl_history_gpu_bit(int64_t gpu)
{
	return gpu > 0 && gpu < 63 ? (int64_t)1 << gpu : INT64_MIN;
}

struct sl_history_store;

/* Opens or makes it. err says what is wrong and the remedy on all but OK. */
SL_MUST_CHECK int sl_history_store_open(
	const char *path, struct sl_history_store **out, struct sl_error *err);
/* NULL is fine; returns NULL. */
struct sl_history_store *sl_history_store_close(struct sl_history_store *store);
/* Moves a damaged one, which nobody has open any more, to PATH.damaged-DATE, keeps the newest three
 * of those, and says in err what was done. 0 or negative errno. */
SL_MUST_CHECK int sl_history_store_set_aside(
	const char *path, time_t now, struct sl_error *err);

/* What it has, for who goes on with it. */
struct sl_history_known {
	int64_t end; /* no row reaches beyond it, but for those ahead; 0: there are none */
	/* Rows begin more than SL_HISTORY_BEHIND_S after now, the last there; 0: none do */
	int64_t ahead;
	int64_t gpu_id, workload_id;        /* the largest that were given */
	uint64_t event_serial;              /* the largest */
	struct sl_history_gpu *gpus;        /* all; free(3) */
	struct sl_history_workload *living; /* those without an end; free(3) */
	size_t gpu_count, living_count;
};
SL_MUST_CHECK int sl_history_store_known(struct sl_history_store *store, int64_t now,
	struct sl_history_known *out, struct sl_error *err);

/* Writing goes on from now, though there are later rows. They stay where they are until time gets
 * there. */
SL_MUST_CHECK int sl_history_store_go_back(
	struct sl_history_store *store, int64_t now, struct sl_error *err);
/* Events that have the serials from first on, which are to come, get smaller ones in the same
 * order. */
SL_MUST_CHECK int sl_history_store_events_before(
	struct sl_history_store *store, uint64_t first, struct sl_error *err);

/* Writes a batch, a row in place of one with the same key; then rolls up what is over at `now`, and
 * deletes some of what is not to be kept (so that no call takes long; what is left is the next
 * ones'). All or nothing. */
SL_MUST_CHECK int sl_history_store_write(struct sl_history_store *store,
	const struct sl_history_batch *batch, int64_t now,
	const struct sl_history_keep *keep, struct sl_error *err);
/* Looks at all of it, for who was told by a reader that it is damaged: OK or DAMAGED. Takes CHECK_S
 * at most; what is not looked at by then is as the reader says. */
SL_MUST_CHECK int sl_history_store_check(
	struct sl_history_store *store, struct sl_error *err);
/* Bytes of what is written and not in the file itself yet (its -wal). Readers keep it from
 * beginning anew. */
uint64_t sl_history_store_wal_bytes(const struct sl_history_store *store);
/* Begins it anew. False: somebody reads. */
SL_MUST_CHECK bool sl_history_store_checkpoint(struct sl_history_store *store);
/* Bytes that are in use in the file. */
uint64_t sl_history_store_bytes(struct sl_history_store *store);

#endif
