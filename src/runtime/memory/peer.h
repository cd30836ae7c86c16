/*
 * peer - contexts that may use another context's memory
 *
 * The driver opens its own memory to a peer as a whole. Ours lies in ranges that are opened one by
 * one, existing ones now and new ones when made; they are held while open. A new region enters its
 * space's list before the second check for peers, so one of the two sides opens it. Thread-safe; no
 * lock may be held.
 */
#ifndef SL_RUNTIME_MEMORY_PEER_H
#define SL_RUNTIME_MEMORY_PEER_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_backing;
struct sl_space;

/* Opens new memory of the space, which is in no list yet, to the space's peers. On an error it is
 * gone. One load while there are no peers. */
SL_MUST_CHECK CUresult sl_peer_admit(struct sl_space *space, struct sl_backing *backing);
/* The memory can now be found at `base`: opens it to contexts that became peers meanwhile. */
void sl_peer_catch_up(struct sl_space *space, CUdeviceptr base);
/* The context is gone with its access. */
void sl_peer_drop_context(CUcontext ctx);
/* In the child of a fork. */
void sl_peer_forget(void);

#endif
