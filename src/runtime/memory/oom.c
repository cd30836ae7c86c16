/*
 * oom - see oom.h
 */
#include "runtime/memory/oom.h"
#include "runtime/contexts/capture.h"
#include "runtime/memory/supply.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

/* For code, and for a context: too little costs another call, too much may wait for memory that is
 * not free. */
#define FIRST_BYTES         (2 * SL_MIB)
#define FIRST_CONTEXT_BYTES (16 * SL_MIB)
/* Doubling 2 MiB this often gives 2 GiB, more than any context takes. */
#define ROUNDS_MAX      12
#define MEASURE_WAIT_NS (250 * SL_MS)

void sl_oom_open(struct sl_oom *oom, CUdevice dev)
{
	memset(oom, 0, sizeof(*oom));
	if (!sl_mode_is_active() || !sl_session_is_joined() || sl_capture_is_open())
		return;
	if (dev == SL_OOM_CURRENT && sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return;
	oom->gpu = sl_device_gpu(dev);
}

static void give_back(struct sl_oom *oom)
{
	if (oom->granted)
		sl_demand_commit(&oom->demand, 0);
	oom->granted = false;
}

static bool has_context(const struct sl_oom *oom)
{
	return __atomic_load_n(&oom->gpu->has_context, __ATOMIC_RELAXED);
}

/* The next amount to ask for: twice the last one. Before an amount beyond what is left of the
 * request, exactly that rest is tried. An amount beyond what is left of the limit is cut to that. 0
 * if the last amount was as large already. */
static uint64_t next_bytes(const struct sl_oom *oom)
{
	uint64_t entitled_bytes, free_bytes, total_bytes;
	uint64_t bytes = has_context(oom) ? FIRST_BYTES : FIRST_CONTEXT_BYTES;

	if (oom->bytes)
		bytes = 2 * oom->bytes;
	sl_session_view(oom->gpu, &free_bytes, &total_bytes);
	free_bytes -= free_bytes % SL_DEVICE_GRAIN;
	entitled_bytes = sl_session_entitled(oom->gpu);
	entitled_bytes -= entitled_bytes % SL_DEVICE_GRAIN;
	if (bytes > entitled_bytes && oom->bytes < entitled_bytes)
		bytes = entitled_bytes;
	if (bytes > free_bytes)
		bytes = free_bytes;
	return bytes > oom->bytes ? bytes : 0;
}

/* In the second round: the first grant may have been of memory that is free only by an old
 * measurement, and that newly loaded code uses. So the GPU is measured, and the amounts start
 * anew. */
static void catch_up(struct sl_oom *oom)
{
	if (oom->rounds != 1 || !has_context(oom))
		return;
	sl_session_measure(oom->gpu, MEASURE_WAIT_NS);
	oom->bytes = 0;
}

bool sl_oom_make(struct sl_oom *oom)
{
	int saved_errno = errno;

	if (!oom->gpu)
		return false;
	give_back(oom);
	catch_up(oom);
	oom->bytes = oom->rounds++ < ROUNDS_MAX ? next_bytes(oom) : 0;
	if (oom->bytes) {
		sl_info("the driver is out of memory: asking for %llu MiB",
			(unsigned long long)(oom->bytes / SL_MIB));
		oom->granted = sl_demand_ask(&oom->demand, oom->gpu, oom->bytes,
				       sl_supply_on_slow) == SL_DEMAND_GRANTED;
	}
	errno = saved_errno;
	return oom->granted;
}

void sl_oom_close(struct sl_oom *oom)
{
	int saved_errno = errno;

	give_back(oom);
	if (oom->rounds)
		sl_measure_soon();
	errno = saved_errno;
}
