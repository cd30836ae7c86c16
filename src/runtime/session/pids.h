/*
 * pids - which processes of the workload use a GPU
 *
 * The daemon reports them, with pids of our own pid namespace (messages.def, PIDS). One thread asks
 * at a time, and waits for the answer at most 250 ms. Without an answer the list has only this
 * process. Sizes are bytes.
 */
#ifndef SL_RUNTIME_SESSION_PIDS_H
#define SL_RUNTIME_SESSION_PIDS_H

#include "runtime/session/gpu.h"

/* Longest list. */
#define SL_PIDS_LIST_MAX 512

struct sl_pids {
	uint32_t count;
	bool same; /* NVML's numbers are ours: same pid namespace */
	struct sl_wire_pid rows[SL_PIDS_LIST_MAX];
};

/* For a GPU of the workload, after the join. If the daemon does not answer, the list has this
 * process, provided it holds anything there. */
void sl_pids_list(struct sl_gpu *gpu, struct sl_pids *out);

/* Under the session's lock: an answer, or part of one. */
void sl_pids_on_rows(const struct sl_msg_pids_rows *msg);
/* In the child of a fork. */
void sl_pids_forget(void);

#endif
