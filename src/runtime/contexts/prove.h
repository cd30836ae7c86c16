/*
 * prove - has the GPU finished what this process gave it?
 *
 * A thread of its own waits in cuCtxSynchronize for one context after the other: what was submitted
 * before it began is finished when it comes back. Callers ask for a proof and look how far it is;
 * the swap thread alone waits for it, with a deadline. While a stream capture is open nothing is
 * proved. Contexts are known from their creation; one that is about to be destroyed is left first.
 * Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_PROVE_H
#define SL_RUNTIME_CONTEXTS_PROVE_H

#include "base/clock.h"
#include "base/cuda_types.h"

struct sl_proof {
	uint64_t
		submissions; /* so many of sl_gate_submissions() are known to be finished */
	sl_ns started_ns, ended_ns; /* of the last proof that was asked for */
	bool running;
	/* It came to nothing: a capture was open, there was no thread, or it failed */
	bool refused;
	bool no_thread; /* because there was none to be had */
	bool failed;    /* because the driver did not say whether the work has ended */
};

/* Begins a proof of all that was submitted so far, unless one is under way. Never blocks. */
void sl_prove_ask(void);
void sl_prove_look(struct sl_proof *out);

enum sl_prove_outcome {
	SL_PROVE_IDLE = 0,
	/* A capture is open, a context is being destroyed, or the driver failed: perhaps later */
	SL_PROVE_REFUSED,
	SL_PROVE_LATE, /* the deadline has passed, or *stop was set (atomic) */
};
/* A proof that begins after this was called: returns when it has ended. */
SL_MUST_CHECK int sl_prove_idle(sl_ns deadline_ns, const uint32_t *stop);

/* A context there is now, on dev (-1: one that is not ours to swap); twice does no harm. */
void sl_prove_created(CUcontext ctx, CUdevice dev);
/* Memory may be moved from now on: contexts there are, and those to come, get the hash (hash.h). */
void sl_prove_hash_all(void);
/* The same of one that was to be destroyed and is still there. */
void sl_prove_hash(CUcontext ctx);
/* Before a call that may destroy it: returns when no proof is inside. NULL: nothing. */
void sl_prove_hold(CUcontext ctx);
void sl_prove_unhold(CUcontext ctx, bool gone);

/* All that are known and not about to go, in order of their creation, at most `room`. Returns how
 * many. */
size_t sl_prove_contexts(CUcontext *out, size_t room);
/* In the child of a fork. */
void sl_prove_forget(void);

#endif
