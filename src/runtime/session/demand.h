/*
 * demand - asks the daemon for bytes and waits for the answer
 *
 * A demand is a record on the stack of the waiting thread; the agent fills it in and wakes the
 * thread. After a lost connection the demand is sent again. Thread-safe; no lock may be held.
 * Bytes.
 */
#ifndef SL_RUNTIME_SESSION_DEMAND_H
#define SL_RUNTIME_SESSION_DEMAND_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/session/gpu.h"

enum sl_demand_outcome {
	SL_DEMAND_GRANTED = 0, /* create, then sl_demand_commit or sl_demand_failed */
	SL_DEMAND_DENIED,      /* demand.denial is the program's result */
	SL_DEMAND_REFUSED,     /* the daemon rejects us: see sl_session_join */
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
	CUresult denial; /* the program's result if denied */
};

/* Asks and waits without end. on_slow (may be NULL) is called once if the answer takes more than
 * a few milliseconds, so that the caller can give back what it hoards. */
SL_MUST_CHECK int sl_demand_ask(struct sl_demand *demand, struct sl_gpu *gpu,
	uint64_t bytes, void (*on_slow)(void));
/* As sl_demand_ask, for a context or for a special kind of memory: flags are SL_ASK_* of wire.h.
 * With SL_ASK_HELD the committed bytes count as held. With SL_ASK_THERE a grant is final: call
 * neither sl_demand_commit nor sl_demand_failed. One with SL_ASK_NOW never goes back into the
 * queue. */
SL_MUST_CHECK int sl_demand_ask_as(struct sl_demand *demand, struct sl_gpu *gpu,
	uint64_t bytes, uint32_t flags, void (*on_slow)(void));
/* The driver had no memory after all: the demand goes back into the queue. Outcomes as
 * sl_demand_ask. */
SL_MUST_CHECK int sl_demand_failed(struct sl_demand *demand, CUresult result);
/* used_bytes of the grant exist now. */
void sl_demand_commit(struct sl_demand *demand, uint64_t used_bytes);

/* --- for the agent's thread, under the session's lock --- */

/* On a new line: asks again for every waiting demand. */
void sl_demand_ask_again(void);
/* The daemon no longer wants us. */
void sl_demand_refuse_all(void);
void sl_demand_on_grant(const struct sl_msg_grant *msg);
void sl_demand_on_deny(const struct sl_msg_deny *msg);

#endif
