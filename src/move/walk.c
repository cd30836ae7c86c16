/*
 * walk - from the state a process is in to the one it is ordered to
 *
 * Each step looks at the process's state first and takes the call that leads on from it. So an
 * order may begin anywhere: a helper may have been killed between any two steps. Even a call that a
 * killed helper made may still be under way. The driver then refuses others as out of state, and
 * the state is looked at again.
 *
 * An AWAY that fails walks back, so that the process is not left locked. A process is believed to
 * run only once no call of an earlier helper is under way.
 *
 * A list of pairs must name every GPU that the driver knew in the process, also those that the
 * process never used and those that CUDA_VISIBLE_DEVICES hid. So the order's pairs are completed
 * with all GPUs of this machine. A process in a container knows only those whose device nodes it
 * has: its order names them all.
 */
#include "move/move.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cuda_abi.h"
#include "base/file.h"

/* How long, lock_ms apart, a call of an earlier helper may be under way. The daemon kills a helper
 * after 60 s. */
#define BUSY_MAX (30 * SL_S)
#define BUSY_ASK (10 * SL_MS)
/* A process that dies loses its CUDA first, and is gone a little later. */
#define DYING_MS 1000
/* Drivers from 580 on restore to other GPUs; to older ones the list was reserved. */
#define CUDA_WITH_PAIRS 13000

static struct {
#define POINTER(NAME, function) __typeof__(&function) NAME;
	SL_MOVE_CALLS(POINTER)
#undef POINTER
	CUresult error;       /* of cuInit, or that something is missing */
	enum sl_move_call at; /* what is missing or failed */
} cuda;

static void start_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	cuda.error = CUDA_ERROR_NOT_FOUND;
#define LOOK_UP(NAME, function)                                                        \
	cuda.NAME = library ? (__typeof__(&function))dlsym(library, #function) : NULL; \
	if (!cuda.NAME && !cuda.at)                                                    \
		cuda.at = SL_MOVE_CALL_##NAME;
	SL_MOVE_CALLS(LOOK_UP)
#undef LOOK_UP
	if (cuda.at)
		return;
	cuda.error = cuda.INIT(0);
	cuda.at = cuda.error ? SL_MOVE_CALL_INIT : SL_MOVE_NO_CALL;
}

/* --- pairs --------------------------------------------------------------------------------- */

static bool is_same(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(CUuuid)) == 0;
}

static bool is_elsewhere(const struct sl_move_order *order)
{
	bool elsewhere = false;

	for (uint32_t i = 0; order->op == SL_MOVE_BACK && i < order->pairs; i++)
		elsewhere |= !is_same(order->pair[i].from, order->pair[i].to);
	return elsewhere;
}

static const uint8_t *to_of(const struct sl_move_order *order, const uint8_t *from)
{
	for (uint32_t i = 0; i < order->pairs; i++)
		if (is_same(order->pair[i].from, from))
			return order->pair[i].to;
	return NULL;
}

static const uint8_t *from_of(const struct sl_move_order *order, const uint8_t *to)
{
	for (uint32_t i = 0; i < order->pairs; i++)
		if (is_same(order->pair[i].to, to))
			return order->pair[i].from;
	return NULL;
}

/* A GPU that the order does not name stays, or takes the place from which the pairs that end in it
 * began: that one is left, and of the same type. */
static const uint8_t *place_of(const struct sl_move_order *order, const uint8_t *gpu)
{
	const uint8_t *to = to_of(order, gpu), *from;

	for (uint32_t i = 0; !to && i < order->pairs && (from = from_of(order, gpu)); i++)
		gpu = from;
	return to ? to : gpu;
}

static CUresult restore_elsewhere(const struct sl_move_order *order)
{
	CUcheckpointGpuPair pair[SL_MOVE_GPUS_MAX];
	CUcheckpointRestoreArgs args = {.gpuPairs = pair};
	int version = 0, count = 0;
	uint32_t named = 0;
	CUresult r = cuda.VERSION(&version);

	if (r == CUDA_SUCCESS)
		r = version < CUDA_WITH_PAIRS ? CUDA_ERROR_NOT_SUPPORTED
					      : cuda.COUNT(&count);
	if (r == CUDA_SUCCESS && count > SL_MOVE_GPUS_MAX)
		r = CUDA_ERROR_NOT_SUPPORTED;
	for (int i = 0; r == CUDA_SUCCESS && i < count; i++) {
		CUcheckpointGpuPair *next = &pair[args.gpuPairsCount];
		const uint8_t *from = (const uint8_t *)next->oldUuid.bytes;

		r = cuda.UUID(&next->oldUuid, i);
		memcpy(&next->newUuid, place_of(order, from), sizeof(CUuuid));
		named += to_of(order, from) != NULL;
		args.gpuPairsCount += !order->whole || to_of(order, from);
	}
	if (r != CUDA_SUCCESS)
		return r;
	return named == order->pairs ? cuda.RESTORE(order->pid, &args)
				     : CUDA_ERROR_INVALID_VALUE;
}

/* --- steps --------------------------------------------------------------------------------- */

static CUresult call(enum sl_move_call step, const struct sl_move_order *order)
{
	CUcheckpointLockArgs lock = {.timeoutMs = order->lock_ms};

	switch (step) {
	case SL_MOVE_CALL_LOCK: return cuda.LOCK(order->pid, &lock);
	case SL_MOVE_CALL_CHECKPOINT: return cuda.CHECKPOINT(order->pid, NULL);
	case SL_MOVE_CALL_RESTORE:
		return is_elsewhere(order) ? restore_elsewhere(order)
					   : cuda.RESTORE(order->pid, NULL);
	default: return cuda.UNLOCK(order->pid, NULL);
	}
}

/* The call that leads on; NO_CALL: it is there. */
static const enum sl_move_call steps[SL_MOVE_OPS][CU_PROCESS_STATE_FAILED] = {
	[SL_MOVE_AWAY] = {[CU_PROCESS_STATE_RUNNING] = SL_MOVE_CALL_LOCK,
		[CU_PROCESS_STATE_LOCKED] = SL_MOVE_CALL_CHECKPOINT},
	[SL_MOVE_BACK] = {[CU_PROCESS_STATE_LOCKED] = SL_MOVE_CALL_UNLOCK,
		[CU_PROCESS_STATE_CHECKPOINTED] = SL_MOVE_CALL_RESTORE},
};

static void blame(struct sl_move_answer *answer, enum sl_move_call at, CUresult result)
{
	if (answer->cuda_result)
		return;
	answer->cuda_result = result;
	answer->at = at;
}

/* pidfd is the process's. Did it end, or is it about to? */
static bool is_gone(int pidfd)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};

	return poll(&death, 1, DYING_MS) > 0;
}

/* The driver does not tell the state. */
static enum sl_move_outcome without_state(
	CUresult result, int pidfd, struct sl_move_answer *answer)
{
	blame(answer, SL_MOVE_CALL_STATE, result);
	/* It may be locked, or away. */
	if (result != CUDA_ERROR_INVALID_VALUE)
		return SL_MOVE_AWAY_STILL;
	/* The process has no CUDA. */
	return is_gone(pidfd) ? SL_MOVE_GONE : SL_MOVE_REFUSED;
}

static enum sl_move_outcome walk(
	const struct sl_move_order *order, int pidfd, struct sl_move_answer *answer)
{
	sl_ns end = sl_clock_now() + BUSY_MAX + order->lock_ms * SL_MS;
	enum sl_move_op op = (enum sl_move_op)order->op;
	bool sure = false;

	for (;;) {
		CUprocessState state = CU_PROCESS_STATE_FAILED;
		CUresult r = cuda.STATE(order->pid, &state);
		enum sl_move_call step;

		if (r != CUDA_SUCCESS)
			return without_state(r, pidfd, answer);
		if ((unsigned int)state >= CU_PROCESS_STATE_FAILED)
			return SL_MOVE_BROKEN;
		step = steps[op][state];
		/* A lock of a killed helper may be under way: only another lock tells. */
		if (step == SL_MOVE_NO_CALL && op == SL_MOVE_BACK && !sure)
			step = SL_MOVE_CALL_LOCK;
		if (step == SL_MOVE_NO_CALL)
			break;
		r = call(step, order);
		sure |= step == SL_MOVE_CALL_LOCK && r != CUDA_ERROR_ILLEGAL_STATE;
		if (r == CUDA_SUCCESS)
			continue;
		if (r == CUDA_ERROR_ILLEGAL_STATE && sl_clock_now() < end) {
			sl_clock_sleep(BUSY_ASK);
			continue;
		}
		if (op == SL_MOVE_BACK && step == SL_MOVE_CALL_LOCK && sure)
			continue; /* it works, so it runs */
		blame(answer, step, r);
		if (op == SL_MOVE_AWAY) {
			op = SL_MOVE_BACK;
			continue;
		}
		r = cuda.STATE(order->pid, &state);
		if (r != CUDA_SUCCESS)
			return without_state(r, pidfd, answer);
		return state == CU_PROCESS_STATE_FAILED ? SL_MOVE_BROKEN
							: SL_MOVE_AWAY_STILL;
	}
	return op == order->op ? SL_MOVE_DONE : SL_MOVE_REFUSED;
}

/* Another process may have the number. */
static bool is_it(const struct sl_move_order *order)
{
	uint64_t ticks = 0;

	return !order->start_ticks || (sl_file_pid_start(order->pid, &ticks) == 0 &&
					      ticks == order->start_ticks);
}

void sl_walk(const struct sl_move_order *order, struct sl_move_answer *answer)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sl_cleanup(sl_closep) int pidfd = -1;

	(void)pthread_once(&once, start_cuda);
	if (cuda.error) {
		answer->outcome = SL_MOVE_UNABLE;
		blame(answer, cuda.at, cuda.error);
		return;
	}
	pidfd = order->pid > 0 ? (int)syscall(SYS_pidfd_open, order->pid, 0) : -1;
	answer->outcome =
		pidfd < 0 || !is_it(order) ? SL_MOVE_GONE : walk(order, pidfd, answer);
}
