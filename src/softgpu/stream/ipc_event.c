/*
 * ipc_event - interprocess events
 *
 * Each event has counters in memory that all processes of the box map (server/event.c). A record
 * takes the next number; its stream writes that number as reached when it gets there. A wait reads
 * the latest number, whichever process recorded it, and polls until it is reached. If a process
 * dies, the server marks its records as reached.
 */
#include "softgpu/driver/api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IPC_EVENT_MAGIC 0x736c657674303031u
#define POLL_NS         50000

struct ipc_event_handle {
	uint64_t magic, id;
	int64_t pid;
};
_Static_assert(sizeof(struct ipc_event_handle) <= sizeof(CUipcEventHandle),
	"too large for a handle");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_sg_words *words; /* of all events of the box; NULL: not mapped yet */

static CUresult ask(enum sl_sg_op op, uint64_t id, struct sl_sg_reply *reply, int *fd)
{
	struct sl_sg_request q = {.op = op, .id = id};

	return sl_link_call(&q, -1, reply, NULL, 0, fd);
}

static bool map_words(void)
{
	struct sl_sg_reply reply;
	void *at = MAP_FAILED;
	int fd = -1;

	pthread_mutex_lock(&lock);
	if (!words && ask(SL_SG_EVENT_WORDS, 0, &reply, &fd) == CUDA_SUCCESS) {
		at = mmap(NULL, SL_SG_WORDS_MAX * sizeof(*words), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
		close(fd);
		if (at != MAP_FAILED)
			words = at;
	}
	pthread_mutex_unlock(&lock);
	return words;
}

/* op: a new event, or the one with an id. */
static CUresult attach(CUevent e, enum sl_sg_op op, uint64_t id)
{
	struct sl_sg_reply reply;
	CUresult r;

	if (!map_words())
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = ask(op, id, &reply, NULL);
	if (r != CUDA_SUCCESS)
		return r;
	e->shared.id = reply.id;
	e->shared.holder = reply.value;
	e->shared.words = &words[reply.id & 0xffff];
	return CUDA_SUCCESS;
}

CUresult sl_shared_new(CUevent e)
{
	return attach(e, SL_SG_EVENT_NEW, 0);
}

void sl_shared_close(CUevent e)
{
	struct sl_sg_reply reply;

	if (!e->shared.words)
		return;
	e->shared.words = NULL;
	(void)!ask(SL_SG_EVENT_CLOSE, e->shared.holder, &reply, NULL);
}

struct sl_shared_point sl_shared_record(CUevent e)
{
	struct sl_sg_words *w = e->shared.words;
	struct sl_shared_point p = {w, e->shared.id >> 16, 0};

	if (!w)
		return p;
	__atomic_store_n(&w->recorder, e->shared.holder, __ATOMIC_RELEASE);
	p.number = __atomic_add_fetch(&w->recorded, 1, __ATOMIC_ACQ_REL);
	return p;
}

void sl_shared_reached(const struct sl_shared_point *p)
{
	uint64_t old;

	if (!p->words ||
		__atomic_load_n(&p->words->generation, __ATOMIC_ACQUIRE) != p->generation)
		return;
	old = __atomic_load_n(&p->words->reached, __ATOMIC_ACQUIRE);
	while (old < p->number &&
		!__atomic_compare_exchange_n(&p->words->reached, &old, p->number, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

bool sl_shared_is_reached(const struct sl_shared_point *p)
{
	/* The slot serves another event now, so this one was freed with all its records. */
	return __atomic_load_n(&p->words->generation, __ATOMIC_ACQUIRE) !=
		       p->generation ||
	       __atomic_load_n(&p->words->reached, __ATOMIC_ACQUIRE) >= p->number;
}

bool sl_shared_pending(CUevent e, struct sl_shared_point *out)
{
	struct sl_sg_words *w = e->shared.words;

	*out = (struct sl_shared_point){w, e->shared.id >> 16, 0};
	if (!w)
		return false;
	out->number = __atomic_load_n(&w->recorded, __ATOMIC_ACQUIRE);
	return !sl_shared_is_reached(out);
}

void sl_shared_wait(const struct sl_shared_point *p, CUcontext ctx)
{
	struct timespec t = {0, POLL_NS};

	while (!sl_shared_is_reached(p) && sl_ctx_error(ctx) == CUDA_SUCCESS)
		nanosleep(&t, NULL);
}

/* In a stream's order -------------------------------------------------------------------------- */

struct waiting {
	struct sl_call call;
	struct sl_shared_point point;
};

static void run(CUstream stream, struct sl_call *call)
{
	sl_shared_wait(&((struct waiting *)call)->point, stream->ctx);
}

static void drop(struct sl_call *call)
{
	free(call);
}

CUresult sl_shared_submit(CUstream s, const struct sl_shared_point *p)
{
	struct waiting *w = malloc(sizeof(*w));
	struct sl_op *op = sl_op_new(SL_OP_CALL);

	if (!w || !op) {
		free(w);
		sl_op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*w = (struct waiting){{1, run, drop}, *p};
	op->call = &w->call;
	return sl_stream_submit(s, op, NULL);
}

/* Entry points --------------------------------------------------------------------------------- */

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	SL_ENTER(cuIpcGetEventHandle);
	CHECK_OUT(handle);
	if (!sl_object_is(event, SL_MAGIC_EVENT) || !event->shared.words ||
		event->is_imported)
		return CUDA_ERROR_INVALID_HANDLE;
	struct ipc_event_handle h = {IPC_EVENT_MAGIC, event->shared.id, getpid()};
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &h, sizeof(h));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct ipc_event_handle h;
	CUevent e;
	CUresult r;

	SL_ENTER(cuIpcOpenEventHandle);
	CHECK_OUT(event);
	memcpy(&h, &handle, sizeof(h));
	if (h.magic != IPC_EVENT_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	e = sl_event_new(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = attach(e, SL_SG_EVENT_OPEN, h.id);
	if (r != CUDA_SUCCESS) {
		sl_object_kill(e);
		sl_object_unref(e);
		return r;
	}
	e->is_imported = true;
	*event = e;
	return CUDA_SUCCESS;
}
