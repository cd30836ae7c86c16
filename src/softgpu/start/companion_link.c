/*
 * companion_link - this process's companions, one per device
 *
 * A companion is started when the first module is loaded on its device. It is then told of all
 * memory that the device may reach; programs without kernels never have one. The server starts it,
 * so the program gets no child that it did not start. If a companion was killed, calls fail.
 */
#include "softgpu/driver/driver.h"
#include "softgpu/memory/space.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

bool sl_companion_runs(CUdevice device)
{
	struct sl_companion *c = &sl_drv.companion[device];
	bool runs;

	pthread_mutex_lock(&c->lock);
	runs = c->socket >= 0;
	pthread_mutex_unlock(&c->lock);
	return runs;
}

/* One request and its answer, under the companion's lock. */
static CUresult exchange(int socket, const struct sl_cp_request *q,
	const struct sl_sg_extent *extents, const int *fds, unsigned fd_count,
	struct sl_cp_symbol *reply)
{
	size_t tail = q->extent_count * sizeof(*extents);

	if (sl_sg_send(socket, q, sizeof(*q), extents, tail, fds, fd_count) < 0)
		return CUDA_ERROR_LAUNCH_FAILED;
	if (sl_sg_receive(socket, reply, sizeof(*reply), NULL, NULL) !=
		(ssize_t)sizeof(*reply))
		return CUDA_ERROR_LAUNCH_FAILED;
	return (CUresult)reply->reply.result;
}

CUresult sl_companion_call(CUdevice device, const struct sl_cp_request *q,
	const struct sl_sg_extent *extents, int fd, struct sl_cp_symbol *reply)
{
	struct sl_companion *c = &sl_drv.companion[device];
	struct sl_cp_symbol ignored;
	CUresult r = CUDA_ERROR_INVALID_CONTEXT;

	pthread_mutex_lock(&c->lock);
	if (c->socket >= 0)
		r = exchange(
			c->socket, q, extents, &fd, fd >= 0, reply ? reply : &ignored);
	pthread_mutex_unlock(&c->lock);
	return r;
}

static CUresult tell_memory(int socket)
{
	struct sl_cp_request q = {.op = SL_CP_INIT};
	struct sl_cp_symbol ignored;

	return exchange(
		socket, &q, NULL, sl_drv.memfd, (unsigned)sl_drv.hello.gpus, &ignored);
}

CUresult sl_companion_init(CUdevice device)
{
	struct sl_companion *c = &sl_drv.companion[device];
	CUresult r;

	pthread_mutex_lock(&c->lock);
	r = tell_memory(c->socket);
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* Has a companion started, with the GPUs' memory. Under its lock. */
static CUresult start_locked(struct sl_companion *c, CUdevice device)
{
	struct sl_sg_request q = {.op = SL_SG_COMPANION, .device = (uint32_t)device};
	struct sl_sg_reply reply;
	int ends[2];
	CUresult r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	r = sl_link_call(&q, ends[1], &reply, NULL, 0, NULL);
	close(ends[1]);
	if (r == CUDA_SUCCESS)
		r = tell_memory(ends[0]);
	if (r == CUDA_SUCCESS)
		c->socket = ends[0];
	else
		close(ends[0]);
	return r;
}

CUresult sl_companion_start(CUdevice device)
{
	struct sl_companion *c = &sl_drv.companion[device];
	static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
	CUresult r = CUDA_SUCCESS;
	bool fresh = false;

	pthread_mutex_lock(&starting);
	pthread_mutex_lock(&c->lock);
	if (c->socket < 0) {
		r = start_locked(c, device);
		fresh = r == CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&c->lock);
	if (fresh)
		r = sl_space_fill_companion(device);
	pthread_mutex_unlock(&starting);
	return r;
}

int sl_companion_connect(CUdevice device)
{
	struct sl_cp_request q = {.op = SL_CP_CONNECT};
	int ends[2];
	CUresult r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = sl_companion_call(device, &q, NULL, ends[1], NULL);
	close(ends[1]);
	if (r == CUDA_SUCCESS)
		return ends[0];
	close(ends[0]);
	return -EIO;
}
