/*
 * session - see session.h
 *
 * Threads and the agent meet in one table under one lock. A demand is a record on the stack of
 * the thread that waits; the agent fills it in and wakes the thread. What makes the daemon's
 * death harmless: `generation` counts the connections on which we reported what we hold, and a
 * grant remembers its own. An answer that belongs to an older generation is not sent; the new
 * daemon has counted the grant as held, so only what was not used is given back.
 */
#include "runtime/session.h"
#include "runtime/agent.h"
#include "runtime/fork.h"
#include "runtime/futex.h"
#include "runtime/gate.h"
#include "runtime/hidden.h"
#include "runtime/mode.h"

#include "base/log.h"
#include "base/paths.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_IDLE = 0, STATE_JOINING, STATE_JOINED, STATE_REJECTED };

/* Longer waits make the thread give back what it hoards; shorter ones are the usual answer. */
#define SLOW_ANSWER_NS (5 * SL_MS)
/* WORK is sent at most this often (messages.def). */
#define WORK_SPAN_NS (250 * SL_MS)

static struct session {
	pthread_mutex_t lock;
	uint32_t state; /* futex */
	CUresult rejection;
	struct sl_line line;
	bool welcomed; /* reported on this line: messages may flow */
	bool forked;   /* this process came from a fork of a client */
	uint32_t generation;
	uint64_t daemon_epoch;
	uint8_t token[SL_WIRE_TOKEN_BYTES]; /* zeros if the environment lost it */
	char path[SL_SOCKET_PATH_MAX];
	uint32_t gpus_expected, gpus_seen, gpu_count;
	struct sl_gpu gpus[SL_GPUS_MAX];
	struct sl_link demands;
	uint64_t last_number;
	sl_ns work_sent_ns;
	uint64_t work_sent;
} session = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.line = SL_LINE_NONE,
	.demands = SL_LIST_INIT(session.demands),
};

static void lock(void)
{
	(void)pthread_mutex_lock(&session.lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&session.lock);
}

/* Under the lock. A lost line is noticed by the agent, which reads it; nothing to do here. */
static void say(const union sl_msg *msg)
{
	if (session.welcomed && !sl_line_send(&session.line, msg))
		sl_agent_wake();
	else if (sl_line_has_kept(&session.line))
		sl_agent_wake();
}

static void say_ask(const struct sl_demand *demand)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = demand->number;
	msg.ask.ordinal = demand->gpu->ordinal;
	msg.ask.bytes = demand->bytes;
	say(&msg);
}

static void say_freed(const struct sl_gpu *gpu, uint64_t bytes)
{
	union sl_msg msg;

	if (bytes == 0)
		return;
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.ordinal = gpu->ordinal;
	msg.freed.bytes = bytes;
	say(&msg);
}

static void say_commit(uint64_t epoch, uint64_t used_bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = epoch;
	msg.commit.used_bytes = used_bytes;
	say(&msg);
}

static void say_measure(struct sl_gpu *gpu)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_MEASURE);
	msg.measure.ordinal = gpu->ordinal;
	msg.measure.backing_bytes = gpu->backing_bytes;
	say(&msg);
}

static void set_state(uint32_t state)
{
	__atomic_store_n(&session.state, state, __ATOMIC_RELEASE);
	sl_futex_wake(&session.state, INT_MAX);
}

/* --- joining ---------------------------------------------------------------------------- */

/* The environment is read here, on the program's own thread: it may change it later. */
static int start(void)
{
	const char *token = getenv("SLUICE_WORKLOAD");
	struct sl_error err = {0};

	sl_mode_read_options();
	if (token && !sl_wire_token_parse(token, session.token))
		memset(session.token, 0, sizeof(session.token));
	if (sl_paths_socket(session.path, sizeof(session.path), &err) != SL_PATHS_OK) {
		sl_error_log("no daemon to join: %s", err.text);
		return -EINVAL;
	}
	sl_fork_watch();
	sl_gate_start(!sl_options.no_membarrier);
	sl_gate_on_attach = sl_hidden_touch;
	return sl_agent_start(session.path);
}

static SL_COLD CUresult join_slowly(void)
{
	int saved_errno = errno, r = 0;
	uint32_t state;

	lock();
	if (session.state == STATE_IDLE) {
		r = start();
		if (r == 0)
			session.state = STATE_JOINING;
	}
	unlock();
	if (r != 0) {
		errno = saved_errno;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	do {
		sl_futex_wait(&session.state, STATE_JOINING, SL_NS_NEVER);
		state = __atomic_load_n(&session.state, __ATOMIC_ACQUIRE);
	} while (state == STATE_JOINING);
	errno = saved_errno;
	return state == STATE_JOINED ? CUDA_SUCCESS : session.rejection;
}

CUresult sl_session_join(void)
{
	uint32_t state = __atomic_load_n(&session.state, __ATOMIC_ACQUIRE);

	if (sl_likely(state == STATE_JOINED))
		return CUDA_SUCCESS;
	return state == STATE_REJECTED ? session.rejection : join_slowly();
}

bool sl_session_is_joined(void)
{
	return __atomic_load_n(&session.state, __ATOMIC_ACQUIRE) == STATE_JOINED;
}

bool sl_session_greet(struct sl_line *line)
{
	union sl_msg msg;
	bool sent;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CLIENT;
	memcpy(msg.hello.token, session.token, sizeof(msg.hello.token));
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	lock();
	msg.hello.flags = session.forked ? SL_HELLO_FORKED : 0;
	msg.hello.daemon_epoch = session.daemon_epoch;
	sl_line_close(&session.line);
	session.line = *line;
	*line = (struct sl_line)SL_LINE_NONE;
	sent = sl_line_send(&session.line, &msg);
	unlock();
	return sent;
}

/* All GPUs are known: tell what is held, ask again for what is wanted, let everybody in. */
static void finish_join(void)
{
	bool again = session.generation > 0;
	union sl_msg msg;

	session.welcomed = true;
	session.generation++;
	for (uint32_t i = 0; i < session.gpu_count; i++) {
		if (!again && session.gpus[i].backing_bytes == 0)
			continue;
		sl_wire_init(&msg, SL_MSG_REPORT);
		msg.report.ordinal = session.gpus[i].ordinal;
		msg.report.backing_bytes = session.gpus[i].backing_bytes;
		say(&msg);
	}
	sl_wire_init(&msg, SL_MSG_REPORTED);
	say(&msg);
	sl_list_foreach (link, &session.demands)
		say_ask(SL_LIST_ENTRY(link, struct sl_demand, link));
	session.work_sent = 0;
	set_state(STATE_JOINED);
	sl_info("joined as client of generation %u with %u GPUs", session.generation,
		session.gpu_count);
}

static void finish_demand(struct sl_demand *demand, int outcome)
{
	sl_list_unlink(&demand->link);
	demand->outcome = outcome;
	__atomic_store_n(&demand->state, SL_DEMAND_DONE, __ATOMIC_RELEASE);
	/* The record may be gone as soon as the state is out; waking needs its address only. */
	sl_futex_wake(&demand->state, 1);
}

static int on_reject(const struct sl_msg_reject *msg)
{
	sl_warning("the daemon says no: %.255s", msg->text);
	if (msg->reason == SL_REJECT_FULL)
		return SL_SESSION_LOST;
	session.rejection = msg->reason == SL_REJECT_VERSION
				    ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
				    : CUDA_ERROR_NOT_PERMITTED;
	/* The state first: whoever is refused asks sl_session_join for the reason. */
	set_state(STATE_REJECTED);
	sl_list_foreach_safe (link, &session.demands)
		finish_demand(
			SL_LIST_ENTRY(link, struct sl_demand, link), SL_DEMAND_REFUSED);
	return SL_SESSION_REJECTED;
}

static int on_welcome(const struct sl_msg_welcome *msg)
{
	if (session.welcomed || msg->gpu_count > SL_GPUS_MAX)
		return SL_SESSION_LOST;
	session.gpus_expected = msg->gpu_count;
	session.gpus_seen = 0;
	if (msg->gpu_count == 0)
		finish_join();
	session.daemon_epoch = msg->daemon_epoch;
	return SL_SESSION_OK;
}

static struct sl_gpu *gpu_of(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < session.gpu_count; i++) {
		if (memcmp(session.gpus[i].uuid, uuid, SL_WIRE_UUID_BYTES) == 0)
			return &session.gpus[i];
	}
	return NULL;
}

static int on_gpu(const struct sl_msg_gpu *msg)
{
	struct sl_gpu *gpu = gpu_of(msg->uuid);

	if (!gpu && session.gpu_count == SL_GPUS_MAX)
		return SL_SESSION_LOST;
	if (!gpu) {
		gpu = &session.gpus[session.gpu_count++];
		memcpy(gpu->uuid, msg->uuid, sizeof(gpu->uuid));
	}
	gpu->ordinal = msg->ordinal;
	gpu->total_bytes = msg->total_bytes;
	gpu->limit_bytes = msg->limit_bytes;
	gpu->request_bytes = msg->request_bytes;
	gpu->others_bytes = msg->others_bytes;
	__atomic_fetch_add(&gpu->serial, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&gpu->serial, INT_MAX);
	if (!session.welcomed && ++session.gpus_seen == session.gpus_expected)
		finish_join();
	return SL_SESSION_OK;
}

static struct sl_demand *demand_of(uint64_t number)
{
	sl_list_foreach (link, &session.demands) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, link);

		if (demand->number == number)
			return demand;
	}
	return NULL;
}

static int on_grant(const struct sl_msg_grant *msg)
{
	struct sl_demand *demand = demand_of(msg->ask);

	/* Grants are whole; one that is not, or that nobody waits for, goes back. */
	if (!demand || msg->bytes < demand->bytes) {
		say_commit(msg->epoch, 0);
		if (demand)
			finish_demand(demand, SL_DEMAND_DENIED);
		return SL_SESSION_OK;
	}
	demand->epoch = msg->epoch;
	demand->granted_bytes = msg->bytes;
	demand->generation = session.generation;
	demand->gpu->backing_bytes += msg->bytes;
	finish_demand(demand, SL_DEMAND_GRANTED);
	return SL_SESSION_OK;
}

static int on_deny(const struct sl_msg_deny *msg)
{
	struct sl_demand *demand = demand_of(msg->ask);

	if (demand)
		finish_demand(demand, SL_DEMAND_DENIED);
	return SL_SESSION_OK;
}

static int handle(const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_REJECT: return on_reject(&msg->reject);
	case SL_MSG_WELCOME: return on_welcome(&msg->welcome);
	case SL_MSG_GPU: return on_gpu(&msg->gpu);
	case SL_MSG_GRANT: return on_grant(&msg->grant);
	case SL_MSG_DENY: return on_deny(&msg->deny);
	case SL_MSG_GATE: return SL_SESSION_GATE;
	default: return SL_SESSION_OK;
	}
}

int sl_session_handle(const union sl_msg *msg)
{
	int r;

	sl_debug("got %s", sl_wire_name(msg->head.type));
	lock();
	r = handle(msg);
	unlock();
	return r;
}

/* --- demands ---------------------------------------------------------------------------- */

/* Tells the daemon that the others still work while we wait, so that this is no deadlock. */
static void tell_work(void)
{
	uint64_t work = sl_gate_submissions();
	sl_ns now_ns = sl_clock_now();
	union sl_msg msg;

	lock();
	if (work != session.work_sent && now_ns - session.work_sent_ns >= WORK_SPAN_NS) {
		sl_wire_init(&msg, SL_MSG_WORK);
		msg.work.submissions = work;
		session.work_sent = work;
		session.work_sent_ns = now_ns;
		say(&msg);
	}
	unlock();
}

static int await(struct sl_demand *demand, void (*on_slow)(void))
{
	sl_ns span_ns = SLOW_ANSWER_NS, deadline_ns = sl_clock_now() + span_ns;

	while (__atomic_load_n(&demand->state, __ATOMIC_ACQUIRE) == SL_DEMAND_WAITING) {
		sl_futex_wait(&demand->state, SL_DEMAND_WAITING, span_ns);
		if (sl_clock_now() < deadline_ns)
			continue;
		if (on_slow)
			on_slow();
		on_slow = NULL;
		tell_work();
		span_ns = WORK_SPAN_NS;
		deadline_ns = sl_clock_now() + span_ns;
	}
	return demand->outcome;
}

int sl_demand_ask(struct sl_demand *demand, struct sl_gpu *gpu, uint64_t bytes,
	void (*on_slow)(void))
{
	bool refused, hopeless;

	memset(demand, 0, sizeof(*demand));
	demand->gpu = gpu;
	demand->bytes = bytes;
	sl_list_init(&demand->link);
	lock();
	refused = session.state == STATE_REJECTED;
	/* Above the limit whatever the others do: no need to ask. */
	hopeless = bytes > gpu->limit_bytes;
	if (!refused && !hopeless) {
		demand->number = ++session.last_number;
		sl_list_push_tail(&session.demands, &demand->link);
		say_ask(demand);
	}
	unlock();
	if (refused)
		return SL_DEMAND_REFUSED;
	return hopeless ? SL_DEMAND_DENIED : await(demand, on_slow);
}

int sl_demand_failed(struct sl_demand *demand, CUresult result)
{
	struct sl_gpu *gpu = demand->gpu;
	union sl_msg msg;

	lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, demand->granted_bytes);
	demand->state = SL_DEMAND_WAITING;
	if (session.state == STATE_REJECTED) {
		unlock();
		return SL_DEMAND_REFUSED;
	}
	sl_list_push_tail(&session.demands, &demand->link);
	if (demand->generation == session.generation) {
		sl_wire_init(&msg, SL_MSG_CREATE_FAILED);
		msg.create_failed.epoch = demand->epoch;
		msg.create_failed.driver_result = (uint32_t)result;
		say(&msg);
	} else {
		say_freed(gpu, demand->granted_bytes);
		say_ask(demand);
	}
	unlock();
	return await(demand, NULL);
}

void sl_demand_commit(struct sl_demand *demand, uint64_t used_bytes)
{
	struct sl_gpu *gpu = demand->gpu;
	uint64_t unused_bytes = sl_sub_sat(demand->granted_bytes, used_bytes);

	lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, unused_bytes);
	if (demand->generation == session.generation)
		say_commit(demand->epoch, used_bytes);
	else
		say_freed(gpu, unused_bytes);
	unlock();
}

/* --- figures ---------------------------------------------------------------------------- */

struct sl_gpu *sl_session_gpu(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	struct sl_gpu *gpu;

	lock();
	gpu = gpu_of(uuid);
	unlock();
	return gpu;
}

void sl_session_view(struct sl_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes)
{
	uint64_t own_bytes;

	lock();
	own_bytes = sl_sub_sat(gpu->backing_bytes,
		__atomic_load_n(&gpu->quarantined_bytes, __ATOMIC_RELAXED));
	*total_bytes = gpu->total_bytes;
	*free_bytes =
		sl_sub_sat(sl_sub_sat(gpu->total_bytes, gpu->others_bytes), own_bytes);
	unlock();
}

void sl_session_freed(struct sl_gpu *gpu, uint64_t bytes)
{
	lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, bytes);
	say_freed(gpu, bytes);
	unlock();
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

	lock();
	gpu->has_context = true;
	serial = gpu->serial;
	asked = session.welcomed;
	say_measure(gpu);
	unlock();
	while (asked && (now_ns = sl_clock_now()) < deadline_ns &&
		__atomic_load_n(&gpu->serial, __ATOMIC_ACQUIRE) == serial)
		sl_futex_wait(&gpu->serial, serial, deadline_ns - now_ns);
}

void sl_session_measure_all(void)
{
	lock();
	for (uint32_t i = 0; i < session.gpu_count; i++) {
		if (session.gpus[i].has_context)
			say_measure(&session.gpus[i]);
	}
	unlock();
}

/* --- the line, for the agent; and fork --------------------------------------------------- */

int sl_session_recv(union sl_msg *out)
{
	struct sl_error err = {0};
	int r = sl_line_recv(&session.line, out, &err);

	if (err.text[0])
		sl_warning("from the daemon: %s", err.text);
	return r;
}

bool sl_session_send(const union sl_msg *msg)
{
	bool sent;

	lock();
	sent = sl_line_send(&session.line, msg);
	unlock();
	return sent;
}

bool sl_session_flush(void)
{
	bool sent;

	lock();
	sent = sl_line_flush(&session.line);
	unlock();
	return sent;
}

bool sl_session_has_kept(void)
{
	bool kept;

	lock();
	kept = sl_line_has_kept(&session.line);
	unlock();
	return kept;
}

void sl_session_drop_line(void)
{
	lock();
	session.welcomed = false;
	sl_line_close(&session.line);
	unlock();
}

int sl_session_fd(void)
{
	return session.line.socket.fd;
}

void sl_session_forget(void)
{
	bool forked = session.forked || session.state != STATE_IDLE;

	/* The parent's end stays open in the parent; ours is one more reference to it. */
	sl_fd_close(&session.line.socket);
	memset(&session, 0, sizeof(session));
	(void)pthread_mutex_init(&session.lock, NULL);
	session.line = (struct sl_line)SL_LINE_NONE;
	sl_list_init(&session.demands);
	session.forked = forked;
}
