/*
 * hasher - the hash on GPUs: loading the kernel, launching it
 *
 * Loading compiles PTX and takes GPU memory, so it is done early and in the background. A thread
 * waits until a context is 200 ms old and no memory of the process is on the host. Then it loads
 * the module and launches it once, empty, so that a lazily loading driver has the code, too. That
 * happens inside the control lock, so never while something is being moved; the wait for the launch
 * is outside of it. The software GPU gets the host module, every other GPU the PTX.
 *
 * A run copies the list into a variable of the module, launches a block per megabyte, and copies
 * the list back.
 */
#include "runtime/gate/control.h"
#include "runtime/gate/residency.h"
#include "runtime/hash/hash.h"
#include "runtime/hash/math.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

#include "base/clock.h"
#include "base/list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* embed.S */
extern const unsigned char sl_hash_ptx_image[] __attribute__((visibility("hidden")));
extern const unsigned char sl_hash_host_image[] __attribute__((visibility("hidden")));

/* A program loads its own code right after it has made a context; ours can wait. */
#define LOAD_DELAY_NS (200 * SL_MS)
/* Pause after a load without memory; doubles with each failure. */
#define RETRY_NS     (1 * SL_S)
#define RETRY_MAX_NS (64 * SL_S)
/* Pause between queries of the empty launch. */
#define LOOK_NS (2 * SL_MS)

struct hasher {
	struct sl_link link;
	CUcontext ctx;
	CUdevice dev;
	bool ready, failed, gone;
	unsigned int busy; /* our threads that are in a driver call for it */
	sl_ns due_ns, retry_ns;
	CUmodule module;
	CUfunction function;
	CUdeviceptr jobs;
	CUstream stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct sl_link hashers = SL_LIST_INIT(hashers);
static bool started;
/* Atomic; futex: counts contexts. */
static uint32_t wanted;

static struct hasher *find(CUcontext ctx)
{
	sl_list_foreach (link, &hashers) {
		struct hasher *h = SL_LIST_ENTRY(link, struct hasher, link);

		if (h->ctx == ctx)
			return h;
	}
	return NULL;
}

static void leave(struct hasher *h)
{
	(void)pthread_mutex_lock(&lock);
	h->busy--;
	(void)pthread_mutex_unlock(&lock);
}

/* --- loading ------------------------------------------------------------------------------ */

static CUresult launch(struct hasher *h, unsigned int tiles, uint32_t count)
{
	const struct sl_hash_key *key = sl_hash_own_key();
	void *params[5];

	if (!key)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (int i = 0; i < 4; i++)
		params[i] = (void *)&key->word[i];
	params[4] = &count;
	return sl_real.cuLaunchKernel(h->function, tiles, 1, 1, SL_HASH_THREADS, 1, 1, 0,
		h->stream, params, NULL);
}

/* The context is current. Loads everything or nothing. */
static CUresult load_image(struct hasher *h, const void *image)
{
	size_t bytes = 0;
	CUresult r;

	h->module = NULL;
	h->stream = NULL;
	r = sl_real.cuModuleLoadData(&h->module, image);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuModuleGetFunction(&h->function, h->module, "sl_hash_tiles");
	if (r == CUDA_SUCCESS)
		r = sl_real.cuModuleGetGlobal_v2(
			&h->jobs, &bytes, h->module, "sl_hash_jobs");
	if (r == CUDA_SUCCESS && bytes != SL_HASH_JOBS * sizeof(struct sl_hash_job))
		r = CUDA_ERROR_INVALID_IMAGE;
	if (r == CUDA_SUCCESS)
		r = sl_real.cuStreamCreate(&h->stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = launch(h, 1, 0);
	if (r == CUDA_SUCCESS)
		return r;
	if (h->stream)
		(void)sl_real.cuStreamDestroy_v2(h->stream);
	(void)sl_real.cuModuleUnload(h->module);
	return r;
}

static CUresult load(struct hasher *h)
{
	static const unsigned char *const images[] = {
		sl_hash_ptx_image, sl_hash_host_image};
	/* On the software GPU the host module comes first, since PTX runs more slowly there. */
	size_t first = getenv("SLUICE_SOFTGPU") != NULL;
	CUresult r = CUDA_ERROR_INVALID_IMAGE;

	for (size_t i = 0; i < SL_ARRAY_LEN(images); i++) {
		r = load_image(h, images[(first + i) % SL_ARRAY_LEN(images)]);
		if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
			break;
	}
	return sl_measure_after(r);
}

static bool is_gone(struct hasher *h)
{
	bool gone;

	(void)pthread_mutex_lock(&lock);
	gone = h->gone;
	(void)pthread_mutex_unlock(&lock);
	return gone;
}

/* Behind a kernel that fills the GPU the launch may take a while. */
static CUresult wait_for_launch(struct hasher *h)
{
	CUresult r;

	while ((r = sl_real.cuStreamQuery(h->stream)) == CUDA_ERROR_NOT_READY &&
		!is_gone(h))
		sl_futex_pause(LOOK_NS);
	return r;
}

static void note_outcome(struct hasher *h, CUresult r)
{
	(void)pthread_mutex_lock(&lock);
	h->ready = r == CUDA_SUCCESS;
	h->failed = r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY;
	h->due_ns = sl_clock_now() + h->retry_ns;
	h->retry_ns = sl_min_u64(2 * h->retry_ns, RETRY_MAX_NS);
	(void)pthread_mutex_unlock(&lock);
}

/* The hasher that is due first, or NULL; *due_ns: when. Under the lock. */
static struct hasher *next_due(sl_ns *due_ns)
{
	struct hasher *found = NULL;

	*due_ns = SL_NS_NEVER;
	sl_list_foreach (link, &hashers) {
		struct hasher *h = SL_LIST_ENTRY(link, struct hasher, link);

		if (h->ready || h->failed || h->gone || h->due_ns >= *due_ns)
			continue;
		found = h;
		*due_ns = h->due_ns;
	}
	return found;
}

static sl_ns next_due_at(void)
{
	sl_ns due_ns;

	(void)pthread_mutex_lock(&lock);
	(void)next_due(&due_ns);
	(void)pthread_mutex_unlock(&lock);
	return due_ns;
}

/* Chosen inside the control lock: a thread that drops a context may be inside, too, and waits for
 * this one. */
static struct hasher *take_due(void)
{
	sl_ns due_ns, now_ns = sl_clock_now();
	struct hasher *h;

	(void)pthread_mutex_lock(&lock);
	h = next_due(&due_ns);
	if (h && due_ns > now_ns)
		h = NULL;
	/* A process with memory on the host must not grow on the GPU. */
	if (h && sl_residency_is_partial()) {
		h->due_ns = now_ns + LOAD_DELAY_NS;
		h = NULL;
	}
	if (h)
		h->busy++;
	(void)pthread_mutex_unlock(&lock);
	return h;
}

static void load_due(void)
{
	CUcontext popped;
	struct hasher *h;
	CUresult r;
	bool pushed;

	sl_control_enter();
	h = take_due();
	if (!h) {
		sl_control_leave();
		return;
	}
	r = sl_real.cuCtxPushCurrent_v2(h->ctx);
	pushed = r == CUDA_SUCCESS;
	if (pushed)
		r = load(h);
	sl_control_leave();
	if (r == CUDA_SUCCESS)
		r = wait_for_launch(h);
	if (pushed)
		(void)sl_real.cuCtxPopCurrent_v2(&popped);
	note_outcome(h, r);
	leave(h);
}

static void *hasher_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)prctl(PR_SET_NAME, "sluice-hash", 0, 0, 0);
	/* Our calls must not invalidate another thread's capture. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t seen = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);
		sl_ns now_ns = sl_clock_now(), due_ns = next_due_at();

		if (due_ns <= now_ns)
			load_due();
		else
			sl_futex_wait(&wanted, seen,
				due_ns == SL_NS_NEVER ? due_ns : due_ns - now_ns);
	}
	return arg;
}

/* --- the other threads -------------------------------------------------------------------- */

void sl_hasher_context(CUcontext ctx, CUdevice dev)
{
	struct hasher *new = ctx ? calloc(1, sizeof(*new)) : NULL;

	if (!new)
		return;
	(void)pthread_mutex_lock(&lock);
	if (!find(ctx)) {
		new->ctx = ctx;
		new->dev = dev;
		new->due_ns = sl_clock_now() + LOAD_DELAY_NS;
		new->retry_ns = RETRY_NS;
		sl_list_push_tail(&hashers, &new->link);
		new = NULL;
		if (!started)
			started = sl_libc_start_thread(hasher_main, NULL) == 0;
		__atomic_fetch_add(&wanted, 1, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&lock);
	free(new);
	sl_futex_wake(&wanted, 1);
}

void sl_hasher_drop_context(CUcontext ctx)
{
	struct hasher *h;

	(void)pthread_mutex_lock(&lock);
	while ((h = find(ctx)) && h->busy) {
		h->gone = true;
		(void)pthread_mutex_unlock(&lock);
		sl_futex_pause(100 * SL_US);
		(void)pthread_mutex_lock(&lock);
	}
	if (h)
		sl_list_unlink(&h->link);
	(void)pthread_mutex_unlock(&lock);
	free(h);
}

/* The ready hasher of ctx (NULL: of any context of dev); its context becomes current. */
static struct hasher *enter_ready(CUcontext ctx, CUdevice dev)
{
	struct hasher *found = NULL;

	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &hashers) {
		struct hasher *h = SL_LIST_ENTRY(link, struct hasher, link);

		if (!h->ready || h->gone || (ctx ? h->ctx != ctx : h->dev != dev))
			continue;
		h->busy++;
		found = h;
		break;
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

bool sl_hasher_ready(CUdevice dev, CUcontext *ctx)
{
	struct hasher *h = enter_ready(NULL, dev);
	bool ready;

	if (!h)
		return false;
	*ctx = h->ctx;
	ready = sl_real.cuCtxSetCurrent(h->ctx) == CUDA_SUCCESS;
	leave(h);
	return ready;
}

/* --- runs --------------------------------------------------------------------------------- */

/* Fills in the kernel's list. *tiles: how many tiles it has. */
static CUresult list_jobs(struct sl_hash_job *jobs, const struct sl_hash_item *items,
	uint32_t count, uint64_t *tiles)
{
	*tiles = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!items[i].bytes || items[i].bytes % SL_HASH_UNIT_BYTES)
			return CUDA_ERROR_INVALID_VALUE;
		jobs[i] =
			(struct sl_hash_job){.address = items[i].address, .tile = *tiles};
		*tiles += items[i].bytes / SL_HASH_TILE_BYTES;
	}
	/* A grid takes so many blocks in x: 2 PiB. */
	return *tiles <= INT32_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t total(const struct sl_hash_job *job, int half)
{
	return sl_hash_final(
		sl_hash_fold(((sl_hash_wide)job->top[half] << 32) + job->bottom[half]));
}

static CUresult run_batch(struct hasher *h, struct sl_hash_job *jobs,
	struct sl_hash_item *items, uint32_t count)
{
	size_t bytes = count * sizeof(*jobs);
	uint64_t tiles;
	CUresult r = list_jobs(jobs, items, count, &tiles);
	CUresult waited;

	if (r == CUDA_SUCCESS)
		r = sl_real.cuMemcpyHtoDAsync_v2(h->jobs, jobs, bytes, h->stream);
	if (r == CUDA_SUCCESS)
		r = launch(h, (unsigned int)tiles, count);
	if (r == CUDA_SUCCESS)
		r = sl_real.cuMemcpyDtoHAsync_v2(jobs, h->jobs, bytes, h->stream);
	/* Also after a failure: work already submitted may still write into the list. */
	waited = sl_real.cuStreamSynchronize(h->stream);
	if (r == CUDA_SUCCESS)
		r = waited;
	for (uint32_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		items[i].out = (struct sl_hash){
			total(&jobs[i], 0), total(&jobs[i], 1), !jobs[i].bits};
	return r;
}

CUresult sl_hasher_run(CUcontext ctx, struct sl_hash_item *items, uint32_t count)
{
	struct hasher *h = enter_ready(ctx, 0);
	struct sl_hash_job *jobs;
	CUresult r = CUDA_SUCCESS;

	if (!h)
		return CUDA_ERROR_INVALID_CONTEXT;
	jobs = calloc(SL_HASH_JOBS, sizeof(*jobs));
	if (!jobs)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t at = 0; at < count && r == CUDA_SUCCESS; at += SL_HASH_JOBS)
		r = run_batch(h, jobs, items + at,
			(uint32_t)sl_min_u64(count - at, SL_HASH_JOBS));
	free(jobs);
	leave(h);
	return r;
}

void sl_hasher_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_list_init(&hashers);
	started = false;
	wanted = 0;
	sl_hash_forget();
}
