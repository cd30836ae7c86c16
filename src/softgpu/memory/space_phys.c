/*
 * space_phys - the memory behind handles
 *
 * The server owns the pages of a GPU: it names the extents of the device's memfd, which are mapped
 * as needed. Host memory is a memfd of its own, freed with its last holder in any process.
 */
#include "softgpu/memory/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct sl_link sl_phys_all = SL_LIST_INIT(sl_phys_all);

static struct sl_phys *phys_new(
	const struct sl_sg_reply *reply, const struct sl_sg_extent *extent)
{
	struct sl_phys *p = calloc(1, sizeof(*p));

	if (p)
		p->extent = malloc(reply->extent_count * sizeof(*extent));
	if (!p || !p->extent) {
		free(p);
		return NULL;
	}
	memcpy(p->extent, extent, reply->extent_count * sizeof(*extent));
	p->extent_count = reply->extent_count;
	p->id = reply->id;
	p->device = (CUdevice)reply->device;
	p->bytes = reply->value;
	p->fd = -1;
	p->refs = 1;
	sl_list_push_tail(&sl_phys_all, &p->link);
	return p;
}

static void release_remote(uint64_t id)
{
	struct sl_sg_request q = {.op = SL_SG_RELEASE, .id = id};
	struct sl_sg_reply reply;

	(void)!sl_link_call(&q, -1, &reply, NULL, 0, NULL);
}

/* Creates or imports, as the request asks. */
CUresult sl_phys_get(const struct sl_sg_request *q, int fd, struct sl_phys **out)
{
	static struct sl_sg_extent extent[SL_SG_EXTENTS_MAX]; /* under the lock */
	struct sl_sg_reply reply;
	CUresult r = sl_link_call(q, fd, &reply, extent, SL_SG_EXTENTS_MAX, NULL);

	if (r != CUDA_SUCCESS)
		return r;
	*out = phys_new(&reply, extent);
	if (*out)
		return CUDA_SUCCESS;
	release_remote(reply.id);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sl_phys_host_get(int fd, struct sl_phys **out)
{
	struct stat st;
	struct sl_phys *p = calloc(1, sizeof(*p));

	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Above the low numbers, which some programs rely on. */
	p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	if (p->fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0) {
		if (p->fd >= 0)
			close(p->fd);
		free(p);
		return CUDA_ERROR_INVALID_VALUE;
	}
	p->bytes = (uint64_t)st.st_size;
	p->id = SL_PHYS_HOST | sl_drv_next_id();
	p->refs = 1;
	sl_list_init(&p->link);
	*out = p;
	return CUDA_SUCCESS;
}

CUresult sl_phys_host_new(uint64_t bytes, struct sl_phys **out)
{
	int fd = memfd_create("sluice-softgpu-host", MFD_CLOEXEC);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (fd < 0)
		return r;
	if (ftruncate(fd, (off_t)bytes) == 0)
		r = sl_phys_host_get(fd, out);
	close(fd);
	return r == CUDA_SUCCESS ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

void sl_phys_unref(struct sl_phys *p)
{
	if (--p->refs)
		return;
	if (p->alias)
		munmap(p->alias, p->bytes);
	if (p->fd >= 0)
		close(p->fd);
	else if (p->multicast)
		sl_multicast_free(p->multicast);
	else
		release_remote(p->id);
	sl_list_unlink(&p->link);
	free(p->extent);
	free(p);
}

/* Maps the handle's pages at `at`, which must be reserved; on false the range is unusable. */
bool sl_phys_map_at(const struct sl_phys *p, char *at, int prot)
{
	if (p->fd >= 0)
		return mmap(at, p->bytes, prot, MAP_SHARED | MAP_FIXED, p->fd, 0) !=
		       MAP_FAILED;
	for (uint32_t i = 0; i < p->extent_count; i++) {
		uint64_t bytes = p->extent[i].count * SL_SG_PAGE;

		if (mmap(at, bytes, prot, MAP_SHARED | MAP_FIXED, sl_drv.memfd[p->device],
			    (off_t)(p->extent[i].first * SL_SG_PAGE)) == MAP_FAILED)
			return false;
		at += bytes;
	}
	return true;
}

char *sl_phys_alias(struct sl_phys *p)
{
	if (p->alias)
		return p->alias;
	char *at = mmap(NULL, p->bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (!sl_phys_map_at(p, at, PROT_READ | PROT_WRITE)) {
		munmap(at, p->bytes);
		return NULL;
	}
	return p->alias = at;
}
