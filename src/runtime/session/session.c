/*
 * session - see session.h
 *
 * The table, its lock, the GPUs' figures, and what the agent does with the line. What the daemon
 * says is taken in by link/dispatch.c; what threads ask for is in demand.c.
 */
#include "runtime/session/state.h"
#include "runtime/gate/residency.h"
#include "runtime/process/futex.h"
#include "runtime/process/wake.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <string.h>

struct sl_session sl_session = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.line = SL_LINE_NONE,
	.demands = SL_LIST_INIT(sl_session.demands),
};

void sl_session_lock(void)
{
	(void)pthread_mutex_lock(&sl_session.lock);
}

void sl_session_unlock(void)
{
	(void)pthread_mutex_unlock(&sl_session.lock);
}

/* Under the lock. A message that could not even be kept must not be missing among later ones: the
 * line is given up, and the next one begins with a report. */
void sl_session_say_fds(union sl_msg *msg, const int *fds, uint32_t count)
{
	if (!sl_session.welcomed) {
		for (uint32_t i = 0; i < count; i++)
			(void)syscall(SYS_close, fds[i]);
		return;
	}
	if (!sl_line_send_fds(&sl_session.line, msg, fds, count)) {
		sl_session.welcomed = false;
		sl_line_break(&sl_session.line);
		sl_wake_agent();
	} else if (sl_line_has_kept(&sl_session.line)) {
		sl_wake_agent();
	}
}

void sl_session_say(union sl_msg *msg)
{
	sl_session_say_fds(msg, NULL, 0);
}

void sl_session_say_freed(const struct sl_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	union sl_msg msg;

	if (bytes == 0)
		return;
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.ordinal = gpu->ordinal;
	msg.freed.bytes = bytes;
	msg.freed.flags = sl_session_knows_swap() ? flags : 0;
	sl_session_say(&msg);
}

void sl_session_say_held(bool everything)
{
	union sl_msg msg;

	if (!sl_session.welcomed || !sl_session_knows_held())
		return;
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		struct sl_gpu *gpu = &sl_session.gpus[i];

		if (sl_session_held_bytes(gpu) == gpu->told_held_bytes && !everything)
			continue;
		if (everything && !sl_session_held_bytes(gpu) &&
			sl_session.generation == 1)
			continue; /* a daemon that met us now knows of none */
		sl_wire_init(&msg, SL_MSG_HELD);
		msg.held.ordinal = gpu->ordinal;
		msg.held.held_bytes = sl_session_held_bytes(gpu);
		gpu->told_held_bytes = sl_session_held_bytes(gpu);
		sl_session_say(&msg);
	}
}

void sl_session_say_chunk(void)
{
	union sl_msg msg;

	if (!sl_session.chunk_bytes || !sl_session_knows_swap())
		return;
	sl_wire_init(&msg, SL_MSG_CHUNK);
	msg.chunk.bytes = sl_session.chunk_bytes;
	sl_session_say(&msg);
}

bool sl_session_knows_held(void)
{
	return sl_session.version >= sl_wire_since(SL_MSG_HELD);
}

bool sl_session_knows_swap(void)
{
	return sl_session.version >= sl_wire_since(SL_MSG_SWAPPED);
}

static void say_measure(struct sl_gpu *gpu)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_MEASURE);
	msg.measure.ordinal = gpu->ordinal;
	msg.measure.backing_bytes = gpu->backing_bytes;
	sl_session_say(&msg);
}

void sl_session_set_state(enum sl_session_state state)
{
	__atomic_store_n(&sl_session.state, state, __ATOMIC_RELEASE);
	sl_futex_wake(&sl_session.state, INT_MAX);
}

/* --- joining ---------------------------------------------------------------------------- */

/* 0: begun, now or before. */
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

void sl_session_starve(void)
{
	sl_session_lock();
	if (sl_session.state == SL_SESSION_JOINING)
		sl_session_set_state(SL_SESSION_STARVED);
	sl_session_unlock();
}

/* --- figures ---------------------------------------------------------------------------- */

struct sl_gpu *sl_session_gpu_of(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (memcmp(sl_session.gpus[i].uuid, uuid, SL_WIRE_UUID_BYTES) == 0)
			return &sl_session.gpus[i];
	}
	return NULL;
}

struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	struct sl_gpu *gpu;

	sl_session_lock();
	gpu = sl_session_gpu_of(uuid);
	sl_session_unlock();
	return gpu;
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

static uint32_t frees; /* counts what was told to be free */

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

/* --- the line, for the agent; and fork --------------------------------------------------- */

int sl_session_recv(union sl_msg *out, struct sl_wire_fds *fds)
{
	struct sl_error err = {0};
	int r = sl_line_recv(&sl_session.line, out, fds, &err);

	if (err.text[0])
		sl_warning("from the daemon: %s", err.text);
	return r;
}

bool sl_session_send(union sl_msg *msg)
{
	bool sent;

	sl_session_lock();
	sent = sl_line_send(&sl_session.line, msg);
	sl_session_unlock();
	return sent;
}

bool sl_session_flush(void)
{
	bool sent;

	sl_session_lock();
	sent = sl_line_flush(&sl_session.line);
	sl_session_unlock();
	return sent;
}

bool sl_session_has_kept(void)
{
	bool kept;

	sl_session_lock();
	kept = sl_line_has_kept(&sl_session.line);
	sl_session_unlock();
	return kept;
}

bool sl_session_is_crowded(void)
{
	bool crowded;

	sl_session_lock();
	crowded = sl_line_is_crowded(&sl_session.line);
	sl_session_unlock();
	return crowded;
}

void sl_session_drop_line(void)
{
	sl_session_lock();
	sl_session.welcomed = false;
	sl_line_close(&sl_session.line);
	sl_session_unlock();
}

int sl_session_fd(void)
{
	return sl_session.line.socket.fd;
}

void sl_session_forget(void)
{
	bool forked = sl_session.forked || sl_session.state != SL_SESSION_IDLE;

	/* The parent's end stays open in the parent; ours is one more reference to it. */
	sl_fd_close(&sl_session.line.socket);
	memset(&sl_session, 0, sizeof(sl_session));
	(void)pthread_mutex_init(&sl_session.lock, NULL);
	sl_session.line = (struct sl_line)SL_LINE_NONE;
	sl_list_init(&sl_session.demands);
	sl_session.forked = forked;
}
