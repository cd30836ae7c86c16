/*
 * init - start, end, fork and the look-up of entry points
 *
 * Nothing happens before cuInit: no thread, no socket, no allocation. After it, a forked child is
 * told NOT_INITIALIZED for ever (the real driver cannot follow a fork either), and at the end of the
 * process DEINITIALIZED.
 */
#include "softgpu/driver.h"

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
#include "softgpu/entry.def"
#undef SL_ENTRY
};

uint64_t sl_drv_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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

CUresult sl_enter(enum sl_entry_id id)
{
	CUresult r = CUDA_SUCCESS;

	switch (atomic_load(&sl_drv.state)) {
	case SL_DRV_READY: break;
	case SL_DRV_ENDED: return CUDA_ERROR_DEINITIALIZED;
	default:
		if (needs[id] & NEED_INIT)
			return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (needs[id] & NEED_INIT && sl_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	r = sl_fault_check(id);
	if (r == CUDA_SUCCESS && (needs[id] & NEED_CTX) == NEED_CTX)
		r = check_context();
	if (r == CUDA_SUCCESS && needs[id] & NEED_SAFE)
		r = sl_capture_check_unsafe();
	return r;
}

static void at_end(void)
{
	int ready = SL_DRV_READY;

	atomic_compare_exchange_strong(&sl_drv.state, &ready, SL_DRV_ENDED);
}

/* Locks may be held by threads that do not exist in the child; nothing there takes one again. */
static void in_child(void)
{
	atomic_store(&sl_drv.state, SL_DRV_FORKED);
}

static CUresult start(void)
{
	const char *path = getenv(SL_SOFTGPU_ENV);

	if (!path || !*path)
		return CUDA_ERROR_NO_DEVICE;
	if (sl_link_connect(path, &sl_drv.hello, sl_drv.memfd) < 0)
		return CUDA_ERROR_NO_DEVICE;
	sl_drv.board = sl_sg_board_map(sl_drv.memfd[0], false);
	sl_fault_init(sl_drv.hello.faults);
	sl_visible_init();
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

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = SL_DRV_VERSION;
	return CUDA_SUCCESS;
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

/* Look-up ------------------------------------------------------------------------------------- */

static const struct row {
	const char *name;
	int since; /* first driver version that had it */
	void *fn;
} rows[] = {
#define SL_ENTRY(name, since, need) {#name, since, (void *)name},
#include "softgpu/entry.def"
#undef SL_ENTRY
};

/* Parts of an exported name: length without suffixes, version, per-thread or not. */
static size_t split(const char *name, bool *per_thread, int *version)
{
	size_t n = strlen(name);

	*per_thread = n > 5 &&
		      (!strcmp(name + n - 5, "_ptsz") || !strcmp(name + n - 5, "_ptds"));
	if (*per_thread)
		n -= 5;
	*version = 1;
	if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v' && name[n - 1] >= '1' &&
		name[n - 1] <= '9') {
		*version = name[n - 1] - '0';
		n -= 3;
	}
	return n;
}

/*
 * The newest variant not newer than cuda_version; of two, the one with the wanted default stream.
 * A name that itself ends in a version asks for that one. *too_old: there is a newer one only.
 */
static const struct row *look_up(
	const char *symbol, int cuda_version, bool per_thread, bool *too_old)
{
	const struct row *best = NULL;
	int best_rank = -1, want_version, version;
	bool want_pt, pt;
	size_t want = split(symbol, &want_pt, &want_version);

	per_thread |= want_pt;
	*too_old = false;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		size_t n = split(rows[i].name, &pt, &version);

		if (n != want || strncmp(rows[i].name, symbol, n) || (pt && !per_thread))
			continue;
		if (want_version > 1 && version != want_version)
			continue;
		if (rows[i].since > cuda_version) {
			*too_old = true;
			continue;
		}
		if (version * 2 + pt > best_rank) {
			best_rank = version * 2 + pt;
			best = &rows[i];
		}
	}
	return best;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct row *row;
	bool too_old;

	if (!symbol || !fn || flags & ~(cuuint64_t)3)
		return CUDA_ERROR_INVALID_VALUE;
	row = look_up(symbol, cuda_version,
		flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &too_old);
	*fn = row ? row->fn : NULL;
	if (status)
		*status = row       ? CU_GET_PROC_ADDRESS_SUCCESS
			  : too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return row || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, cuda_version, flags, NULL);
}

/* Private tables by which NVIDIA's own libraries know their driver: we are not it. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	if (table)
		*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
