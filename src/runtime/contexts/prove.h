/*
 * prove - has the GPU finished what this process gave it?
 *
 * A helper thread calls cuCtxSynchronize for one context after the other. When such a call returns,
 * the context's work submitted before the call is finished. Callers ask for a proof and poll its
 * progress; only the swap thread waits for it, with a deadline. While a stream capture is open
 * nothing is proved. Contexts are known from their creation; the thread leaves a context before it
 * is destroyed. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_PROVE_H
#define SL_RUNTIME_CONTEXTS_PROVE_H

#include "base/clock.h"
#include "base/cuda_types.h"

struct sl_proof {
	/* The first so many of sl_gate_submissions() are known to be finished */
	uint64_t submissions;
	sl_ns started_ns, ended_ns; /* of the last proof that was requested */
	bool running;
	/* The proof failed: a capture was open, the thread could not start, or the driver failed */
	bool refused;
	bool no_thread; /* refused because the thread could not start */
	bool failed; /* refused because the driver did not say whether the work has ended */
};

/* Begins a proof of all that was submitted so far, unless a proof is running. Never blocks. */
void sl_prove_ask(void);
void sl_prove_look(struct sl_proof *out);

enum sl_prove_outcome {
	SL_PROVE_IDLE = 0,
	/* A capture is open, a context is being destroyed, or the driver failed: try again later */
	SL_PROVE_REFUSED,
	SL_PROVE_LATE, /* the deadline has passed, or *stop was set (atomic) */
};
/* Waits for a proof that begins after this call. */
SL_MUST_CHECK int sl_prove_idle(sl_ns deadline_ns, const uint32_t *stop);

/* ctx was created on dev (-1: a device that we do not swap). Twice does no harm. */
void sl_prove_created(CUcontext ctx, CUdevice dev);
/* Memory may be moved from now on: existing and future contexts get the hash (hash.h). */
void sl_prove_hash_all(void);
/* The same for a context whose destruction failed. */
void sl_prove_hash(CUcontext ctx);
/* Before a call that may destroy ctx: returns when no proof is inside. NULL: does nothing. */
void sl_prove_hold(CUcontext ctx);
void sl_prove_unhold(CUcontext ctx, bool gone);

/* All known contexts that are not about to be destroyed, oldest first, at most `room`. Returns the
 * number. */
size_t sl_prove_contexts(CUcontext *out, size_t room);
/* In the child of a fork. */
void sl_prove_forget(void);

#endif
