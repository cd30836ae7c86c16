/*
 * held - bytes of ours that must not be evicted
 *
 * These are exported, imported, opened and peer-mapped memory, memory that a registration may have
 * pinned, and all that only the driver can move. Counted per GPU; the agent reports every change to
 * the daemon a moment later. If the program's call can fail, the daemon is asked first, since held
 * bytes may not take what other workloads were promised. Thread-safe. Bytes of backing.
 */
#ifndef SL_RUNTIME_SESSION_HELD_H
#define SL_RUNTIME_SESSION_HELD_H

#include "runtime/session/gpu.h"

/* May bytes of gpu that exist already become held? Counts them as held if so. Bytes that were asked
 * for with SL_ASK_HELD count as held without this, from sl_demand_commit on. sl_held_drop ends
 * either. */
SL_MUST_CHECK bool sl_held_take(struct sl_gpu *gpu, uint64_t bytes);
void sl_held_drop(struct sl_gpu *gpu, uint64_t bytes);
uint64_t sl_held_bytes(const struct sl_gpu *gpu);
/* For the agent: reports changes to the daemon; everything: all figures, after a reconnect. */
void sl_held_tell(bool everything);
/* Has anything changed since the last call? */
SL_MUST_CHECK bool sl_held_is_due(void);
/* In the child of a fork. */
void sl_held_forget(void);

#endif
