/*
 * pids - see pids.h
 *
 * One query at a time, so one list is enough. The asking thread keeps `asking` locked while it
 * waits; no thread needs that lock to answer. The session's lock guards the current query; the
 * agent's thread fills it in and wakes the asking thread.
 */
#include "runtime/session/pids.h"
#include "runtime/process/futex.h"
#include "runtime/session/state.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_WAIT_NS (250 * SL_MS)

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* Under the session's lock, except `done`. */
static struct {
	uint64_t ask;  /* the last question's number */
	uint32_t done; /* futex: 1 if the answer is complete or none is awaited */
	struct sl_pids list;
} now = {.done = 1};

void sl_pids_on_rows(const struct sl_msg_pids_rows *msg)
{
	uint32_t room = SL_PIDS_LIST_MAX - now.list.count;
	uint32_t count = msg->count < room ? msg->count : room;

	if (msg->ask != now.ask || __atomic_load_n(&now.done, __ATOMIC_RELAXED) ||
		msg->count > SL_PIDS_ROWS_MAX)
		return;
	memcpy(&now.list.rows[now.list.count], msg->rows,
		count * sizeof(now.list.rows[0]));
	now.list.count += count;
	now.list.same = msg->flags & SL_PIDS_SAME;
	if (!(msg->flags & SL_PIDS_LAST))
		return;
	__atomic_store_n(&now.done, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&now.done, INT_MAX);
}

/* False: no daemon that could answer. */
static bool ask(const struct sl_gpu *gpu)
{
	union sl_msg msg;
	bool asked;

	sl_wire_init(&msg, SL_MSG_PIDS);
	sl_session_lock();
	asked = sl_session.welcomed;
	if (asked) {
		now.list.count = 0;
		now.list.same = false;
		__atomic_store_n(&now.done, 0, __ATOMIC_RELAXED);
		msg.pids.ask = ++now.ask;
		msg.pids.ordinal = gpu->ordinal;
		sl_session_say(&msg);
	}
	sl_session_unlock();
	return asked;
}

/* Takes the answer if it is complete, and ends the wait, so that a late answer is ignored. */
static bool take(struct sl_pids *out)
{
	bool whole;

	sl_session_lock();
	whole = __atomic_load_n(&now.done, __ATOMIC_RELAXED);
	if (whole) {
		out->count = now.list.count;
		out->same = now.list.same;
		memcpy(out->rows, now.list.rows,
			now.list.count * sizeof(now.list.rows[0]));
	}
	__atomic_store_n(&now.done, 1, __ATOMIC_RELAXED);
	sl_session_unlock();
	return whole;
}

static void list_ourselves(struct sl_gpu *gpu, struct sl_pids *out)
{
	out->same = false;
	out->rows[0] = (struct sl_wire_pid){.pid = (uint32_t)getpid()};
	sl_session_lock();
	out->rows[0].used_bytes = gpu->backing_bytes;
	sl_session_unlock();
	out->count = out->rows[0].used_bytes ? 1 : 0;
}

void sl_pids_list(struct sl_gpu *gpu, struct sl_pids *out)
{
	sl_ns deadline_ns = sl_clock_now() + ANSWER_WAIT_NS, now_ns;
	bool told = false;

	(void)pthread_mutex_lock(&asking);
	if (ask(gpu)) {
		while ((now_ns = sl_clock_now()) < deadline_ns &&
			!__atomic_load_n(&now.done, __ATOMIC_ACQUIRE))
			sl_futex_wait(&now.done, 0, deadline_ns - now_ns);
		told = take(out);
	}
	(void)pthread_mutex_unlock(&asking);
	if (!told)
		list_ourselves(gpu, out);
}

void sl_pids_forget(void)
{
	(void)pthread_mutex_init(&asking, NULL);
	memset(&now, 0, sizeof(now));
	now.done = 1;
}
