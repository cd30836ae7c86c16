/*
 * sample - turns the daemon's lists of each second into rows of the history
 *
 * A sample is the content of the command line's lists at one moment. Memory figures hold until the
 * next sample; what counters gained by the next sample, and the utilisation that it measured,
 * belong to the time in between. Pure: times are arguments, nothing is read or written. One thread.
 */
#ifndef SL_DAEMON_HISTORY_SAMPLE_H
#define SL_DAEMON_HISTORY_SAMPLE_H

#include "daemon/history/runs.h"
#include "daemon/history/sums.h"

/* A longer stretch between samples is unknown: the machine slept, or the daemon was stopped. */
#define SL_HISTORY_GAP_S 60
/* An older utilisation counts as unknown. */
#define SL_HISTORY_MEASURED_MS 5000

#define SL_HISTORY_GPU_NUMBERS 64

/* One workload on one of its GPUs. */
struct sl_history_seen {
	uint64_t workload;           /* the daemon's number */
	uint32_t gpu;                /* the daemon's number */
	uint32_t residency, ordinal; /* enum sl_wire_residency; 0: its first GPU */
	uint64_t request_bytes, limit_bytes, backing_bytes, hidden_bytes, evicted_bytes;
	uint64_t turns, out_bytes, in_bytes, clean_bytes, waits, waits_ms, denials;
	uint64_t compute_us, compute_alone_us; /* had so far */
	uint32_t compute_request_pm;
	bool metered;
	uint64_t waited_ms, turn_left_ms; /* waited_ms: to be back on its GPUs */
	uint32_t waiting;
	uint64_t waiting_bytes;
	uint32_t clients, idle_clients;
	uint64_t idle_ms; /* the shortest idle time among its idle clients */
	uint32_t work_pm; /* its share of the GPU's work in thousandths; UINT32_MAX: not
				 * known */
	int64_t id;       /* the workload's number in the history */
	bool fresh;       /* in no earlier sample: all it counted is new */
	uint32_t user, project; /* indices of its sums */
};

struct sl_history_sample {
	int64_t t; /* seconds; 0: none yet */
	struct sl_history_seen *uses;
	size_t count, room;
	struct sl_map by_key; /* of uses: index + 1 */
	struct {
		bool there;
		int64_t id;
		uint32_t place; /* index of its sums */
		struct sl_msg_gpu_row row;
	} gpus[SL_HISTORY_GPU_NUMBERS];
	bool failed; /* not all of it is there: no memory */
};

void sl_history_sample_clear(struct sl_history_sample *sample);
void sl_history_sample_fini(struct sl_history_sample *sample);
/* Takes rows of the lists GPUS, USES, SWAP, CLIENTS, in this order. */
void sl_history_sample_take(struct sl_history_sample *sample, const union sl_msg *row);
struct sl_history_seen *sl_history_sample_find(
	const struct sl_history_sample *sample, uint64_t workload, uint32_t gpu);

struct sl_history_tables {
	struct sl_history_runs runs[SL_HISTORY_KINDS];
	struct sl_history_rows out[SL_HISTORY_KINDS]; /* to be written */
	struct sl_history_summing *summing;           /* NULL: no sums */
};
/* Makes rows of the time between two samples. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_history_sample_rows(const struct sl_history_sample *before,
	const struct sl_history_sample *now, struct sl_history_tables *tables);

/* Writes the part of a command that identifies the program: "python train.py" for
 * "/usr/bin/python3.11 -u train.py --lr 0.1". */
void sl_history_program(const char *command, char *buf, size_t size);

/* The name that groups runs of a workload: its own, or its program's if the daemon chose the name
 * ("python-12", "python-j3"; see sl_field_make_name()). Returns one of its arguments. */
const char *sl_history_group(const char *name, const char *command, const char *program);

#endif
