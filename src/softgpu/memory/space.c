/*
 * space - tables of reservations, mappings, blocks and handles
 *
 * Three arrays sorted by address, searched by bisection. They have thousands of entries, and moving
 * these on insertion is simpler than a tree. Addresses come from regions far from those that the
 * kernel uses, so a companion can map them at the same place. Sanitizers allow only some addresses;
 * under them the kernel chooses.
 */
#include "softgpu/memory/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

pthread_mutex_t sl_space_lock = PTHREAD_MUTEX_INITIALIZER;
struct sl_table sl_reservations, sl_mappings, sl_blocks;

/* Tables -------------------------------------------------------------------------------------- */

struct span { /* how every row of a table begins */
	uint64_t address, bytes;
};

/* Index of the first row that ends above the address. */
unsigned sl_table_lower(const struct sl_table *t, uint64_t address)
{
	unsigned low = 0, high = t->count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		const struct span *s = t->row[middle];

		if (s->address + s->bytes > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void *sl_table_find(const struct sl_table *t, uint64_t address)
{
	unsigned i = sl_table_lower(t, address);
	struct span *s = i < t->count ? t->row[i] : NULL;

	return s && s->address <= address ? s : NULL;
}

bool sl_table_overlaps(const struct sl_table *t, uint64_t address, uint64_t bytes)
{
	unsigned i = sl_table_lower(t, address);
	const struct span *s = i < t->count ? t->row[i] : NULL;

	return s && s->address < address + bytes;
}

bool sl_table_insert(struct sl_table *t, void *row)
{
	unsigned i = sl_table_lower(t, ((struct span *)row)->address);

	if (t->count == t->room) {
		unsigned room = t->room ? t->room * 2 : 64;
		void **more = realloc(t->row, room * sizeof(*more));

		if (!more)
			return false;
		t->row = more;
		t->room = room;
	}
	memmove(&t->row[i + 1], &t->row[i], (t->count - i) * sizeof(*t->row));
	t->row[i] = row;
	t->count++;
	return true;
}

void sl_table_remove(struct sl_table *t, void *row)
{
	unsigned i = sl_table_lower(t, ((struct span *)row)->address);

	memmove(&t->row[i], &t->row[i + 1], (t->count - i - 1) * sizeof(*t->row));
	t->count--;
}

/* Address ranges ------------------------------------------------------------------------------ */

#define CLASHES_MAX 4
#define SPAN_MAX    (1ull << 46) /* half of a process's addresses; sums of more would wrap */

static struct arena {
	uint64_t start, end, cursor;
} arenas[] = {
	{0x200000000000, 0x500000000000, 0x200000000000},
	{0x001000000000, 0x008000000000, 0x001000000000}, /* under ThreadSanitizer */
};

/* A hint, not a demand: ThreadSanitizer turns an address it does not allow into 0. */
static bool reserve_at(uint64_t address, uint64_t bytes)
{
	void *want = (void *)(uintptr_t)address;
	void *got = mmap(want, bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (got == want)
		return true;
	if (got != MAP_FAILED)
		munmap(got, bytes);
	return false;
}

/*
 * First fit above the cursor, which moves back after a free. 0: no free range. If the kernel
 * repeatedly returns other addresses than asked for, the arena is given up.
 */
static uint64_t reserve_in(struct arena *a, uint64_t bytes, uint64_t alignment)
{
	uint64_t at = a->cursor;

	for (unsigned clashes = 0; clashes < CLASHES_MAX;) {
		at = sl_round_up(at, alignment);
		if (at + bytes > a->end)
			return 0;
		unsigned i = sl_table_lower(&sl_reservations, at);
		struct sl_reservation *r =
			i < sl_reservations.count ? sl_reservations.row[i] : NULL;
		if (r && r->address < at + bytes) {
			at = r->address + r->bytes;
		} else if (reserve_at(at, bytes)) {
			if (bytes >= SL_SG_PAGE)
				a->cursor = at + bytes;
			return at;
		} else {
			clashes++;
			at += SL_GIB; /* a mapping of another library */
		}
	}
	a->end = 0;
	return 0;
}

static uint64_t reserve_anywhere(uint64_t bytes, uint64_t alignment)
{
	char *p = mmap(NULL, bytes + alignment, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	uint64_t start = (uint64_t)(uintptr_t)p, at = sl_round_up(start, alignment);
	if (at > start)
		munmap(p, at - start);
	munmap((char *)(uintptr_t)at + bytes, start + alignment - at);
	return at;
}

uint64_t sl_space_reserve_locked(
	uint64_t bytes, uint64_t alignment, uint64_t hint, bool by_program)
{
	struct sl_reservation *r;
	uint64_t at = 0;

	if (!bytes || bytes > SPAN_MAX || alignment > SPAN_MAX)
		return 0;
	r = malloc(sizeof(*r));
	if (!r)
		return 0;
	if (hint && hint % alignment == 0 &&
		!sl_table_overlaps(&sl_reservations, hint, bytes) &&
		reserve_at(hint, bytes))
		at = hint;
	for (unsigned i = 0; i < SL_ARRAY_LEN(arenas) && !at; i++)
		at = reserve_in(&arenas[i], bytes, alignment);
	if (!at)
		at = reserve_anywhere(bytes, alignment);
	if (at) {
		*r = (struct sl_reservation){at, bytes, by_program};
		if (sl_table_insert(&sl_reservations, r))
			return at;
		munmap((void *)(uintptr_t)at, bytes);
	}
	free(r);
	return 0;
}

void sl_space_unreserve_locked(struct sl_reservation *r)
{
	for (unsigned i = 0; i < SL_ARRAY_LEN(arenas); i++)
		if (r->address >= arenas[i].start && r->address < arenas[i].cursor)
			arenas[i].cursor = r->address;
	munmap((void *)(uintptr_t)r->address, r->bytes);
	sl_table_remove(&sl_reservations, r);
	free(r);
}

/* Companions ---------------------------------------------------------------------------------- */

CUresult sl_mapping_tell(struct sl_mapping *m, CUdevice device)
{
	int fd = m->phys->fd;
	struct sl_cp_request q = {.op = fd < 0 ? SL_CP_MAP : SL_CP_MAP_FD,
		.prot = m->access[device],
		.device = (uint32_t)m->phys->device,
		.value = m->in_companion[device],
		.address = m->address,
		.bytes = m->bytes,
		.extent_count = m->phys->extent_count};
	CUresult r;

	if (!sl_companion_runs(device) || m->for_array)
		return CUDA_SUCCESS;
	if (m->phys->multicast)
		return sl_multicast_tell(m, device);
	if (m->access[device] == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
		if (!m->in_companion[device])
			return CUDA_SUCCESS;
		q.op = SL_CP_UNMAP;
		q.extent_count = 0;
		fd = -1;
	}
	r = sl_companion_call(device, &q, m->phys->extent, fd, NULL);
	m->in_companion[device] = r == CUDA_SUCCESS && q.op != SL_CP_UNMAP;
	return r;
}

static CUresult tell_pinned(const struct sl_block *b, CUdevice device, enum sl_cp_op op)
{
	struct sl_cp_request q = {.op = op,
		.prot = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		.address = b->address,
		.bytes = sl_round_up(b->bytes, 4096)};

	if (b->kind != SL_BLOCK_PINNED || !sl_companion_runs(device))
		return CUDA_SUCCESS;
	return sl_companion_call(device, &q, NULL, op == SL_CP_MAP_FD ? b->fd : -1, NULL);
}

CUresult sl_block_tell(const struct sl_block *b, bool map)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < sl_drv.hello.gpus && r == CUDA_SUCCESS; i++)
		r = tell_pinned(b, (CUdevice)i, map ? SL_CP_MAP_FD : SL_CP_UNMAP);
	return r;
}

CUresult sl_space_fill_companion(CUdevice device)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&sl_space_lock);
	for (unsigned i = 0; i < sl_mappings.count && r == CUDA_SUCCESS; i++) {
		struct sl_mapping *m = sl_mappings.row[i];

		if (!m->in_companion[device])
			r = sl_mapping_tell(m, device);
	}
	for (unsigned i = 0; i < sl_blocks.count && r == CUDA_SUCCESS; i++)
		r = tell_pinned(sl_blocks.row[i], device, SL_CP_MAP_FD);
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Mappings ------------------------------------------------------------------------------------ */

struct sl_mapping *sl_mapping_new(
	uint64_t address, uint64_t bytes, struct sl_phys *phys, enum sl_map_kind kind)
{
	struct sl_mapping *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->address = address;
	m->bytes = bytes;
	m->phys = phys;
	m->kind = kind;
	m->is_host = phys->fd >= 0;
	m->rdma = !m->is_host &&
		  (kind != SL_MAP_VMM || phys->prop.allocFlags.gpuDirectRDMACapable);
	sl_list_init(&m->link);
	m->phys_id = phys->id;
	m->device = phys->device;
	m->handle_types = phys->prop.requestedHandleTypes;
	if (!sl_table_insert(&sl_mappings, m)) {
		free(m);
		return NULL;
	}
	phys->refs++;
	return m;
}

CUresult sl_mapping_open(struct sl_mapping *m, CUmemAccess_flags flags)
{
	char *at = (char *)(uintptr_t)m->address;
	int prot = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
		   : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
							       : PROT_NONE;
	bool ok;

	if (m->host_access == flags)
		return CUDA_SUCCESS;
	if (prot == PROT_NONE)
		ok = mmap(at, m->bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			     0) != MAP_FAILED;
	else
		ok = mmap(at, m->bytes, prot, MAP_SHARED | MAP_FIXED, m->phys->fd, 0) !=
		     MAP_FAILED;
	if (ok)
		m->host_access = (uint8_t)flags;
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sl_mapping_drop(struct sl_mapping *m)
{
	(void)!sl_mapping_open(m, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	for (unsigned i = 0; i < sl_drv.hello.gpus; i++) {
		m->access[i] = CU_MEM_ACCESS_FLAGS_PROT_NONE;
		(void)!sl_mapping_tell(m, (CUdevice)i);
	}
	sl_table_remove(&sl_mappings, m);
	sl_phys_unref(m->phys);
	free(m);
}

/* Access for copies --------------------------------------------------------------------------- */

static bool pin_mapped(const struct sl_mapping *m, uint64_t address, CUdevice device,
	uint64_t *bytes, char **where, struct sl_phys **out)
{
	uint64_t offset = address - m->address;
	struct sl_phys *p = m->phys;
	char *alias;

	*bytes = sl_min_u64(*bytes, m->bytes - offset);
	if (p->multicast)
		p = sl_multicast_at(p->multicast, device, offset, &offset, bytes);
	alias = p ? sl_phys_alias(p) : NULL;
	if (!alias)
		return false;
	p->refs++;
	*out = p;
	*where = alias + offset;
	return true;
}

bool sl_space_pin(uint64_t address, CUdevice device, bool write, uint64_t *bytes,
	char **where, struct sl_phys **phys)
{
	uint8_t need = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : CU_MEM_ACCESS_FLAGS_PROT_READ;
	struct sl_mapping *m;
	bool ok = false;

	*phys = NULL;
	pthread_mutex_lock(&sl_space_lock);
	m = sl_table_find(&sl_mappings, address);
	if (m && !m->is_host && sl_link_is_lost(m->phys->device)) {
		ok = false; /* another GPU cannot reach it, either */
	} else if (m && (m->kind != SL_MAP_VMM || (m->access[device] & need) == need)) {
		ok = pin_mapped(m, address, device, bytes, where, phys);
	} else if (!m) {
		/* Look again: what was device memory in the call may be unmapped now. */
		struct sl_block *b = sl_table_find(&sl_blocks, address);

		*where = (char *)(uintptr_t)address;
		ok = b && (b->kind == SL_BLOCK_PINNED || b->kind == SL_BLOCK_REGISTERED);
		if (ok)
			*bytes = sl_min_u64(*bytes, b->address + b->bytes - address);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return ok;
}

void sl_space_unpin(struct sl_phys *phys)
{
	if (!phys)
		return;
	pthread_mutex_lock(&sl_space_lock);
	sl_phys_unref(phys);
	pthread_mutex_unlock(&sl_space_lock);
}

/* Is [address, address + bytes) all mapped, or inside one block? Under the lock. */
static bool all_mapped(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;

	if (end < address)
		return false;
	while (address < end) {
		struct sl_mapping *m = sl_table_find(&sl_mappings, address);

		if (!m)
			return false;
		if (m->kind != SL_MAP_VMM) {
			struct sl_block *b = sl_table_find(&sl_blocks, address);

			return b && end <= b->address + b->bytes;
		}
		address = m->address + m->bytes;
	}
	return true;
}

enum sl_place sl_space_place(uint64_t address, uint64_t bytes, CUdevice *device)
{
	enum sl_place place = SL_PLACE_PAGEABLE;
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	if (b && (b->kind == SL_BLOCK_PINNED || b->kind == SL_BLOCK_REGISTERED)) {
		/* A half-pinned range is refused, as by the driver. */
		place = bytes <= b->address + b->bytes - address ? SL_PLACE_PINNED
								 : SL_PLACE_NOWHERE;
	} else if (sl_table_find(&sl_reservations, address)) {
		struct sl_mapping *m = sl_table_find(&sl_mappings, address);

		place = all_mapped(address, bytes ? bytes : 1) ? SL_PLACE_DEVICE
							       : SL_PLACE_NOWHERE;
		if (place == SL_PLACE_DEVICE && b && b->kind == SL_BLOCK_MANAGED)
			place = SL_PLACE_MANAGED;
		if (device && m)
			*device = m->phys->device;
	}
	pthread_mutex_unlock(&sl_space_lock);
	/* A graph's memory exists from the making of its node. */
	if (place == SL_PLACE_NOWHERE &&
		sl_graph_mem_covers(address, bytes ? bytes : 1, device))
		place = SL_PLACE_DEVICE;
	return place;
}

struct sl_block *sl_space_block_locked(uint64_t address)
{
	return sl_table_find(&sl_blocks, address);
}

bool sl_space_block(uint64_t address, struct sl_block *out)
{
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	if (b)
		*out = *b;
	pthread_mutex_unlock(&sl_space_lock);
	return b;
}

bool sl_space_mapping(uint64_t address, struct sl_mapping *out)
{
	struct sl_mapping *m;

	pthread_mutex_lock(&sl_space_lock);
	m = sl_table_find(&sl_mappings, address);
	if (m)
		*out = *m;
	pthread_mutex_unlock(&sl_space_lock);
	return m;
}

void sl_space_set_sync_memops(uint64_t address, bool on)
{
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	if (b)
		b->sync_memops = on;
	pthread_mutex_unlock(&sl_space_lock);
}
