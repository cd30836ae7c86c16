/*
 * space_multicast - one range that stands for memory on several GPUs
 *
 * A multicast object is a handle without memory of its own: each device of its team binds memory at
 * offsets of it. A copy, a memset or a stream's write goes to all of them: it is written to one and
 * then echoed. A kernel sees the memory of its own device at the address. Its writes go only there,
 * since they cannot be noticed (a real switch would forward them). Reads use the device's own
 * memory.
 */
#include "softgpu/memory/internal.h"

#include <stdlib.h>
#include <string.h>

struct bind {
	struct bind *next;
	CUdevice device;
	uint64_t offset, bytes;
	struct sl_phys *phys; /* a reference */
	uint64_t phys_offset;
};

struct sl_multicast {
	unsigned int team, added; /* devices of the complete team, and so far */
	uint32_t devices;         /* a bit each */
	uint64_t bytes;
	struct bind *binds;
};

/* So that copies cost nothing without such objects. */
static _Atomic unsigned int object_count;
static pthread_cond_t team_changed = PTHREAD_COND_INITIALIZER;

static void bind_free(struct bind *b)
{
	sl_phys_unref(b->phys);
	free(b);
}

void sl_multicast_free(struct sl_multicast *mc)
{
	while (mc->binds) {
		struct bind *b = mc->binds;

		mc->binds = b->next;
		bind_free(b);
	}
	free(mc);
	atomic_fetch_sub(&object_count, 1);
}

/* Making -------------------------------------------------------------------------------------- */

CUresult sl_space_multicast(
	const CUmulticastObjectProp *prop, CUmemGenericAllocationHandle *out)
{
	struct sl_phys *phys = calloc(1, sizeof(*phys));
	struct sl_multicast *mc = calloc(1, sizeof(*mc));
	CUresult r;

	if (!phys || !mc) {
		free(phys);
		free(mc);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mc->team = prop->numDevices;
	mc->bytes = prop->size;
	phys->multicast = mc;
	phys->bytes = prop->size;
	phys->fd = -1;
	phys->id = SL_PHYS_HOST | sl_drv_next_id();
	phys->refs = 1;
	sl_list_init(&phys->link);
	atomic_fetch_add(&object_count, 1);
	pthread_mutex_lock(&sl_space_lock);
	r = sl_handle_new(phys, out);
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

static struct sl_phys *object_of(CUmemGenericAllocationHandle handle)
{
	struct sl_phys *p = sl_handle_phys(handle);

	return p && p->multicast ? p : NULL;
}

CUresult sl_space_multicast_add(CUmemGenericAllocationHandle handle, CUdevice device)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_phys *p;

	pthread_mutex_lock(&sl_space_lock);
	p = object_of(handle);
	if (p && p->multicast->added < p->multicast->team &&
		!(p->multicast->devices & 1u << device)) {
		p->multicast->devices |= 1u << device;
		p->multicast->added++;
		pthread_cond_broadcast(&team_changed);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* As in the driver, a call before the team is complete waits for the other devices. */
struct sl_phys *sl_multicast_wait(CUmemGenericAllocationHandle handle)
{
	struct sl_phys *p;

	for (;;) {
		p = sl_handle_phys(handle);
		if (!p || !p->multicast || p->multicast->added == p->multicast->team)
			return p;
		pthread_cond_wait(&team_changed, &sl_space_lock);
	}
}

/* Companions ---------------------------------------------------------------------------------- */

/* The pieces of a handle's extents that lie in [offset, offset + bytes); returns their number. */
static uint32_t extents_of(const struct sl_phys *p, uint64_t offset, uint64_t bytes,
	struct sl_sg_extent *out)
{
	uint32_t skip = (uint32_t)(offset / SL_SG_PAGE),
		 left = (uint32_t)(bytes / SL_SG_PAGE);
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->extent_count && left; i++) {
		struct sl_sg_extent e = p->extent[i];
		uint32_t cut = skip < e.count ? skip : e.count;

		skip -= cut;
		e.first += cut;
		e.count -= cut;
		if (e.count > left)
			e.count = left;
		left -= e.count;
		if (e.count)
			out[n++] = e;
	}
	return n;
}

/* Maps or unmaps one bound piece in the device's companion. */
static CUresult tell_piece(
	const struct sl_mapping *m, const struct bind *b, CUdevice device, bool map)
{
	static struct sl_sg_extent extent[SL_SG_EXTENTS_MAX]; /* under the lock */
	struct sl_cp_request q = {.op = map ? SL_CP_MAP : SL_CP_UNMAP,
		.prot = m->access[device],
		.device = (uint32_t)b->phys->device,
		.address = m->address + b->offset};

	if (b->offset >= m->bytes)
		return CUDA_SUCCESS;
	q.bytes = sl_min_u64(b->bytes, m->bytes - b->offset);
	if (map)
		q.extent_count = extents_of(b->phys, b->phys_offset, q.bytes, extent);
	return sl_companion_call(device, &q, extent, -1, NULL);
}

CUresult sl_multicast_tell(struct sl_mapping *m, CUdevice device)
{
	bool want = m->access[device] != CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUresult r = CUDA_SUCCESS;

	for (struct bind *b = m->phys->multicast->binds; b && r == CUDA_SUCCESS;
		b = b->next) {
		if (b->device != device)
			continue;
		if (m->in_companion[device])
			r = tell_piece(m, b, device, false);
		if (want && r == CUDA_SUCCESS)
			r = tell_piece(m, b, device, true);
	}
	m->in_companion[device] = want && r == CUDA_SUCCESS;
	return r;
}

/* After a bind, and before an unbind: updates existing mappings. */
static CUresult tell_mappings(struct sl_phys *object, const struct bind *b, bool map)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < sl_mappings.count && r == CUDA_SUCCESS; i++) {
		struct sl_mapping *m = sl_mappings.row[i];

		if (m->phys == object && sl_companion_runs(b->device) &&
			m->in_companion[b->device])
			r = tell_piece(m, b, b->device, map);
	}
	return r;
}

/* Binding ------------------------------------------------------------------------------------- */

static bool is_free(const struct sl_multicast *mc, const struct bind *want)
{
	for (const struct bind *b = mc->binds; b; b = b->next)
		if (b->device == want->device && b->offset < want->offset + want->bytes &&
			want->offset < b->offset + b->bytes)
			return false;
	return true;
}

/* Finds the memory to bind; false: there is none, or not enough. */
static bool find_memory(const struct sl_space_bind *bind, struct bind *b)
{
	struct sl_mapping *m;
	uint64_t room;

	if (bind->mem) {
		b->phys = sl_handle_phys(bind->mem);
		b->phys_offset = bind->mem_offset;
		room = b->phys ? b->phys->bytes : 0;
	} else {
		m = sl_table_find(&sl_mappings, bind->ptr);
		if (!m || m->kind == SL_MAP_NATIVE)
			return false;
		b->phys = m->phys;
		b->phys_offset = bind->ptr - m->address;
		room = m->bytes;
	}
	return b->phys && !b->phys->multicast && b->phys->fd < 0 &&
	       b->phys_offset <= room && bind->bytes <= room - b->phys_offset;
}

static CUresult bind_locked(struct sl_phys *object, const struct sl_space_bind *bind)
{
	struct sl_multicast *mc = object->multicast;
	struct bind b = {.offset = bind->offset, .bytes = bind->bytes}, *made;

	if (bind->offset > mc->bytes || bind->bytes > mc->bytes - bind->offset ||
		!find_memory(bind, &b))
		return CUDA_ERROR_INVALID_VALUE;
	b.device = b.phys->device;
	if ((bind->device >= 0 && bind->device != b.device) ||
		!(mc->devices & 1u << b.device) || !is_free(mc, &b))
		return CUDA_ERROR_INVALID_VALUE;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = b;
	made->next = mc->binds;
	mc->binds = made;
	made->phys->refs++;
	return tell_mappings(object, made, true);
}

CUresult sl_space_multicast_bind(
	CUmemGenericAllocationHandle handle, const struct sl_space_bind *bind)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_phys *object;

	pthread_mutex_lock(&sl_space_lock);
	object = object_of(handle) ? sl_multicast_wait(handle) : NULL;
	if (object)
		r = bind_locked(object, bind);
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_multicast_unbind(CUmemGenericAllocationHandle handle, CUdevice device,
	uint64_t offset, uint64_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_phys *object;

	pthread_mutex_lock(&sl_space_lock);
	object = object_of(handle);
	for (struct bind **at = object ? &object->multicast->binds : NULL; at && *at;
		at = &(*at)->next) {
		struct bind *b = *at;

		if (b->device != device || b->offset != offset || b->bytes != bytes)
			continue;
		r = tell_mappings(object, b, false);
		*at = b->next;
		bind_free(b);
		break;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Access -------------------------------------------------------------------------------------- */

/* The device's own memory if it bound any there, else another device's. */
struct sl_phys *sl_multicast_at(const struct sl_multicast *mc, CUdevice device,
	uint64_t offset, uint64_t *within, uint64_t *bytes)
{
	const struct bind *found = NULL;

	for (const struct bind *b = mc->binds; b; b = b->next)
		if (offset >= b->offset && offset - b->offset < b->bytes &&
			(!found || b->device == device))
			found = b;
	if (!found || sl_link_is_lost(found->device))
		return NULL;
	*within = found->phys_offset + (offset - found->offset);
	*bytes = sl_min_u64(*bytes, found->offset + found->bytes - offset);
	return found->phys;
}

static void echo_to(
	const struct bind *b, uint64_t offset, const char *where, uint64_t bytes)
{
	uint64_t start = sl_max_u64(offset, b->offset);
	uint64_t end = sl_min_u64(offset + bytes, b->offset + b->bytes);
	char *alias = start < end ? sl_phys_alias(b->phys) : NULL;

	/* Copying onto itself is harmless. */
	if (alias)
		memmove(alias + b->phys_offset + (start - b->offset),
			where + (start - offset), end - start);
}

void sl_space_echo(uint64_t address, const char *where, uint64_t bytes)
{
	struct sl_mapping *m;

	if (!atomic_load(&object_count))
		return;
	pthread_mutex_lock(&sl_space_lock);
	m = sl_table_find(&sl_mappings, address);
	if (m && m->phys->multicast)
		for (const struct bind *b = m->phys->multicast->binds; b; b = b->next)
			echo_to(b, address - m->address, where, bytes);
	pthread_mutex_unlock(&sl_space_lock);
}
