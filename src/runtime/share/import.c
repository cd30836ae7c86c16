/*
 * import - see import.h
 *
 * While one thread makes or unmakes a mapping, others wait for the next change and look again.
 * Closing waits for work, which may take any time. A thread that opens the mapping during that wait
 * gets it at once, and the mapping stays. Mappings are in an array sorted by address, since every
 * query about an unknown pointer searches here.
 */
#include "runtime/share/import.h"
#include "runtime/contexts/settle.h"
#include "runtime/gate/control.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/futex.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/share/fetch.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state {
	MAKING = 0, /* no address yet: not in the array */
	READY,      /* with openings */
	LEFT,       /* without openings; to be unmapped as soon as possible */
	LEAVING,    /* without openings; its closer waits for the work on it */
	UNMAKING,
	GONE, /* not in the array; freed by the last thread that waits for work */
};

struct block {
	uint64_t offset, bytes;
	uint64_t maker_id; /* distinguishes a block made anew at the same place */
	uint64_t id;       /* in this process, where the maker's id may be in use */
	uint32_t openings;
	bool sync_memops; /* as set here, independent of the maker's */
};

struct mapping {
	struct mapping *next_made; /* while MAKING */
	uint8_t key[SL_OFFER_KEY_BYTES];
	CUcontext ctx;
	CUdevice dev; /* where the memory is */
	enum state state;
	uint32_t closes, settlers; /* number of closes; threads that wait for work */
	CUdeviceptr base;
	uint64_t bytes, chunk_bytes;
	uint32_t mapped; /* chunks */
	struct block *blocks;
	uint32_t block_count, block_room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping **mappings, *making; /* by address; without an address yet */
static uint32_t count, room;               /* count is atomic */
static uint32_t changes;                   /* futex */
static bool any_left;                      /* atomic */

static void take_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void leave_lock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* Under the lock, which is released during the wait. */
static void wait_for_change(void)
{
	uint32_t seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);

	leave_lock();
	sl_futex_wait(&changes, seen, SL_NS_NEVER);
	take_lock();
}

static void tell_change(void)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&changes, INT_MAX);
}

/* --- the table, under the lock ---------------------------------------------------------------- */

/* The index of the first mapping that ends above `at`. */
static uint32_t lower(CUdeviceptr at)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (mappings[middle]->base + mappings[middle]->bytes <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct mapping *mapping_at(CUdeviceptr at)
{
	uint32_t i = lower(at);

	return i < count && mappings[i]->base <= at ? mappings[i] : NULL;
}

static struct mapping *mapping_of(const uint8_t key[SL_OFFER_KEY_BYTES], CUcontext ctx)
{
	for (struct mapping *m = making; m; m = m->next_made) {
		if (m->ctx == ctx && memcmp(m->key, key, sizeof(m->key)) == 0)
			return m;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (mappings[i]->ctx == ctx &&
			memcmp(mappings[i]->key, key, sizeof(mappings[i]->key)) == 0)
			return mappings[i];
	}
	return NULL;
}

static bool make_room(void)
{
	uint32_t wanted = room ? 2 * room : 16;
	struct mapping **grown;

	if (count < room)
		return true;
	grown = realloc(mappings, wanted * sizeof(*grown));
	if (!grown)
		return false;
	mappings = grown;
	room = wanted;
	return true;
}

static void insert(struct mapping *m)
{
	uint32_t i = lower(m->base);

	memmove(mappings + i + 1, mappings + i, (count - i) * sizeof(*mappings));
	mappings[i] = m;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

static void take_out(const struct mapping *m)
{
	uint32_t i = lower(m->base);

	memmove(mappings + i, mappings + i + 1, (count - i - 1) * sizeof(*mappings));
	__atomic_store_n(&count, count - 1, __ATOMIC_RELEASE);
}

static void no_longer_making(const struct mapping *m)
{
	struct mapping **at = &making;

	while (*at != m)
		at = &(*at)->next_made;
	*at = m->next_made;
}

static void mapping_free(struct mapping *m)
{
	free(m->blocks);
	free(m);
}

static struct block *block_at(const struct mapping *m, uint64_t offset)
{
	for (uint32_t i = 0; i < m->block_count; i++) {
		if (m->blocks[i].offset == offset)
			return &m->blocks[i];
	}
	return NULL;
}

/* Counts one more opening. A block that the maker freed and made anew at the same place replaces
 * the old one. */
static CUresult count_opening(
	struct mapping *m, const struct sl_offered *offered, CUdeviceptr *out)
{
	struct block *block = block_at(m, offered->offset);

	if (!block && m->block_count == m->block_room) {
		uint32_t wanted = m->block_room ? 2 * m->block_room : 4;
		struct block *grown = realloc(m->blocks, wanted * sizeof(*grown));

		if (!grown)
			return CUDA_ERROR_OPERATING_SYSTEM;
		m->blocks = grown;
		m->block_room = wanted;
	}
	if (!block) {
		block = &m->blocks[m->block_count++];
		*block = (struct block){.offset = offered->offset};
	}
	block->bytes = offered->bytes;
	if (!block->id || block->maker_id != offered->id) {
		block->id = sl_memory_new_id();
		block->sync_memops = false;
	}
	block->maker_id = offered->id;
	block->openings++;
	m->state = READY;
	*out = m->base + offered->offset;
	return CUDA_SUCCESS;
}

static bool is_inside(const struct mapping *m, const struct sl_offered *offered)
{
	return offered->bytes <= m->bytes && offered->offset <= m->bytes - offered->bytes;
}

/* --- mapping ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct mapping *m, uint32_t index)
{
	return sl_min_u64(m->chunk_bytes, m->bytes - index * m->chunk_bytes);
}

/* No work may use the mapping. */
static void unmap(struct mapping *m)
{
	CUresult r = CUDA_SUCCESS, one;

	sl_control_enter();
	for (uint32_t i = 0; i < m->mapped; i++) {
		one = sl_real.cuMemUnmap(m->base + i * m->chunk_bytes, bytes_of(m, i));
		r = r == CUDA_SUCCESS ? one : r;
	}
	if (r == CUDA_SUCCESS && m->base)
		r = sl_real.cuMemAddressFree(m->base, m->bytes);
	sl_control_leave();
	if (r != CUDA_SUCCESS)
		sl_warning("memory of another process stays mapped at %#llx: error %d",
			m->base, (int)r);
	m->mapped = 0;
	sl_step(C_IPC_CLOSED);
}

/* The driver's number of the workload's GPU. -1: the program does not see that GPU. */
static CUdevice device_of(uint32_t ordinal)
{
	struct sl_gpu *gpu;
	CUuuid uuid;

	for (CUdevice dev = 0; dev < SL_GPUS_MAX; dev++) {
		if (sl_real.cuDeviceGetUuid(&uuid, dev) != CUDA_SUCCESS)
			break;
		gpu = sl_device_gpu(dev);
		if (gpu && gpu->ordinal == ordinal)
			return dev;
	}
	return -1;
}

/* The handle is released at once; the mapping keeps the memory. */
static CUresult map_chunk(struct mapping *m, uint32_t index, int fd)
{
	CUmemGenericAllocationHandle handle;
	CUresult r = sl_real.cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (r != CUDA_SUCCESS)
		return r;
	sl_step(C_IPC_IMPORTED);
	r = sl_real.cuMemMap(
		m->base + index * m->chunk_bytes, bytes_of(m, index), 0, handle, 0);
	m->mapped += r == CUDA_SUCCESS;
	(void)sl_real.cuMemRelease(handle);
	return r;
}

static CUresult allow(const struct mapping *m, CUdevice dev)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return sl_real.cuMemSetAccess(m->base, m->bytes, &access, 1);
}

static CUresult map(struct mapping *m, struct sl_fetch *fetch, CUdevice dev, bool peers)
{
	CUresult r;

	m->dev = device_of(fetch->ordinal);
	if (m->dev < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	m->bytes = fetch->bytes;
	m->chunk_bytes = fetch->chunk_bytes;
	r = sl_real.cuMemAddressReserve(&m->base, m->bytes, SL_DEVICE_GRAIN, 0, 0);
	if (r != CUDA_SUCCESS)
		m->base = 0;
	for (uint32_t i = 0; r == CUDA_SUCCESS && i < fetch->count; i++)
		r = map_chunk(m, i, fetch->fds[i]);
	sl_step(C_IPC_MAPPED);
	if (r == CUDA_SUCCESS)
		r = allow(m, m->dev);
	if (r == CUDA_SUCCESS && peers && dev != m->dev)
		r = allow(m, dev);
	return r;
}

static CUresult ask_and_map(
	struct mapping *m, const struct sl_offered *block, CUdevice dev, bool peers)
{
	struct sl_fetch fetch;
	CUresult r = sl_fetch_ask(&fetch, block->key);

	sl_control_enter();
	if (r == CUDA_SUCCESS)
		r = map(m, &fetch, dev, peers);
	sl_control_leave();
	/* The memory is mapped by now, or will not be. */
	sl_fetch_close(&fetch);
	if (r == CUDA_SUCCESS && !is_inside(m, block))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r != CUDA_SUCCESS)
		unmap(m);
	return r;
}

/* Under the lock, which is released meanwhile: makes a new mapping. */
static CUresult make(CUcontext ctx, CUdevice dev, bool peers,
	const struct sl_offered *block, CUdeviceptr *out)
{
	struct mapping *m = calloc(1, sizeof(*m));
	CUresult r;

	if (!m)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(m->key, block->key, sizeof(m->key));
	m->ctx = ctx;
	m->next_made = making;
	making = m;
	leave_lock();
	r = ask_and_map(m, block, dev, peers);
	take_lock();
	no_longer_making(m);
	if (r == CUDA_SUCCESS)
		r = make_room() ? count_opening(m, block, out)
				: CUDA_ERROR_OPERATING_SYSTEM;
	if (r == CUDA_SUCCESS) {
		insert(m);
	} else {
		if (m->mapped)
			unmap(m);
		mapping_free(m);
	}
	tell_change();
	return r;
}

CUresult sl_import_open(CUcontext ctx, CUdevice dev, bool peers,
	const struct sl_offered *block, CUdeviceptr *out)
{
	struct mapping *m;
	CUresult r;

	take_lock();
	while ((m = mapping_of(block->key, ctx)) &&
		(m->state == MAKING || m->state == UNMAKING))
		wait_for_change();
	if (!m)
		r = make(ctx, dev, peers, block, out);
	else if (!is_inside(m, block))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = count_opening(m, block, out);
	leave_lock();
	return r;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* The mapping is unmapped. */
static void be_gone(struct mapping *m)
{
	take_out(m);
	m->state = GONE;
	if (!m->settlers)
		mapping_free(m);
}

/* Under the lock, which is released meanwhile. Waits for the work, and returns whether this thread
 * must then unmap. It need not if the mapping was opened meanwhile: the thread of a later close
 * does. */
static bool settle(struct mapping *m, CUresult *result, int *outcome)
{
	uint32_t close = ++m->closes;
	bool is_ours;

	m->state = LEAVING;
	m->settlers++;
	leave_lock();
	*outcome = sl_settle_context(m->ctx, result);
	if (*outcome == SL_SETTLED || *outcome == SL_SETTLE_CAPTURING)
		*result = CUDA_SUCCESS;
	take_lock();
	m->settlers--;
	is_ours = m->state == LEAVING && m->closes == close;
	if (m->state == GONE && !m->settlers)
		mapping_free(m);
	return is_ours;
}

/* Under the lock, which is released meanwhile. The mapping is READY without openings, or LEFT. */
static CUresult unmake(struct mapping *m)
{
	CUresult result = CUDA_SUCCESS;
	int outcome;

	if (!settle(m, &result, &outcome))
		return result;
	if (outcome != SL_SETTLED) {
		m->state = LEFT;
		__atomic_store_n(&any_left, true, __ATOMIC_RELAXED);
		return result;
	}
	m->state = UNMAKING;
	leave_lock();
	unmap(m);
	take_lock();
	be_gone(m);
	tell_change();
	return result;
}

static bool has_openings(const struct mapping *m)
{
	return m->block_count > 0;
}

int sl_import_close(CUdeviceptr ptr, CUresult *result)
{
	struct mapping *m;
	struct block *block;
	int r = SL_MEMORY_FOREIGN;

	if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0)
		return r;
	take_lock();
	m = mapping_at(ptr);
	block = m ? block_at(m, ptr - m->base) : NULL;
	if (m) {
		r = SL_MEMORY_OURS;
		*result = block && m->state == READY ? CUDA_SUCCESS
						     : CUDA_ERROR_INVALID_VALUE;
	}
	if (m && *result == CUDA_SUCCESS && --block->openings == 0)
		*block = m->blocks[--m->block_count];
	if (m && *result == CUDA_SUCCESS && !has_openings(m))
		*result = unmake(m);
	leave_lock();
	if (__atomic_load_n(&any_left, __ATOMIC_RELAXED))
		sl_sweep_owe();
	return r;
}

static struct mapping *next_left(void)
{
	for (uint32_t i = 0; i < count; i++) {
		if (mappings[i]->state == LEFT)
			return mappings[i];
	}
	return NULL;
}

void sl_import_sweep(void)
{
	struct mapping *m;

	if (!__atomic_exchange_n(&any_left, false, __ATOMIC_RELAXED))
		return;
	take_lock();
	/* A mapping that is LEFT again delays the others until the next sweep. */
	while ((m = next_left()) && !__atomic_load_n(&any_left, __ATOMIC_RELAXED))
		(void)unmake(m);
	leave_lock();
}

void sl_import_drop_context(CUcontext ctx)
{
	uint32_t i = 0;

	if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0)
		return;
	take_lock();
	while (i < count) {
		struct mapping *m = mappings[i];

		/* The context's work ended with it. Unmap now, even if threads still wait for that
		 * work: another context may get this address before they return. */
		if (m->ctx != ctx || m->state == UNMAKING) {
			i++;
			continue;
		}
		unmap(m);
		be_gone(m);
	}
	tell_change();
	leave_lock();
}

/* --- looking up ------------------------------------------------------------------------------- */

static struct block *block_around(const struct mapping *m, CUdeviceptr ptr)
{
	for (uint32_t i = 0; i < m->block_count; i++) {
		if (ptr - m->base - m->blocks[i].offset < m->blocks[i].bytes)
			return &m->blocks[i];
	}
	return NULL;
}

int sl_import_find(CUdeviceptr ptr, struct sl_memory_info *out)
{
	const struct block *block;
	const struct mapping *m;
	int r = SL_MEMORY_FOREIGN;

	if (sl_likely(__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0))
		return r;
	take_lock();
	m = mapping_at(ptr);
	block = m ? block_around(m, ptr) : NULL;
	if (m)
		r = block ? SL_MEMORY_OURS : SL_MEMORY_DEAD;
	if (block)
		*out = (struct sl_memory_info){
			.base = m->base + block->offset,
			.bytes = block->bytes,
			.id = block->id,
			.ctx = m->ctx,
			.dev = m->dev,
			.mapping_base = m->base,
			.mapping_bytes = m->bytes,
			.sync_memops = block->sync_memops,
		};
	leave_lock();
	return r;
}

void sl_import_set_sync_memops(CUdeviceptr ptr, bool on)
{
	const struct mapping *m;
	struct block *block;

	take_lock();
	m = mapping_at(ptr);
	block = m ? block_around(m, ptr) : NULL;
	if (block)
		block->sync_memops = on;
	leave_lock();
}

void sl_import_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	mappings = NULL;
	making = NULL;
	count = room = changes = 0;
	any_left = false;
}
