/*
 * session - what this process and the daemon have told each other
 *
 * Joins at the first need, keeps the GPUs' figures, carries demands of threads to the daemon and
 * answers back, and survives the daemon: when it comes back, it is told what is held and asked
 * again for what is wanted. Threads call everything here except the section for the agent.
 * One lock, held for table work and sends that cannot block, never while waiting. Bytes.
 *
 * A grant counts as backing from its arrival on: whatever happens to the daemon in between, a
 * report never leaves out memory that is about to exist.
 */
#ifndef SL_RUNTIME_SESSION_SESSION_H
#define SL_RUNTIME_SESSION_SESSION_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/session/line.h"

#define SL_GPUS_MAX 64

/* One GPU of the workload. Fields are the session lock's. Never moves. */
struct sl_gpu {
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	uint32_t ordinal;
	uint32_t serial; /* futex: counts GPU messages */
	uint64_t total_bytes, limit_bytes, request_bytes, others_bytes;
	uint64_t backing_bytes; /* ours, granted ones included */
	uint64_t evicted_bytes; /* of these: on the host */
	int64_t held_bytes; /* of these: must not be evicted (held.h); briefly below 0 */
	uint64_t told_held_bytes;   /* as the daemon knows it */
	uint64_t quarantined_bytes; /* of these: would come back if we flushed; atomic */
	bool has_context;           /* atomic: is measured when hidden bytes change */
};

/* Blocks until the daemon has said yes or no. CUDA_SUCCESS, or what cuInit and allocations are to
 * return for ever. Cheap once joined. */
SL_MUST_CHECK CUresult sl_session_join(void);
/* Starts joining, unless that was done before, and does not wait. Where it fails to start,
 * sl_session_join tries again. */
void sl_session_join_soon(void);
bool sl_session_is_joined(void);
/* The workload was started with --rdma: none of its memory is ever moved, and what is made may be
 * registered with other devices. Known once joined. */
bool sl_session_is_rdma(void);

/* The GPU of that UUID, or NULL if it is not the workload's. */
struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* As cuMemGetInfo tells them. */
void sl_session_view(struct sl_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes);

/* What is left of the request. */
uint64_t sl_session_entitled(struct sl_gpu *gpu);

enum sl_demand_outcome {
	SL_DEMAND_GRANTED = 0, /* create, then sl_demand_commit or sl_demand_failed */
	SL_DEMAND_DENIED,      /* demand.denial tells what the program gets */
	SL_DEMAND_REFUSED, /* the daemon no longer wants us; sl_session_join tells the result */
};

enum sl_demand_state { SL_DEMAND_WAITING = 0, SL_DEMAND_DONE };

/* On the asking thread's stack until its outcome. */
struct sl_demand {
	struct sl_link link;
	struct sl_gpu *gpu;
	uint64_t number, bytes, granted_bytes, epoch;
	uint32_t flags;      /* SL_ASK_* */
	uint32_t generation; /* connection that granted it */
	uint32_t state;      /* futex, enum sl_demand_state */
	int outcome;
	CUresult denial; /* what the program is to get when it is denied */
};

/* Asks and waits without end. on_slow (may be NULL) is called once if the answer takes more than
 * a few milliseconds, so that the caller can give back what it hoards. */
SL_MUST_CHECK int sl_demand_ask(struct sl_demand *demand, struct sl_gpu *gpu,
	uint64_t bytes, void (*on_slow)(void));
/* The same of memory that is something special, or of a context: flags are SL_ASK_* of wire.h. With
 * SL_ASK_HELD what is committed counts as held; with SL_ASK_THERE nothing is committed or failed:
 * granted, it is. */
SL_MUST_CHECK int sl_demand_ask_as(struct sl_demand *demand, struct sl_gpu *gpu,
	uint64_t bytes, uint32_t flags, void (*on_slow)(void));
/* The driver had no memory after all: back into the queue. Outcomes as sl_demand_ask. */
SL_MUST_CHECK int sl_demand_failed(struct sl_demand *demand, CUresult result);
/* Of the grant, used_bytes exist now. */
void sl_demand_commit(struct sl_demand *demand, uint64_t used_bytes);

void sl_session_freed(struct sl_gpu *gpu, uint64_t bytes);
/* Another number as soon as something was freed: what was denied before that may be granted now. */
uint32_t sl_session_frees(void);
/* The same of bytes that were on the host. */
void sl_session_freed_evicted(struct sl_gpu *gpu, uint64_t bytes);
/* Something is to be made that moves as a whole: the daemon plans with the largest ever. Before it
 * is asked for. */
void sl_session_chunk(uint64_t bytes);
/* So many bytes have gone to the host, or (negative) come back. The control lock is closed. No
 * message. */
void sl_session_evicted(struct sl_gpu *gpu, int64_t bytes);
/* What of it is on the host. */
uint64_t sl_session_evicted_bytes(struct sl_gpu *gpu);
/* Bytes that began (positive) or ceased to be held for no live allocation. Lock-free. */
void sl_session_quarantined(struct sl_gpu *gpu, int64_t bytes);

/* Asks the daemon to measure the hidden bytes and, with span_ns above 0, waits for the answer. */
void sl_session_measure(struct sl_gpu *gpu, sl_ns span_ns);

/* In the child of a fork: everything is forgotten, nothing of the parent's is touched. */
void sl_session_forget(void);

/* --- for the agent ------------------------------------------------------------------- */

/* What listens at the socket is a stranger's. LOST: this process is a client, and the daemon may
 * come back; REJECTED: it is not, and joining has failed. */
SL_MUST_CHECK int sl_session_distrust(const char *why);
/* The process has no descriptor left for a line. Calls that wait for the first one fail, as the
 * driver's own would, instead of waiting for as long as that lasts; the next one tries again. */
void sl_session_starve(void);
/* Says HELLO on a new line. False: lost. */
bool sl_session_greet(struct sl_line *line);
enum sl_session_outcome {
	SL_SESSION_OK = 0,
	SL_SESSION_LOST,     /* drop the line and try again */
	SL_SESSION_AGAIN,    /* drop the line and try again at once */
	SL_SESSION_REJECTED, /* drop the line; the agent ends */
	SL_SESSION_AGENT, /* GATE, PROBE, EVICT and the like: out of this unit's hands */
};
/* What it wants of the descriptors that came with it it takes out of fds. */
SL_MUST_CHECK int sl_session_handle(const union sl_msg *msg, struct sl_wire_fds *fds);
/* Reads into *out; outcomes of sl_line_recv. */
SL_MUST_CHECK int sl_session_recv(union sl_msg *out, struct sl_wire_fds *fds);
bool sl_session_send(union sl_msg *msg);
/* Sends what was kept. False: lost. */
bool sl_session_flush(void);
bool sl_session_has_kept(void);
/* See sl_line_is_crowded(). */
bool sl_session_is_crowded(void);
void sl_session_drop_line(void);
int sl_session_fd(void);
/* MEASURE for every GPU on which we have a context. False: nobody hears us now. */
SL_MUST_CHECK bool sl_session_measure_all(void);

#endif
