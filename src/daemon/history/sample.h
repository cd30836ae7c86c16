/*
 * sample - from what the daemon says each second to rows of the history
 *
 * A sample is what the lists of the command line say at a moment. What a sample says of memory
 * holds until the next one; what the next one has counted since, and the utilisation it measured,
 * belong to the time between the two. Pure: times are arguments, nothing is read or written. One
 * thread.
 */
#ifndef SL_DAEMON_HISTORY_SAMPLE_H
#define SL_DAEMON_HISTORY_SAMPLE_H

#include "daemon/history/runs.h"
#include "daemon/history/sums.h"

/* A stretch between samples that is longer is unknown: the machine slept, or the daemon was
 * stopped. */
#define SL_HISTORY_GAP_S 60
/* A utilisation that was measured longer ago is not known any more. */
#define SL_HISTORY_MEASURED_MS 5000

#define SL_HISTORY_GPU_NUMBERS 64

/* One workload on one of its GPUs. */
struct sl_history_seen {
	uint64_t workload;           /* the daemon's number */
	uint32_t gpu;                /* the daemon's number */
	uint32_t residency, ordinal; /* enum sl_wire_residency; 0: its first GPU */
	uint64_t request_bytes, limit_bytes, backing_bytes, hidden_bytes, evicted_bytes;
	uint64_t turns, out_bytes, in_bytes, clean_bytes, waits, waits_ms, denials;
	uint64_t waited_ms, turn_left_ms; /* since when it waits to be back */
	uint32_t waiting;
	uint64_t waiting_bytes;
	uint32_t clients, idle_clients;
	uint64_t idle_ms;       /* of those that are idle, the shortest */
	uint32_t work_pm;       /* of what was done on the GPU; UINT32_MAX: not known */
	int64_t id;             /* the workload's in the history */
	bool fresh;             /* it was in no look before: all it counted is new */
	uint32_t user, project; /* places of its sums */
};

struct sl_history_sample {
	int64_t t; /* seconds; 0: none yet */
	struct sl_history_seen *uses;
	size_t count, room;
	struct sl_map by_key; /* of uses: index + 1 */
	struct {
		bool there;
		int64_t id;
		uint32_t place; /* of its sums */
		struct sl_msg_gpu_row row;
	} gpus[SL_HISTORY_GPU_NUMBERS];
	/* Workloads that waited: for whether a wait is a new one. */
	bool failed; /* no memory for all of it */
};

void sl_history_sample_clear(struct sl_history_sample *sample);
void sl_history_sample_fini(struct sl_history_sample *sample);
/* Rows of the lists GPUS, USES, SWAP, CLIENTS, in this order. */
void sl_history_sample_take(struct sl_history_sample *sample, const union sl_msg *row);
struct sl_history_seen *sl_history_sample_find(
	const struct sl_history_sample *sample, uint64_t workload, uint32_t gpu);

struct sl_history_tables {
	struct sl_history_runs runs[SL_HISTORY_KINDS];
	struct sl_history_rows out[SL_HISTORY_KINDS]; /* to be written */
	struct sl_history_summing *summing;           /* NULL: nobody asks */
};
/* What was between the two, into rows. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_history_sample_rows(const struct sl_history_sample *before,
	const struct sl_history_sample *now, struct sl_history_tables *tables);

/* Time as the history has it. */
struct sl_history_clock {
	uint64_t last_ms;
	sl_ns at;
};
/* Milliseconds since 1970; real_ms: of the machine's clock; now: monotonic. Where the machine's
 * clock is a little behind, time goes on from where it was, half as fast, until that has caught up:
 * no time is twice. One that is more than SL_HISTORY_BEHIND_S behind is followed, and what is
 * returned is less than it was. */
uint64_t sl_history_clock_ms(struct sl_history_clock *clock, uint64_t real_ms, sl_ns now);

/* What of a command says which program it is: "python train.py" of "/usr/bin/python3.11 -u train.py
 * --lr 0.1". */
void sl_history_program(const char *command, char *buf, size_t size);

/* What runs of a workload are grouped by: its name, or its program where the daemon chose the name
 * ("python-12", "python-j3"; see sl_field_make_name()). Returns one of its arguments. */
const char *sl_history_group(const char *name, const char *command, const char *program);

#endif
