/*
 * handle - see handle.h
 *
 * Ids count up and are never reused, so a stale id is recognised. The table of handles is hashed by
 * id; mappings are sorted by address. When the driver maps at an address, nothing else is mapped
 * there. Entries that the table still has for that address were left by racing threads and are
 * dropped.
 */
#include "runtime/driver/handle.h"
#include "runtime/driver/passed.h"
#include "runtime/real/real.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/store/store.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Not an address, and unlike any handle that a driver is known to return. */
#define ID_TAG        0x5ac0000000000000ull
#define ID_TAG_MASK   0xffff000000000000ull
#define BUCKETS_FIRST 256u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_number;
static struct sl_link *buckets;
static size_t bucket_count, handle_count;
static struct sl_extents mappings;

static void take_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* --- what the driver still has of a handle that stayed half-way
 * --------------------------------- */

CUresult sl_handle_give_back(struct sl_handle *handle)
{
	CUresult r = handle->lent ? sl_real.cuMemRelease(handle->lent) : CUDA_SUCCESS;

	if (r == CUDA_SUCCESS)
		handle->lent = 0;
	return r;
}

CUresult sl_handle_drop_own(struct sl_handle *handle)
{
	CUresult r;

	if (!handle->own)
		return CUDA_SUCCESS;
	r = sl_real.cuMemUnmap(handle->own, handle->bytes);
	if (r != CUDA_SUCCESS)
		return r;
	/* Addresses that the driver keeps cost no memory. */
	if (sl_real.cuMemAddressFree(handle->own, handle->bytes) != CUDA_SUCCESS)
		sl_warning("addresses at %#llx were not freed", handle->own);
	handle->own = 0;
	return r;
}

static void clear_mapping(struct sl_mapping *mapping)
{
	if (mapping->there)
		(void)sl_real.cuMemUnmap(mapping->extent.address, mapping->extent.bytes);
	mapping->there = false;
}

static void clear_handle(struct sl_handle *handle)
{
	(void)sl_handle_drop_own(handle);
	(void)sl_handle_give_back(handle);
	if (handle->evicted && handle->made)
		(void)sl_real.cuMemRelease(handle->real);
	handle->made = false;
	sl_store_give(&handle->host);
}

/* --- the table of handles: under the lock ----------------------------------------------------- */

static struct sl_link *bucket_of(uint64_t id)
{
	return &buckets[id & (bucket_count - 1)];
}

/* Without host memory the buckets just get longer; only the first table is required. */
static bool grow_table(void)
{
	size_t count = bucket_count ? 4 * bucket_count : BUCKETS_FIRST;
	struct sl_link *old = buckets, *more;
	size_t old_count = bucket_count;

	if (handle_count < 2 * bucket_count)
		return true;
	more = malloc(count * sizeof(*more));
	if (!more)
		return buckets != NULL;
	for (size_t i = 0; i < count; i++)
		sl_list_init(&more[i]);
	buckets = more;
	bucket_count = count;
	for (size_t i = 0; i < old_count; i++) {
		sl_list_foreach_safe (link, &old[i]) {
			struct sl_handle *handle =
				SL_LIST_ENTRY(link, struct sl_handle, bucket);

			sl_list_unlink(link);
			sl_list_push_tail(bucket_of(handle->id), link);
		}
	}
	free(old);
	return true;
}

static struct sl_handle *find(uint64_t id)
{
	if (!bucket_count)
		return NULL;
	sl_list_foreach (link, bucket_of(id)) {
		struct sl_handle *handle = SL_LIST_ENTRY(link, struct sl_handle, bucket);

		if (handle->id == id)
			return handle;
	}
	return NULL;
}

/* Takes the handle out of the table if nothing refers to it; the caller then ends it without the
 * lock. */
static bool is_over(struct sl_handle *handle)
{
	if (handle->references || handle->users || handle->bound ||
		!sl_list_is_empty(&handle->mappings))
		return false;
	sl_list_unlink(&handle->bucket);
	handle_count--;
	return true;
}

/* --- handles ---------------------------------------------------------------------------------- */

struct sl_handle *sl_handle_new(enum sl_handle_kind kind, uint64_t bytes)
{
	struct sl_handle *handle = calloc(1, sizeof(*handle));
	bool grown;

	if (!handle)
		return NULL;
	handle->kind = kind;
	handle->bytes = bytes;
	sl_list_init(&handle->bucket);
	sl_list_init(&handle->mappings);
	sl_list_init(&handle->bindings);
	take_lock();
	grown = grow_table();
	drop_lock();
	if (grown)
		return handle;
	free(handle);
	return NULL;
}

void sl_handle_discard(struct sl_handle *handle)
{
	free(handle);
}

CUmemGenericAllocationHandle sl_handle_add(
	struct sl_handle *handle, CUmemGenericAllocationHandle real)
{
	uint64_t id;

	take_lock();
	id = ID_TAG | ++last_number;
	handle->id = id;
	handle->real = real;
	handle->references = 1;
	sl_list_push_tail(bucket_of(handle->id), &handle->bucket);
	handle_count++;
	drop_lock();
	return id;
}

struct sl_handle *sl_handle_use(
	CUmemGenericAllocationHandle value, CUmemGenericAllocationHandle *real)
{
	struct sl_handle *handle;

	*real = value;
	if (sl_unlikely((value & ID_TAG_MASK) != ID_TAG))
		return NULL;
	take_lock();
	handle = find(value);
	if (handle && !handle->references)
		handle = NULL;
	if (handle)
		handle->users++;
	*real = handle ? handle->real : 0;
	drop_lock();
	return handle;
}

/* The handle is in no table any more. */
static void end(struct sl_handle *handle)
{
	if (handle->on_end)
		handle->on_end(handle);
	if (handle->held_bytes)
		sl_held_drop(handle->gpu, handle->held_bytes);
	clear_handle(handle);
	if (handle->evicted)
		sl_passed_free_evicted(
			handle->gpu, handle->charged_bytes, handle->charge_flags);
	else if (handle->gpu)
		sl_passed_free(handle->gpu, handle->charged_bytes, handle->charge_flags);
	else
		(void)sl_measure_after(CUDA_SUCCESS);
	free(handle);
}

void sl_handle_leave(struct sl_handle *handle)
{
	bool over;

	if (!handle)
		return;
	take_lock();
	handle->users--;
	over = is_over(handle);
	drop_lock();
	if (over)
		end(handle);
}

struct sl_handle *sl_handle_at(uint64_t address)
{
	struct sl_mapping *mapping;
	struct sl_handle *handle = NULL;

	take_lock();
	mapping = (struct sl_mapping *)sl_extents_at(&mappings, address);
	if (mapping) {
		handle = mapping->handle;
		handle->users++;
	}
	drop_lock();
	return handle;
}

int sl_handle_unreference(struct sl_handle *handle, CUmemGenericAllocationHandle *real)
{
	int outcome = SL_HANDLE_MORE;

	take_lock();
	if (!handle->references)
		outcome = SL_HANDLE_NONE;
	else if (--handle->references == 0)
		outcome = SL_HANDLE_LAST;
	*real = handle->real;
	drop_lock();
	return outcome;
}

void sl_handle_released(struct sl_handle *handle, bool released)
{
	take_lock();
	/* If it was revived through its address meanwhile, that is another reference of the
	 * driver's. */
	if (!released && handle->references == 0)
		handle->references = 1;
	drop_lock();
}

bool sl_handle_reference(struct sl_handle *handle)
{
	bool referenced;

	take_lock();
	referenced = handle->references > 0;
	if (referenced)
		handle->references++;
	drop_lock();
	return referenced;
}

bool sl_handle_revive(struct sl_handle *handle, CUmemGenericAllocationHandle real)
{
	bool first;

	take_lock();
	first = handle->references == 0;
	if (first)
		handle->real = real;
	handle->references++;
	drop_lock();
	return first;
}

/* --- held ------------------------------------------------------------------------------------- */

/* Under the lock: the bytes still to be reported as held. 0 if they are held already or on no
 * GPU. */
static uint64_t bytes_to_hold(const struct sl_handle *handle)
{
	if (handle->charge_flags & SL_PASSED_HELD || handle->held_bytes)
		return 0;
	return handle->charged_bytes;
}

bool sl_handle_hold(struct sl_handle *handle, enum sl_handle_why why)
{
	uint64_t bytes, asked = 0, surplus = 0;

	take_lock();
	/* Another thread may meanwhile remove the earlier reason for holding, which adds bytes. */
	while ((bytes = bytes_to_hold(handle)) > asked) {
		drop_lock();
		if (!sl_held_take(handle->gpu, bytes))
			return false;
		asked = bytes;
		take_lock();
	}
	if (bytes)
		handle->held_bytes = bytes;
	else
		surplus = asked; /* another thread was faster */
	handle->why_held |= why;
	if (why == SL_WHY_BOUND)
		handle->bound++;
	drop_lock();
	if (surplus)
		sl_held_drop(handle->gpu, surplus);
	return true;
}

/* Under the lock: makes memory evictable again. Returns the bytes to report without the lock. */
static uint64_t unhold(struct sl_handle *handle)
{
	uint64_t bytes = 0;

	if (--handle->bound == 0) {
		handle->why_held &= ~(uint32_t)SL_WHY_BOUND;
		if (!handle->why_held) {
			bytes = handle->held_bytes;
			handle->held_bytes = 0;
		}
	}
	return bytes;
}

void sl_handle_unbind(struct sl_handle *handle)
{
	uint64_t bytes;
	struct sl_gpu *gpu = handle->gpu;
	bool over;

	take_lock();
	bytes = unhold(handle);
	over = is_over(handle);
	drop_lock();
	if (bytes)
		sl_held_drop(gpu, bytes);
	if (over)
		end(handle);
}

bool sl_handle_hold_range(uint64_t address, uint64_t bytes, enum sl_handle_why why)
{
	uint64_t end = address + bytes, size = 0;
	struct sl_handle *handle;
	bool held = true;

	while (held && sl_mappings_next(end, &address, &size)) {
		handle = sl_handle_at(address);
		held = !handle || sl_handle_hold(handle, why);
		sl_handle_leave(handle);
		address += size;
	}
	return held;
}

/* --- mappings --------------------------------------------------------------------------------- */

struct sl_mapping *sl_mapping_new(uint64_t address, uint64_t bytes)
{
	struct sl_mapping *mapping = calloc(1, sizeof(*mapping));
	bool promised;

	if (!mapping)
		return NULL;
	mapping->extent.address = address;
	mapping->extent.bytes = bytes;
	sl_list_init(&mapping->link);
	sl_list_init(&mapping->taken);
	take_lock();
	promised = sl_extents_promise(&mappings);
	drop_lock();
	if (promised)
		return mapping;
	free(mapping);
	return NULL;
}

void sl_mapping_discard(struct sl_mapping *mapping)
{
	take_lock();
	sl_extents_unpromise(&mappings);
	drop_lock();
	free(mapping);
}

static struct sl_mapping *mapping_from(uint64_t address)
{
	return (struct sl_mapping *)sl_extents_from(&mappings, address);
}

/* Under the lock: takes mappings out of the index, keeping the room to put them back. whole: only
 * mappings entirely inside the range. */
static void take(uint64_t address, uint64_t bytes, bool whole, struct sl_link *taken)
{
	uint64_t end = address + bytes;
	struct sl_mapping *mapping = mapping_from(address);

	while (mapping && mapping->extent.address < end) {
		uint64_t next = sl_extent_end(&mapping->extent);

		if (!whole || (mapping->extent.address >= address && next <= end)) {
			sl_extents_take(&mappings, &mapping->extent);
			mappings.promised++;
			sl_list_push_tail(taken, &mapping->taken);
		}
		mapping = mapping_from(next);
	}
}

void sl_mapping_add(struct sl_mapping *mapping, struct sl_handle *handle)
{
	struct sl_link stale;

	sl_list_init(&stale);
	take_lock();
	take(mapping->extent.address, mapping->extent.bytes, false, &stale);
	mapping->handle = handle;
	if (handle->kind == SL_HANDLE_IMPORTED)
		handle->bytes = sl_max_u64(handle->bytes, mapping->extent.bytes);
	sl_list_push_tail(&handle->mappings, &mapping->link);
	sl_extents_put(&mappings, &mapping->extent);
	drop_lock();
	sl_mappings_drop(&stale);
}

void sl_mappings_take(uint64_t address, uint64_t bytes, struct sl_link *taken)
{
	sl_list_init(taken);
	take_lock();
	take(address, bytes, true, taken);
	drop_lock();
}

void sl_mappings_put_back(struct sl_link *taken)
{
	take_lock();
	sl_list_foreach_safe (link, taken) {
		struct sl_mapping *mapping =
			SL_LIST_ENTRY(link, struct sl_mapping, taken);

		sl_list_unlink(link);
		sl_extents_put(&mappings, &mapping->extent);
	}
	drop_lock();
}

void sl_mappings_drop(struct sl_link *taken)
{
	sl_list_foreach_safe (link, taken) {
		struct sl_mapping *mapping =
			SL_LIST_ENTRY(link, struct sl_mapping, taken);
		struct sl_handle *handle = mapping->handle;

		take_lock();
		sl_list_unlink(link);
		sl_list_unlink(&mapping->link);
		sl_extents_unpromise(&mappings);
		handle->users++;
		drop_lock();
		clear_mapping(mapping);
		free(mapping->accesses);
		free(mapping);
		sl_handle_leave(handle);
	}
}

static bool is_same(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type &&
	       (a->id == b->id || a->type == CU_MEM_LOCATION_TYPE_HOST ||
		       a->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

/* Under the lock. Without memory to record its accesses, the mapping and its handle become held. */
static void allow(struct sl_mapping *mapping, const CUmemAccessDesc *access)
{
	struct sl_access *more;
	uint32_t i = 0;

	while (i < mapping->access_count &&
		!is_same(&mapping->accesses[i].where, &access->location))
		i++;
	if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
		if (i < mapping->access_count)
			mapping->accesses[i] = mapping->accesses[--mapping->access_count];
		return;
	}
	if (i == mapping->access_count) {
		more = realloc(mapping->accesses, (i + 1) * sizeof(*more));
		if (!more) {
			mapping->handle->why_held |= SL_WHY_RECORD;
			return;
		}
		mapping->accesses = more;
		mapping->access_count++;
		more[i].where = access->location;
	}
	mapping->accesses[i].flags = access->flags;
}

void sl_mappings_allow(uint64_t address, uint64_t bytes, const CUmemAccessDesc *access)
{
	uint64_t end = address + bytes;

	take_lock();
	for (struct sl_mapping *mapping = mapping_from(address);
		mapping && mapping->extent.address < end;
		mapping = mapping_from(sl_extent_end(&mapping->extent)))
		allow(mapping, access);
	drop_lock();
}

bool sl_mappings_access(
	uint64_t address, const CUmemLocation *where, unsigned long long *flags)
{
	const struct sl_mapping *mapping;
	bool found;

	take_lock();
	mapping = mapping_from(address);
	found = mapping && mapping->extent.address <= address;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	for (uint32_t i = 0; found && i < mapping->access_count; i++) {
		if (is_same(&mapping->accesses[i].where, where))
			*flags = mapping->accesses[i].flags;
	}
	drop_lock();
	return found;
}

bool sl_mapping_find(uint64_t address, struct sl_mapping_info *out)
{
	const struct sl_mapping *mapping;
	bool found;

	take_lock();
	mapping = mapping_from(address);
	found = mapping && mapping->extent.address <= address;
	if (found)
		*out = (struct sl_mapping_info){
			.address = mapping->extent.address,
			.bytes = mapping->extent.bytes,
			.id = mapping->handle->id,
			.prop = mapping->handle->prop,
			.kind = mapping->handle->kind,
		};
	drop_lock();
	return found;
}

bool sl_mappings_next(uint64_t end, uint64_t *address, uint64_t *bytes)
{
	const struct sl_mapping *mapping;
	bool found;

	take_lock();
	mapping = mapping_from(*address);
	found = mapping && mapping->extent.address < end;
	if (found) {
		*address = mapping->extent.address;
		*bytes = mapping->extent.bytes;
	}
	drop_lock();
	return found;
}

/* --- all handles ------------------------------------------------------------------------------ */

void sl_handle_each(void (*on_each)(struct sl_handle *handle, void *arg), void *arg)
{
	take_lock();
	for (size_t i = 0; i < bucket_count; i++) {
		sl_list_foreach (link, &buckets[i])
			on_each(SL_LIST_ENTRY(link, struct sl_handle, bucket), arg);
	}
	drop_lock();
}

struct sl_handle_counts sl_handle_count(void)
{
	struct sl_handle_counts counts;

	take_lock();
	counts = (struct sl_handle_counts){
		.handles = handle_count,
		.mappings = mappings.count,
		.promised = mappings.promised,
	};
	drop_lock();
	return counts;
}

void sl_handle_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	buckets = NULL;
	bucket_count = handle_count = 0;
	sl_extents_forget(&mappings);
}
