/*
 * offer - see offer.h
 *
 * An offer is idle, being worked on by one thread (anchor the memory, export it, tell the daemon),
 * sent, or offered. A failure makes it idle again, and the next thread that asks tries anew.
 * `generation` is the connection on which it was sent. A new connection does not change the state:
 * a thread that saw "offered" may use the offer, and a thread that waits goes on waiting.
 */
#include "runtime/share/offer.h"
#include "runtime/gate/control.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/anchor.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/region.h"
#include "runtime/memory/slab.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/session/state.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum state { IDLE = 0, WORKING, SENT, OFFERED, ENDED };

struct sl_offer {
	struct sl_link link;
	uint8_t key[SL_OFFER_KEY_BYTES];
	struct sl_gpu *gpu;
	struct sl_backing view; /* a copy of the backing's figures; does not own it */
	uint32_t state;         /* futex, enum state */
	uint32_t users;         /* threads that use the record */
	uint32_t generation;    /* connection on which it was sent; 0: none */
	CUresult result;        /* why it became idle again */
	bool anchored;          /* only the working thread uses it */
};

/* Under the session's lock. */
static struct sl_link offers = SL_LIST_INIT(offers);
static bool again_running;

static void set_state(struct sl_offer *offer, enum state state, CUresult result)
{
	offer->result = result;
	__atomic_store_n(&offer->state, state, __ATOMIC_RELEASE);
	sl_futex_wake(&offer->state, INT_MAX);
}

static CUresult result_of(uint32_t reason)
{
	switch (reason) {
	case SL_IPC_OK: return CUDA_SUCCESS;
	case SL_IPC_FULL: return CUDA_ERROR_OUT_OF_MEMORY;
	default: return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

/* --- finding ---------------------------------------------------------------------------------- */

/* Under the books' lock. False: nothing live is there. */
static bool describe(struct sl_block *block, CUdeviceptr ptr, struct sl_offered *out)
{
	CUdeviceptr base = block->backing.base;
	const struct sl_region *region;
	const struct sl_slot *slot;

	if (block->kind == SL_BLOCK_REGION) {
		region = sl_region_of(block);
		out->bytes = region->live ? region->bytes : 0;
		out->id = region->id;
	} else if (block->kind == SL_BLOCK_TRACT) {
		/* The driver refuses memory of pools. */
		out->bytes = 0;
	} else {
		slot = sl_slab_slot(sl_slab_of(block), ptr, &base);
		out->bytes = slot && slot->state == SL_SLOT_LIVE ? slot->bytes : 0;
		out->id = slot ? slot->id : 0;
	}
	out->offset = base - block->backing.base;
	return ptr - base < out->bytes;
}

static bool make_key(uint8_t key[SL_OFFER_KEY_BYTES])
{
	int saved_errno = errno;
	long n;

	do {
		n = syscall(SYS_getrandom, key, SL_OFFER_KEY_BYTES, 0);
	} while (n < 0 && errno == EINTR);
	errno = saved_errno;
	return n == SL_OFFER_KEY_BYTES;
}

/* Under the books' lock and the session's. */
static struct sl_offer *offer_new(struct sl_block *block)
{
	struct sl_offer *offer = calloc(1, sizeof(*offer));

	if (!offer || !make_key(offer->key)) {
		free(offer);
		return NULL;
	}
	offer->gpu = block->space->gpu;
	offer->view = block->backing;
	sl_list_push_tail(&offers, &offer->link);
	return offer;
}

/* The memory is about to go: withdraws the offer. Waits for a thread that is exporting it. */
static void end(struct sl_backing *backing)
{
	struct sl_offer *offer = backing->offer;
	union sl_msg msg;

	sl_session_lock();
	set_state(offer, ENDED, CUDA_ERROR_INVALID_VALUE);
	while (offer->users > 0) {
		sl_session_unlock();
		sl_futex_pause(100 * SL_US);
		sl_session_lock();
	}
	sl_list_unlink(&offer->link);
	if (offer->generation == sl_session.generation) {
		sl_wire_init(&msg, SL_MSG_IPC_WITHDRAW);
		memcpy(msg.ipc_withdraw.key, offer->key, sizeof(offer->key));
		sl_session_say(&msg);
	}
	sl_session_unlock();
	sl_step(C_IPC_WITHDRAWN);
	free(offer);
	backing->offer = NULL;
	backing->on_destroy = NULL;
}

/* The block's offer, made if needed, with one more user. */
static int find(CUdeviceptr ptr, struct sl_offered *out, struct sl_offer **offer,
	CUresult *result)
{
	int r = SL_OFFER_OURS;
	struct sl_block *block;

	*offer = NULL;
	*result = CUDA_ERROR_INVALID_VALUE;
	sl_books_lock();
	block = sl_pagemap_get(ptr);
	if (!block) {
		r = SL_OFFER_FOREIGN;
	} else if (describe(block, ptr, out)) {
		sl_session_lock();
		*result = CUDA_ERROR_NOT_SUPPORTED;
		if (!block->backing.offer && block->backing.exportable) {
			block->backing.offer = offer_new(block);
			block->backing.on_destroy = block->backing.offer ? end : NULL;
			*result = CUDA_ERROR_OPERATING_SYSTEM;
		}
		*offer = block->backing.offer;
		if (*offer)
			(*offer)->users++;
		sl_session_unlock();
	}
	sl_books_unlock();
	return r;
}

bool sl_offer_is_ours(const uint8_t key[SL_OFFER_KEY_BYTES])
{
	bool found = false;

	sl_session_lock();
	sl_list_foreach (link, &offers)
		found = found || memcmp(SL_LIST_ENTRY(link, struct sl_offer, link)->key,
					 key, SL_OFFER_KEY_BYTES) == 0;
	sl_session_unlock();
	return found;
}

/* --- offering --------------------------------------------------------------------------------- */

static void close_fds(const int *fds, uint32_t count)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < count; i++)
		(void)syscall(SYS_close, fds[i]);
	errno = saved_errno;
}

/* A descriptor of each chunk, or none at all. */
static CUresult export_all(const struct sl_offer *offer, int **out)
{
	int *fds = malloc(offer->view.count * sizeof(*fds));
	CUresult r = fds ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
	uint32_t done = 0;

	sl_control_enter();
	while (r == CUDA_SUCCESS && done < offer->view.count) {
		r = sl_backing_export(&offer->view, done, &fds[done]);
		done += r == CUDA_SUCCESS;
	}
	sl_control_leave();
	if (r == CUDA_SUCCESS) {
		*out = fds;
		return r;
	}
	sl_warning("memory of this process cannot be exported: error %d at piece %u of "
		   "%u",
		(int)r, done + 1, offer->view.count);
	if (fds)
		close_fds(fds, done);
	free(fds);
	return r;
}

/* Under the session's lock; takes over the descriptors. Without a connection nothing is sent; the
 * offer is sent on the next one. */
static void say_offer(struct sl_offer *offer, const int *fds)
{
	union sl_msg msg;
	uint32_t done = 0;

	sl_wire_init(&msg, SL_MSG_IPC_OFFER);
	memcpy(msg.ipc_offer.key, offer->key, sizeof(offer->key));
	msg.ipc_offer.bytes = offer->view.bytes;
	msg.ipc_offer.chunk_bytes = offer->view.chunk_bytes;
	msg.ipc_offer.ordinal = offer->gpu->ordinal;
	msg.ipc_offer.count = offer->view.count;
	offer->generation = sl_session.welcomed ? sl_session.generation : 0;
	sl_session_say(&msg);
	while (done < offer->view.count) {
		uint32_t count =
			(uint32_t)sl_min_u64(offer->view.count - done, SL_WIRE_FDS_MAX);

		sl_wire_init(&msg, SL_MSG_IPC_GIVE);
		memcpy(msg.ipc_give.key, offer->key, sizeof(offer->key));
		msg.ipc_give.fds = count;
		sl_session_say_fds(&msg, fds + done, count);
		done += count;
	}
}

/* If the memory was on the host when it became held, it comes back before the export. A thread that
 * frees it meanwhile ends the offer, then waits for this export. */
static CUresult export_resident(struct sl_offer *offer, int **fds)
{
	CUresult r;

	if (!sl_residency_enter_unless(&offer->state, ENDED))
		return CUDA_ERROR_INVALID_VALUE;
	r = export_all(offer, fds);
	sl_residency_leave();
	return r;
}

/* Holds, exports and sends. The memory stays held afterwards: other processes may have it
 * already. */
static void work(struct sl_offer *offer)
{
	CUresult r = CUDA_SUCCESS;
	int *fds = NULL;

	if (!offer->anchored && !sl_anchor_range(offer->view.base, 1)) {
		sl_warning("memory at %#llx cannot be shared with other processes: it "
			   "would have to stay on the GPU, and the others' requests do "
			   "not leave room for that; a larger --request does",
			offer->view.base);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS) {
		offer->anchored = true;
		sl_step(C_IPC_HELD);
		r = export_resident(offer, &fds);
	}
	if (r == CUDA_SUCCESS)
		sl_step(C_IPC_EXPORTED);
	sl_session_lock();
	if (r == CUDA_SUCCESS && sl_session.state == SL_SESSION_REFUSED)
		r = sl_session.rejection;
	if (r == CUDA_SUCCESS)
		say_offer(offer, fds);
	else if (fds)
		close_fds(fds, offer->view.count);
	if (offer->state == WORKING)
		set_state(offer, r == CUDA_SUCCESS ? SENT : IDLE, r);
	sl_session_unlock();
	free(fds);
	sl_step(C_IPC_GIVEN);
}

/* Under the session's lock, which is released for work and waits. */
static CUresult see_to(struct sl_offer *offer)
{
	bool tried = false;
	uint32_t state;

	while ((state = offer->state) != OFFERED) {
		if (state == ENDED)
			return CUDA_ERROR_INVALID_VALUE;
		if (state == IDLE && tried)
			return offer->result;
		if (state == IDLE)
			set_state(offer, WORKING, CUDA_SUCCESS);
		sl_session_unlock();
		if (state == IDLE)
			work(offer);
		else
			sl_futex_wait(&offer->state, state, SL_NS_NEVER);
		tried = true;
		sl_session_lock();
	}
	return CUDA_SUCCESS;
}

int sl_offer_get(CUdeviceptr ptr, struct sl_offered *out, CUresult *result)
{
	struct sl_offer *offer;
	int r = find(ptr, out, &offer, result);

	if (!offer)
		return r;
	sl_session_lock();
	*result = see_to(offer);
	memcpy(out->key, offer->key, sizeof(out->key));
	offer->users--;
	sl_session_unlock();
	return r;
}

/* --- what the daemon says --------------------------------------------------------------------- */

void sl_offer_on_offered(const struct sl_msg_ipc_offered *msg)
{
	sl_list_foreach (link, &offers) {
		struct sl_offer *offer = SL_LIST_ENTRY(link, struct sl_offer, link);

		if (memcmp(offer->key, msg->key, sizeof(offer->key)) != 0 ||
			(offer->state != SENT && offer->state != OFFERED))
			continue;
		sl_step(C_IPC_OFFERED);
		if (msg->reason != SL_IPC_OK)
			sl_warning("the daemon cannot keep memory for other processes: "
				   "reason %u",
				msg->reason);
		set_state(offer, msg->reason == SL_IPC_OK ? OFFERED : IDLE,
			result_of(msg->reason));
		return;
	}
}

void sl_offer_refuse_all(void)
{
	sl_list_foreach (link, &offers) {
		struct sl_offer *offer = SL_LIST_ENTRY(link, struct sl_offer, link);

		if (offer->state == SENT || offer->state == OFFERED)
			set_state(offer, IDLE, sl_session.rejection);
	}
}

/* --- again ------------------------------------------------------------------------------------ */

/* Under the session's lock: an offer of an earlier connection, with one more user. */
static struct sl_offer *next_of_former(void)
{
	sl_list_foreach (link, &offers) {
		struct sl_offer *offer = SL_LIST_ENTRY(link, struct sl_offer, link);

		if ((offer->state != SENT && offer->state != OFFERED) ||
			offer->generation == sl_session.generation)
			continue;
		offer->users++;
		return offer;
	}
	return NULL;
}

static void say_settled(void)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_SETTLED);
	sl_session_say(&msg);
}

/* Under the session's lock, which is released during the driver's call. */
static void offer_again(struct sl_offer *offer)
{
	int *fds = NULL;
	CUresult r;

	sl_session_unlock();
	r = export_all(offer, &fds);
	sl_session_lock();
	if (r == CUDA_SUCCESS && offer->state != ENDED) {
		say_offer(offer, fds);
	} else {
		if (fds)
			close_fds(fds, offer->view.count);
		offer->generation = sl_session.generation;
		if (offer->state != ENDED)
			set_state(offer, IDLE, r);
	}
	free(fds);
	offer->users--;
	sl_step(C_IPC_OFFERED_AGAIN);
}

static void *again_main(void *arg)
{
	struct sl_offer *offer;

	(void)prctl(PR_SET_NAME, "sluice-offer", 0, 0, 0);
	sl_session_lock();
	while (sl_session.welcomed && (offer = next_of_former()))
		offer_again(offer);
	/* If the line was lost meanwhile, the next line starts another thread. */
	say_settled();
	again_running = false;
	sl_session_unlock();
	return arg;
}

void sl_offer_again(void)
{
	struct sl_offer *offer = next_of_former();

	if (!offer) {
		say_settled();
		return;
	}
	offer->users--;
	if (again_running)
		return;
	again_running = true;
	if (sl_libc_start_thread(again_main, NULL) == 0)
		return;
	again_running = false;
	sl_warning(
		"no thread to offer memory to other processes again: those who open it "
		"from now on are refused");
	say_settled();
}

void sl_offer_forget(void)
{
	sl_list_init(&offers);
	again_running = false;
}
