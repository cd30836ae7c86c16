/*
 * pool - see pool.h
 *
 * This file has the list of pools, and lets each pool's charge follow the driver's figures. If the
 * driver reserved more than was asked for, the rest is measured as hidden bytes.
 */
#include "runtime/driver/pool.h"
#include "runtime/driver/internal.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The smallest chunk of drivers so far, and an upper bound: larger growth looks like several
 * calls. */
#define CHUNK_FIRST (32 * SL_MIB)
#define CHUNK_MAX   (64 * SL_MIB)
/* Tries while other threads take or give back meanwhile; after these the charge stays too high
 * until later. */
#define LOOKS_MAX 3

uint32_t sl_pool_watched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link pools = SL_LIST_INIT(pools);
static CUmemoryPool current_of[SL_GPUS_MAX]; /* NULL: ask the driver; atomic */
static uint32_t current_changes;

void sl_pool_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

void sl_pool_unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* Under the lock. */
static struct sl_pool *find(bool of_graphs, CUmemoryPool handle, CUdevice dev)
{
	sl_list_foreach (link, &pools) {
		struct sl_pool *pool = SL_LIST_ENTRY(link, struct sl_pool, link);

		if (pool->of_graphs == of_graphs &&
			(of_graphs ? pool->dev == dev : pool->handle == handle))
			return pool;
	}
	return NULL;
}

/* Under the lock. NULL: no host memory. */
static struct sl_pool *add(
	bool of_graphs, CUmemoryPool handle, CUdevice dev, struct sl_gpu *gpu)
{
	struct sl_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->of_graphs = of_graphs;
	pool->handle = handle;
	pool->dev = dev;
	pool->gpu = gpu;
	pool->in_chunks = !of_graphs;
	pool->chunk_bytes = CHUNK_FIRST;
	sl_list_push_tail(&pools, &pool->link);
	return pool;
}

/* Under the lock. NULL for a pool that is not charged. */
static struct sl_pool *use(struct sl_pool *pool)
{
	if (!pool || !pool->gpu)
		return NULL;
	pool->users++;
	return pool;
}

void sl_pool_leave(struct sl_pool *pool)
{
	bool last;

	sl_pool_lock();
	last = --pool->users == 0 && pool->gone;
	sl_pool_unlock();
	if (last && pool->stock)
		sl_stock_end(pool->stock);
	if (last)
		free(pool);
}

static bool have_say(void)
{
	return sl_mode_is_active() && sl_session_is_joined();
}

static int device_count(void)
{
	static int known;
	int count = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (count || sl_real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return count;
	__atomic_store_n(&known, count, __ATOMIC_RELAXED);
	return count;
}

/* The device whose own pool handle is, or -1. */
static CUdevice device_of_pool(CUmemoryPool handle)
{
	CUmemoryPool own;

	for (CUdevice dev = 0; dev < device_count(); dev++) {
		if (sl_real.cuDeviceGetDefaultMemPool(&own, dev) == CUDA_SUCCESS &&
			own == handle)
			return dev;
	}
	return -1;
}

/* Adds the pool unless it is known; takes the stock. */
static void enter(CUmemoryPool handle, CUdevice dev, struct sl_gpu *gpu,
	struct sl_stock *stock, bool homeless)
{
	struct sl_pool *made = NULL;

	sl_pool_lock();
	if (!find(false, handle, 0))
		made = add(false, handle, dev, gpu);
	if (made) {
		made->stock = stock;
		made->homeless = homeless;
	}
	sl_pool_unlock();
	if (!made && stock)
		sl_stock_end(stock);
}

/* A pool whose creation we did not see is a device's own, or of dev (-1 if unknown), of host
 * memory, or imported. */
static struct sl_pool *add_unknown(CUmemoryPool handle, CUdevice dev)
{
	CUdevice own = device_of_pool(handle);
	struct sl_pool *pool;
	struct sl_gpu *gpu;

	if (own >= 0)
		dev = own;
	gpu = dev >= 0 ? sl_device_gpu(dev) : NULL;
	enter(handle, dev, gpu, gpu && own >= 0 ? sl_stock_new(handle, dev, 0) : NULL,
		false);
	sl_pool_lock();
	pool = use(find(false, handle, 0));
	sl_pool_unlock();
	return pool;
}

/* A pool of managed memory that was made without a device and a context is charged to the first
 * context that uses it. */
static struct sl_pool *find_home(CUmemoryPool handle)
{
	struct sl_gpu *gpu = NULL;
	struct sl_pool *pool;
	CUdevice dev = -1;

	if (sl_real.cuCtxGetDevice(&dev) == CUDA_SUCCESS)
		gpu = sl_device_gpu(dev);
	sl_pool_lock();
	pool = find(false, handle, 0);
	if (pool && pool->homeless && gpu) {
		pool->dev = dev;
		pool->gpu = gpu;
		pool->homeless = false;
	}
	pool = use(pool);
	sl_pool_unlock();
	return pool;
}

static struct sl_pool *pool_of(CUmemoryPool handle, CUdevice dev)
{
	struct sl_pool *pool;
	bool known, homeless;

	sl_pool_lock();
	pool = find(false, handle, 0);
	known = pool != NULL;
	homeless = known && pool->homeless;
	pool = use(pool);
	sl_pool_unlock();
	if (sl_unlikely(homeless))
		return find_home(handle);
	return known ? pool : add_unknown(handle, dev);
}

struct sl_pool *sl_pool_of_handle(CUmemoryPool handle)
{
	return handle && have_say() ? pool_of(handle, -1) : NULL;
}

/* With one GPU the answer is known; otherwise the stream may be of another device than the
 * context. */
static CUresult device_of(CUstream stream, CUdevice *dev)
{
	bool implied =
		!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;

	if (!implied && device_count() > 1 &&
		sl_device_of_stream(stream, dev) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return sl_real.cuCtxGetDevice(dev);
}

static struct sl_pool *current_pool(CUdevice dev)
{
	uint32_t changes = __atomic_load_n(&current_changes, __ATOMIC_ACQUIRE);
	CUmemoryPool handle;

	if (sl_real.cuDeviceGetMemPool(&handle, dev) != CUDA_SUCCESS)
		return NULL;
	/* Keeps the answer only if nothing changed meanwhile. */
	sl_pool_lock();
	if (changes == __atomic_load_n(&current_changes, __ATOMIC_RELAXED))
		__atomic_store_n(&current_of[dev], handle, __ATOMIC_RELAXED);
	sl_pool_unlock();
	return pool_of(handle, dev);
}

struct sl_pool *sl_pool_of_stream(CUstream stream)
{
	CUmemoryPool handle;
	CUdevice dev;

	if (!have_say() || device_of(stream, &dev) != CUDA_SUCCESS || dev < 0 ||
		dev >= SL_GPUS_MAX)
		return NULL;
	handle = __atomic_load_n(&current_of[dev], __ATOMIC_RELAXED);
	return handle ? pool_of(handle, dev) : current_pool(dev);
}

struct sl_pool *sl_pool_of_graphs(CUdevice dev)
{
	struct sl_gpu *gpu = have_say() ? sl_device_gpu(dev) : NULL;
	struct sl_pool *pool;

	if (!gpu)
		return NULL;
	sl_pool_lock();
	pool = find(true, NULL, dev);
	pool = use(pool ? pool : add(true, NULL, dev, gpu));
	sl_pool_unlock();
	return pool;
}

void sl_pool_current_changed(void)
{
	sl_pool_lock();
	__atomic_fetch_add(&current_changes, 1, __ATOMIC_RELEASE);
	for (size_t i = 0; i < SL_GPUS_MAX; i++)
		__atomic_store_n(&current_of[i], NULL, __ATOMIC_RELAXED);
	sl_pool_unlock();
}

/* --- what the driver says --------------------------------------------------------------------- */

CUresult sl_pool_used(const struct sl_pool *pool, uint64_t *bytes)
{
	cuuint64_t value = 0;
	CUresult r = pool->of_graphs ? sl_real.cuDeviceGetGraphMemAttribute(pool->dev,
					       CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value)
				     : sl_real.cuMemPoolGetAttribute(pool->handle,
					       CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);

	*bytes = value;
	return r;
}

CUresult sl_pool_reserved(const struct sl_pool *pool, uint64_t *bytes)
{
	cuuint64_t value = 0;
	CUresult r = pool->of_graphs
			     ? sl_real.cuDeviceGetGraphMemAttribute(pool->dev,
				       CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value)
			     : sl_real.cuMemPoolGetAttribute(pool->handle,
				       CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);

	*bytes = value;
	return r;
}

/* --- settling --------------------------------------------------------------------------------- */

/* Under the lock: whether a synchronisation may make the pool give something back. */
static void watch(struct sl_pool *pool)
{
	bool now = !pool->gone && pool->charged_bytes > pool->threshold_bytes;

	if (now != pool->watched)
		__atomic_fetch_add(&sl_pool_watched, now ? 1 : -1, __ATOMIC_RELAXED);
	pool->watched = now;
}

/* Under the lock: learns from how the driver served a growth. */
static void learn(
	struct sl_pool *pool, const struct sl_pool_growth *growth, uint64_t reserved)
{
	uint64_t grown = sl_sub_sat(reserved, growth->reserved_bytes);

	if (!growth->granted_bytes || !grown || reserved > UINT64_MAX / 4)
		return;
	pool->learned = true;
	pool->in_chunks = grown > sl_round_up(growth->lacking_bytes, SL_DEVICE_GRAIN);
	if (grown > sl_round_up(growth->bytes, SL_DEVICE_GRAIN))
		pool->chunk_bytes = sl_min_u64(grown, CHUNK_MAX);
}

uint64_t sl_pool_lower(struct sl_pool *pool, struct sl_pool_growth *growth,
	uint64_t grant, uint64_t *unused)
{
	uint64_t reserved, surplus = 0, total, target;
	uint32_t version;
	bool sure = false;

	sl_pool_lock();
	if (growth) {
		pool->pending_bytes -= growth->pending_bytes;
		pool->granted_bytes =
			sl_sub_sat(pool->granted_bytes, growth->granted_bytes);
		pool->version++;
	}
	for (int i = 0; i < LOOKS_MAX && !sure; i++) {
		version = pool->version;
		sl_pool_unlock();
		/* Without an answer (a sticky error, for example) the pool keeps its charge. */
		if (sl_pool_reserved(pool, &reserved) != CUDA_SUCCESS)
			reserved = UINT64_MAX / 2;
		sl_pool_lock();
		sure = version == pool->version;
	}
	total = pool->charged_bytes + grant;
	target = reserved + pool->pending_bytes;
	if (sure)
		surplus = sl_sub_sat(total, target);
	/* A pool that has ended meanwhile loses its whole charge. */
	if (pool->gone)
		surplus = total;
	if (growth && sure)
		learn(pool, growth, reserved);
	pool->charged_bytes = total - surplus;
	if (sure && pool->of_graphs && reserved < UINT64_MAX / 2)
		pool->owed_bytes =
			sl_sub_sat(reserved, pool->charged_bytes + pool->granted_bytes);
	pool->version++;
	watch(pool);
	sl_pool_unlock();
	*unused = sl_min_u64(surplus, grant);
	return surplus - *unused;
}

void sl_pool_look(struct sl_pool *pool)
{
	uint64_t unused, surplus = sl_pool_lower(pool, NULL, 0, &unused);

	if (surplus)
		sl_passed_free(pool->gpu, surplus, SL_PASSED_HELD);
}

/* --- the life of pools ------------------------------------------------------------------------ */

/* Under the lock, for a pool in use: takes it off the list. Returns what is no longer charged. */
static uint64_t end(struct sl_pool *pool)
{
	uint64_t bytes = pool->charged_bytes;

	sl_list_unlink(&pool->link);
	pool->gone = true;
	pool->charged_bytes = 0;
	watch(pool);
	return bytes;
}

struct sl_pool *sl_pool_hold(CUmemoryPool handle)
{
	struct sl_pool *pool;

	sl_pool_lock();
	pool = find(false, handle, 0);
	if (pool)
		pool->users++;
	sl_pool_unlock();
	return pool;
}

/* If memory of an ended pool is still in use, the driver keeps it until it is freed. Its size can
 * no longer be queried, so it is measured as hidden. */
void sl_pool_unhold(struct sl_pool *pool, bool ended)
{
	uint64_t bytes = 0;

	if (!pool)
		return;
	if (ended) {
		sl_pool_lock();
		bytes = pool->gone ? 0 : end(pool);
		sl_pool_unlock();
		sl_pool_current_changed();
		sl_passed_free(pool->gpu, bytes, SL_PASSED_HELD);
	}
	sl_pool_leave(pool);
}

/* props: of a pool that the program made; NULL: a default pool, or one that is known. */
static void seen(CUmemoryPool handle, const CUmemLocation *where,
	CUmemAllocationType type, const CUmemPoolProps *props)
{
	bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
	bool plain = where->type == CU_MEM_LOCATION_TYPE_DEVICE &&
		     type == CU_MEM_ALLOCATION_TYPE_PINNED &&
		     (!props || (!props->handleTypes && !props->usage));
	struct sl_stock *stock = NULL;
	struct sl_gpu *gpu;
	CUdevice dev = -1;

	if (!have_say())
		return;
	/* Managed memory without a preferred device counts on the current one, as with
	 * cuMemAllocManaged. */
	if (!sl_device_of_place(where, &dev) &&
		(!managed || sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS))
		dev = -1;
	gpu = dev >= 0 ? sl_device_gpu(dev) : NULL;
	if (gpu && plain)
		stock = sl_stock_new(handle, dev, props ? props->maxSize : 0);
	enter(handle, dev, gpu, stock, managed && !gpu);
}

void sl_pool_seen(
	CUmemoryPool handle, const CUmemLocation *where, CUmemAllocationType type)
{
	seen(handle, where, type, NULL);
}

void sl_pool_made(CUmemoryPool handle, const CUmemPoolProps *props)
{
	/* A pool with this handle ended without a call that we saw. */
	sl_pool_unhold(sl_pool_hold(handle), true);
	seen(handle, &props->location, props->allocType, props);
}

void sl_pool_keeps(CUmemoryPool handle, uint64_t threshold_bytes)
{
	struct sl_pool *pool = sl_pool_of_handle(handle);

	if (!pool)
		return;
	sl_pool_lock();
	pool->threshold_bytes = threshold_bytes;
	watch(pool);
	sl_pool_unlock();
	if (pool->stock)
		sl_stock_keeps(pool->stock, threshold_bytes);
	sl_pool_leave(pool);
}

struct sl_pool *sl_pool_nth_charged(size_t n)
{
	struct sl_pool *found = NULL;

	sl_pool_lock();
	sl_list_foreach (link, &pools) {
		struct sl_pool *pool = SL_LIST_ENTRY(link, struct sl_pool, link);

		if (pool->charged_bytes && n-- == 0) {
			found = use(pool);
			break;
		}
	}
	sl_pool_unlock();
	return found;
}

size_t sl_pool_count_charged(void)
{
	size_t count = 0;

	sl_pool_lock();
	sl_list_foreach (link, &pools)
		count += SL_LIST_ENTRY(link, struct sl_pool, link)->charged_bytes > 0;
	sl_pool_unlock();
	return count;
}

void sl_pool_look_at_all(void)
{
	int saved_errno = errno;

	for (size_t n = sl_pool_count_charged(); n-- > 0;) {
		struct sl_pool *pool = sl_pool_nth_charged(n);

		if (!pool)
			continue;
		sl_pool_look(pool);
		sl_pool_leave(pool);
	}
	errno = saved_errno;
}

uint64_t sl_pool_all_charged(void)
{
	uint64_t bytes = 0;

	sl_pool_lock();
	sl_list_foreach (link, &pools)
		bytes += SL_LIST_ENTRY(link, struct sl_pool, link)->charged_bytes;
	sl_pool_unlock();
	return bytes;
}

void sl_pool_drop_device(CUdevice dev)
{
	struct sl_pool *pool;
	uint64_t bytes;

	sl_pool_current_changed();
	for (;;) {
		bytes = 0;
		sl_pool_lock();
		pool = NULL;
		sl_list_foreach (link, &pools) {
			struct sl_pool *at = SL_LIST_ENTRY(link, struct sl_pool, link);

			/* A stock's memory has gone with its space; the pool may live on. */
			if (at->gpu && at->dev == dev && !at->stock) {
				pool = at;
				pool->users++;
				bytes = end(pool);
				break;
			}
		}
		sl_pool_unlock();
		if (!pool)
			return;
		sl_passed_free(pool->gpu, bytes, SL_PASSED_HELD);
		sl_pool_leave(pool);
	}
}

void sl_pool_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_list_init(&pools);
	sl_pool_watched = 0;
	sl_pool_current_changed();
}
