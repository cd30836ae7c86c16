/*
 * checkpoint - one process locks, checkpoints, restores and unlocks another
 *
 * The server knows each process's state, and passes a request on to the checkpointing thread of the
 * process, one at a time. Its answer goes to the asking process (the mover), whose socket waits for
 * it. If the mover goes away, the request is carried out all the same; if the target does, the
 * mover is told that there is no such process.
 */
#include "softgpu/server/internal.h"

#include "base/cuda_types.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct sl_server *const s = &sl_server;

/* What each request needs and leads to. */
static const struct {
	int from, to;
} rules[] = {
	[SL_SG_LOCK] = {CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED},
	[SL_SG_CHECKPOINT] = {CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED},
	[SL_SG_RESTORE] = {CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED},
	[SL_SG_UNLOCK] = {CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING},
};

static struct client *find(uint32_t pid)
{
	sl_list_foreach (link, &s->clients) {
		struct client *c = SL_LIST_ENTRY(link, struct client, link);

		if (c->pid == pid && c->control.fd >= 0)
			return c;
	}
	return NULL;
}

int sl_server_control_new(struct client *c, int fd, uint32_t thread)
{
	if (fd < 0 || c->control.fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	c->control.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (c->control.fd < 0 || fcntl(c->control.fd, F_SETFL, O_NONBLOCK) < 0 ||
		sl_server_watch(&c->control, EPOLLIN) < 0) {
		if (c->control.fd >= 0)
			close(c->control.fd);
		c->control.fd = -1;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	c->control_thread = thread;
	return CUDA_SUCCESS;
}

/* The new GPU must be there and of the same type: the process has code for that type only. */
static int check_moves(const struct sl_sg_request *q)
{
	for (uint32_t i = 0; i < s->ledger.config.gpus; i++) {
		uint32_t to = sl_sg_moved_to(q->id, i);

		if (to == i)
			continue;
		if (to >= s->ledger.config.gpus ||
			strcmp(s->hello.device[i].name, s->hello.device[to].name))
			return CUDA_ERROR_INVALID_VALUE;
		if (s->board->generation[to] & 1)
			return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	return CUDA_SUCCESS;
}

int sl_server_order(struct client *c, const struct sl_sg_request *q, bool *later)
{
	struct client *target = find((uint32_t)q->value);
	int r = CUDA_SUCCESS;

	if (!target)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->uid && c->uid != target->uid)
		return CUDA_ERROR_NOT_PERMITTED;
	if (target->order || target->state != rules[q->op].from)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (q->op == SL_SG_RESTORE)
		r = check_moves(q);
	if (r != CUDA_SUCCESS)
		return r;
	if (sl_sg_send(target->control.fd, q, sizeof(*q), NULL, 0, NULL, 0) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	target->order = q->op;
	target->mover = c;
	*later = true;
	return CUDA_SUCCESS;
}

void sl_server_state(const struct sl_sg_request *q, struct sl_sg_reply *reply)
{
	const struct client *target = find((uint32_t)q->value);

	reply->result = target ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	reply->value = target ? (uint64_t)target->state : 0;
	reply->id = target ? target->control_thread : 0;
}

int sl_server_back(struct client *c, uint64_t map)
{
	uint32_t to[SL_SOFTGPU_GPUS_MAX], all = 0;
	int r;

	for (uint32_t i = 0; i < s->ledger.config.gpus; i++) {
		to[i] = sl_sg_moved_to(map, i);
		all |= UINT32_C(1) << to[i];
	}
	if (all != (UINT32_C(1) << s->ledger.config.gpus) - 1)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_ledger_back(&s->ledger, &c->holder, to);
	if (r != CUDA_SUCCESS)
		return r;
	sl_list_foreach (link, &c->companions) {
		struct companion *o = SL_LIST_ENTRY(link, struct companion, link);

		o->device = to[o->device];
	}
	return r;
}

/* Ends the open request, and answers whatever waits for it. */
static void finish(struct client *target, int result)
{
	struct sl_sg_reply reply = {.result = result};
	struct client *mover = sl_steal(&target->mover);

	target->order = 0;
	/* A mover that does not read is dropped when its socket closes. */
	if (mover)
		(void)!sl_sg_send(
			mover->watch.fd, &reply, sizeof(reply), NULL, 0, NULL, 0);
}

static void control_close(struct client *target)
{
	if (target->control.fd < 0)
		return;
	sl_server_unwatch(&target->control);
	if (target->order)
		finish(target, CUDA_ERROR_INVALID_VALUE);
}

void sl_server_control_read(struct watch *w)
{
	struct client *target = SL_LIST_ENTRY(w, struct client, control);
	struct sl_sg_reply reply;
	ssize_t n = sl_sg_receive(w->fd, &reply, sizeof(reply), NULL, NULL);

	if (n == -EAGAIN)
		return;
	if (n != (ssize_t)sizeof(reply) || !target->order) {
		control_close(target);
		return;
	}
	if (reply.result == CUDA_SUCCESS)
		target->state = rules[target->order].to;
	else if (target->order == SL_SG_RESTORE &&
		 reply.result != CUDA_ERROR_INVALID_VALUE)
		target->state = CU_PROCESS_STATE_FAILED;
	finish(target, reply.result);
}

void sl_server_control_drop(struct client *c)
{
	control_close(c);
	sl_list_foreach (link, &s->clients) {
		struct client *target = SL_LIST_ENTRY(link, struct client, link);

		if (target->mover == c)
			target->mover = NULL;
	}
}
