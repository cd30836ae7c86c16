/*
 * managed - advice, prefetches and queries about managed memory
 *
 * Managed memory is one set of pages that both sides map, charged to the GPU it was made for.
 * Nothing moves, so advice and prefetches change only the answers to queries. They are checked and
 * stored by byte ranges (struct sl_hint). A prefetch takes effect with the call.
 */
#include "softgpu/memory/managed.h"
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"

#include <stdlib.h>
#include <string.h>

#define HOST_PAGE 4096u

enum hint_change { READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED };

/* Hints of a block ---------------------------------------------------------------------------- */

static const struct sl_hint no_hint = {
	.preferred = {CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID},
	.prefetched = {CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID}};

void sl_managed_free(struct sl_block *b)
{
	while (b->hints) {
		struct sl_hint *h = b->hints;

		b->hints = h->next;
		free(h);
	}
}

/* Splits h at the address, which lies in h or at its start. */
static bool split(struct sl_hint *h, uint64_t at)
{
	struct sl_hint *rest;

	if (at <= h->start || at >= h->end)
		return true;
	rest = malloc(sizeof(*rest));
	if (!rest)
		return false;
	*rest = *h;
	rest->start = h->end = at;
	h->next = rest;
	return true;
}

static void change(struct sl_hint *h, enum hint_change what, CUmemLocation where, bool on)
{
	uint32_t bit =
		where.type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << where.id : SL_HINT_HOST;

	switch (what) {
	case READ_MOSTLY: h->read_mostly = on; break;
	case PREFERRED: h->preferred = on ? where : no_hint.preferred; break;
	case PREFETCHED: h->prefetched = where; break;
	case ACCESSED_BY:
		h->accessed_by = on ? h->accessed_by | bit : h->accessed_by & ~bit;
		break;
	}
}

static bool same(const struct sl_hint *a, const struct sl_hint *b)
{
	return a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by &&
	       a->preferred.type == b->preferred.type &&
	       a->preferred.id == b->preferred.id &&
	       a->prefetched.type == b->prefetched.type &&
	       a->prefetched.id == b->prefetched.id;
}

static void join(struct sl_hint *h)
{
	while (h && h->next)
		if (same(h, h->next)) {
			struct sl_hint *gone = h->next;

			h->end = gone->end;
			h->next = gone->next;
			free(gone);
		} else {
			h = h->next;
		}
}

/* Under the lock; false: no memory, nothing changed. */
static bool apply(struct sl_block *b, uint64_t start, uint64_t end, enum hint_change what,
	CUmemLocation where, bool on)
{
	if (!b->hints) {
		b->hints = malloc(sizeof(*b->hints));
		if (!b->hints)
			return false;
		*b->hints = no_hint;
		b->hints->start = b->address;
		b->hints->end = sl_round_up(b->address + b->bytes, HOST_PAGE);
	}
	for (struct sl_hint *h = b->hints; h; h = h->next) {
		if (!split(h, start) || !split(h, end))
			return false;
		if (h->start >= start && h->end <= end)
			change(h, what, where, on);
	}
	join(b->hints);
	return true;
}

/* The managed block that holds the whole range, or NULL. Under the lock. */
static struct sl_block *block_of(uint64_t address, size_t bytes)
{
	struct sl_block *b = sl_space_block_locked(address);

	return b && b->kind == SL_BLOCK_MANAGED && bytes &&
			       bytes <= b->address + b->bytes - address
		       ? b
		       : NULL;
}

static CUresult set(uint64_t address, size_t bytes, enum hint_change what,
	CUmemLocation where, bool on)
{
	uint64_t start = address & ~(uint64_t)(HOST_PAGE - 1);
	uint64_t end = sl_round_up(address + bytes, HOST_PAGE);
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = block_of(address, bytes);
	if (b)
		r = apply(b, start, end, what, where, on) ? CUDA_SUCCESS
							  : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Advice -------------------------------------------------------------------------------------- */

static CUresult check_place(const CUmemLocation *where)
{
	switch (where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sl_drv_device_ok(where->id) ? CUDA_SUCCESS
						   : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA: /* there is one node */
		return where->id ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult advise(
	uint64_t ptr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
	bool on = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
		  advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
		  advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
	CUresult r = CUDA_SUCCESS;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		return set(ptr, bytes, READ_MOSTLY, no_hint.preferred, on);
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		r = check_place(&where); /* fall through */
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return r == CUDA_SUCCESS ? set(ptr, bytes, PREFERRED, where, on) : r;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		r = check_place(&where);
		if (r == CUDA_SUCCESS && where.type != CU_MEM_LOCATION_TYPE_DEVICE &&
			where.type != CU_MEM_LOCATION_TYPE_HOST)
			r = CUDA_ERROR_INVALID_VALUE;
		return r == CUDA_SUCCESS ? set(ptr, bytes, ACCESSED_BY, where, on) : r;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The older calls have a device number for the host. */
static CUmemLocation place_of(CUdevice dev)
{
	return dev == CU_DEVICE_CPU ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}
				    : (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, dev};
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev)
{
	SL_ENTER(cuMemAdvise);
	return advise(ptr, bytes, advice, place_of(dev));
}

CUresult cuMemAdvise_v2(
	CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
	SL_ENTER(cuMemAdvise_v2);
	return advise(ptr, bytes, advice, where);
}

/* Prefetches ---------------------------------------------------------------------------------- */

/* Graphs have no such node. */
static CUresult check_stream(CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);

	return s ? sl_capture_check_stream(s) : CUDA_ERROR_INVALID_HANDLE;
}

/* Takes its place in the stream; it does nothing there. */
static CUresult stand_in(CUstream handle)
{
	struct sl_op *op = sl_op_new(SL_OP_NOP);

	return op ? sl_stream_submit(sl_stream_of(handle, false), op, NULL)
		  : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult prefetch(
	uint64_t ptr, size_t bytes, CUmemLocation where, unsigned flags, CUstream handle)
{
	CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : check_place(&where);

	if (r == CUDA_SUCCESS)
		r = check_stream(handle);
	if (r == CUDA_SUCCESS)
		r = set(ptr, bytes, PREFETCHED, where, true);
	return r == CUDA_SUCCESS ? stand_in(handle) : r;
}

#define do_cuMemPrefetchAsync_v2 prefetch
#define do_cuMemPrefetchAsync    prefetch
SL_TWIN(cuMemPrefetchAsync,
	(CUdeviceptr ptr, size_t bytes, CUdevice dst, CUstream stream),
	(ptr, bytes, place_of(dst), 0, SL_PLAIN(stream)),
	(ptr, bytes, place_of(dst), 0, SL_PER_THREAD(stream)))
SL_TWIN(cuMemPrefetchAsync_v2,
	(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned int flags,
		CUstream stream),
	(ptr, bytes, where, flags, SL_PLAIN(stream)),
	(ptr, bytes, where, flags, SL_PER_THREAD(stream)))

struct batch {
	CUdeviceptr *ptrs;
	size_t *sizes;
	size_t count;
	CUmemLocation *where; /* NULL: a discard, nothing is prefetched */
	size_t *first;
	size_t places;
};

/* A list of first indices, rising from 0, assigns places to ranges. */
static CUresult check_places(const struct batch *b)
{
	CUresult r = CUDA_SUCCESS;

	if (!b->where || !b->first || !b->places || b->places > b->count || b->first[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < b->places && r == CUDA_SUCCESS; i++) {
		if (b->first[i] >= b->count || (i && b->first[i] <= b->first[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		r = check_place(&b->where[i]);
	}
	return r;
}

static CUresult batch(
	const struct batch *b, bool has_places, unsigned long long flags, CUstream handle)
{
	CUresult r;
	bool ok = true;

	if (!b->ptrs || !b->sizes || !b->count || flags || handle == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	r = has_places ? check_places(b) : CUDA_SUCCESS;
	if (r == CUDA_SUCCESS)
		r = check_stream(handle);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sl_space_lock);
	for (size_t i = 0; i < b->count && ok; i++)
		ok = block_of(b->ptrs[i], b->sizes[i]);
	pthread_mutex_unlock(&sl_space_lock);
	if (!ok)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0, place = 0; has_places && i < b->count && r == CUDA_SUCCESS;
		i++) {
		if (place + 1 < b->places && b->first[place + 1] <= i)
			place++;
		r = set(b->ptrs[i], b->sizes[i], PREFETCHED, b->where[place], true);
	}
	return r == CUDA_SUCCESS ? stand_in(handle) : r;
}

#define RANGES                               CUdeviceptr *ptrs, size_t *sizes, size_t count
#define PLACES                               CUmemLocation *where, size_t *first, size_t places
#define do_cuMemPrefetchBatchAsync           batch
#define do_cuMemDiscardAndPrefetchBatchAsync batch
#define do_cuMemDiscardBatchAsync            batch
#define BATCH(name, params, has_places, ...)                                         \
	SL_TWIN(name, params,                                                        \
		(&(struct batch){__VA_ARGS__}, has_places, flags, SL_PLAIN(stream)), \
		(&(struct batch){__VA_ARGS__}, has_places, flags,                    \
			SL_PER_THREAD(stream)))
BATCH(cuMemPrefetchBatchAsync,
	(RANGES, PLACES, unsigned long long flags, CUstream stream), true, ptrs, sizes,
	count, where, first, places)
BATCH(cuMemDiscardAndPrefetchBatchAsync,
	(RANGES, PLACES, unsigned long long flags, CUstream stream), true, ptrs, sizes,
	count, where, first, places)
BATCH(cuMemDiscardBatchAsync, (RANGES, unsigned long long flags, CUstream stream), false,
	ptrs, sizes, count)

/* Questions ----------------------------------------------------------------------------------- */

/* The hint of the whole range, if all parts agree in what `pick` reads. */
static struct sl_hint summary(const struct sl_block *b, uint64_t start, uint64_t end)
{
	struct sl_hint all = no_hint;
	bool first = true;

	for (const struct sl_hint *h = b->hints; h; h = h->next) {
		if (h->end <= start || h->start >= end)
			continue;
		if (first)
			all = *h;
		first = false;
		all.read_mostly &= h->read_mostly;
		all.accessed_by &= h->accessed_by;
		if (all.preferred.type != h->preferred.type ||
			all.preferred.id != h->preferred.id)
			all.preferred = no_hint.preferred;
		if (all.prefetched.type != h->prefetched.type ||
			all.prefetched.id != h->prefetched.id)
			all.prefetched = no_hint.prefetched;
	}
	return all;
}

/* In the form of the older attributes, which cannot name a NUMA node. */
static int old_name(const CUmemLocation *where)
{
	if (where->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return where->id;
	return where->type == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU
							: CU_DEVICE_INVALID;
}

static void list_accessors(uint32_t mask, int *out, size_t room)
{
	size_t n = 0;

	for (unsigned i = 0; i < sl_drv.hello.gpus && n < room; i++)
		if (mask & 1u << i)
			out[n++] = (int)i;
	if (mask & SL_HINT_HOST && n < room)
		out[n++] = CU_DEVICE_CPU;
	while (n < room)
		out[n++] = CU_DEVICE_INVALID;
}

static CUresult answer(
	const struct sl_hint *h, CUmem_range_attribute attribute, int *out, size_t bytes)
{
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
		if (!bytes || bytes % sizeof(int))
			return CUDA_ERROR_INVALID_VALUE;
		list_accessors(h->accessed_by, out, bytes / sizeof(int));
		return CUDA_SUCCESS;
	}
	if (bytes != sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *out = h->read_mostly; break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*out = old_name(&h->preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*out = old_name(&h->prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*out = (int)h->preferred.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *out = h->preferred.id; break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*out = (int)h->prefetched.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*out = h->prefetched.id;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult ask(void *data, size_t data_bytes, CUmem_range_attribute attribute,
	uint64_t ptr, size_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_block *b;

	if (!data)
		return r;
	pthread_mutex_lock(&sl_space_lock);
	b = block_of(ptr, bytes);
	if (b) {
		struct sl_hint all = summary(b, ptr, ptr + bytes);

		r = answer(&all, attribute, data, data_bytes);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult cuMemRangeGetAttribute(void *data, size_t data_bytes,
	CUmem_range_attribute attribute, CUdeviceptr ptr, size_t bytes)
{
	SL_ENTER(cuMemRangeGetAttribute);
	return ask(data, data_bytes, attribute, ptr, bytes);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *data_bytes,
	CUmem_range_attribute *attributes, size_t count, CUdeviceptr ptr, size_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuMemRangeGetAttributes);
	CHECK_OUT(data && data_bytes && attributes && count);
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = ask(data[i], data_bytes[i], attributes[i], ptr, bytes);
	return r;
}

/* Attaches memory to a stream. With concurrent access, which GPUs here have, that changes
 * nothing. */
static CUresult do_cuStreamAttachMemAsync(
	CUstream handle, bool is_default, CUdeviceptr ptr, size_t bytes, unsigned flags)
{
	struct sl_block b;

	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
		flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	/* To a single stream, which must be one of the program's. */
	if (flags == CU_MEM_ATTACH_SINGLE && is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_space_block(ptr, &b) || b.kind != SL_BLOCK_MANAGED || b.address != ptr ||
		(bytes && bytes != b.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = check_stream(handle);
	return r == CUDA_SUCCESS ? stand_in(handle) : r;
}

SL_TWIN(cuStreamAttachMemAsync,
	(CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags),
	(SL_PLAIN(stream), !stream || stream == CU_STREAM_LEGACY, ptr, bytes, flags),
	(SL_PER_THREAD(stream), stream == CU_STREAM_LEGACY, ptr, bytes, flags))
