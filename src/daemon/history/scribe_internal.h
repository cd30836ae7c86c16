/*
 * scribe_internal - shared by history/writer.c, history/ids.c and their test
 */
#ifndef SL_DAEMON_HISTORY_SCRIBE_INTERNAL_H
#define SL_DAEMON_HISTORY_SCRIBE_INTERNAL_H

#include "daemon/history/scribe.h"

/* Most workloads that wait to be written. */
#define SL_HISTORY_WHO_MAX 10000

/* A workload in the daemon's lists. */
struct sl_history_living {
	struct sl_history_workload row;
	uint32_t user, project; /* indices of its sums */
	bool seen, dirty;       /* in the last sample; to be written */
	bool missed; /* gone from the samples, but its end event has not come yet */
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
	bool suspects; /* it may be damaged */
	struct sl_history_sample samples[2];
	unsigned int current;
	struct sl_history_tables tables;
	/* Living workloads, by number. */
	struct sl_map by_number;
	struct sl_history_living **living;
	size_t living_count, living_room;
	struct sl_history_known known; /* of the file, until matched */
	bool first;                    /* no sample was taken yet */
	bool knows; /* the file was read: numbers and times can be given */
	struct sl_history_workload *workloads; /* to be written */
	size_t workload_count, workload_room;
	struct sl_history_gpu *gpus, *new_gpus;
	size_t gpu_count, new_gpu_count;
	int64_t next_gpu, next_workload;
	struct sl_msg_event_row *events;
	size_t event_count, event_room;
	uint64_t event_serial, first_serial; /* the last one heard; this daemon's first */
	struct sl_history_summing summing;
	uint64_t rows, dropped, bytes, written_ms;
};

/* Makes room for one more item of size bytes; NULL: no memory. */
void *sl_history_grow(void *all, size_t count, size_t *room, size_t size);

/* The living workload of this row; a new one gets its number in the history. NULL: no memory. */
struct sl_history_living *sl_history_ids_living(struct sl_history_scribe *scribe,
	const struct sl_msg_use_row *row, uint64_t now_ms);
/* After a sample: queues changed workloads for writing, and ends those that the daemon no longer
 * lists. */
void sl_history_ids_say(struct sl_history_scribe *scribe);
/* After the first sample: ends workloads of an earlier daemon that are gone. */
void sl_history_ids_end_former(struct sl_history_scribe *scribe);
/* A GPU's number in the history; 0: no memory. */
int64_t sl_history_ids_gpu(
	struct sl_history_scribe *scribe, const struct sl_msg_gpu_row *row);

#endif
