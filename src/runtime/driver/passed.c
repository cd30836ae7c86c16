/*
 * passed - see passed.h
 *
 * Each GPU has two accounts, for held and for other bytes. An account has the bytes that exist or
 * are about to, and the grains charged for them. A new object first uses the room in its account's
 * last grain, reserved for it at once; only the rest is asked for. So a thousand small arrays ask
 * once per 2 MiB, and concurrent threads never count on each other's bytes. When small objects are
 * freed, one of their grains stays charged as a spare, so a loop that makes and frees one object
 * asks for nothing. The spare goes back when bytes are needed. The workload's sum stays right: its
 * measured hidden bytes are lower by what is charged but not in use.
 */
#include "runtime/driver/passed.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/sticky.h"
#include "runtime/memory/supply.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* No GPU has as many bytes: the driver refuses without our asking. */
#define BYTES_MAX (1ull << 56)

/* charged_bytes are whole grains and at least `bytes`, except for an instant after a refusal.
 * open_bytes of them are granted but not yet committed: only the call they were granted to may give
 * them back. */
struct account {
	uint64_t bytes, charged_bytes, open_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct sl_gpu *gpu; /* written once */
	struct account held, other;
} books[SL_GPUS_MAX];

/* Under the lock. There are as many rows as GPUs, so one is always found. */
static struct account *account_of(struct sl_gpu *gpu, uint32_t flags)
{
	size_t i = 0;

	while (i < SL_GPUS_MAX - 1 && books[i].gpu && books[i].gpu != gpu)
		i++;
	__atomic_store_n(&books[i].gpu, gpu, __ATOMIC_RELEASE);
	return flags & SL_PASSED_HELD ? &books[i].held : &books[i].other;
}

/* Under the lock: what is charged beyond what exists. */
static uint64_t surplus_of(const struct account *account)
{
	return sl_sub_sat(
		account->charged_bytes, sl_round_up(account->bytes, SL_DEVICE_GRAIN));
}

/* Under the lock: removes the surplus beyond keep_bytes from the charge and returns it. */
static uint64_t take_surplus(struct account *account, uint64_t keep_bytes)
{
	uint64_t surplus = sl_min_u64(surplus_of(account),
		sl_sub_sat(account->charged_bytes, account->open_bytes));

	surplus = sl_sub_sat(surplus, keep_bytes);
	account->charged_bytes -= surplus;
	return surplus;
}

/* Under the lock. */
static void uncount(struct account *account, uint64_t bytes)
{
	if (bytes > account->bytes)
		sl_error_log("books of passed-through memory: %llu bytes given back, "
			     "%llu were counted",
			(unsigned long long)bytes, (unsigned long long)account->bytes);
	account->bytes = sl_sub_sat(account->bytes, bytes);
}

/* --- asking ----------------------------------------------------------------------------------- */

static struct sl_gpu *gpu_of(CUdevice dev)
{
	if (dev == SL_PASSED_CURRENT && sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return NULL;
	return sl_device_gpu(dev);
}

/* Counts the bytes that fit into the last grain. Returns the rest, in whole grains, to be asked
 * for. */
static uint64_t use_grain(struct sl_passed *passed, uint64_t *taken)
{
	struct account *account;
	uint64_t missing;

	(void)pthread_mutex_lock(&lock);
	account = account_of(passed->gpu, passed->flags);
	*taken = sl_min_u64(
		sl_sub_sat(account->charged_bytes, account->bytes), passed->bytes);
	account->bytes += *taken;
	missing = sl_round_up(passed->bytes - *taken, SL_DEVICE_GRAIN);
	(void)pthread_mutex_unlock(&lock);
	return missing;
}

/* Uncounts bytes that will not exist. Returns the surplus, which is no longer charged. */
static uint64_t drop(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	struct account *account;
	uint64_t surplus;

	(void)pthread_mutex_lock(&lock);
	account = account_of(gpu, flags);
	uncount(account, bytes);
	/* Small objects come and go; after freeing a large one the program checks that it is all
	 * back. */
	surplus = take_surplus(account, bytes < SL_DEVICE_GRAIN ? SL_DEVICE_GRAIN : 0);
	(void)pthread_mutex_unlock(&lock);
	return surplus;
}

/* Gives back charged bytes, which count as held since their demand was committed. */
static void give_back(struct sl_gpu *gpu, uint64_t surplus, uint32_t flags)
{
	if (!surplus)
		return;
	if (flags & SL_PASSED_HELD)
		sl_held_drop(gpu, surplus);
	sl_session_freed(gpu, surplus);
}

static void enter_grant(struct sl_passed *passed, uint64_t more_bytes)
{
	struct account *account;

	(void)pthread_mutex_lock(&lock);
	account = account_of(passed->gpu, passed->flags);
	account->bytes += more_bytes;
	account->charged_bytes += passed->granted_bytes;
	account->open_bytes += passed->granted_bytes;
	(void)pthread_mutex_unlock(&lock);
}

/* Returns the sticky error of a broken context, otherwise `denial`: the driver, too, answers with
 * that error before it looks for memory. The context is queried only if memory is out and no stream
 * captures, since the query would break a capture. */
static CUresult denial_of(CUresult denial, uint32_t flags)
{
	CUresult state;

	if (denial != CUDA_ERROR_OUT_OF_MEMORY || flags & SL_PASSED_APART ||
		sl_capture_is_open())
		return denial;
	state = sl_real.cuStreamQuery(CU_STREAM_LEGACY);
	return sl_sticky_is(state) ? state : denial;
}

/* Asks until the answer is a grant or final. Before a final out-of-memory, everything that spaces
 * hoard is given back. */
static bool ask(struct sl_passed *passed, uint64_t bytes, CUresult *result)
{
	for (bool again = false;; again = true) {
		uint32_t frees = sl_session_frees();
		int outcome = sl_demand_ask_as(&passed->demand, passed->gpu, bytes,
			passed->flags & SL_PASSED_HELD ? SL_ASK_HELD : 0,
			sl_supply_on_slow);

		if (outcome == SL_DEMAND_GRANTED)
			return true;
		*result = outcome == SL_DEMAND_REFUSED ? sl_session_join()
						       : passed->demand.denial;
		*result = denial_of(*result, passed->flags);
		if (*result != CUDA_ERROR_OUT_OF_MEMORY || again ||
			!sl_supply_on_denial(frees))
			return false;
	}
}

bool sl_passed_ask(struct sl_passed *passed, CUdevice dev, uint64_t bytes, uint32_t flags,
	CUresult *result)
{
	int saved_errno = errno;
	uint64_t missing, taken;
	bool granted = true;

	memset(passed, 0, sizeof(*passed));
	if (bytes == 0 || bytes > BYTES_MAX || !sl_mode_is_active())
		return true;
	*result = sl_session_join();
	if (*result != CUDA_SUCCESS)
		return false;
	passed->flags = flags;
	/* A capture that forbids the call is invalidated by it, as without us. */
	if (!sl_capture_forbids())
		passed->gpu = gpu_of(dev);
	if (!passed->gpu || (flags & SL_PASSED_QUICK))
		return true;
	passed->bytes = bytes;
	missing = use_grain(passed, &taken);
	if (missing) {
		granted = ask(passed, missing, result);
		if (granted) {
			passed->granted_bytes = missing;
			enter_grant(passed, bytes - taken);
		} else {
			give_back(passed->gpu, drop(passed->gpu, taken, flags), flags);
		}
	}
	errno = saved_errno;
	return granted;
}

/* --- when the driver is out of memory after all ----------------------------------------------- */

/* The grant goes back into the queue. False: it is lost for good, *result has the reason. */
static bool ask_again(struct sl_passed *passed, CUresult *result)
{
	struct account *account;
	int outcome;

	/* While it waits it is not charged. */
	(void)pthread_mutex_lock(&lock);
	account = account_of(passed->gpu, passed->flags);
	account->charged_bytes -= passed->granted_bytes;
	account->open_bytes -= passed->granted_bytes;
	uncount(account, passed->bytes);
	(void)pthread_mutex_unlock(&lock);
	outcome = sl_demand_failed(&passed->demand, *result);
	if (outcome == SL_DEMAND_GRANTED) {
		enter_grant(passed, passed->bytes);
		return true;
	}
	*result =
		outcome == SL_DEMAND_REFUSED ? sl_session_join() : passed->demand.denial;
	passed->granted_bytes = passed->bytes = 0;
	return false;
}

/* After the driver's first failure we ask for the same bytes again: they were granted, but may not
 * be free yet, since other workloads' memory leaves slowly. After a second failure the driver needs
 * more than the program asked for, so we demand more. */
bool sl_passed_again(struct sl_passed *passed, CUresult *result)
{
	int saved_errno = errno;
	bool again = false;

	if (sl_likely(*result != CUDA_ERROR_OUT_OF_MEMORY) || !passed->gpu)
		return false;
	if (passed->rounds++ == 0 && passed->granted_bytes) {
		again = ask_again(passed, result);
	} else if (!sl_capture_is_open()) {
		passed->oom.gpu = passed->gpu;
		again = sl_oom_make(&passed->oom);
	}
	errno = saved_errno;
	return again;
}

/* --- settling and giving back ----------------------------------------------------------------- */

/* Commits the part of the grant that is needed; only then may other calls give it back. */
static uint64_t close_grant(struct sl_passed *passed, uint64_t unused_bytes)
{
	struct account *account;
	uint64_t unneeded, surplus;

	(void)pthread_mutex_lock(&lock);
	account = account_of(passed->gpu, passed->flags);
	uncount(account, unused_bytes);
	unneeded = sl_min_u64(surplus_of(account), passed->granted_bytes);
	account->charged_bytes -= unneeded;
	account->open_bytes -= unneeded;
	passed->granted_bytes -= unneeded;
	(void)pthread_mutex_unlock(&lock);
	sl_demand_commit(&passed->demand, passed->granted_bytes);
	(void)pthread_mutex_lock(&lock);
	account->open_bytes -= passed->granted_bytes;
	surplus = take_surplus(account, SL_DEVICE_GRAIN);
	(void)pthread_mutex_unlock(&lock);
	passed->granted_bytes = 0;
	return surplus;
}

void sl_passed_settle(struct sl_passed *passed, uint64_t used_bytes)
{
	int saved_errno = errno;
	uint64_t unused_bytes, surplus = 0;

	if (!passed->gpu)
		return;
	sl_oom_close(&passed->oom);
	unused_bytes = sl_sub_sat(passed->bytes, used_bytes);
	passed->bytes -= unused_bytes;
	if (passed->granted_bytes)
		surplus = close_grant(passed, unused_bytes);
	else if (unused_bytes)
		surplus = drop(passed->gpu, unused_bytes, passed->flags);
	give_back(passed->gpu, surplus, passed->flags);
	if (used_bytes)
		(void)sl_measure_after(CUDA_SUCCESS);
	errno = saved_errno;
}

void sl_passed_free(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	int saved_errno = errno;

	if (!gpu)
		return;
	if (bytes && !(flags & SL_PASSED_QUICK))
		give_back(gpu, drop(gpu, bytes, flags), flags);
	(void)sl_measure_after(CUDA_SUCCESS);
	errno = saved_errno;
}

void sl_passed_free_evicted(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	struct account *account;

	(void)pthread_mutex_lock(&lock);
	account = account_of(gpu, flags);
	uncount(account, bytes);
	account->charged_bytes = sl_sub_sat(account->charged_bytes, bytes);
	(void)pthread_mutex_unlock(&lock);
	sl_session_freed_evicted(gpu, bytes);
}

static bool trim_account(struct sl_gpu *gpu, struct account *account, uint32_t flags)
{
	uint64_t surplus;

	(void)pthread_mutex_lock(&lock);
	surplus = take_surplus(account, 0);
	(void)pthread_mutex_unlock(&lock);
	give_back(gpu, surplus, flags);
	return surplus > 0;
}

bool sl_passed_trim(void)
{
	bool any = false;

	for (size_t i = 0; i < SL_GPUS_MAX; i++) {
		struct sl_gpu *gpu = __atomic_load_n(&books[i].gpu, __ATOMIC_ACQUIRE);

		if (!gpu)
			break;
		any |= trim_account(gpu, &books[i].held, SL_PASSED_HELD);
		any |= trim_account(gpu, &books[i].other, 0);
	}
	return any;
}

bool sl_passed_has_spare(void)
{
	bool any = false;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SL_GPUS_MAX && books[i].gpu; i++)
		any |= surplus_of(&books[i].held) || surplus_of(&books[i].other);
	(void)pthread_mutex_unlock(&lock);
	return any;
}

void sl_passed_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	memset(books, 0, sizeof(books));
}
