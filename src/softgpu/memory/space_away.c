/*
 * space_away - all bytes of the process leave the GPUs, and come back
 *
 * They lie in one memfd meanwhile, one handle after the other. Addresses, handles and aliases stay;
 * only the pages behind them change. The process is locked, so no copy runs and no call changes
 * anything. Times are as of copies of that size, plus nothing for contexts.
 */
#include "softgpu/memory/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE (1u << 20)

static int away = -1;

/* Copies what was written of [from, from + bytes); the rest of the target is a hole. */
static bool copy_data(int in, uint64_t from, int out, uint64_t to, uint64_t bytes)
{
	static char piece[PIECE]; /* under the lock */
	off_t at = (off_t)from, end = (off_t)(from + bytes);

	while (at < end) {
		off_t data = lseek(in, at, SEEK_DATA), hole;

		if (data < 0 && errno != ENXIO)
			return false;
		if (data < 0 || data >= end)
			return true;
		hole = lseek(in, data, SEEK_HOLE);
		hole = hole < 0 || hole > end ? end : hole;
		for (at = data; at < hole;) {
			size_t more = sl_min_u64(PIECE, (uint64_t)(hole - at));
			off_t there = (off_t)(to + ((uint64_t)at - from));

			if (pread(in, piece, more, at) != (ssize_t)more ||
				pwrite(out, piece, more, there) != (ssize_t)more)
				return false;
			at += (off_t)more;
		}
	}
	return true;
}

/* Copies a handle's pages to `at` in the memfd, or back. */
static bool copy_phys(const struct sl_phys *p, uint64_t at, bool back)
{
	int gpu = sl_drv.memfd[p->device];

	for (uint32_t i = 0; i < p->extent_count; i++) {
		uint64_t first = p->extent[i].first * SL_SG_PAGE;
		uint64_t bytes = p->extent[i].count * SL_SG_PAGE;

		if (back && fallocate(gpu, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				    (off_t)first, (off_t)bytes) < 0)
			return false;
		if (!(back ? copy_data(away, at, gpu, first, bytes)
			   : copy_data(gpu, first, away, at, bytes)))
			return false;
		at += bytes;
	}
	return true;
}

static uint64_t sum(void)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &sl_phys_all)
		bytes += SL_LIST_ENTRY(link, struct sl_phys, link)->bytes;
	return bytes;
}

static bool copy_all(bool back)
{
	uint64_t at = 0, bytes = sum(),
		 rate = back ? sl_drv.hello.h2d_bytes_per_s
			     : sl_drv.hello.d2h_bytes_per_s;
	uint64_t due = sl_drv_now_ns() +
		       (rate ? (uint64_t)((double)bytes / (double)rate * 1e9) : 0);

	sl_list_foreach (link, &sl_phys_all) {
		struct sl_phys *p = SL_LIST_ENTRY(link, struct sl_phys, link);

		if (!copy_phys(p, at, back))
			return false;
		at += p->bytes;
	}
	sl_drv_cost(sl_sub_sat(due, sl_drv_now_ns()) / 1000);
	return true;
}

static CUresult tell_server(enum sl_sg_op op, uint64_t id, struct sl_sg_reply *reply,
	struct sl_sg_extent *extents)
{
	struct sl_sg_request q = {.op = op, .id = id};

	return sl_link_call(
		&q, -1, reply, extents, extents ? SL_SG_EXTENTS_MAX : 0, NULL);
}

/* What cannot leave: memory that others see too, and managed memory. */
static bool may_leave(void)
{
	bool may = true;

	for (unsigned i = 0; i < sl_blocks.count; i++) {
		const struct sl_block *b = sl_blocks.row[i];

		may &= b->kind != SL_BLOCK_MANAGED && b->kind != SL_BLOCK_IPC;
	}
	for (unsigned i = 0; i < sl_mappings.count; i++)
		may &= !((struct sl_mapping *)sl_mappings.row[i])->phys->multicast;
	for (CUdevice i = 0; i < (CUdevice)sl_drv.hello.gpus; i++)
		may &= !sl_link_is_lost(i);
	return may;
}

static void drop_pins(void)
{
	for (unsigned i = sl_blocks.count; sl_drv.hello.drop_pins && i-- > 0;) {
		struct sl_block *b = sl_blocks.row[i];

		if (b->kind == SL_BLOCK_REGISTERED)
			sl_block_drop(b);
	}
}

static CUresult leave_locked(void)
{
	struct sl_sg_reply reply;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!may_leave())
		return CUDA_ERROR_NOT_SUPPORTED;
	away = memfd_create("sluice-softgpu-away", MFD_CLOEXEC);
	if (away >= 0 && ftruncate(away, (off_t)sum()) == 0 && copy_all(false))
		r = tell_server(SL_SG_AWAY, 0, &reply, NULL);
	if (r != CUDA_SUCCESS) {
		if (away >= 0)
			close(sl_steal_fd(&away));
		return r;
	}
	sl_list_foreach (link, &sl_phys_all) {
		struct sl_phys *p = SL_LIST_ENTRY(link, struct sl_phys, link);

		if (p->alias &&
			mmap(p->alias, p->bytes, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
				-1, 0) == MAP_FAILED)
			return CUDA_ERROR_UNKNOWN;
	}
	drop_pins();
	return r;
}

CUresult sl_space_leave(void)
{
	CUresult r;

	pthread_mutex_lock(&sl_space_lock);
	r = leave_locked();
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

static CUresult find_pages(void)
{
	static struct sl_sg_extent extent[SL_SG_EXTENTS_MAX]; /* under the lock */

	sl_list_foreach (link, &sl_phys_all) {
		struct sl_phys *p = SL_LIST_ENTRY(link, struct sl_phys, link);
		struct sl_sg_reply reply;
		CUresult r = tell_server(SL_SG_EXTENTS, p->id, &reply, extent);
		size_t bytes = reply.extent_count * sizeof(*extent);

		if (r != CUDA_SUCCESS)
			return r;
		free(p->extent);
		p->extent = malloc(bytes);
		p->extent_count = p->extent ? reply.extent_count : 0;
		if (!p->extent)
			return CUDA_ERROR_UNKNOWN;
		memcpy(p->extent, extent, bytes);
		if (p->alias && !sl_phys_map_at(p, p->alias, PROT_READ | PROT_WRITE))
			return CUDA_ERROR_UNKNOWN;
	}
	return CUDA_SUCCESS;
}

static CUresult tell_companions(void)
{
	CUresult r = CUDA_SUCCESS;

	for (CUdevice d = 0; d < (CUdevice)sl_drv.hello.gpus; d++) {
		if (sl_companion_runs(d) && r == CUDA_SUCCESS)
			r = sl_companion_init(d);
		for (unsigned i = 0; i < sl_mappings.count && r == CUDA_SUCCESS; i++) {
			struct sl_mapping *m = sl_mappings.row[i];

			if (m->in_companion[d] && !m->is_host)
				r = sl_mapping_tell(m, d);
		}
	}
	return r;
}

static CUresult return_locked(uint64_t map)
{
	struct sl_sg_reply reply;
	CUresult r = tell_server(SL_SG_BACK, map, &reply, NULL);

	if (r != CUDA_SUCCESS)
		return r;
	if (sl_link_move(map) < 0 || find_pages() != CUDA_SUCCESS || !copy_all(true) ||
		tell_companions() != CUDA_SUCCESS)
		return CUDA_ERROR_UNKNOWN;
	close(sl_steal_fd(&away));
	return CUDA_SUCCESS;
}

CUresult sl_space_return(uint64_t map)
{
	CUresult r;

	pthread_mutex_lock(&sl_space_lock);
	r = return_locked(map);
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}
