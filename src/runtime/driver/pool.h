/*
 * pool - the program's pools
 *
 * The memory of most pools is ours (memory/stock.h): of the devices' default pools, and of pools of
 * plain device memory that are not shared. Other pools, and graphs, have memory of the driver:
 * pools that may be exported, imported ones, those of host or managed memory.
 *
 * Such a pool takes memory in steps of its own and hands it out; its charge is what it reserved.
 * Before a driver call that takes bytes from a pool, we ask for what its reserve lacks. Afterwards
 * the charge becomes what the driver reports as reserved. Graph memory is one more such pool per
 * device. Pools of host memory and imported pools are known but not charged. All charged bytes are
 * held. Thread-safe; no lock may be held. Bytes.
 *
 * An allocation that the reserve can serve costs two driver attribute queries and two of our locks;
 * it sends nothing to the daemon.
 */
#ifndef SL_RUNTIME_DRIVER_POOL_H
#define SL_RUNTIME_DRIVER_POOL_H

#include "base/list.h"
#include "runtime/driver/passed.h"
#include "runtime/memory/stock.h"

struct sl_pool;

/* One call that takes memory from a pool. On the caller's stack from ask to done. */
struct sl_pool_growth {
	struct sl_pool *pool; /* NULL: not charged */
	uint64_t bytes;
	uint64_t granted_bytes, pending_bytes;  /* its share of the pool's sums */
	uint64_t lacking_bytes, reserved_bytes; /* at the time of asking */
	struct sl_passed passed;
};

/* The pools a call may take from, in use until sl_pool_done or sl_pool_leave. NULL: not charged. */
struct sl_pool *sl_pool_of_handle(CUmemoryPool handle);
struct sl_pool *sl_pool_of_stream(CUstream stream);
struct sl_pool *sl_pool_of_graphs(CUdevice dev);
void sl_pool_leave(struct sl_pool *pool);
/* Allocates from the pool's own memory (sl_stock_alloc). False: the driver has the memory, and the
 * pool is still in use. */
SL_MUST_CHECK bool sl_pool_serve(struct sl_pool *pool, CUdeviceptr *out, size_t bytes,
	CUstream stream, bool per_thread, CUresult *result);

/* Asks for what the pool needs for `bytes` more (pool NULL: asks for nothing). False: do not call
 * the driver; *result is the program's result, and the pool is no longer in use. */
SL_MUST_CHECK bool sl_pool_ask(struct sl_pool_growth *growth, struct sl_pool *pool,
	uint64_t bytes, CUresult *result);
/* As sl_passed_again. */
SL_MUST_CHECK bool sl_pool_again(struct sl_pool_growth *growth, CUresult *result);
/* After the driver's answer, success or not. Required after a true sl_pool_ask; leaves the pool. */
void sl_pool_done(struct sl_pool_growth *growth);

/* Around a call that may end the pool. NULL: the pool is unknown. */
struct sl_pool *sl_pool_hold(CUmemoryPool handle);
void sl_pool_unhold(struct sl_pool *pool, bool ended);
/* The program made a pool with these props. */
void sl_pool_made(CUmemoryPool handle, const CUmemPoolProps *props);
/* The driver returned this pool for that place; nothing changes if it is known. */
void sl_pool_seen(
	CUmemoryPool handle, const CUmemLocation *where, CUmemAllocationType type);
/* After the driver has taken the program's call for a pool, the rest of it. */
void sl_pool_keeps(CUmemoryPool handle, uint64_t threshold_bytes);
void sl_pool_trim(struct sl_pool *pool, uint64_t keep_bytes);
void sl_pool_add_figure(CUmemoryPool handle, CUmemPool_attribute attribute, void *value);
void sl_pool_reset_figure(CUmemoryPool handle, CUmemPool_attribute attribute);
SL_MUST_CHECK CUresult sl_pool_open(
	CUmemoryPool handle, const CUmemAccessDesc *access, size_t count);
/* The current pool of a device may have changed. */
void sl_pool_current_changed(void);

/* The driver may have given something back: lowers the charge accordingly. */
void sl_pool_look(struct sl_pool *pool);
void sl_pool_look_at_all(void) SL_COLD;
/* Waits for the work under way, at most until end_ns, then gives back all unused memory of pools.
 * False: there was none. If no thread can be started, the caller waits for the work without a
 * deadline. No lock may be held. */
bool sl_pool_give_back(sl_ns end_ns);
/* The device's primary context is gone with everything its pools held. */
void sl_pool_drop_device(CUdevice dev);
/* In the child of a fork. */
void sl_pool_forget(void);

/* Pools that may give something back at the next synchronisation. */
extern uint32_t sl_pool_watched;

/* After the driver has synchronised, or before figures are reported. Two loads while no pool is
 * watched. */
static inline void sl_pool_synced(void)
{
	if (sl_unlikely(__atomic_load_n(&sl_pool_watched, __ATOMIC_RELAXED)))
		sl_pool_look_at_all();
	if (sl_unlikely(__atomic_load_n(&sl_stock_watched, __ATOMIC_RELAXED)))
		sl_stock_synced();
}

#endif
