/*
 * scribe - state and steps of the thread that writes the history
 *
 * Used only by that thread, which history/recorder.c runs. Each call is one step; it may block on
 * the loop (through inside.h, with a deadline) and on the disk.
 */
#ifndef SL_DAEMON_HISTORY_SCRIBE_H
#define SL_DAEMON_HISTORY_SCRIBE_H

#include "daemon/history/sample.h"
#include "daemon/link/inside.h"

/* Most workloads, when ended ones wait to be written. */
#define SL_HISTORY_WHO_MAX 10000

/* A workload in the daemon's lists, or one that is still to be written. */
struct sl_history_living {
	struct sl_history_workload row;
	uint32_t user, project; /* indices of its sums */
	bool seen, dirty;       /* in the last sample; to be written */
	bool missed; /* gone from the samples, but its end event has not come yet */
	bool over;   /* freed once it is written */
	uint64_t met_ms, seen_ms; /* times of its first and last sample */
};

struct sl_history_scribe {
	char path[4096];
	struct sl_inside_door *door;
	struct sl_inside asks, hears;
	bool asking, hearing;
	struct sl_history_store *store;
	int64_t reopen_at, told_at;
	int outcome; /* of the last attempt to open the file, and why */
	struct sl_error err;
	/* The history's time is CLOCK_BOOTTIME and this, chosen when the file was first read. */
	int64_t offset_ms;
	bool suspects; /* a reader found damage: the next step checks the whole file */
	struct sl_history_sample samples[2];
	unsigned int current;
	struct sl_history_tables tables;
	struct sl_map by_number; /* of living workloads */
	struct sl_history_living **living;
	size_t living_count, living_room;
	struct sl_history_workload *former; /* living ones of an earlier daemon */
	size_t former_count;                /* 0 after the first sample */
	int64_t former_end; /* where the file ends, until that is written to them */
	bool knows;         /* the file was read: numbers and times can be given */
	struct sl_history_workload *workloads; /* being written */
	size_t workload_count, workload_room;
	struct sl_history_gpu *gpus;
	size_t gpu_count;
	bool gpus_dirty; /* to be written */
	int64_t next_gpu, next_workload;
	struct sl_msg_event_row *events;
	size_t event_count, event_room;
	uint64_t event_serial, first_serial; /* the last one heard; this daemon's first */
	struct sl_history_summing summing;
	uint64_t rows, dropped, bytes, written_ms;
};

/* first_serial: this daemon's first event. NULL: no memory. */
struct sl_history_scribe *sl_history_scribe_new(
	const char *path, struct sl_inside_door *door, uint64_t first_serial);
struct sl_history_scribe *sl_history_scribe_free(struct sl_history_scribe *scribe);

struct sl_history_report {
	int outcome;          /* enum sl_history_store_outcome */
	struct sl_error err;  /* why it is not OK */
	struct sl_error note; /* a problem that was dealt with; "" if none */
	uint64_t rows, dropped, bytes;
	int64_t t;       /* complete up to this second; 0: nothing yet */
	int64_t ahead_s; /* the history's time less the machine's clock */
	bool gone;       /* the daemon is ending */
};

/* Writes what is due. is_second: takes a sample first. tell: also writes rows that are still open,
 * because a reader waits for them. */
void sl_history_scribe_step(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, bool is_second, bool tell,
	struct sl_history_report *report);
/* The history's time in milliseconds: since 1970, as far as the machine's clock was right when
 * sluiced started. It never goes back, and runs on if the clock is set. */
uint64_t sl_history_scribe_now(const struct sl_history_scribe *scribe);
/* A copy of all sums and the state of the history, for another thread. NULL: no memory. */
struct sl_history_sums *sl_history_scribe_sums(
	const struct sl_history_scribe *scribe, const struct sl_history_report *report);

/* The living workload of this row; a new one gets its number in the history. NULL: no memory. */
struct sl_history_living *sl_history_ids_living(struct sl_history_scribe *scribe,
	const struct sl_msg_use_row *row, uint64_t now_ms);
/* After a sample: ends workloads that the daemon no longer lists. */
void sl_history_ids_end(struct sl_history_scribe *scribe);
/* Copies rows to be written into `workloads`; and drops ended workloads that were written (ok), or
 * that are too many. */
void sl_history_ids_collect(struct sl_history_scribe *scribe);
void sl_history_ids_written(struct sl_history_scribe *scribe, bool ok);
/* A GPU's number in the history; 0: no memory. */
int64_t sl_history_ids_gpu(
	struct sl_history_scribe *scribe, const struct sl_msg_gpu_row *row);

#endif
