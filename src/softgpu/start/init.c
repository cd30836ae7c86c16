/*
 * init - start, end, fork, and the names of errors
 *
 * Before cuInit there is no thread, no socket, no allocation. After cuInit a forked child always
 * gets NOT_INITIALIZED (the real driver cannot follow a fork either), and calls at the end of the
 * process get DEINITIALIZED.
 */
#include "softgpu/driver/absent.h"
#include "softgpu/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sl_drv sl_drv = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.memfd = {[0 ... SL_SOFTGPU_GPUS_MAX - 1] = -1},
	.contexts = SL_LIST_INIT(sl_drv.contexts),
	.companion = {[0 ... SL_SOFTGPU_GPUS_MAX - 1] = {PTHREAD_MUTEX_INITIALIZER, -1}},
	.next_id = 1};
__thread bool sl_in_callback;

static const uint8_t needs[] = {
#define SL_ENTRY(name, since, need) [SL_E_##name] = need,
#include "softgpu/driver/entry.def"
#undef SL_ENTRY
};

uint64_t sl_drv_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sl_drv_cost(uint64_t us)
{
	struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	while (us && nanosleep(&t, &t) != 0)
		;
}

uint64_t sl_drv_next_id(void)
{
	uint64_t id;

	pthread_mutex_lock(&sl_drv.lock);
	id = sl_drv.next_id++;
	pthread_mutex_unlock(&sl_drv.lock);
	return id;
}

bool sl_drv_device_ok(CUdevice device)
{
	return device >= 0 && (uint64_t)device < sl_drv.hello.gpus;
}

static CUresult check_context(void)
{
	CUcontext ctx = sl_ctx_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!atomic_load(&ctx->usable))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return sl_ctx_error(ctx);
}

static CUresult check(enum sl_entry_id id)
{
	CUresult r = sl_fault_check(id);

	if (r == CUDA_SUCCESS && (needs[id] & NEED_CTX) == NEED_CTX)
		r = check_context();
	if (r == CUDA_SUCCESS && needs[id] & NEED_SAFE)
		r = sl_capture_check_unsafe();
	return r;
}

struct sl_inside sl_enter(enum sl_entry_id id)
{
	struct sl_inside inside = {CUDA_SUCCESS, false};

	switch (atomic_load(&sl_drv.state)) {
	case SL_DRV_READY:
		if (!(needs[id] & NEED_INIT))
			break;
		if (sl_in_callback) {
			inside.result = CUDA_ERROR_NOT_PERMITTED;
			return inside;
		}
		if (needs[id] & NEED_OPEN)
			break;
		inside.counted = sl_gate_enter();
		if (sl_gate_has_failed())
			inside.result = CUDA_ERROR_UNKNOWN;
		break;
	case SL_DRV_ENDED: inside.result = CUDA_ERROR_DEINITIALIZED; break;
	default:
		if (needs[id] & NEED_INIT)
			inside.result = CUDA_ERROR_NOT_INITIALIZED;
	}
	if (inside.result == CUDA_SUCCESS)
		inside.result = check(id);
	return inside;
}

void sl_leave(const struct sl_inside *inside)
{
	sl_gate_leave(inside->counted);
}

int sl_absent_state(void)
{
	switch (atomic_load(&sl_drv.state)) {
	case SL_DRV_READY: return CUDA_SUCCESS;
	case SL_DRV_ENDED: return CUDA_ERROR_DEINITIALIZED;
	default: return CUDA_ERROR_NOT_INITIALIZED;
	}
}

static void at_end(void)
{
	int ready = SL_DRV_READY;

	atomic_compare_exchange_strong(&sl_drv.state, &ready, SL_DRV_ENDED);
}

/* Threads that hold locks do not exist in the child; the child takes no lock again. */
static void in_child(void)
{
	atomic_store(&sl_drv.state, SL_DRV_FORKED);
	sl_control_in_child();
}

static CUresult start(void)
{
	const char *path = getenv(SL_SOFTGPU_ENV);

	if (!path || !*path)
		return CUDA_ERROR_NO_DEVICE;
	if (sl_link_connect(path, &sl_drv.hello, sl_drv.memfd) < 0)
		return CUDA_ERROR_NO_DEVICE;
	sl_drv.board = sl_sg_board_map(sl_drv.memfd[0], true);
	sl_fault_init(sl_drv.hello.faults);
	sl_visible_init();
	sl_control_start();
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_end);
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
	CUresult r = CUDA_SUCCESS;

	if (atomic_load(&sl_drv.state) == SL_DRV_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&starting);
	if (atomic_load(&sl_drv.state) == SL_DRV_NEW) {
		r = start();
		if (r == CUDA_SUCCESS)
			atomic_store(&sl_drv.state, SL_DRV_READY);
	}
	pthread_mutex_unlock(&starting);
	if (r != CUDA_SUCCESS)
		return r;
	SL_ENTER(cuInit);
	return sl_drv.hello.gpus ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static const struct text {
	CUresult error;
	const char *name, *text;
} texts[] = {
#define TEXT(name, number, text) {CUDA_##name, "CUDA_" #name, text},
	SL_CU_RESULTS(TEXT)
#undef TEXT
};

static const struct text *text_of(CUresult error)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++)
		if (texts[i].error == error)
			return &texts[i];
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
	const struct text *t = text_of(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = t ? t->name : NULL;
	return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **out)
{
	const struct text *t = text_of(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = t ? t->text : NULL;
	return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
