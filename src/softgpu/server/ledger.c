/*
 * ledger - pages of a sparse memfd, and their holders
 *
 * A freed page keeps its bytes, as on a GPU: memory created by the same process has the old
 * content, with a little of it spoilt. A page that moves to another process is scrubbed first (a
 * hole is punched), as the driver does; that also gives its memory back to the host.
 *
 * Pages are searched from a roving position: one contiguous run if there is one, scattered ones
 * otherwise, as a GPU's page tables allow.
 */
#include "softgpu/server/ledger.h"

#include "base/cuda_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RUBBISH_BYTES 4096
/* In a page that returns to its process, the bytes before the rubbish show its former content. */
#define KEPT_BYTES 64

static uint64_t clamp(uint64_t v, uint64_t lowest, uint64_t highest)
{
	return v < lowest ? lowest : v > highest ? highest : v;
}

static void fill_auto(struct sl_softgpu_config *c)
{
	if (c->reserve_bytes == SL_SOFTGPU_AUTO)
		c->reserve_bytes = clamp(c->memory_bytes / 128, 0, 512 * SL_MIB);
	if (c->context_bytes == SL_SOFTGPU_AUTO)
		c->context_bytes = clamp(c->memory_bytes / 64, 8 * SL_MIB, 256 * SL_MIB);
	if (c->launch_bytes == SL_SOFTGPU_AUTO)
		c->launch_bytes = clamp(c->memory_bytes / 512, 2 * SL_MIB, 64 * SL_MIB);
	c->reserve_bytes = sl_min_u64(c->reserve_bytes, c->memory_bytes / 2);
}

static int device_init(struct sl_ledger_device *d, uint64_t bytes)
{
	d->page_count = (uint32_t)(bytes / SL_SG_PAGE);
	d->tenant = calloc(d->page_count, sizeof(*d->tenant));
	d->taken = calloc(d->page_count, sizeof(*d->taken));
	d->memfd = memfd_create("sluice-softgpu", MFD_CLOEXEC);
	if (!d->tenant || !d->taken)
		return -ENOMEM;
	if (d->memfd < 0 || ftruncate(d->memfd, (off_t)(d->page_count * SL_SG_PAGE +
							SL_SG_BOARD_BYTES)) < 0)
		return -errno;
	return 0;
}

int sl_ledger_init(struct sl_ledger *l, const struct sl_softgpu_config *config)
{
	memset(l, 0, sizeof(*l));
	l->config = *config;
	l->next_id = 1;
	l->next_serial = 1;
	fill_auto(&l->config);
	for (unsigned i = 0; i < SL_LEDGER_BUCKETS; i++)
		sl_list_init(&l->bucket[i]);
	for (unsigned i = 0; i < config->gpus; i++) {
		int r = device_init(&l->device[i], sl_ledger_capacity(l));
		if (r < 0)
			return r;
	}
	return 0;
}

uint64_t sl_ledger_capacity(const struct sl_ledger *l)
{
	return l->config.memory_bytes - l->config.reserve_bytes;
}

uint64_t sl_ledger_used(const struct sl_ledger *l, uint32_t device)
{
	const struct sl_ledger_device *d = &l->device[device];

	return d->used_pages * SL_SG_PAGE + d->hidden_bytes;
}

uint64_t sl_ledger_used_by(
	const struct sl_ledger *l, const struct sl_ledger_holder *h, uint32_t device)
{
	uint64_t bytes = h->hidden_bytes[device];
	struct sl_link *link;

	(void)l;
	for (link = h->holds.next; link != &h->holds; link = link->next) {
		struct sl_ledger_hold *hold =
			SL_LIST_ENTRY(link, struct sl_ledger_hold, of_holder);
		if (hold->handle->device == device && hold->handle->owner == h &&
			hold->handle->extent_count)
			bytes += hold->handle->bytes;
	}
	return bytes;
}

static bool fits(const struct sl_ledger *l, uint32_t device, uint64_t bytes)
{
	uint64_t room = sl_sub_sat(sl_ledger_capacity(l), l->config.deny_mib * SL_MIB);

	return bytes <= sl_sub_sat(room, sl_ledger_used(l, device));
}

void sl_ledger_holder_init(struct sl_ledger *l, struct sl_ledger_holder *h)
{
	memset(h, 0, sizeof(*h));
	sl_list_init(&h->holds);
	h->serial = l->next_serial++;
}

static void punch(struct sl_ledger_device *d, uint32_t first, uint32_t count)
{
	if (fallocate(d->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)(first * SL_SG_PAGE), (off_t)(count * SL_SG_PAGE)) == 0)
		memset(&d->tenant[first], 0, count * sizeof(*d->tenant));
}

/* Prepares one extent for its new holder: scrubs other processes' bytes and writes rubbish. Each
 * page that was the holder's own is spoilt, so a missing initialisation is noticed. */
static void prepare(struct sl_ledger *l, struct sl_ledger_device *d, uint32_t serial,
	const struct sl_sg_extent *e)
{
	static const char rubbish[] = "sluice software GPU: never written. ";
	char page[RUBBISH_BYTES];
	bool scrub = !l->config.stale;

	for (uint32_t i = 0; i < e->count && !scrub; i++)
		scrub = d->tenant[e->first + i] != serial && d->tenant[e->first + i];
	if (scrub)
		punch(d, e->first, e->count);
	for (uint32_t i = 0; i < sizeof(page); i++)
		page[i] = rubbish[i % (sizeof(rubbish) - 1)];
	for (uint32_t i = 0; i < e->count; i++) {
		uint32_t p = e->first + i;

		uint64_t kept = d->tenant[p] ? KEPT_BYTES : 0;

		if ((d->tenant[p] || i == 0 || i == e->count - 1) && l->config.stale &&
			pwrite(d->memfd, page, sizeof(page) - kept,
				(off_t)(p * SL_SG_PAGE + kept)) < 0)
			scrub = true; /* the host is full; zeros instead of rubbish */
		d->tenant[p] = serial;
		d->taken[p] = 1;
	}
}

/* Finds `want` free pages; returns the number of extents, 0 if there are too many pieces. */
static uint32_t find_pages(
	const struct sl_ledger_device *d, uint32_t want, struct sl_sg_extent *extent)
{
	uint32_t run = 0, n = 0;

	for (uint32_t p = 0; p < d->page_count; p++) {
		run = d->taken[p] ? 0 : run + 1;
		if (run == want) {
			extent[0] = (struct sl_sg_extent){p + 1 - want, want};
			return 1;
		}
	}
	for (uint32_t p = 0; p < d->page_count && want; p++) {
		if (d->taken[p])
			continue;
		if (n && extent[n - 1].first + extent[n - 1].count == p)
			extent[n - 1].count++;
		else if (n == SL_SG_EXTENTS_MAX)
			return 0;
		else
			extent[n++] = (struct sl_sg_extent){p, 1};
		want--;
	}
	return want ? 0 : n;
}

static struct sl_ledger_hold *find_hold(
	const struct sl_ledger_handle *handle, const struct sl_ledger_holder *h)
{
	struct sl_link *link;

	for (link = handle->holds.next; link != &handle->holds; link = link->next) {
		struct sl_ledger_hold *hold =
			SL_LIST_ENTRY(link, struct sl_ledger_hold, of_handle);
		if (hold->holder == h)
			return hold;
	}
	return NULL;
}

int sl_ledger_hold(
	struct sl_ledger *l, struct sl_ledger_holder *h, struct sl_ledger_handle *handle)
{
	struct sl_ledger_hold *hold = find_hold(handle, h);

	(void)l;
	if (!hold) {
		hold = calloc(1, sizeof(*hold));
		if (!hold)
			return -ENOMEM;
		hold->handle = handle;
		hold->holder = h;
		sl_list_push_tail(&handle->holds, &hold->of_handle);
		sl_list_push_tail(&h->holds, &hold->of_holder);
		if (!handle->owner)
			handle->owner = h;
	}
	hold->count++;
	return 0;
}

/* Gives a handle without pages its pages on a device; false: there are too few. */
static bool place(struct sl_ledger *l, struct sl_ledger_handle *handle, uint32_t device,
	uint32_t serial)
{
	static struct sl_sg_extent extent[SL_SG_EXTENTS_MAX];
	struct sl_ledger_device *d = &l->device[device];
	uint32_t pages = (uint32_t)(handle->bytes / SL_SG_PAGE), n = 0;

	if (fits(l, device, handle->bytes))
		n = find_pages(d, pages, extent);
	if (n)
		handle->extent = malloc(n * sizeof(*extent));
	if (!handle->extent)
		return false;
	memcpy(handle->extent, extent, n * sizeof(*extent));
	handle->extent_count = n;
	handle->device = device;
	for (uint32_t i = 0; i < n; i++)
		prepare(l, d, serial, &extent[i]);
	d->used_pages += pages;
	return true;
}

static void displace(struct sl_ledger *l, struct sl_ledger_handle *handle)
{
	struct sl_ledger_device *d = &l->device[handle->device];

	for (uint32_t i = 0; i < handle->extent_count; i++) {
		memset(&d->taken[handle->extent[i].first], 0, handle->extent[i].count);
		d->used_pages -= handle->extent[i].count;
	}
	handle->extent_count = 0;
	free(sl_steal(&handle->extent));
}

int sl_ledger_create(struct sl_ledger *l, struct sl_ledger_holder *h, uint32_t device,
	uint64_t bytes, struct sl_ledger_handle **out)
{
	uint64_t pages = bytes / SL_SG_PAGE + (bytes % SL_SG_PAGE != 0);

	if (!pages)
		return CUDA_ERROR_INVALID_VALUE;
	if (pages > l->device[device].page_count)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sl_ledger_handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->id = l->next_id;
	handle->bytes = pages * SL_SG_PAGE;
	sl_list_init(&handle->holds);
	if (!place(l, handle, device, h->serial) || sl_ledger_hold(l, h, handle) < 0) {
		displace(l, handle);
		free(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	l->next_id++;
	sl_list_push_tail(&l->bucket[handle->id % SL_LEDGER_BUCKETS], &handle->by_id);
	*out = handle;
	return CUDA_SUCCESS;
}

struct sl_ledger_handle *sl_ledger_find(
	struct sl_ledger *l, const struct sl_ledger_holder *h, uint64_t id)
{
	struct sl_link *head = &l->bucket[id % SL_LEDGER_BUCKETS], *link;

	for (link = head->next; link != head; link = link->next) {
		struct sl_ledger_handle *handle =
			SL_LIST_ENTRY(link, struct sl_ledger_handle, by_id);
		if (handle->id == id)
			return !h || find_hold(handle, h) ? handle : NULL;
	}
	return NULL;
}

static void handle_free(struct sl_ledger *l, struct sl_ledger_handle *handle)
{
	displace(l, handle);
	sl_list_unlink(&handle->by_id);
	free(handle);
}

static void hold_free(struct sl_ledger *l, struct sl_ledger_hold *hold)
{
	struct sl_ledger_handle *handle = hold->handle;

	sl_list_unlink(&hold->of_handle);
	sl_list_unlink(&hold->of_holder);
	if (handle->owner == hold->holder)
		handle->owner = sl_list_is_empty(&handle->holds)
					? NULL
					: SL_LIST_ENTRY(handle->holds.next,
						  struct sl_ledger_hold, of_handle)
						  ->holder;
	free(hold);
	if (sl_list_is_empty(&handle->holds))
		handle_free(l, handle);
}

int sl_ledger_release(struct sl_ledger *l, struct sl_ledger_holder *h, uint64_t id)
{
	struct sl_ledger_handle *handle = sl_ledger_find(l, h, id);

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	struct sl_ledger_hold *hold = find_hold(handle, h);
	if (--hold->count == 0)
		hold_free(l, hold);
	return CUDA_SUCCESS;
}

int sl_ledger_hide(
	struct sl_ledger *l, struct sl_ledger_holder *h, uint32_t device, uint64_t bytes)
{
	if (!fits(l, device, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->device[device].hidden_bytes += bytes;
	h->hidden_bytes[device] += bytes;
	return CUDA_SUCCESS;
}

void sl_ledger_unhide(
	struct sl_ledger *l, struct sl_ledger_holder *h, uint32_t device, uint64_t bytes)
{
	bytes = sl_min_u64(bytes, h->hidden_bytes[device]);
	l->device[device].hidden_bytes -= bytes;
	h->hidden_bytes[device] -= bytes;
}

/* Frees host memory that only this holder had touched. */
static void scrub_after(struct sl_ledger *l, uint32_t serial)
{
	for (unsigned i = 0; i < l->config.gpus; i++) {
		struct sl_ledger_device *d = &l->device[i];
		uint32_t first = 0;

		for (uint32_t p = 0; p <= d->page_count; p++) {
			if (p < d->page_count && d->tenant[p] == serial && !d->taken[p])
				continue;
			if (p > first)
				punch(d, first, p - first);
			first = p + 1;
		}
	}
}

/* --- away --- */

static struct sl_ledger_handle *handle_of(struct sl_link *link)
{
	return SL_LIST_ENTRY(link, struct sl_ledger_hold, of_holder)->handle;
}

static void give_up(struct sl_ledger *l, struct sl_ledger_holder *h)
{
	sl_list_foreach (link, &h->holds)
		displace(l, handle_of(link));
	for (uint32_t i = 0; i < l->config.gpus; i++) {
		sl_ledger_unhide(l, h, i, h->hidden_bytes[i]);
		h->contexts[i] = 0;
	}
	scrub_after(l, h->serial);
}

int sl_ledger_away(struct sl_ledger *l, struct sl_ledger_holder *h)
{
	sl_list_foreach (link, &h->holds) {
		if (handle_of(link)->holds.next != handle_of(link)->holds.prev)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	memcpy(h->away_hidden_bytes, h->hidden_bytes, sizeof(h->hidden_bytes));
	memcpy(h->away_contexts, h->contexts, sizeof(h->contexts));
	give_up(l, h);
	return CUDA_SUCCESS;
}

int sl_ledger_back(struct sl_ledger *l, struct sl_ledger_holder *h, const uint32_t *to)
{
	bool fits_all = true;

	for (uint32_t i = 0; i < l->config.gpus && fits_all; i++) {
		fits_all = sl_ledger_hide(l, h, to[i], h->away_hidden_bytes[i]) ==
			   CUDA_SUCCESS;
		h->contexts[to[i]] = h->away_contexts[i];
	}
	sl_list_foreach (link, &h->holds) {
		struct sl_ledger_handle *handle = handle_of(link);

		fits_all = fits_all && place(l, handle, to[handle->device], h->serial);
	}
	if (!fits_all)
		give_up(l, h);
	return fits_all ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sl_ledger_holder_fini(struct sl_ledger *l, struct sl_ledger_holder *h)
{
	while (!sl_list_is_empty(&h->holds))
		hold_free(l,
			SL_LIST_ENTRY(h->holds.next, struct sl_ledger_hold, of_holder));
	for (uint32_t i = 0; i < l->config.gpus; i++)
		sl_ledger_unhide(l, h, i, h->hidden_bytes[i]);
	scrub_after(l, h->serial);
}
