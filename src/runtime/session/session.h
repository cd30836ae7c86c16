/*
 * session - what this process and the daemon have told each other
 *
 * Joins when first needed, keeps the GPUs' figures, and survives the daemon: a new daemon gets a
 * report of what is held. Any thread may call these functions. One lock, held for table work and
 * non-blocking sends, never while waiting. Bytes.
 *
 * A grant (demand.h) counts as backing from its arrival on. So a report never leaves out memory
 * that is about to exist, whatever happens to the daemon meanwhile.
 */
#ifndef SL_RUNTIME_SESSION_SESSION_H
#define SL_RUNTIME_SESSION_SESSION_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "runtime/session/gpu.h"

/* Blocks until the daemon has accepted or rejected us. Returns CUDA_SUCCESS, or the error that
 * cuInit and allocations must return from now on. Cheap once joined. */
SL_MUST_CHECK CUresult sl_session_join(void);
/* Starts joining, unless already started, and does not wait. If that fails, sl_session_join tries
 * again. */
void sl_session_join_soon(void);
bool sl_session_is_joined(void);
/* The workload was started with --rdma: its memory is never moved, and new memory may be registered
 * with other devices. Known once joined. */
bool sl_session_is_rdma(void);

/* The GPU of that UUID, or NULL if it is not the workload's. */
struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* The GPU that has, or had at that time, this UUID; or NULL. */
struct sl_gpu *sl_session_gpu_named(
	enum sl_gpu_name name, const uint8_t uuid[SL_WIRE_UUID_BYTES]);
void sl_session_uuid(const struct sl_gpu *gpu, enum sl_gpu_name name,
	uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* The figures for cuMemGetInfo. */
void sl_session_view(struct sl_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes);

/* What is left of the request. */
uint64_t sl_session_entitled(struct sl_gpu *gpu);

void sl_session_freed(struct sl_gpu *gpu, uint64_t bytes);
/* Changes whenever something was freed: a demand denied earlier may be granted now. */
uint32_t sl_session_frees(void);
/* The same for bytes that were on the host. */
void sl_session_freed_evicted(struct sl_gpu *gpu, uint64_t bytes);
/* Call before asking for memory that moves as a whole: the daemon plans with the largest such
 * piece. */
void sl_session_chunk(uint64_t bytes);
/* These bytes have gone to the host or (negative) come back. The control lock is closed. Sends no
 * message. */
void sl_session_evicted(struct sl_gpu *gpu, int64_t bytes);
/* The GPU's bytes that are on the host. */
uint64_t sl_session_evicted_bytes(struct sl_gpu *gpu);
/* Bytes that entered (positive) or left quarantine. Lock-free. */
void sl_session_quarantined(struct sl_gpu *gpu, int64_t bytes);

/* Asks the daemon to measure the hidden bytes and, with span_ns above 0, waits for the answer. */
void sl_session_measure(struct sl_gpu *gpu, sl_ns span_ns);

/* Sends MEASURE for every GPU on which we have a context. False: no connection now. For the
 * agent. */
SL_MUST_CHECK bool sl_session_measure_all(void);

/* The first join calls it under the lock: starts the gate, the agent and the rest of a client
 * (link/start.c). Negative errno or 0. */
extern int (*const sl_session_on_first_join)(void);

#endif
