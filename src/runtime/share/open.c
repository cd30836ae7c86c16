/*
 * open - see open.h
 *
 * What the daemon says is checked as if it were a stranger's: the figures must fit together, and no
 * more descriptors are taken than were told of.
 */
#include "runtime/share/open.h"
#include "runtime/process/futex.h"
#include "runtime/session/state.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* As many pieces as any region can have, and more than a table of descriptors usually holds. */
#define COUNT_MAX 65536u

/* The session lock's. */
static struct sl_link opens = SL_LIST_INIT(opens);

static void say_open(const struct sl_open *open)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OPEN);
	memcpy(msg.ipc_open.key, open->key, sizeof(open->key));
	msg.ipc_open.ask = open->number;
	sl_session_say(&msg);
}

static void drop_fds(struct sl_open *open)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < open->got; i++) {
		if (open->fds[i] >= 0)
			(void)syscall(SYS_close, open->fds[i]);
	}
	free(open->fds);
	open->fds = NULL;
	open->got = 0;
	errno = saved_errno;
}

static void finish(struct sl_open *open, CUresult result)
{
	sl_list_unlink(&open->link);
	open->result = result;
	__atomic_store_n(&open->state, 1, __ATOMIC_RELEASE);
	/* The record may be gone as soon as the state is out; waking needs its address only. */
	sl_futex_wake(&open->state, INT_MAX);
}

static struct sl_open *open_of(uint64_t number)
{
	sl_list_foreach (link, &opens) {
		struct sl_open *open = SL_LIST_ENTRY(link, struct sl_open, link);

		if (open->number == number)
			return open;
	}
	return NULL;
}

/* What the driver says to a handle that is no good, or not for this process. */
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

void sl_open_on_opened(const struct sl_msg_ipc_opened *msg)
{
	struct sl_open *open = open_of(msg->ask);

	if (!open || open->fds)
		return;
	sl_step(C_IPC_OPENED);
	if (msg->reason != SL_IPC_OK) {
		finish(open, result_of(msg->reason));
		return;
	}
	open->fds = fits_together(msg) ? malloc(msg->count * sizeof(*open->fds)) : NULL;
	if (!open->fds) {
		finish(open, CUDA_ERROR_OPERATING_SYSTEM);
		return;
	}
	open->bytes = msg->bytes;
	open->chunk_bytes = msg->chunk_bytes;
	open->ordinal = msg->ordinal;
	open->count = msg->count;
}

void sl_open_on_take(const struct sl_msg_ipc_take *msg, struct sl_wire_fds *fds)
{
	struct sl_open *open = open_of(msg->ask);

	if (!open || !open->fds)
		return;
	if (fds->missing || fds->count > open->count - open->got) {
		sl_warning("memory of another process cannot be opened: %s",
			fds->missing ? "this process has no descriptors left (ulimit -n)"
				     : "the daemon sent more than it said");
		finish(open, CUDA_ERROR_OPERATING_SYSTEM);
		return;
	}
	memcpy(open->fds + open->got, fds->fd, fds->count * sizeof(fds->fd[0]));
	open->got += fds->count;
	fds->count = 0;
	if (open->got < open->count)
		return;
	sl_step(C_IPC_TAKEN);
	finish(open, CUDA_SUCCESS);
}

static bool daemon_knows_opens(void)
{
	return sl_session.version >= sl_wire_since(SL_MSG_IPC_OPEN);
}

void sl_open_ask_again(void)
{
	sl_list_foreach_safe (link, &opens) {
		struct sl_open *open = SL_LIST_ENTRY(link, struct sl_open, link);

		drop_fds(open);
		if (!daemon_knows_opens()) {
			finish(open, CUDA_ERROR_NOT_SUPPORTED);
			continue;
		}
		say_open(open);
		sl_step(C_IPC_ASKED_AGAIN);
	}
}

void sl_open_refuse_all(void)
{
	sl_list_foreach_safe (link, &opens)
		finish(SL_LIST_ENTRY(link, struct sl_open, link), sl_session.rejection);
}

CUresult sl_open_ask(struct sl_open *open, const uint8_t key[SL_OFFER_KEY_BYTES])
{
	memset(open, 0, sizeof(*open));
	sl_list_init(&open->link);
	memcpy(open->key, key, sizeof(open->key));
	sl_session_lock();
	if (sl_session.state == SL_SESSION_REFUSED)
		open->result = sl_session.rejection;
	else if (!daemon_knows_opens())
		open->result = CUDA_ERROR_NOT_SUPPORTED;
	if (open->result != CUDA_SUCCESS) {
		sl_session_unlock();
		return open->result;
	}
	open->number = ++sl_session.last_number;
	sl_list_push_tail(&opens, &open->link);
	say_open(open);
	sl_session_unlock();
	sl_step(C_IPC_ASKED);
	while (!__atomic_load_n(&open->state, __ATOMIC_ACQUIRE))
		sl_futex_wait(&open->state, 0, SL_NS_NEVER);
	return open->result;
}

void sl_open_close(struct sl_open *open)
{
	drop_fds(open);
}

void sl_open_forget(void)
{
	sl_list_init(&opens);
}
