/*
 * peer - see peer.h
 *
 * A pair says that context `user` on device `dev` may use the memory of context `owner`. The driver
 * grants access per device, so access is revoked only when the last user of that owner on the
 * device leaves. The lock guards the table of pairs. Blocks are looked up under the books' lock.
 * Access is granted with neither lock held; a failure is ignored if the block was freed meanwhile.
 */
#include "runtime/memory/peer.h"
#include "runtime/gate/door.h"
#include "runtime/gate/control.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/anchor.h"
#include "runtime/memory/block.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/region.h"
#include "runtime/memory/slab.h"
#include "runtime/memory/supply.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>

struct pair {
	struct sl_link link;
	CUcontext owner, user;
	CUdevice dev;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link pairs = SL_LIST_INIT(pairs);
static uint32_t pair_count; /* atomic */

static uint64_t bit_of(CUdevice dev)
{
	return dev >= 0 && dev < 64 ? 1ull << dev : 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* The devices that may use the owner's memory. */
static uint64_t users_of(CUcontext owner)
{
	uint64_t mask = 0;

	if (sl_likely(!__atomic_load_n(&pair_count, __ATOMIC_ACQUIRE)))
		return 0;
	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &pairs) {
		const struct pair *pair = SL_LIST_ENTRY(link, struct pair, link);

		if (pair->owner == owner)
			mask |= bit_of(pair->dev);
	}
	(void)pthread_mutex_unlock(&lock);
	return mask;
}

static void enter(struct pair *pair)
{
	(void)pthread_mutex_lock(&lock);
	sl_list_push_tail(&pairs, &pair->link);
	__atomic_fetch_add(&pair_count, 1, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void leave(struct pair *pair)
{
	sl_list_unlink(&pair->link);
	__atomic_fetch_sub(&pair_count, 1, __ATOMIC_RELEASE);
}

/* Takes out one pair with that user and owner (NULL: any owner). */
static struct pair *take_pair(CUcontext owner, CUcontext user)
{
	struct pair *found = NULL;

	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &pairs) {
		struct pair *pair = SL_LIST_ENTRY(link, struct pair, link);

		if (pair->user == user && (!owner || pair->owner == owner)) {
			found = pair;
			break;
		}
	}
	if (found)
		leave(found);
	(void)pthread_mutex_unlock(&lock);
	return found;
}

/* --- opening and closing blocks --------------------------------------------------------------- */

/* Sets or clears the device's bit of the block that begins at base. False: no such block, or the
 * bit was so already. */
static bool turn(CUdeviceptr base, uint64_t bit, bool on, uint64_t *bytes)
{
	struct sl_block *block;
	bool turned;

	sl_books_lock();
	block = sl_pagemap_get(base);
	turned = block && block->backing.base == base &&
		 !(block->backing.allowed & bit) == on;
	if (turned) {
		block->backing.allowed ^= bit;
		*bytes = block->backing.bytes;
	}
	sl_books_unlock();
	return turned;
}

/* All chunks must be on the GPU: a held block's chunks are, or come back. */
static CUresult allow(
	CUdeviceptr base, uint64_t bytes, CUdevice dev, CUmemAccess_flags flags)
{
	CUresult r;

	sl_residency_enter();
	sl_control_enter();
	r = sl_backing_allow(base, bytes, dev, flags);
	sl_control_leave();
	sl_residency_leave();
	return r;
}

/* Opens the block that begins at base to the device, and holds it. */
static CUresult open_block(CUdeviceptr base, CUdevice dev)
{
	uint64_t bytes, again;
	CUresult r;

	if (!turn(base, bit_of(dev), true, &bytes))
		return CUDA_SUCCESS;
	if (!sl_anchor_range(base, 1)) {
		(void)turn(base, bit_of(dev), false, &again);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = allow(base, bytes, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* If the block is gone, its memory was freed meanwhile. */
	if (r == CUDA_SUCCESS || !turn(base, bit_of(dev), false, &again))
		return CUDA_SUCCESS;
	sl_anchor_drop(base, 1);
	return r;
}

static void close_block(CUdeviceptr base, CUdevice dev)
{
	uint64_t bytes, again;
	CUresult r;

	if (!turn(base, bit_of(dev), false, &bytes))
		return;
	/* Held since it was opened, so it is on the GPU. */
	sl_control_enter();
	r = sl_backing_allow(base, bytes, dev, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	sl_control_leave();
	if (r != CUDA_SUCCESS && turn(base, bit_of(dev), true, &again))
		sl_warning(
			"device %d keeps access to %#llx: error %d", dev, base, (int)r);
	else
		sl_anchor_drop(base, 1);
}

struct bases {
	CUdeviceptr *base;
	size_t count;
};

/* The base addresses of all regions and slabs of the space, including those freed but not yet
 * unmapped. */
static bool list_bases(struct sl_space *space, struct bases *out)
{
	size_t room = 0;
	bool made;

	sl_books_lock();
	sl_list_foreach (link, &space->regions)
		room++;
	sl_list_foreach (link, &space->slabs)
		room++;
	out->base = malloc((room + 1) * sizeof(*out->base));
	made = out->base;
	sl_list_foreach (link, &space->regions) {
		if (made)
			out->base[out->count++] =
				SL_LIST_ENTRY(link, struct sl_region, link)
					->block.backing.base;
	}
	sl_list_foreach (link, &space->slabs) {
		if (made)
			out->base[out->count++] = SL_LIST_ENTRY(link, struct sl_slab, all)
							  ->block.backing.base;
	}
	sl_books_unlock();
	return made;
}

static void close_space(CUcontext owner, CUdevice dev)
{
	struct sl_space *space = sl_space_of(owner);
	struct bases bases = {NULL, 0};

	if (!space)
		return;
	if (list_bases(space, &bases)) {
		for (size_t i = 0; i < bases.count; i++)
			close_block(bases.base[i], dev);
	}
	free(bases.base);
	sl_space_leave(space);
}

/* Opens all of the owner's memory to the device. Undone as a whole if any part fails. */
static CUresult open_space(CUcontext owner, CUdevice dev)
{
	struct sl_space *space = sl_space_of(owner);
	struct bases bases = {NULL, 0};
	CUresult r = CUDA_SUCCESS;

	if (!space)
		return CUDA_SUCCESS;
	if (space->dev != dev && !list_bases(space, &bases))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < bases.count && r == CUDA_SUCCESS; i++)
		r = open_block(bases.base[i], dev);
	free(bases.base);
	sl_space_leave(space);
	return r;
}

static CUresult admit(struct sl_space *space, struct sl_backing *backing, CUdevice dev)
{
	CUresult r;

	/* A slab that is reused is open already. */
	if (backing->allowed & bit_of(dev))
		return CUDA_SUCCESS;
	if (!sl_anchor_backing(backing, space->gpu))
		return CUDA_ERROR_OUT_OF_MEMORY;
	backing->allowed |= bit_of(dev);
	/* It is in no list yet, so it is not moved. */
	sl_control_enter();
	r = sl_backing_allow(
		backing->base, backing->bytes, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	sl_control_leave();
	return r;
}

CUresult sl_peer_admit_to(
	struct sl_space *space, struct sl_backing *backing, uint64_t mask)
{
	CUresult r = CUDA_SUCCESS;

	for (CUdevice dev = 0; mask && r == CUDA_SUCCESS; dev++, mask >>= 1)
		r = mask & 1 ? admit(space, backing, dev) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS)
		sl_supply_discard(space->gpu, backing);
	return r;
}

CUresult sl_peer_admit(struct sl_space *space, struct sl_backing *backing)
{
	return sl_peer_admit_to(
		space, backing, users_of(space->ctx) & ~bit_of(space->dev));
}

static void open_to(CUdeviceptr base, uint64_t mask)
{
	CUresult r;

	for (CUdevice dev = 0; mask; dev++, mask >>= 1) {
		r = mask & 1 ? open_block(base, dev) : CUDA_SUCCESS;
		if (r != CUDA_SUCCESS)
			sl_warning("device %d has no access to %#llx: error %d", dev,
				base, (int)r);
	}
}

void sl_peer_catch_up(struct sl_space *space, CUdeviceptr base)
{
	open_to(base, users_of(space->ctx) & ~bit_of(space->dev));
}

void sl_peer_open_to(CUdeviceptr at, uint64_t devices)
{
	CUdeviceptr base = 0;
	struct sl_block *block;

	if (!devices)
		return;
	sl_books_lock();
	block = sl_pagemap_get(at);
	if (block)
		base = block->backing.base;
	sl_books_unlock();
	if (base)
		open_to(base, devices);
}

CUresult sl_peer_turn(CUdeviceptr base, CUdevice dev, bool open)
{
	if (open)
		return open_block(base, dev);
	close_block(base, dev);
	return CUDA_SUCCESS;
}

/* --- what programs call ----------------------------------------------------------------------- */

SL_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	SL_DOOR;
	struct pair *pair = NULL;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuCtxEnablePeerAccess(peer, flags);
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sl_real.cuCtxEnablePeerAccess(peer, flags);
	if (r != CUDA_SUCCESS || sl_real.cuCtxGetCurrent(&pair->user) != CUDA_SUCCESS ||
		sl_real.cuCtxGetDevice(&pair->dev) != CUDA_SUCCESS) {
		free(pair);
		return r;
	}
	pair->owner = peer;
	sl_list_init(&pair->link);
	enter(pair);
	r = open_space(peer, pair->dev);
	if (r != CUDA_SUCCESS)
		(void)cuCtxDisablePeerAccess(peer);
	return r;
}

/* The driver's access is per device: it stays while another context there is a user. */
static void close_pair(struct pair *pair)
{
	if (!(users_of(pair->owner) & bit_of(pair->dev)))
		close_space(pair->owner, pair->dev);
	free(pair);
}

SL_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	SL_DOOR;
	CUresult r = sl_real.cuCtxDisablePeerAccess(peer);
	CUcontext user = NULL;
	struct pair *pair;

	if (r != CUDA_SUCCESS || !sl_mode_is_active() ||
		sl_real.cuCtxGetCurrent(&user) != CUDA_SUCCESS)
		return r;
	pair = take_pair(peer, user);
	if (pair)
		close_pair(pair);
	return r;
}

void sl_peer_drop_context(CUcontext ctx)
{
	struct pair *pair;

	if (sl_likely(!__atomic_load_n(&pair_count, __ATOMIC_ACQUIRE)))
		return;
	while ((pair = take_pair(NULL, ctx)))
		close_pair(pair);
	/* The memory that it owned is gone with it. */
	(void)pthread_mutex_lock(&lock);
	sl_list_foreach_safe (link, &pairs) {
		pair = SL_LIST_ENTRY(link, struct pair, link);
		if (pair->owner == ctx) {
			leave(pair);
			free(pair);
		}
	}
	(void)pthread_mutex_unlock(&lock);
}

void sl_peer_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_list_init(&pairs);
	pair_count = 0;
}
