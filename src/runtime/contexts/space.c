/*
 * space - see space.h
 */
#include "runtime/contexts/space.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <stdlib.h>

struct sl_link sl_spaces = SL_LIST_INIT(sl_spaces);
uint32_t sl_space_several;

bool sl_space_hoards(const struct sl_space *space)
{
	return space->idle_slabs > 0 || space->idle_tracts > 0 || space->flushing ||
	       !sl_list_is_empty(&space->with_freed) ||
	       !sl_list_is_empty(&space->leaving);
}

struct sl_space *sl_space_find(CUcontext ctx)
{
	sl_list_foreach (link, &sl_spaces) {
		struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);

		if (space->ctx == ctx && !space->detached)
			return space;
	}
	return NULL;
}

static struct sl_space *find_and_use(CUcontext ctx)
{
	struct sl_space *space = sl_space_find(ctx);

	if (space)
		space->users++;
	return space;
}

struct sl_space *sl_space_of(CUcontext ctx)
{
	struct sl_space *space;

	sl_books_lock();
	space = find_and_use(ctx);
	sl_books_unlock();
	return space;
}

static bool grain_fits(CUdevice dev)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
	};
	size_t bytes = 0;

	return sl_real.cuMemGetAllocationGranularity(
		       &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
	       bytes > 0 && SL_DEVICE_GRAIN % bytes == 0;
}

/* Not yet on the list. NULL: outcome and *result have the reason. */
static struct sl_space *make(CUcontext ctx, int *outcome, CUresult *result)
{
	struct sl_space *space;
	struct sl_gpu *gpu;
	CUdevice dev;

	*outcome = SL_SPACE_FAILED;
	*result = sl_real.cuCtxGetDevice(&dev);
	if (*result != CUDA_SUCCESS)
		return NULL;
	gpu = sl_device_gpu(dev);
	if (!gpu || !grain_fits(dev)) {
		sl_warning(
			"GPU %d is left alone: not the workload's, or without VMM", dev);
		*outcome = SL_SPACE_FOREIGN;
		return NULL;
	}
	space = calloc(1, sizeof(*space));
	if (!space) {
		*result = CUDA_ERROR_OPERATING_SYSTEM;
		return NULL;
	}
	space->ctx = ctx;
	space->dev = dev;
	space->gpu = gpu;
	sl_list_init(&space->regions);
	sl_list_init(&space->leaving);
	sl_list_init(&space->slabs);
	sl_list_init(&space->in_hands);
	sl_list_init(&space->with_freed);
	sl_list_init(&space->tracts);
	for (int i = 0; i < SL_SLAB_CLASSES; i++)
		sl_list_init(&space->with_room[i]);
	return space;
}

/* Under the lock. */
static void list(struct sl_space *made)
{
	sl_list_foreach (link, &sl_spaces) {
		if (SL_LIST_ENTRY(link, struct sl_space, link)->dev != made->dev)
			__atomic_store_n(&sl_space_several, 1, __ATOMIC_RELAXED);
	}
	sl_list_push_tail(&sl_spaces, &made->link);
}

int sl_space_enter(struct sl_space **out, CUresult *result)
{
	struct sl_space *made, *other;
	CUcontext ctx = NULL;
	int outcome;

	*result = sl_real.cuCtxGetCurrent(&ctx);
	if (*result == CUDA_SUCCESS && !ctx)
		*result = CUDA_ERROR_INVALID_CONTEXT;
	if (*result == CUDA_SUCCESS)
		*result = sl_session_join();
	if (*result != CUDA_SUCCESS)
		return SL_SPACE_FAILED;
	*out = sl_space_of(ctx);
	if (*out) {
		*result = __atomic_load_n(&(*out)->broken, __ATOMIC_RELAXED);
		if (*result == CUDA_SUCCESS)
			return SL_SPACE_OK;
		sl_space_leave(*out);
		return SL_SPACE_FAILED;
	}
	made = make(ctx, &outcome, result);
	if (!made)
		return outcome;
	sl_books_lock();
	other = find_and_use(ctx);
	if (!other) {
		made->users = 1;
		list(made);
	}
	sl_books_unlock();
	if (other)
		free(made);
	*out = other ? other : made;
	return SL_SPACE_OK;
}

void sl_space_leave(struct sl_space *space)
{
	bool last;

	sl_books_lock();
	last = --space->users == 0 && space->dead;
	sl_books_unlock();
	if (last)
		free(space);
}

void sl_space_kill(struct sl_space *space)
{
	sl_list_unlink(&space->link);
	space->dead = true;
}

void sl_space_forget(void)
{
	sl_books_forget();
	sl_list_init(&sl_spaces);
	sl_space_several = 0;
}
