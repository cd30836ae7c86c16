/*
 * room - see room.h
 */
#include "runtime/memory/room.h"
#include "runtime/contexts/capture.h"
#include "runtime/session/device.h"
#include "runtime/session/hidden.h"
#include "runtime/real/hooks.h"
#include "runtime/process/mode.h"
#include "runtime/memory/supply.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

/* Of code, and of a context: too little costs a call, too much may wait for what nobody has. */
#define FIRST_BYTES         (2 * SL_MIB)
#define FIRST_CONTEXT_BYTES (16 * SL_MIB)
/* The first, and then of 2 MiB doubled so often 2 GiB are had, more than any context takes. */
#define ROUNDS_MAX      12
#define MEASURE_WAIT_NS (250 * SL_MS)

void sl_room_open(struct sl_room *room, CUdevice dev)
{
	memset(room, 0, sizeof(*room));
	if (!sl_mode_is_active() || !sl_session_is_joined() || sl_capture_is_open())
		return;
	if (dev == SL_ROOM_CURRENT && sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return;
	room->gpu = sl_device_gpu(dev);
}

static void give_back(struct sl_room *room)
{
	if (room->granted)
		sl_demand_commit(&room->demand, 0);
	room->granted = false;
}

static bool has_context(const struct sl_room *room)
{
	return __atomic_load_n(&room->gpu->has_context, __ATOMIC_RELAXED);
}

/* What to ask for next: twice as much, but first all that is left of the request, and at last all
 * that is left of the limit; 0 if that was not enough. */
static uint64_t next_bytes(const struct sl_room *room)
{
	uint64_t entitled_bytes, free_bytes, total_bytes;
	uint64_t bytes = has_context(room) ? FIRST_BYTES : FIRST_CONTEXT_BYTES;

	if (room->bytes)
		bytes = 2 * room->bytes;
	sl_session_view(room->gpu, &free_bytes, &total_bytes);
	free_bytes -= free_bytes % SL_BACKING_GRAIN;
	entitled_bytes = sl_session_entitled(room->gpu);
	entitled_bytes -= entitled_bytes % SL_BACKING_GRAIN;
	if (bytes > entitled_bytes && room->bytes < entitled_bytes)
		bytes = entitled_bytes;
	if (bytes > free_bytes)
		bytes = free_bytes;
	return bytes > room->bytes ? bytes : 0;
}

/* The first grant may have been of memory that was free when it was measured last: code that was
 * loaded since has it. So all is measured, and asked for anew. */
static void catch_up(struct sl_room *room)
{
	if (room->rounds != 1 || !has_context(room))
		return;
	sl_session_measure(room->gpu, MEASURE_WAIT_NS);
	room->bytes = 0;
}

bool sl_room_make(struct sl_room *room)
{
	int saved_errno = errno;

	if (!room->gpu)
		return false;
	give_back(room);
	catch_up(room);
	room->bytes = room->rounds++ < ROUNDS_MAX ? next_bytes(room) : 0;
	if (room->bytes) {
		sl_info("the driver is out of memory: asking for %llu MiB",
			(unsigned long long)(room->bytes / SL_MIB));
		room->granted = sl_demand_ask(&room->demand, room->gpu, room->bytes,
					sl_supply_give_back_soon) == SL_DEMAND_GRANTED;
	}
	errno = saved_errno;
	return room->granted;
}

void sl_room_close(struct sl_room *room)
{
	int saved_errno = errno;

	give_back(room);
	if (room->rounds)
		sl_hidden_touch();
	errno = saved_errno;
}
