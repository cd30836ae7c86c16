/*
 * peer - contexts that may use another context's memory
 *
 * The driver opens its own memory to a peer as a whole. Our memory lies in ranges that are opened
 * one by one: existing ones when the contexts become peers, new ones when they are made. An open
 * range is held. A new region enters its space's list before it is checked for peers a second time,
 * so either that check or the new peer opens it. Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_MEMORY_PEER_H
#define SL_RUNTIME_MEMORY_PEER_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_backing;
struct sl_space;

/* Opens new memory of the space, which is in no list yet, to the space's peers. On an error the
 * memory has been released. Costs one load while there are no peers. */
SL_MUST_CHECK CUresult sl_peer_admit(struct sl_space *space, struct sl_backing *backing);
/* The memory can now be found at `base`: opens it to contexts that became peers meanwhile. */
void sl_peer_catch_up(struct sl_space *space, CUdeviceptr base);
/* The same for memory of a pool, which follows the pool's own access: `devices` by ordinal. */
SL_MUST_CHECK CUresult sl_peer_admit_to(
	struct sl_space *space, struct sl_backing *backing, uint64_t devices);
/* Opens the block around `at` to these devices, too. */
void sl_peer_open_to(CUdeviceptr at, uint64_t devices);
/* Opens or closes the block that begins at base to the device. */
SL_MUST_CHECK CUresult sl_peer_turn(CUdeviceptr base, CUdevice dev, bool open);
/* The context is gone with its access. */
void sl_peer_drop_context(CUcontext ctx);
/* In the child of a fork. */
void sl_peer_forget(void);

#endif
