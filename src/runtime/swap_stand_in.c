/*
 * swap_stand_in - until there is a mover: nothing can be moved
 *
 * Weak, so that each unit takes its place as it comes.
 */
#include "runtime/hash.h"
#include "runtime/mover.h"
#include "runtime/store.h"

#define WEAK __attribute__((weak))

WEAK void sl_mover_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out)
{
	(void)gpu;
	(void)bytes;
	(void)stop;
	*out = (struct sl_moved){.cause = SL_WIRE_SWAP_NOTHING};
}

WEAK void sl_mover_restore(struct sl_gpu *gpu, struct sl_moved *out)
{
	(void)gpu;
	*out = (struct sl_moved){0};
}

WEAK void sl_mover_forget(void)
{
}

WEAK void sl_store_drop_context(CUcontext ctx)
{
	(void)ctx;
}

WEAK void sl_store_on_store(const struct sl_msg_store *msg, struct sl_wire_fds *fds)
{
	(void)msg;
	(void)fds;
}

WEAK void sl_store_on_trim(const struct sl_msg_trim *msg)
{
	(void)msg;
}

WEAK void sl_store_report(void)
{
}

WEAK void sl_store_forget(void)
{
}

WEAK void sl_hasher_context(CUcontext ctx, CUdevice dev)
{
	(void)ctx;
	(void)dev;
}

WEAK void sl_hasher_drop_context(CUcontext ctx)
{
	(void)ctx;
}

WEAK void sl_hasher_forget(void)
{
}
