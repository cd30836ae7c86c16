/*
 * external - semaphores of other interfaces
 *
 * A binary semaphore (OPAQUE_FD) is an eventfd. A timeline is a file of at least eight bytes,
 * usually a memfd, whose first word is its value. A successful import takes the descriptor. Waits
 * poll, so a lost context or a semaphore that is never signalled blocks only its own stream.
 */
#include "softgpu/memory/external.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_MS 1

struct CUextSemaphore_st {
	struct sl_object o;
	int fd;             /* a binary one's */
	uint64_t *timeline; /* or the word, mapped */
};

struct semaphores {
	struct sl_call call;
	bool is_wait;
	unsigned count;
	CUexternalSemaphore *semaphore; /* references */
	void *params;
};

_Static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) ==
		       sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS),
	"layouts differ");
#define PARAM_BYTES sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)

static uint64_t value_of(const struct semaphores *s, unsigned i)
{
	const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *list = s->params;

	return list[i].params.fence.value;
}

static void signal_one(CUexternalSemaphore x, uint64_t value)
{
	uint64_t one = 1;

	if (x->timeline)
		__atomic_store_n(x->timeline, value, __ATOMIC_RELEASE);
	else
		while (write(x->fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

/* Takes one signal of a binary semaphore, and puts the others back. */
static bool take_signal(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n = 0;

	if (poll(&p, 1, POLL_MS) != 1 || read(fd, &n, sizeof(n)) != sizeof(n))
		return false;
	n--;
	if (n)
		(void)!write(fd, &n, sizeof(n));
	return true;
}

static void wait_one(CUstream s, CUexternalSemaphore x, uint64_t value)
{
	while (sl_ctx_error(s->ctx) == CUDA_SUCCESS) {
		if (x->timeline ? __atomic_load_n(x->timeline, __ATOMIC_ACQUIRE) >= value
				: take_signal(x->fd))
			return;
		if (x->timeline)
			usleep(POLL_MS * 1000);
	}
}

static void run(CUstream stream, struct sl_call *call)
{
	struct semaphores *s = (struct semaphores *)call;

	for (unsigned i = 0; i < s->count; i++) {
		if (s->is_wait)
			wait_one(stream, s->semaphore[i], value_of(s, i));
		else
			signal_one(s->semaphore[i], value_of(s, i));
	}
}

/* The last reference closes it: queued work may still need it. */
static void let_go(CUexternalSemaphore x)
{
	if (atomic_load(&x->o.refs) == 1) {
		if (x->timeline)
			munmap(x->timeline, sizeof(uint64_t));
		if (x->fd >= 0)
			close(x->fd);
		x->timeline = NULL;
		x->fd = -1;
	}
	sl_object_unref(x);
}

static void drop(struct sl_call *call)
{
	struct semaphores *s = (struct semaphores *)call;

	for (unsigned i = 0; i < s->count; i++)
		let_go(s->semaphore[i]);
	free(s->semaphore);
	free(s->params);
	free(s);
}

CUresult sl_semaphores_op(const CUexternalSemaphore *semaphores, const void *params,
	unsigned count, bool is_wait, struct sl_op **out)
{
	struct semaphores *s;
	struct sl_op *op;

	if (!semaphores || !params || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if (!sl_object_is(semaphores[i], SL_MAGIC_SEMA))
			return CUDA_ERROR_INVALID_HANDLE;
	s = calloc(1, sizeof(*s));
	op = sl_op_new(SL_OP_CALL);
	if (s) {
		s->semaphore = malloc(count * sizeof(*s->semaphore));
		s->params = malloc(count * PARAM_BYTES);
	}
	if (!op || !s || !s->semaphore || !s->params) {
		if (s) {
			free(s->semaphore);
			free(s->params);
		}
		free(s);
		sl_op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->call = (struct sl_call){1, run, drop};
	s->is_wait = is_wait;
	s->count = count;
	memcpy(s->semaphore, semaphores, count * sizeof(*s->semaphore));
	memcpy(s->params, params, count * PARAM_BYTES);
	for (unsigned i = 0; i < count; i++)
		sl_object_ref(semaphores[i]);
	op->call = &s->call;
	*out = op;
	return CUDA_SUCCESS;
}

CUgraphNodeType sl_semaphores_type(const struct sl_call *call)
{
	if (call->run != run)
		return CU_GRAPH_NODE_TYPE_EMPTY;
	return ((const struct semaphores *)call)->is_wait
		       ? CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT
		       : CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
}

void sl_semaphores_params(struct sl_call *call, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *out)
{
	struct semaphores *s = (struct semaphores *)call;

	*out = (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS){s->semaphore, s->params, s->count};
}

/* Entry points --------------------------------------------------------------------------------- */

static bool is_eventfd(int fd)
{
	char path[32], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strcmp(target, "anon_inode:[eventfd]");
}

static uint64_t *map_word(int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_size < (off_t)sizeof(uint64_t))
		return NULL;
	at = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

CUresult cuImportExternalSemaphore(
	CUexternalSemaphore *semaphore, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
	CUexternalSemaphore x;
	uint64_t *word = NULL;

	SL_ENTER(cuImportExternalSemaphore);
	if (!semaphore || !desc || desc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)
		word = map_word(desc->handle.fd);
	else if (desc->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!word && !(desc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD &&
			     is_eventfd(desc->handle.fd)))
		return CUDA_ERROR_INVALID_VALUE;
	x = sl_object_new(SL_MAGIC_SEMA, sizeof(*x));
	if (!x) {
		if (word)
			munmap(word, sizeof(*word));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	x->fd = desc->handle.fd;
	x->timeline = word;
	*semaphore = x;
	return CUDA_SUCCESS;
}

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore)
{
	SL_ENTER(cuDestroyExternalSemaphore);
	if (!sl_object_is(semaphore, SL_MAGIC_SEMA) || !sl_object_kill(semaphore))
		return CUDA_ERROR_INVALID_HANDLE;
	let_go(semaphore);
	return CUDA_SUCCESS;
}

static CUresult submit(const CUexternalSemaphore *semaphores, const void *params,
	unsigned count, bool is_wait, CUstream stream)
{
	struct sl_op *op;
	CUresult r = sl_semaphores_op(semaphores, params, count, is_wait, &op);

	return r == CUDA_SUCCESS ? sl_api_submit(stream, op) : r;
}

#define do_cuSignalExternalSemaphoresAsync submit
#define do_cuWaitExternalSemaphoresAsync   submit
SL_TWIN(cuSignalExternalSemaphoresAsync,
	(const CUexternalSemaphore *semaphores,
		const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count,
		CUstream stream),
	(semaphores, params, count, false, SL_PLAIN(stream)),
	(semaphores, params, count, false, SL_PER_THREAD(stream)))
SL_TWIN(cuWaitExternalSemaphoresAsync,
	(const CUexternalSemaphore *semaphores,
		const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count,
		CUstream stream),
	(semaphores, params, count, true, SL_PLAIN(stream)),
	(semaphores, params, count, true, SL_PER_THREAD(stream)))
