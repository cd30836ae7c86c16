/*
 * peer - contexts that may use another context's memory
 *
 * The driver's own memory is opened to a peer as a whole; ours lies in ranges that are opened one
 * by one, now and whenever one is made, and are held as long as they are open. A region is found by
 * its space's list, so that what is made while access is being enabled is opened by one of the two.
 * Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_MEMORY_PEER_H
#define SL_RUNTIME_MEMORY_PEER_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_backing;
struct sl_space;

/* New memory of the space that nobody has found yet is opened to its peers. An error: it is gone
 * again. One load while there are no peers. */
SL_MUST_CHECK CUresult sl_peer_admit(struct sl_space *space, struct sl_backing *backing);
/* It can be found at `base` now: opened to whoever became a peer meanwhile. */
void sl_peer_catch_up(struct sl_space *space, CUdeviceptr base);
/* The context is gone, and its access with it. */
void sl_peer_drop_context(CUcontext ctx);
/* In the child of a fork. */
void sl_peer_forget(void);

#endif
