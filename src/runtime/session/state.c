/*
 * state - see state.h
 */
#include "runtime/session/state.h"
#include "runtime/process/futex.h"
#include "runtime/process/wake.h"

#include "base/log.h"

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

/* Under the lock. If a message can be neither sent nor queued, later ones would be inconsistent. So
 * the connection is given up, and the next one begins with a report. */
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
	msg.freed.flags = flags;
	sl_session_say(&msg);
}

void sl_session_say_held(bool everything)
{
	union sl_msg msg;

	if (!sl_session.welcomed)
		return;
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		struct sl_gpu *gpu = &sl_session.gpus[i];

		if (sl_session_held_bytes(gpu) == gpu->told_held_bytes && !everything)
			continue;
		if (everything && !sl_session_held_bytes(gpu) &&
			sl_session.generation == 1)
			continue; /* a new daemon knows of none */
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

	if (!sl_session.chunk_bytes)
		return;
	sl_wire_init(&msg, SL_MSG_CHUNK);
	msg.chunk.bytes = sl_session.chunk_bytes;
	sl_session_say(&msg);
}

void sl_session_set_state(enum sl_session_state state)
{
	__atomic_store_n(&sl_session.state, state, __ATOMIC_RELEASE);
	sl_futex_wake(&sl_session.state, INT_MAX);
}

void sl_session_starve(void)
{
	sl_session_lock();
	if (sl_session.state == SL_SESSION_JOINING)
		sl_session_set_state(SL_SESSION_STARVED);
	sl_session_unlock();
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

	/* The parent's end stays open in the parent; ours is another reference to it. */
	sl_fd_close(&sl_session.line.socket);
	memset(&sl_session, 0, sizeof(sl_session));
	(void)pthread_mutex_init(&sl_session.lock, NULL);
	sl_session.line = (struct sl_line)SL_LINE_NONE;
	sl_list_init(&sl_session.demands);
	sl_session.forked = forked;
}
