/*
 * session - what this process and the daemon have told each other
 *
 * Joins at the first need, keeps the GPUs' figures, and survives the daemon: a new daemon is told
 * what is held. Threads call everything here. One lock, held for table work and sends that cannot
 * block, never while waiting. Bytes.
 *
 * A grant (demand.h) counts as backing from its arrival on: whatever happens to the daemon in
 * between, a report never leaves out memory that is about to exist.
 */
#ifndef SL_RUNTIME_SESSION_SESSION_H
#define SL_RUNTIME_SESSION_SESSION_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "runtime/session/gpu.h"

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

/* MEASURE for every GPU on which we have a context. False: nobody hears us now. For the agent. */
SL_MUST_CHECK bool sl_session_measure_all(void);

/* Called by the first join, under the lock: starts the gate, the agent and what else a client has
 * (link/start.c). Negative errno or 0. */
extern int (*const sl_session_on_first_join)(void);

#endif
