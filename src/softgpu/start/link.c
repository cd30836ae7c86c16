/*
 * link - this process's socket to the server
 *
 * One request at a time under the driver's lock; the server answers at once or not at all. Without
 * the server the GPU is lost: every call that needs it fails, and none hangs.
 */
#include "softgpu/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BUSY_REPORT_NS 50000000u

static int server = -1;
static struct sockaddr_un place = {.sun_family = AF_UNIX}; /* the server's */
static int server_number[SL_SOFTGPU_GPUS_MAX];             /* by CUdevice */
static int device_count;
static _Atomic uint64_t busy_ns[SL_SOFTGPU_GPUS_MAX];

void sl_link_order(const int *list, int count)
{
	memcpy(server_number, list, (size_t)count * sizeof(*list));
	device_count = count;
	for (int i = 0; i < count && sl_drv.board; i++)
		sl_drv.generation[i] = __atomic_load_n(
			&sl_drv.board->generation[list[i]], __ATOMIC_ACQUIRE);
}

/* Replaces the server's number in a reply by this process's; an invisible device is an error. */
static CUresult renumber(struct sl_sg_reply *reply)
{
	for (int i = 0; i < device_count; i++)
		if (server_number[i] == (int)reply->device) {
			reply->device = (uint32_t)i;
			return (CUresult)reply->result;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

static int hello(int fd, struct sl_sg_hello *out, int *memfds)
{
	struct sl_sg_request q = {.op = SL_SG_HELLO, .value = SL_SG_VERSION};
	unsigned fds = SL_SG_FDS_MAX;
	int r = sl_sg_send(fd, &q, sizeof(q), NULL, 0, NULL, 0);

	if (r < 0)
		return r;
	if (sl_sg_receive(fd, out, sizeof(*out), memfds, &fds) != (ssize_t)sizeof(*out))
		return -EPROTO;
	return fds == out->gpus ? 0 : -EPROTO;
}

int sl_link_open(struct sl_sg_hello *out, int *memfds)
{
	int fd, high, r;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Above the low numbers, which some programs rely on. */
	high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	do
		r = connect(fd, (struct sockaddr *)&place, sizeof(place)) < 0 ? -errno
									      : 0;
	while (r == -EINTR);
	if (r == 0)
		r = hello(fd, out, memfds);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int sl_link_connect(const char *path, struct sl_sg_hello *out, int *memfds)
{
	int fd;

	if (strlen(path) >= sizeof(place.sun_path))
		return -ENAMETOOLONG;
	strcpy(place.sun_path, path);
	fd = sl_link_open(out, memfds);
	if (fd >= 0)
		server = fd;
	return fd < 0 ? fd : 0;
}

/* The bus stays as it was, which is what real drivers do. */
int sl_link_move(uint64_t map)
{
	int memfd[SL_SG_FDS_MAX], list[SL_SOFTGPU_GPUS_MAX];
	struct sl_sg_hello now;
	int fd = sl_link_open(&now, memfd);

	if (fd < 0)
		return fd;
	close(fd);
	for (int i = 0; i < device_count; i++) {
		list[i] = (int)sl_sg_moved_to(map, (uint32_t)server_number[i]);
		memcpy(sl_drv.hello.device[i].uuid, now.device[list[i]].uuid,
			sizeof(now.device[0].uuid));
		close(sl_drv.memfd[i]);
		sl_drv.memfd[i] = sl_steal_fd(&memfd[list[i]]);
	}
	for (uint64_t i = 0; i < now.gpus; i++)
		if (memfd[i] >= 0)
			close(memfd[i]);
	sl_link_order(list, device_count);
	return 0;
}

bool sl_link_is_lost(CUdevice device)
{
	uint32_t now;

	if (!sl_drv.board)
		return false;
	now = __atomic_load_n(
		&sl_drv.board->generation[server_number[device]], __ATOMIC_ACQUIRE);
	return (now & 1) || now != sl_drv.generation[device];
}

uint64_t *sl_link_way(CUdevice device, bool to_gpu)
{
	return sl_drv.board ? &sl_drv.board->link_free_ns[server_number[device]][to_gpu]
			    : NULL;
}

/* The others only keep accounts, which must be right even if the GPU is lost. */
static bool touches_gpu(uint32_t op)
{
	return op == SL_SG_CREATE || op == SL_SG_HIDE || op == SL_SG_INFO ||
	       op == SL_SG_COMPANION || op == SL_SG_OPEN;
}

CUresult sl_link_call(const struct sl_sg_request *q, int fd, struct sl_sg_reply *reply,
	struct sl_sg_extent *extents, unsigned room, int *got_fd)
{
	static union {
		struct sl_sg_reply reply;
		char bytes[sizeof(struct sl_sg_reply) +
			   SL_SG_EXTENTS_MAX * sizeof(struct sl_sg_extent)];
	} in; /* under the lock */
	struct sl_sg_request out = *q;
	unsigned fds = got_fd ? 1 : 0;
	CUresult r = CUDA_ERROR_UNKNOWN;

	if (sl_link_is_lost((CUdevice)q->device) && touches_gpu(q->op))
		return SL_DRV_LOST;
	pthread_mutex_lock(&sl_drv.lock);
	out.device = (uint32_t)server_number[q->device];
	if (server >= 0 &&
		sl_sg_send(server, &out, sizeof(out), NULL, 0, &fd, fd >= 0) == 0) {
		ssize_t n = sl_sg_receive(server, &in, sizeof(in), got_fd, &fds);

		if (n >= (ssize_t)sizeof(in.reply)) {
			*reply = in.reply;
			r = renumber(reply);
			if (in.reply.extent_count > room)
				r = CUDA_ERROR_UNKNOWN;
			else if (in.reply.extent_count)
				memcpy(extents, in.bytes + sizeof(in.reply),
					in.reply.extent_count * sizeof(*extents));
		}
	}
	pthread_mutex_unlock(&sl_drv.lock);
	if (got_fd && r == CUDA_SUCCESS && fds != 1)
		r = CUDA_ERROR_UNKNOWN;
	return r;
}

static CUresult plain(enum sl_sg_op op, CUdevice device, uint64_t value)
{
	struct sl_sg_request q = {.op = op, .device = (uint32_t)device, .value = value};
	struct sl_sg_reply reply;

	return sl_link_call(&q, -1, &reply, NULL, 0, NULL);
}

CUresult sl_link_hide(CUdevice device, uint64_t bytes)
{
	return bytes ? plain(SL_SG_HIDE, device, bytes) : CUDA_SUCCESS;
}

void sl_link_unhide(CUdevice device, uint64_t bytes)
{
	if (bytes)
		(void)plain(SL_SG_UNHIDE, device, bytes);
}

void sl_link_context(CUdevice device, int change)
{
	(void)plain(SL_SG_CONTEXT, device, (uint64_t)(int64_t)change);
}

void sl_link_busy(CUdevice device, uint64_t ns)
{
	struct sl_sg_request q = {
		.op = SL_SG_BUSY, .device = (uint32_t)server_number[device]};
	uint64_t sum = atomic_fetch_add(&busy_ns[device], ns) + ns;

	if (sum < BUSY_REPORT_NS)
		return;
	q.value = atomic_exchange(&busy_ns[device], 0);
	pthread_mutex_lock(&sl_drv.lock);
	if (q.value && server >= 0)
		(void)!sl_sg_send(server, &q, sizeof(q), NULL, 0, NULL, 0);
	pthread_mutex_unlock(&sl_drv.lock);
}
