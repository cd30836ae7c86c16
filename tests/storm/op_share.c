/*
 * op_share - memory between processes: IPC handles, and descriptors of the program's own handles
 *
 * Linked workers run one step at a time in the order of their tickets. A step that touched a
 * shared buffer ends with its work done, so that the next process reads settled contents.
 */
#include "ops.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRAIN ((size_t)2 << 20)
/* The last places are for events. */
#define MEMORY_PLACES (STORM_PLACE_SLOTS - 2)

/* One pair of sockets per place, made before the workers are. */
extern int storm_place_sockets[STORM_PLACE_SLOTS][2];

void storm_op_share_offer(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	struct storm_place *p = &l->answers->place[a[1] % MEMORY_PLACES];

	if (!b || p->opened || (b->shared && b->place != (int)(a[1] % MEMORY_PLACES)))
		return;
	if (p->valid && (p->owner != l->worker || p->fd))
		return;
	storm_touch(l, b, ON_HOST);
	if (CALL(l, cuIpcGetMemHandle, &p->mem, b->at) != CUDA_SUCCESS)
		return;
	if (p->valid && l->buffer[p->buffer].live)
		l->buffer[p->buffer].shared = false;
	p->valid = 1;
	p->fd = 0;
	p->owner = l->worker;
	p->buffer = a[0];
	p->bytes = b->bytes;
	b->shared = true;
	b->place = (int)(a[1] % MEMORY_PLACES);
}

/* By the first name or by the second: they mean the same. */
static CUresult open_memory(
	struct storm_lane *l, CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
	return l->step->dice & 4 ? CALL(l, cuIpcOpenMemHandle, at, handle, flags)
				 : CALL(l, cuIpcOpenMemHandle_v2, at, handle, flags);
}

static unsigned long long id_of(CUdeviceptr at)
{
	unsigned long long id = 0;

	/* Asked of all there is, so not counted as the storm's own calls. */
	(void)storm_cu.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	return id;
}

/* Libraries remember memory by its id: nothing else here may have the same. */
static void note_id(struct storm_lane *l, const struct storm_buffer *b)
{
	unsigned long long id = id_of(b->at), same = 0;

	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		const struct storm_buffer *o = &l->buffer[i];

		if (o != b && o->live && !storm_on_host(o))
			same += id_of(o->at) == id;
	}
	storm_note(l, "has an id", id != 0);
	storm_note(l, "others with it", same);
}

void storm_op_share_open(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	struct storm_place *p = &l->answers->place[a[1] % MEMORY_PLACES];
	CUdeviceptr at = 0;

	if (!b || !p->valid || p->fd)
		return;
	/* A buffer of this process: refused. A second opening of another's: the same address. */
	if (open_memory(l, &at, p->mem,
		    a[2] % 16 ? CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS : 64) != CUDA_SUCCESS)
		return;
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++)
		if (l->buffer[i].live && l->buffer[i].at == at) {
			storm_note(l, "opened again", 1);
			CALL(l, cuIpcCloseMemHandle, at);
			return;
		}
	p->opened++;
	*b = (struct storm_buffer){.live = true,
		.gen = b->gen + 1,
		.from = FROM_IPC,
		.at = at,
		.bytes = p->bytes,
		.shared = true,
		.pending = PENDING_NONE,
		.place = (int)(a[1] % MEMORY_PLACES)};
	note_id(l, b);
	storm_verify(l, b, 0, b->bytes < 4096 ? b->bytes : 4096);
}

void storm_op_share_close(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);

	if (b && b->from == FROM_IPC)
		storm_give_back(l, b);
}

void storm_op_share_wrong(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUipcMemHandle handle;
	CUdeviceptr at;

	memset(&handle, (int)(a[1] >> 8 & 0xff), sizeof(handle));
	switch (a[1] % 5) {
	case 0: CALL(l, cuIpcOpenMemHandle_v2, &at, handle, 1); break;
	case 1: CALL(l, cuIpcOpenMemHandle_v2, NULL, handle, 1); break;
	case 2: CALL(l, cuIpcGetMemHandle, NULL, b ? b->at : 0); break;
	case 3: CALL(l, cuIpcGetMemHandle, &handle, 0x1000); break;
	case 4: CALL(l, cuIpcCloseMemHandle, 0x1000); break;
	}
}

static bool send_fd(int s, int fd)
{
	char byte = 1, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(s, &m, MSG_DONTWAIT) == 1;
}

static int receive_fd(int s)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(s, &m, MSG_DONTWAIT) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* A handle's descriptor for the process that takes it from the place. */
void storm_op_share_export(struct storm_lane *l, const uint32_t *a)
{
	uint32_t place = a[1] % MEMORY_PLACES;
	struct storm_handle *h = &l->handle[a[0] % STORM_HANDLE_SLOTS];
	struct storm_place *p = &l->answers->place[place];
	int fd = -1;

	if (!h->live || p->valid)
		return;
	if (CALL(l, cuMemExportToShareableHandle, &fd, h->handle,
		    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
		return;
	if (send_fd(storm_place_sockets[place][0], fd)) {
		*p = (struct storm_place){
			.valid = 1, .fd = 1, .owner = l->worker, .bytes = h->bytes};
	}
	close(fd);
}

/* Takes a handle from the place, maps it and uses it as a buffer. */
void storm_op_share_import(struct storm_lane *l, const uint32_t *a)
{
	uint32_t place = a[1] % MEMORY_PLACES;
	struct storm_place *p = &l->answers->place[place];
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	CUmemAccessDesc rw = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = 0;
	size_t bytes;
	CUresult r;
	int fd;

	if (!b || !p->valid || p->fd != 1)
		return;
	fd = receive_fd(storm_place_sockets[place][1]);
	bytes = p->bytes;
	memset(p, 0, sizeof(*p));
	r = CALL(l, cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	if (r != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemAddressReserve, &at, bytes, 0, 0, 0) == CUDA_SUCCESS) {
		r = CALL(l, cuMemMap, at, bytes, 0, handle, 0);
		if (r == CUDA_SUCCESS)
			r = CALL(l, cuMemSetAccess, at, bytes, &rw, 1);
		if (r == CUDA_SUCCESS) {
			storm_obtained(l, b, FROM_IMPORT, at, bytes);
			b->reserved = bytes;
			b->shared = true; /* others may import it as well */
			l->settle = true;
		} else {
			CALL(l, cuMemAddressFree, at, bytes);
		}
	}
	CALL(l, cuMemRelease, handle);
}

/* An event that can be offered, and is; those that cannot are refused. */
void storm_op_share_event_offer(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = &l->event[a[0] % STORM_EVENT_SLOTS];
	struct storm_place *p = &l->answers->place[MEMORY_PLACES + a[1] % 2];

	if (e->live) {
		if (!(e->flags & CU_EVENT_INTERPROCESS) || e->foreign)
			CALL(l, cuIpcGetEventHandle, &p->event, e->handle);
		return;
	}
	e->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	e->recorded = e->foreign = false;
	if (CALL(l, cuEventCreate, &e->handle, e->flags) != CUDA_SUCCESS)
		return;
	e->live = true;
	p->valid = CALL(l, cuIpcGetEventHandle, &p->event, e->handle) == CUDA_SUCCESS;
	p->owner = l->worker;
	p->buffer = a[0];
}

/* The driver refuses to open an event of this process. Another process's event, once opened, is
 * like any other, recorded here or there. The event may have been destroyed meanwhile. */
void storm_op_share_event_open(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = &l->event[a[0] % STORM_EVENT_SLOTS];
	struct storm_place *p = &l->answers->place[MEMORY_PLACES + a[1] % 2];

	if (e->live || !p->valid)
		return;
	if (CALL(l, cuIpcOpenEventHandle, &e->handle, p->event) != CUDA_SUCCESS)
		return;
	e->live = true;
	e->recorded = false;
	e->foreign = true;
	e->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
}

/* Exports a pool as a descriptor and an allocation in it by cuMemPoolExportPointer, and imports
 * both into this process again. Nothing is left after the step. */
void storm_op_share_pool(struct storm_lane *l, const uint32_t *a)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool = NULL, again = NULL;
	CUdeviceptr at = 0, there = 0;
	int fd = -1;

	if (l->captures || l->context ||
		CALL(l, cuMemPoolCreate, &pool, &props) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemAllocFromPoolAsync, &at, 1 + a[0] % 100000, pool,
		    CU_STREAM_LEGACY) == CUDA_SUCCESS) {
		CALL(l, cuStreamSynchronize, CU_STREAM_LEGACY);
		CALL(l, cuMemPoolExportPointer, &data, at);
	}
	if (CALL(l, cuMemPoolExportToShareableHandle, &fd, pool,
		    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		    a[0] & 0x1000000 ? 5 : 0) == CUDA_SUCCESS) {
		/* Into the process it came from. */
		if (CALL(l, cuMemPoolImportFromShareableHandle, &again,
			    (void *)(intptr_t)fd,
			    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			    0) == CUDA_SUCCESS) {
			if (at && CALL(l, cuMemPoolImportPointer, &there, again, &data) ==
					  CUDA_SUCCESS)
				CALL(l, cuMemFreeAsync, there, CU_STREAM_LEGACY);
			CALL(l, cuStreamSynchronize, CU_STREAM_LEGACY);
			CALL(l, cuMemPoolDestroy, again);
		}
		close(fd);
	}
	if (at)
		CALL(l, cuMemFreeAsync, at, CU_STREAM_LEGACY);
	CALL(l, cuStreamSynchronize, CU_STREAM_LEGACY);
	CALL(l, cuMemPoolDestroy, pool);
}
