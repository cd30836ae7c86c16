/*
 * session - see session.h
 *
 * Joining, the GPUs' figures, and the messages between the agent's line and everybody else. What
 * threads ask for and get is in demand.c.
 */
#include "runtime/session/state.h"
#include "runtime/link/agent.h"
#include "runtime/process/wake.h"
#include "runtime/gate/control.h"
#include "runtime/link/fork.h"
#include "runtime/process/futex.h"
#include "runtime/gate/gate.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/process/mode.h"
#include "runtime/share/offer.h"
#include "runtime/share/fetch.h"
#include "runtime/session/pids.h"
#include "runtime/contexts/prove.h"
#include "runtime/store/store.h"
#include "runtime/gate/residency.h"
#include "runtime/swap/swap.h"

#include "base/log.h"
#include "base/step.h"
#include "base/paths.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
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

static void set_state(uint32_t state)
{
	__atomic_store_n(&sl_session.state, state, __ATOMIC_RELEASE);
	sl_futex_wake(&sl_session.state, INT_MAX);
}

/* --- joining ---------------------------------------------------------------------------- */

/* The environment is read here, on the program's own thread: it may change it later. */
static int start(void)
{
	const char *token = getenv("SLUICE_WORKLOAD");
	struct sl_error err = {0};

	sl_mode_read_options();
	if (token && !sl_wire_token_parse(token, sl_session.token))
		memset(sl_session.token, 0, sizeof(sl_session.token));
	if (sl_paths_socket(sl_session.path, sizeof(sl_session.path), &err) !=
		SL_PATHS_OK) {
		sl_error_log("no daemon to join: %s", err.text);
		return -EINVAL;
	}
	sl_fork_watch();
	sl_gate_start(!sl_options.no_membarrier);
	sl_control_start();
	sl_residency_start();
	sl_swap_start();
	sl_gate_on_attach = sl_measure_soon;
	return sl_agent_start(sl_session.path);
}

/* 0: begun, now or before. */
static SL_COLD int begin(void)
{
	int r = 0;

	sl_session_lock();
	if (sl_session.state == SL_SESSION_IDLE) {
		r = start();
		if (r == 0)
			__atomic_store_n(
				&sl_session.state, SL_SESSION_JOINING, __ATOMIC_RELEASE);
	} else if (sl_session.state == SL_SESSION_STARVED) {
		set_state(SL_SESSION_JOINING);
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

bool sl_session_greet(struct sl_line *line)
{
	union sl_msg msg;
	bool sent;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CLIENT;
	memcpy(msg.hello.token, sl_session.token, sizeof(msg.hello.token));
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	sl_session_lock();
	msg.hello.flags = sl_session.forked ? SL_HELLO_FORKED : 0;
	msg.hello.daemon_epoch = sl_session.daemon_epoch;
	sl_line_close(&sl_session.line);
	/* Every new daemon is met with the newest we have. */
	if (!sl_session.older)
		sl_session.version = SL_PROTOCOL_VERSION;
	sl_session.older = false;
	sl_session.line = *line;
	sl_session.line.version = sl_session.version;
	*line = (struct sl_line)SL_LINE_NONE;
	sent = sl_line_send(&sl_session.line, &msg);
	sl_session_unlock();
	sl_step(C_GREETED);
	return sent;
}

/* What of it is on the host, and the files it is in. */
static void say_evicted(void)
{
	union sl_msg msg;

	if (!sl_session_knows_swap())
		return;
	sl_store_report();
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (sl_session.gpus[i].evicted_bytes == 0)
			continue;
		sl_wire_init(&msg, SL_MSG_EVICTED);
		msg.evicted.ordinal = sl_session.gpus[i].ordinal;
		msg.evicted.evicted_bytes = sl_session.gpus[i].evicted_bytes;
		sl_session_say(&msg);
		sl_step(C_EVICTED_TOLD);
	}
}

static void say_chunk(void)
{
	union sl_msg msg;

	if (!sl_session.chunk_bytes || !sl_session_knows_swap())
		return;
	sl_wire_init(&msg, SL_MSG_CHUNK);
	msg.chunk.bytes = sl_session.chunk_bytes;
	sl_session_say(&msg);
}

/* All GPUs are known: tell what is held, ask again for what is wanted, let everybody in. */
static void finish_join(void)
{
	bool again = sl_session.generation > 0;
	union sl_msg msg;

	sl_step(C_GPUS_KNOWN);
	sl_session.welcomed = true;
	sl_session.generation++;
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (!again && sl_session.gpus[i].backing_bytes == 0)
			continue;
		sl_wire_init(&msg, SL_MSG_REPORT);
		msg.report.ordinal = sl_session.gpus[i].ordinal;
		msg.report.backing_bytes = sl_session.gpus[i].backing_bytes;
		sl_session_say(&msg);
	}
	say_evicted();
	sl_held_say(true);
	say_chunk();
	sl_wire_init(&msg, SL_MSG_REPORTED);
	sl_session_say(&msg);
	sl_swap_joined(sl_session_knows_swap());
	if (again)
		sl_step(C_RECONNECTED);
	else
		sl_step(C_REPORTED);
	sl_demand_ask_again();
	sl_fetch_ask_again();
	sl_offer_again();
	sl_session.work_sent = 0;
	set_state(SL_SESSION_JOINED);
	sl_info("joined as client of generation %u with %u GPUs", sl_session.generation,
		sl_session.gpu_count);
}

/* An older daemon is spoken to in its own words; a newer one may or may not know ours. */
static int on_other_version(const struct sl_msg_reject *msg)
{
	if (msg->daemon_version < SL_PROTOCOL_OLDEST ||
		msg->daemon_version >= sl_session.version) {
		sl_warning("the daemon speaks protocol %u, this library %u to %u",
			msg->daemon_version, SL_PROTOCOL_OLDEST, SL_PROTOCOL_VERSION);
		return SL_SESSION_REJECTED;
	}
	sl_info("the daemon speaks protocol %u, this library %u: going on with %u",
		msg->daemon_version, SL_PROTOCOL_VERSION, msg->daemon_version);
	sl_session.version = msg->daemon_version;
	sl_session.older = true;
	return SL_SESSION_AGAIN;
}

static int refuse(CUresult rejection)
{
	sl_session.rejection = rejection;
	/* The state first: whoever is refused asks sl_session_join for the reason. */
	set_state(SL_SESSION_REFUSED);
	sl_demand_refuse_all();
	sl_fetch_refuse_all();
	sl_offer_refuse_all();
	/* Nobody will ever order back what is on the host. */
	sl_swap_joined(false);
	return SL_SESSION_REJECTED;
}

int sl_session_distrust(const char *why)
{
	int r = SL_SESSION_LOST;

	sl_warning("%s", why);
	sl_session_lock();
	if (sl_session.generation == 0)
		r = refuse(CUDA_ERROR_NOT_PERMITTED);
	sl_session_unlock();
	return r;
}

void sl_session_starve(void)
{
	sl_session_lock();
	if (sl_session.state == SL_SESSION_JOINING)
		set_state(SL_SESSION_STARVED);
	sl_session_unlock();
}

static int on_reject(const struct sl_msg_reject *msg)
{
	if (msg->reason == SL_REJECT_VERSION && on_other_version(msg) == SL_SESSION_AGAIN)
		return SL_SESSION_AGAIN;
	sl_warning("the daemon says no: %.255s", msg->text);
	if (msg->reason == SL_REJECT_FULL)
		return SL_SESSION_LOST;
	return refuse(msg->reason == SL_REJECT_VERSION ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
						       : CUDA_ERROR_NOT_PERMITTED);
}

static int on_welcome(const struct sl_msg_welcome *msg)
{
	if (sl_session.welcomed || msg->gpu_count > SL_GPUS_MAX)
		return SL_SESSION_LOST;
	sl_session.gpus_expected = msg->gpu_count;
	__atomic_store_n(&sl_session.rdma,
		sl_session.version >= SL_RDMA_SINCE && msg->flags & SL_WELCOME_RDMA,
		__ATOMIC_RELAXED);
	sl_session.gpus_seen = 0;
	sl_step(C_WELCOMED);
	if (msg->gpu_count == 0)
		finish_join();
	sl_session.daemon_epoch = msg->daemon_epoch;
	return SL_SESSION_OK;
}

static struct sl_gpu *gpu_of(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (memcmp(sl_session.gpus[i].uuid, uuid, SL_WIRE_UUID_BYTES) == 0)
			return &sl_session.gpus[i];
	}
	return NULL;
}

static int on_gpu(const struct sl_msg_gpu *msg)
{
	struct sl_gpu *gpu = gpu_of(msg->uuid);

	if (!gpu && sl_session.gpu_count == SL_GPUS_MAX)
		return SL_SESSION_LOST;
	if (!gpu) {
		gpu = &sl_session.gpus[sl_session.gpu_count++];
		memcpy(gpu->uuid, msg->uuid, sizeof(gpu->uuid));
	}
	/* Told with each change of the rest; threads that move memory read it without a lock. */
	if (gpu->ordinal != msg->ordinal)
		gpu->ordinal = msg->ordinal;
	gpu->total_bytes = msg->total_bytes;
	gpu->limit_bytes = msg->limit_bytes;
	gpu->request_bytes = msg->request_bytes;
	gpu->others_bytes = msg->others_bytes;
	__atomic_fetch_add(&gpu->serial, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&gpu->serial, INT_MAX);
	if (!sl_session.welcomed && ++sl_session.gpus_seen == sl_session.gpus_expected)
		finish_join();
	return SL_SESSION_OK;
}

/* Nothing but HELLO was sent yet, so nothing is kept and this goes out at once. */
static int on_challenge(const union sl_msg *msg)
{
	union sl_msg proof;

	sl_wire_proof(&proof, msg);
	return sl_line_send(&sl_session.line, &proof) ? SL_SESSION_OK : SL_SESSION_LOST;
}

static int handle(const union sl_msg *msg, struct sl_wire_fds *fds)
{
	switch (msg->head.type) {
	case SL_MSG_CHALLENGE: return on_challenge(msg);
	case SL_MSG_REJECT: return on_reject(&msg->reject);
	case SL_MSG_WELCOME: return on_welcome(&msg->welcome);
	case SL_MSG_GPU: return on_gpu(&msg->gpu);
	case SL_MSG_GRANT: sl_demand_on_grant(&msg->grant); return SL_SESSION_OK;
	case SL_MSG_DENY: sl_demand_on_deny(&msg->deny); return SL_SESSION_OK;
	case SL_MSG_PIDS_ROWS: sl_pids_on_rows(&msg->pids_rows); return SL_SESSION_OK;
	case SL_MSG_IPC_OFFERED:
		sl_offer_on_offered(&msg->ipc_offered);
		return SL_SESSION_OK;
	case SL_MSG_IPC_OPENED:
		sl_fetch_on_opened(&msg->ipc_opened);
		return SL_SESSION_OK;
	case SL_MSG_IPC_TAKE: sl_fetch_on_take(&msg->ipc_take, fds); return SL_SESSION_OK;
	case SL_MSG_STORE:
		sl_store_on_store(&msg->store, fds);
		sl_prove_hash_all();
		return SL_SESSION_OK;
	case SL_MSG_TRIM: sl_store_on_trim(&msg->trim); return SL_SESSION_OK;
	case SL_MSG_GATE:
	case SL_MSG_PROBE:
	case SL_MSG_EVICT:
	case SL_MSG_RESTORE:
	case SL_MSG_ABORT: return SL_SESSION_AGENT;
	default: return SL_SESSION_OK;
	}
}

int sl_session_handle(const union sl_msg *msg, struct sl_wire_fds *fds)
{
	int r;

	sl_debug("got %s", sl_wire_name(msg->head.type));
	sl_session_lock();
	r = handle(msg, fds);
	sl_session_unlock();
	return r;
}

/* --- figures ---------------------------------------------------------------------------- */

struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	struct sl_gpu *gpu;

	sl_session_lock();
	gpu = gpu_of(uuid);
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
		say_chunk();
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
