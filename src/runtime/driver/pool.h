/*
 * pool - what the driver's own pools hold is charged
 *
 * A pool takes memory in steps of its own and hands it out; what is charged is what it has
 * reserved. So before the driver is called for bytes from a pool, those that its reserve cannot
 * give are asked for, and afterwards what the driver says it reserved is what stays charged. Memory
 * of graphs is one more such pool per device. Pools of host memory and imported ones are known and
 * not charged. All of it is held. Thread-safe; no lock may be held. Bytes.
 *
 * Cost of an allocation that the reserve can give: two of the driver's attribute queries, two locks
 * of our own; the daemon hears nothing.
 */
#ifndef SL_RUNTIME_DRIVER_POOL_H
#define SL_RUNTIME_DRIVER_POOL_H

#include "base/list.h"
#include "runtime/driver/passed.h"

struct sl_pool;

/* One call that takes memory from a pool. On the caller's stack from ask to done. */
struct sl_pool_growth {
	struct sl_pool *pool; /* NULL: not for us to charge */
	uint64_t bytes;
	uint64_t granted_bytes, pending_bytes;  /* of what the pool counts, its own */
	uint64_t lacking_bytes, reserved_bytes; /* when it was asked for */
	struct sl_passed passed;
};

/* The pools a call may take from, used until sl_pool_done or sl_pool_leave. NULL: not one to
 * charge. */
struct sl_pool *sl_pool_of_handle(CUmemoryPool handle);
struct sl_pool *sl_pool_of_stream(CUstream stream);
struct sl_pool *sl_pool_of_graphs(CUdevice dev);
void sl_pool_leave(struct sl_pool *pool);

/* Asks for what bytes more take of the pool (NULL: asks nobody). False: the driver is not to be
 * called,
 * *result is the program's; the pool is left. */
SL_MUST_CHECK bool sl_pool_ask(struct sl_pool_growth *growth, struct sl_pool *pool,
	uint64_t bytes, CUresult *result);
/* As sl_passed_again. */
SL_MUST_CHECK bool sl_pool_again(struct sl_pool_growth *growth, CUresult *result);
/* After the driver's answer, whatever it is. Always, after a true sl_pool_ask; leaves the pool. */
void sl_pool_done(struct sl_pool_growth *growth);

/* Around a call that may end the pool; NULL: nobody knows it. */
struct sl_pool *sl_pool_hold(CUmemoryPool handle);
void sl_pool_unhold(struct sl_pool *pool, bool ended);
/* The program made a pool of memory at that place; how much it keeps at a synchronisation. */
void sl_pool_made(CUmemoryPool handle, const CUmemPoolProps *props);
/* The driver gave it for that place; nothing changes if it is known. */
void sl_pool_seen(
	CUmemoryPool handle, const CUmemLocation *where, CUmemAllocationType type);
void sl_pool_keeps(CUmemoryPool handle, uint64_t threshold_bytes);
/* Which pool is the current one of a device may have changed. */
void sl_pool_current_changed(void);

/* The driver may have given something back: what is charged follows. */
void sl_pool_look(struct sl_pool *pool);
void sl_pool_look_at_all(void) SL_COLD;
/* All that pools have and nobody uses goes, after the work under way, or at end_ns. False: there
 * was nothing. Where no thread can be had the caller waits for the work, however long that takes.
 * No lock may be held. */
bool sl_pool_give_back(sl_ns end_ns);
/* The device's primary context is gone, and what its pools held. */
void sl_pool_drop_device(CUdevice dev);
/* In the child of a fork. */
void sl_pool_forget(void);

/* Pools that may give something back at the next synchronisation. */
extern uint32_t sl_pool_watched;

/* After the driver has synchronised, or before figures are told. One load where no pool is
 * watched. */
static inline void sl_pool_synced(void)
{
	if (sl_unlikely(__atomic_load_n(&sl_pool_watched, __ATOMIC_RELAXED)))
		sl_pool_look_at_all();
}

#endif
