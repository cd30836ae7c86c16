/*
 * passed - see passed.h
 *
 * Per GPU two accounts, of held bytes and of others: what exists or is about to, and the grains
 * charged for it. A new object first uses what its account has left of its last grain, at once and
 * for itself alone; only what goes beyond is asked for. So a thousand small arrays ask once per 2
 * MiB, and threads that ask at the same time never count on each other's bytes. When small objects
 * go, one grain of them stays charged as a spare, so that making and ending one again and again
 * asks nothing; it goes when bytes are needed. Figures stay right: what is charged and not there is
 * missing in what is measured as hidden.
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

/* No GPU has as many: nobody need be asked, the driver says no. */
#define BYTES_MAX (1ull << 56)

/* charged_bytes are whole grains, and at least bytes but for an instant after a refusal. open_bytes
 * of them are granted and not yet committed: nobody but the call they were granted to may give them
 * back. */
struct account {
	uint64_t bytes, charged_bytes, open_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct sl_gpu *gpu; /* written once */
	struct account held, other;
} books[SL_GPUS_MAX];

/* Under the lock. There are as many rows as GPUs, so there is always one. */
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

/* Under the lock: of the surplus all but keep_bytes is taken off and returned. */
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

/* Counts the bytes that the last grain has room for; the rest is to be asked for, in whole
 * grains. */
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

/* Of what was counted, bytes will not be. What this leaves over is no longer charged, and
 * returned. */
static uint64_t drop(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	struct account *account;
	uint64_t surplus;

	(void)pthread_mutex_lock(&lock);
	account = account_of(gpu, flags);
	uncount(account, bytes);
	/* Small things come and go; after a large one the program looks whether it is all back. */
	surplus = take_surplus(account, bytes < SL_DEVICE_GRAIN ? SL_DEVICE_GRAIN : 0);
	(void)pthread_mutex_unlock(&lock);
	return surplus;
}

/* What is charged, and counts as held since its demand was committed. */
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

/* A broken context answers everything with what broke it, and so does the driver before it looks
 * for memory. Asked only when there is none: the question may not be put while a stream
 * captures. */
static CUresult denial_of(CUresult denial, uint32_t flags)
{
	CUresult state;

	if (denial != CUDA_ERROR_OUT_OF_MEMORY || flags & SL_PASSED_APART ||
		sl_capture_is_open())
		return denial;
	state = sl_real.cuStreamQuery(CU_STREAM_LEGACY);
	return sl_sticky_is(state) ? state : denial;
}

/* Asks until it is granted or final; before out-of-memory is, what all spaces hoard goes. */
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
	/* A capture that forbids the call is spoilt by it, as it would be without us. */
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

/* --- when the driver has no memory after all -------------------------------------------------- */

/* The grant goes back into the queue. False: it is gone for good, *result tells why. */
static bool ask_again(struct sl_passed *passed, CUresult *result)
{
	struct account *account;
	int outcome;

	/* While it waits it is charged to nobody. */
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

/* At first the bytes that were granted may just not be free yet: others' memory goes slowly. If
 * they do not suffice a second time, the driver takes more than the program asks for, and gets
 * it. */
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

/* Of the grant, what is needed is committed; only then may anybody give it back. */
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
