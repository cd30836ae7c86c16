/*
 * pids - which processes of the workload use a GPU
 *
 * The daemon tells them, numbered as in our own pid namespace (messages.def, PIDS). Threads ask one
 * after the other and wait for a quarter of a second at most: without an answer the caller has to
 * do with itself. Bytes.
 */
#ifndef SL_RUNTIME_SESSION_PIDS_H
#define SL_RUNTIME_SESSION_PIDS_H

#include "runtime/session/gpu.h"

/* The most that is ever told. */
#define SL_PIDS_LIST_MAX 512

struct sl_pids {
	uint32_t count;
	bool same; /* NVML's numbers are ours: no namespace lies between */
	struct sl_wire_pid rows[SL_PIDS_LIST_MAX];
};

/* Of a GPU of the workload, after the join. Without an answer from the daemon: ourselves, if we
 * hold anything there. */
void sl_pids_list(struct sl_gpu *gpu, struct sl_pids *out);

/* Under the session's lock: an answer, or a part of one. */
void sl_pids_on_rows(const struct sl_msg_pids_rows *msg);
/* In the child of a fork. */
void sl_pids_forget(void);

#endif
