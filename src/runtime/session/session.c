/*
 * session - see session.h
 *
 * Joining and figures. link/dispatch.c handles the daemon's messages.
 */
#include "runtime/session/session.h"
#include "runtime/gate/residency.h"
#include "runtime/process/futex.h"
#include "runtime/process/wake.h"
#include "runtime/session/state.h"

#include "base/step.h"

#include <string.h>

/* --- joining ---------------------------------------------------------------------------- */

/* 0: joining has begun, now or before. */
static SL_COLD int begin(void)
{
	int r = 0;

	sl_session_lock();
	if (sl_session.state == SL_SESSION_IDLE) {
		r = sl_session_on_first_join();
		if (r == 0)
			__atomic_store_n(
				&sl_session.state, SL_SESSION_JOINING, __ATOMIC_RELEASE);
	} else if (sl_session.state == SL_SESSION_STARVED) {
		sl_session_set_state(SL_SESSION_JOINING);
		sl_wake_agent();
	}
	sl_session_unlock();
	return r;
}

void sl_session_join_soon(void)
{
	int saved_errno = errno;

	if (__atomic_load_n(&sl_session.state, __ATOMIC_ACQUIRE) == SL_SESSION_IDLE)
		(void)begin();
	errno = saved_errno;
}

static SL_COLD CUresult join_slowly(void)
{
	int saved_errno = errno;
	uint32_t state;

	if (begin() != 0) {
		errno = saved_errno;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	do {
		sl_futex_wait(&sl_session.state, SL_SESSION_JOINING, SL_NS_NEVER);
		state = __atomic_load_n(&sl_session.state, __ATOMIC_ACQUIRE);
	} while (state == SL_SESSION_JOINING);
	errno = saved_errno;
	if (state == SL_SESSION_STARVED)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return state == SL_SESSION_JOINED ? CUDA_SUCCESS : sl_session.rejection;
}

CUresult sl_session_join(void)
{
	uint32_t state = __atomic_load_n(&sl_session.state, __ATOMIC_ACQUIRE);

	if (sl_likely(state == SL_SESSION_JOINED))
		return CUDA_SUCCESS;
	return state == SL_SESSION_REFUSED ? sl_session.rejection : join_slowly();
}

bool sl_session_is_joined(void)
{
	return __atomic_load_n(&sl_session.state, __ATOMIC_ACQUIRE) == SL_SESSION_JOINED;
}

bool sl_session_is_rdma(void)
{
	return __atomic_load_n(&sl_session.rdma, __ATOMIC_RELAXED);
}

/* --- figures ---------------------------------------------------------------------------- */

struct sl_gpu *sl_session_gpu_named(
	enum sl_gpu_name name, const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	struct sl_gpu *found = NULL;

	sl_session_lock();
	for (uint32_t i = 0; i < sl_session.gpu_count && !found; i++) {
		struct sl_gpu *gpu = &sl_session.gpus[i];

		if (memcmp(gpu->uuid[name], uuid, SL_WIRE_UUID_BYTES) == 0)
			found = gpu;
	}
	sl_session_unlock();
	return found;
}

struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	return sl_session_gpu_named(SL_GPU_NOW, uuid);
}

void sl_session_uuid(
	const struct sl_gpu *gpu, enum sl_gpu_name name, uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	sl_session_lock();
	memcpy(uuid, gpu->uuid[name], SL_WIRE_UUID_BYTES);
	sl_session_unlock();
}

void sl_session_view(struct sl_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes)
{
	uint64_t own_bytes;

	sl_session_lock();
	own_bytes = sl_sub_sat(gpu->backing_bytes,
		__atomic_load_n(&gpu->quarantined_bytes, __ATOMIC_RELAXED));
	*total_bytes = gpu->total_bytes;
	*free_bytes =
		sl_sub_sat(sl_sub_sat(gpu->total_bytes, gpu->others_bytes), own_bytes);
	sl_session_unlock();
}

uint64_t sl_session_entitled(struct sl_gpu *gpu)
{
	uint64_t bytes;

	sl_session_lock();
	bytes = sl_sub_sat(
		sl_sub_sat(gpu->request_bytes, gpu->others_bytes), gpu->backing_bytes);
	sl_session_unlock();
	return bytes;
}

static uint32_t frees; /* counts reports of freed bytes */

void sl_session_freed(struct sl_gpu *gpu, uint64_t bytes)
{
	sl_session_lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, bytes);
	sl_session_say_freed(gpu, bytes, 0);
	sl_session_unlock();
	__atomic_fetch_add(&frees, 1, __ATOMIC_RELEASE);
	sl_step(C_FREED);
}

uint32_t sl_session_frees(void)
{
	return __atomic_load_n(&frees, __ATOMIC_ACQUIRE);
}

void sl_session_freed_evicted(struct sl_gpu *gpu, uint64_t bytes)
{
	sl_session_lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, bytes);
	gpu->evicted_bytes = sl_sub_sat(gpu->evicted_bytes, bytes);
	sl_session_say_freed(gpu, bytes, SL_FREED_EVICTED);
	if (gpu->evicted_bytes == 0)
		sl_residency_nothing_left();
	sl_session_unlock();
	__atomic_fetch_add(&frees, 1, __ATOMIC_RELEASE);
	sl_step(C_FREED_EVICTED);
}

void sl_session_chunk(uint64_t bytes)
{
	sl_session_lock();
	if (bytes > sl_session.chunk_bytes) {
		sl_session.chunk_bytes = bytes;
		sl_session_say_chunk();
	}
	sl_session_unlock();
}

void sl_session_evicted(struct sl_gpu *gpu, int64_t bytes)
{
	sl_session_lock();
	gpu->evicted_bytes += (uint64_t)bytes;
	sl_session_unlock();
}

uint64_t sl_session_evicted_bytes(struct sl_gpu *gpu)
{
	uint64_t bytes;

	sl_session_lock();
	bytes = gpu->evicted_bytes;
	sl_session_unlock();
	return bytes;
}

void sl_session_quarantined(struct sl_gpu *gpu, int64_t bytes)
{
	__atomic_fetch_add(&gpu->quarantined_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

static void say_measure(struct sl_gpu *gpu)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_MEASURE);
	msg.measure.ordinal = gpu->ordinal;
	msg.measure.backing_bytes = gpu->backing_bytes;
	sl_session_say(&msg);
}

void sl_session_measure(struct sl_gpu *gpu, sl_ns span_ns)
{
	sl_ns deadline_ns = sl_clock_now() + span_ns, now_ns;
	uint32_t serial;
	bool asked;

	sl_session_lock();
	__atomic_store_n(&gpu->has_context, true, __ATOMIC_RELAXED);
	serial = gpu->serial;
	asked = sl_session.welcomed;
	say_measure(gpu);
	sl_session_unlock();
	while (asked && (now_ns = sl_clock_now()) < deadline_ns &&
		__atomic_load_n(&gpu->serial, __ATOMIC_ACQUIRE) == serial)
		sl_futex_wait(&gpu->serial, serial, deadline_ns - now_ns);
}

bool sl_session_measure_all(void)
{
	bool said;

	sl_session_lock();
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (__atomic_load_n(&sl_session.gpus[i].has_context, __ATOMIC_RELAXED))
			say_measure(&sl_session.gpus[i]);
	}
	said = sl_session.welcomed;
	sl_session_unlock();
	return said;
}
