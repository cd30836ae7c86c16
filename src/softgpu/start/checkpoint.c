/*
 * checkpoint - cuCheckpointProcess*: asks another process, or this one, through the server
 *
 * Each call has a connection of its own, since its answer may take long.
 */
#include "softgpu/driver/driver.h"

#include <string.h>
#include <unistd.h>

/* No GPU of the box. */
#define NONE UINT32_MAX

static CUresult exchange(int fd, const struct sl_sg_request *q, struct sl_sg_reply *reply)
{
	ssize_t n;

	if (sl_sg_send(fd, q, sizeof(*q), NULL, 0, NULL, 0) < 0)
		return CUDA_ERROR_UNKNOWN;
	n = sl_sg_receive(fd, reply, sizeof(*reply), NULL, NULL);
	return n == (ssize_t)sizeof(*reply) ? (CUresult)reply->result
					    : CUDA_ERROR_UNKNOWN;
}

static uint32_t number_of(const struct sl_sg_hello *box, const CUuuid *uuid)
{
	for (uint32_t i = 0; i < box->gpus; i++)
		if (!memcmp(box->device[i].uuid, uuid->bytes, sizeof(uuid->bytes)))
			return i;
	return NONE;
}

/* The new place of each GPU of the box: the list must name them all, once each, also those that
 * CUDA_VISIBLE_DEVICES hides from the process. False: the list is invalid. */
static bool fill_map(const struct sl_sg_hello *box, const CUcheckpointRestoreArgs *args,
	struct sl_sg_request *q)
{
	uint32_t named = 0, taken = 0, all = (UINT32_C(1) << box->gpus) - 1;

	for (uint32_t i = 0; !args && i < box->gpus; i++)
		q->id |= (uint64_t)i << (4 * i);
	for (unsigned i = 0; args && i < args->gpuPairsCount; i++) {
		uint32_t old = number_of(box, &args->gpuPairs[i].oldUuid);
		uint32_t new = number_of(box, &args->gpuPairs[i].newUuid);

		if (old == NONE || new == NONE || named >> old & 1 || taken >> new & 1)
			return false;
		q->id |= (uint64_t) new << (4 * old);
		named |= UINT32_C(1) << old;
		taken |= UINT32_C(1) << new;
	}
	return !args || named == all;
}

/* args: of a restore, or NULL. */
static CUresult ask(struct sl_sg_request q, int pid, const CUcheckpointRestoreArgs *args,
	struct sl_sg_reply *reply)
{
	int memfd[SL_SG_FDS_MAX], fd;
	struct sl_sg_hello box;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	fd = sl_link_open(&box, memfd);
	if (fd < 0)
		return CUDA_ERROR_UNKNOWN;
	for (uint64_t i = 0; i < box.gpus; i++)
		close(memfd[i]);
	q.value = (uint32_t)pid;
	if (pid > 0 && (q.op != SL_SG_RESTORE || fill_map(&box, args, &q)))
		r = exchange(fd, &q, reply);
	close(fd);
	return r;
}

static bool is_zero(const void *bytes, size_t count)
{
	const char *at = bytes;

	for (size_t i = 0; i < count; i++)
		if (at[i])
			return false;
	return true;
}

/* out: where the answer goes. */
static CUresult ask_state(int pid, const void *out, struct sl_sg_reply *reply)
{
	return out ? ask((struct sl_sg_request){.op = SL_SG_STATE}, pid, NULL, reply)
		   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
	struct sl_sg_reply reply;
	CUresult r;

	SL_ENTER(cuCheckpointProcessGetState);
	r = ask_state(pid, state, &reply);
	if (r == CUDA_SUCCESS)
		*state = (CUprocessState)reply.value;
	return r;
}

CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
	struct sl_sg_reply reply;
	CUresult r;

	SL_ENTER(cuCheckpointProcessGetRestoreThreadId);
	r = ask_state(pid, tid, &reply);
	if (r == CUDA_SUCCESS)
		*tid = (int)reply.id;
	return r;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
	struct sl_sg_request q = {.op = SL_SG_LOCK};
	struct sl_sg_reply reply;

	SL_ENTER(cuCheckpointProcessLock);
	if (args &&
		(args->reserved0 || !is_zero(args->reserved1, sizeof(args->reserved1))))
		return CUDA_ERROR_INVALID_VALUE;
	q.id = args ? args->timeoutMs : 0;
	return ask(q, pid, NULL, &reply);
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
	struct sl_sg_reply reply;

	SL_ENTER(cuCheckpointProcessCheckpoint);
	if (args && !is_zero(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return ask((struct sl_sg_request){.op = SL_SG_CHECKPOINT}, pid, NULL, &reply);
}

/* Before driver 580, the list of GPUs was reserved. */
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
	bool lists = args && args->gpuPairsCount;
	struct sl_sg_reply reply;

	SL_ENTER(cuCheckpointProcessRestore);
	if (args && !is_zero(args->reserved, sizeof(args->reserved)))
		return CUDA_ERROR_INVALID_VALUE;
	if (lists && (!args->gpuPairs || sl_softgpu_cuda_version() < 13000))
		return CUDA_ERROR_INVALID_VALUE;
	return ask((struct sl_sg_request){.op = SL_SG_RESTORE}, pid, lists ? args : NULL,
		&reply);
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
	struct sl_sg_reply reply;

	SL_ENTER(cuCheckpointProcessUnlock);
	if (args && !is_zero(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return ask((struct sl_sg_request){.op = SL_SG_UNLOCK}, pid, NULL, &reply);
}
