/*
 * pinning - pins the store's files in the background, and gives files back
 *
 * One thread, started with the first file. Pinning is expensive (0.1 s per GiB with small pages)
 * and per process. So it is done ahead of need, a piece at a time, and never begins while something
 * is being moved. A file that the driver refuses to pin is used through the ring meanwhile. The
 * daemon may ask for files back (TRIM). A file goes back when no place in it is needed: its copies
 * are dropped, it leaves the list, and then the daemon is told.
 *
 * When another process takes this one off its GPUs and back, the driver may forget what was pinned.
 * So the next move first pins again what counts as pinned; mostly the driver says that it is.
 */
#include "runtime/contexts/sticky.h"
#include "runtime/contexts/usable.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/real/real.h"
#include "runtime/session/state.h"
#include "runtime/store/internal.h"
#include "runtime/store/store.h"

#include "base/log.h"
#include "base/step.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* Atomic. Counts requests. */
static uint32_t wishes; /* futex */

static struct sl_store_file *file_of(struct sl_link *link)
{
	return SL_LIST_ENTRY(link, struct sl_store_file, link);
}

static uint64_t piece_bytes(const struct sl_store_file *file, uint32_t piece)
{
	return sl_min_u64(SL_STORE_PIECE, file->bytes - piece * SL_STORE_PIECE);
}

/* --- pinning ---------------------------------------------------------------------------------- */

/* Pause after the driver refused to pin a file. */
#define REFUSED_NS     (1 * SL_S)
#define REFUSED_MAX_NS (64 * SL_S)

/* Under the lock: a piece to pin. If there is none, lowers *due_ns to the time of the next try. */
static bool next_piece(struct sl_store_file **file, uint32_t *piece, sl_ns *due_ns)
{
	sl_ns now_ns = sl_clock_now();

	if (sl_store.moving)
		return false;
	sl_list_foreach (link, &sl_store.files) {
		struct sl_store_file *f = file_of(link);

		if (f->leaving)
			continue;
		if (f->due_ns > now_ns) {
			*due_ns = sl_min_u64(*due_ns, f->due_ns);
			continue;
		}
		for (uint32_t i = 0; i < f->pieces; i++) {
			if (f->pinned[i])
				continue;
			*file = f;
			*piece = i;
			return true;
		}
	}
	return false;
}

/* Returns the n-th usable context, or NULL. Any will do: memory pinned in one context is pinned for
 * all. Under the lock: a thread that drops a context either waits for this thread or has removed
 * the context already. */
static CUcontext nth_context(size_t n)
{
	CUcontext contexts[SL_USABLE_MAX];

	return n < sl_usable_list(NULL, contexts, NULL) ? contexts[n] : NULL;
}

static CUresult with_context(CUcontext ctx, void *at, uint64_t bytes, bool *inside)
{
	CUcontext popped;
	CUresult r = sl_real.cuCtxPushCurrent_v2(ctx);

	*inside = r == CUDA_SUCCESS;
	if (r != CUDA_SUCCESS)
		return r;
	r = bytes ? sl_real.cuMemHostRegister_v2(at, bytes, CU_MEMHOSTREGISTER_PORTABLE)
		  : sl_real.cuMemHostUnregister(at);
	(void)sl_real.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* Only this thread removes files, so the file still exists. */
static void note_pinned(
	struct sl_store_file *file, uint32_t piece, CUresult r, bool inside)
{
	sl_store_lock();
	if (r == CUDA_SUCCESS) {
		__atomic_store_n(
			&file->pinned[piece], sl_store.pinning, __ATOMIC_RELEASE);
		file->refused_ns = 0;
	} else if (inside && !sl_sticky_is(r)) {
		file->refused_ns = file->refused_ns ? sl_min_u64(2 * file->refused_ns,
							      REFUSED_MAX_NS)
						    : REFUSED_NS;
		file->due_ns = sl_clock_now() + file->refused_ns;
	}
	sl_store.pinning = NULL;
	sl_store_unlock();
	if (r != CUDA_SUCCESS)
		sl_info("host memory %u is not pinned: error %d", file->number, (int)r);
}

/* Pins one piece, in the first context that allows it. False: no piece or no context now; *due_ns
 * has the time of the next try. */
static bool pin_one(sl_ns *due_ns)
{
	struct sl_store_file *file = NULL;
	uint32_t piece = 0;
	CUcontext ctx;
	CUresult r;
	bool inside;

	for (size_t n = 0;; n++) {
		sl_store_lock();
		ctx = next_piece(&file, &piece, due_ns) ? nth_context(n) : NULL;
		sl_store.pinning = ctx;
		sl_store_unlock();
		if (!ctx)
			return false;
		r = with_context(ctx, file->map + piece * SL_STORE_PIECE,
			piece_bytes(file, piece), &inside);
		note_pinned(file, piece, r, inside);
		if (r == CUDA_SUCCESS || file->due_ns > sl_clock_now())
			return true;
	}
}

/* Under the lock: a piece pinned in that context, which then no longer counts as pinned. */
static bool take_pinned(CUcontext ctx, char **at)
{
	sl_list_foreach (link, &sl_store.files) {
		struct sl_store_file *file = file_of(link);

		for (uint32_t i = 0; i < file->pieces; i++) {
			if (file->pinned[i] != ctx)
				continue;
			__atomic_store_n(&file->pinned[i], NULL, __ATOMIC_RELEASE);
			*at = file->map + i * SL_STORE_PIECE;
			return true;
		}
	}
	return false;
}

void sl_store_drop_context(CUcontext ctx)
{
	char *at;
	bool more, inside;

	if (!ctx)
		return;
	sl_store_lock();
	while (sl_store.pinning == ctx) {
		sl_store_unlock();
		sl_futex_pause(100 * SL_US);
		sl_store_lock();
	}
	more = take_pinned(ctx, &at);
	sl_store_unlock();
	while (more) {
		/* If the context is gone already, its registration is gone, too. */
		(void)with_context(ctx, at, 0, &inside);
		sl_store_lock();
		more = take_pinned(ctx, &at);
		if (!more)
			sl_store_wake();
		sl_store_unlock();
	}
}

/* --- giving back ------------------------------------------------------------------------------ */

static bool is_needed(const struct sl_store_file *file)
{
	for (uint32_t i = 0; i < file->grains; i++)
		if (file->owner[i] && sl_host_copy_is_needed(file->owner[i]))
			return true;
	return false;
}

/* Under the lock: a file to give back now, if the daemon wants one and one is not needed. A copy
 * with a place in it is dropped entirely, even if it also has places in other files. The file stays
 * in the list until no part of it is pinned. */
static struct sl_store_file *take_file(void)
{
	if (sl_store.moving || !sl_store.trim_bytes)
		return NULL;
	sl_list_foreach (link, &sl_store.files) {
		struct sl_store_file *file = file_of(link);

		if (is_needed(file))
			continue;
		for (uint32_t i = 0; i < file->grains; i++)
			if (file->owner[i])
				sl_store_give_locked(file->owner[i]);
		file->leaving = true;
		sl_store.trim_bytes = sl_sub_sat(sl_store.trim_bytes, file->bytes);
		return file;
	}
	sl_store.trim_bytes = 0;
	return NULL;
}

/* A thread that drops a context finds the piece, or sees this thread in it and waits. */
static void unpin(struct sl_store_file *file, uint32_t piece)
{
	CUcontext ctx;
	bool inside;

	sl_store_lock();
	ctx = file->pinned[piece];
	__atomic_store_n(&file->pinned[piece], NULL, __ATOMIC_RELEASE);
	sl_store.pinning = ctx;
	sl_store_unlock();
	if (!ctx)
		return;
	(void)with_context(ctx, file->map + piece * SL_STORE_PIECE, 0, &inside);
	sl_store_lock();
	sl_store.pinning = NULL;
	sl_store_unlock();
}

static bool give_back_one(void)
{
	struct sl_store_file *file;
	union sl_msg msg;

	sl_store_lock();
	file = take_file();
	sl_store_unlock();
	if (!file)
		return false;
	for (uint32_t i = 0; i < file->pieces; i++)
		unpin(file, i);
	sl_wire_init(&msg, SL_MSG_STORE_BACK);
	msg.store_back.number = file->number;
	/* Removing the file and sending the message happen under the session's lock. Otherwise the
	 * connection could be lost in between. The report on the next one would omit the file, and
	 * the message there would name no file, or a new one with the same number. */
	sl_session_lock();
	sl_store_lock();
	sl_list_unlink(&file->link);
	sl_store_unlock();
	sl_session_say(&msg);
	sl_session_unlock();
	sl_store_close(file);
	sl_step(C_STORE_BACK);
	return true;
}

void sl_store_on_trim(const struct sl_msg_trim *msg)
{
	sl_store_lock();
	sl_store.trim_bytes = msg->bytes;
	sl_store_wake();
	sl_store_unlock();
}

/* --- the thread ------------------------------------------------------------------------------- */

static void *pinning_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)prctl(PR_SET_NAME, "sluice-store", 0, 0, 0);
	/* Our calls must not invalidate another thread's capture. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t seen = __atomic_load_n(&wishes, __ATOMIC_ACQUIRE);
		sl_ns due_ns = SL_NS_NEVER;

		while (give_back_one() || pin_one(&due_ns))
			;
		sl_futex_wait(&wishes, seen,
			due_ns == SL_NS_NEVER ? SL_NS_NEVER
					      : sl_sub_sat(due_ns, sl_clock_now()));
	}
	return arg;
}

void sl_store_wake(void)
{
	if (!sl_store.started)
		sl_store.started = sl_libc_start_thread(pinning_main, NULL) == 0;
	__atomic_fetch_add(&wishes, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&wishes, 1);
}

/* --- moves ------------------------------------------------------------------------------------ */

void sl_store_doubt(void)
{
	sl_store_lock();
	sl_list_foreach (link, &sl_store.files)
		file_of(link)->checked = 0;
	sl_store_unlock();
}

/* The next piece that counts as pinned, and may not be any more. */
static bool next_doubtful(struct sl_store_file **file, uint32_t *piece, CUcontext *ctx)
{
	*ctx = NULL;
	sl_store_lock();
	sl_list_foreach (link, &sl_store.files) {
		*file = file_of(link);
		while (!(*file)->leaving && (*file)->checked < (*file)->pieces && !*ctx) {
			*piece = (*file)->checked++;
			*ctx = (*file)->pinned[*piece];
		}
		if (*ctx)
			break;
	}
	sl_store_unlock();
	return *ctx;
}

/* Files stay while memory is moved, and so do contexts. */
static void pin_again(void)
{
	struct sl_store_file *file;
	CUcontext ctx;
	uint32_t piece = 0;
	bool inside;

	while (next_doubtful(&file, &piece, &ctx)) {
		CUresult r = with_context(ctx, file->map + piece * SL_STORE_PIECE,
			piece_bytes(file, piece), &inside);

		if (r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
			__atomic_store_n(&file->pinned[piece], NULL, __ATOMIC_RELEASE);
	}
}

void sl_store_begin(void)
{
	sl_store_lock();
	sl_store.moving = true;
	sl_store_unlock();
	pin_again();
}

void sl_store_end(void)
{
	sl_store_lock();
	sl_store.moving = false;
	if (!sl_list_is_empty(&sl_store.files))
		sl_store_wake();
	sl_store_unlock();
}

void sl_store_pinning_forget(void)
{
	wishes = 0;
}
