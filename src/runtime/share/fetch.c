/*
 * fetch - see fetch.h
 *
 * The daemon's answer is checked like untrusted input: the figures must fit together, and no more
 * descriptors are taken than were announced.
 */
#include "runtime/share/fetch.h"
#include "runtime/process/futex.h"
#include "runtime/session/state.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The most chunks that any region can have, and more than a descriptor table usually holds. */
#define COUNT_MAX 65536u

/* Under the session's lock. */
static struct sl_link fetches = SL_LIST_INIT(fetches);

static void say_fetch(const struct sl_fetch *fetch)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OPEN);
	memcpy(msg.ipc_open.key, fetch->key, sizeof(fetch->key));
	msg.ipc_open.ask = fetch->number;
	sl_session_say(&msg);
}

static void drop_fds(struct sl_fetch *fetch)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < fetch->got; i++) {
		if (fetch->fds[i] >= 0)
			(void)syscall(SYS_close, fetch->fds[i]);
	}
	free(fetch->fds);
	fetch->fds = NULL;
	fetch->got = 0;
	errno = saved_errno;
}

static void finish(struct sl_fetch *fetch, CUresult result)
{
	sl_list_unlink(&fetch->link);
	fetch->result = result;
	__atomic_store_n(&fetch->state, 1, __ATOMIC_RELEASE);
	/* The record may be gone once the state is written; waking needs only its address. */
	sl_futex_wake(&fetch->state, INT_MAX);
}

static struct sl_fetch *fetch_of(uint64_t number)
{
	sl_list_foreach (link, &fetches) {
		struct sl_fetch *fetch = SL_LIST_ENTRY(link, struct sl_fetch, link);

		if (fetch->number == number)
			return fetch;
	}
	return NULL;
}

/* The driver's result for a handle that is invalid, or not for this process. */
static CUresult result_of(uint32_t reason)
{
	switch (reason) {
	case SL_IPC_UNSEEN: return CUDA_ERROR_INVALID_DEVICE;
	case SL_IPC_FULL: return CUDA_ERROR_OUT_OF_MEMORY;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static bool fits_together(const struct sl_msg_ipc_opened *msg)
{
	return msg->count >= 1 && msg->count <= COUNT_MAX && msg->bytes > 0 &&
	       msg->chunk_bytes > 0 &&
	       (msg->bytes - 1) / msg->chunk_bytes + 1 == msg->count;
}

void sl_fetch_on_opened(const struct sl_msg_ipc_opened *msg)
{
	struct sl_fetch *fetch = fetch_of(msg->ask);

	if (!fetch || fetch->fds)
		return;
	sl_step(C_IPC_OPENED);
	if (msg->reason != SL_IPC_OK) {
		finish(fetch, result_of(msg->reason));
		return;
	}
	fetch->fds = fits_together(msg) ? malloc(msg->count * sizeof(*fetch->fds)) : NULL;
	if (!fetch->fds) {
		finish(fetch, CUDA_ERROR_OPERATING_SYSTEM);
		return;
	}
	fetch->bytes = msg->bytes;
	fetch->chunk_bytes = msg->chunk_bytes;
	fetch->ordinal = msg->ordinal;
	fetch->count = msg->count;
}

void sl_fetch_on_take(const struct sl_msg_ipc_take *msg, struct sl_wire_fds *fds)
{
	struct sl_fetch *fetch = fetch_of(msg->ask);

	if (!fetch || !fetch->fds)
		return;
	if (fds->missing || fds->count > fetch->count - fetch->got) {
		sl_warning("memory of another process cannot be opened: %s",
			fds->missing ? "this process has no descriptors left (ulimit -n)"
				     : "the daemon sent more than it said");
		finish(fetch, CUDA_ERROR_OPERATING_SYSTEM);
		return;
	}
	memcpy(fetch->fds + fetch->got, fds->fd, fds->count * sizeof(fds->fd[0]));
	fetch->got += fds->count;
	fds->count = 0;
	if (fetch->got < fetch->count)
		return;
	sl_step(C_IPC_TAKEN);
	finish(fetch, CUDA_SUCCESS);
}

void sl_fetch_ask_again(void)
{
	sl_list_foreach_safe (link, &fetches) {
		struct sl_fetch *fetch = SL_LIST_ENTRY(link, struct sl_fetch, link);

		drop_fds(fetch);
		say_fetch(fetch);
		sl_step(C_IPC_ASKED_AGAIN);
	}
}

void sl_fetch_refuse_all(void)
{
	sl_list_foreach_safe (link, &fetches)
		finish(SL_LIST_ENTRY(link, struct sl_fetch, link), sl_session.rejection);
}

CUresult sl_fetch_ask(struct sl_fetch *fetch, const uint8_t key[SL_OFFER_KEY_BYTES])
{
	memset(fetch, 0, sizeof(*fetch));
	sl_list_init(&fetch->link);
	memcpy(fetch->key, key, sizeof(fetch->key));
	sl_session_lock();
	if (sl_session.state == SL_SESSION_REFUSED) {
		fetch->result = sl_session.rejection;
		sl_session_unlock();
		return fetch->result;
	}
	fetch->number = ++sl_session.last_number;
	sl_list_push_tail(&fetches, &fetch->link);
	say_fetch(fetch);
	sl_session_unlock();
	sl_step(C_IPC_ASKED);
	while (!__atomic_load_n(&fetch->state, __ATOMIC_ACQUIRE))
		sl_futex_wait(&fetch->state, 0, SL_NS_NEVER);
	return fetch->result;
}

void sl_fetch_close(struct sl_fetch *fetch)
{
	drop_fds(fetch);
}

void sl_fetch_forget(void)
{
	sl_list_init(&fetches);
}
