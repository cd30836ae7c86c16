/*
 * held - bytes of ours that must not be evicted
 *
 * Exported, imported, opened and peer-mapped memory, memory that a registration may have pinned,
 * and all that only the driver can move. Counted per GPU; the daemon is told of every change by the
 * agent, a moment later. Where the call can fail the daemon is asked first: held bytes may not
 * stand on what other workloads were promised. Thread-safe. Bytes of backing.
 */
#ifndef SL_RUNTIME_SESSION_HELD_H
#define SL_RUNTIME_SESSION_HELD_H

#include "runtime/session/gpu.h"

/* May bytes of gpu that exist already become held? Counts them if so. */
SL_MUST_CHECK bool sl_held_take(struct sl_gpu *gpu, uint64_t bytes);
/* As above where nobody can say no. Not for what a demand with SL_ASK_HELD brought: that counts as
 * held from its sl_demand_commit on; given back, it is dropped like any other. */
void sl_held_add(struct sl_gpu *gpu, uint64_t bytes);
void sl_held_drop(struct sl_gpu *gpu, uint64_t bytes);
uint64_t sl_held_bytes(const struct sl_gpu *gpu);
/* For the agent: tells the daemon what has changed since; all of it after a reconnect. */
void sl_held_tell(bool everything);
/* Something changed since this was asked last. */
SL_MUST_CHECK bool sl_held_is_due(void);
/* In the child of a fork. */
void sl_held_forget(void);

#endif
