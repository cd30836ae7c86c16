/*
 * swapper-work - work in threads of its own while memory comes and goes under it
 *
 * Each kind of work is one round, which every thread repeats until all stop. The contents that a
 * round leaves in memory are known, and it or the next round checks them. Some rounds make a drain
 * hard: their work ends only when another thread goes on, and the gate may hold that thread back.
 */
#include "swapper.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 256, CHURN_PIECES = 8 };

struct worker {
	pthread_t thread;
	CUcontext ctx;
	const struct kernels *kernels;
	bool (*round)(struct worker *w);
	uint64_t bytes, pause_ms, random;
	CUstream stream, other;
	CUdeviceptr at, bad, flag;
	uint32_t *host; /* pinned: bad words come here */
	uint32_t seed;
	struct outcome out;
};

static struct worker workers[WORKERS_MAX];
static size_t worker_count;
static bool stopping; /* atomic */

/* What the program said is kept; a round that failed is over. */
static bool is_good(struct worker *w, CUresult r, const char *call)
{
	if (r == CUDA_SUCCESS)
		return true;
	w->out.errors++;
	w->out.last = r;
	fprintf(stderr, "swapper: %s: %s\n", prog_error_name(r), call);
	return false;
}
#define good(w, call) is_good(w, call, #call)

static bool launch_fill(struct worker *w, CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = 1, count = bytes / 4;
	void *args[] = {&at, &count, &stride, &seed};

	return good(w, prog_launch(w->kernels->fill, count, w->stream, args));
}

static bool check(struct worker *w, CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = 1, count = bytes / 4;
	void *args[] = {&at, &count, &stride, &seed, &w->bad};

	if (!good(w, cuMemsetD32Async(w->bad, 0, 1, w->stream)) ||
		!good(w, prog_launch(w->kernels->check, count, w->stream, args)) ||
		!good(w, cuMemcpyDtoHAsync_v2(w->host, w->bad, 4, w->stream)) ||
		!good(w, cuStreamSynchronize(w->stream)))
		return false;
	w->out.wrong += *w->host;
	return true;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* The contents of the round before are there, and are replaced. */
static bool round_rounds(struct worker *w)
{
	if (!w->at && (!good(w, cuMemAlloc_v2(&w->at, w->bytes)) ||
			      !launch_fill(w, w->at, w->bytes, w->seed)))
		return false;
	if (!check(w, w->at, w->bytes, w->seed) ||
		!launch_fill(w, w->at, w->bytes, ++w->seed))
		return false;
	return good(w, cuStreamSynchronize(w->stream));
}

/* Memory of all sizes, asked for, used and freed at once. */
static bool round_churn(struct worker *w)
{
	CUdeviceptr at[CHURN_PIECES] = {0};
	uint64_t bytes[CHURN_PIECES];
	bool well = true;
	int i;

	for (i = 0; i < CHURN_PIECES && well; i++) {
		bytes[i] = 4 + (prog_random(&w->random) % w->bytes >>
				       prog_random(&w->random) % 16) /
				       4 * 4;
		well = good(w, cuMemAlloc_v2(&at[i], bytes[i])) &&
		       launch_fill(w, at[i], bytes[i], w->seed + (uint32_t)i);
	}
	for (int j = 0; j < i && well; j++)
		well = check(w, at[j], bytes[j], w->seed + (uint32_t)j);
	for (int j = 0; j < CHURN_PIECES; j++)
		well = (!at[j] || good(w, cuMemFree_v2(at[j]))) && well;
	w->seed += CHURN_PIECES;
	return well;
}

/* The host's memory there and back, by copies that return before they are done. */
static bool round_copies(struct worker *w)
{
	uint64_t words = w->bytes / 4, wrong = 0;
	uint32_t *host;
	bool well;

	if (!w->at && !good(w, cuMemAlloc_v2(&w->at, w->bytes)))
		return false;
	if (!good(w, cuMemAllocHost_v2((void **)&host, w->bytes)))
		return false;
	for (uint64_t i = 0; i < words; i++)
		host[i] = prog_mix(w->seed, i);
	well = good(w, cuMemcpyHtoDAsync_v2(w->at, host, w->bytes, w->stream)) &&
	       check(w, w->at, w->bytes, w->seed);
	memset(host, 0, w->bytes);
	well = well && good(w, cuMemcpyDtoHAsync_v2(host, w->at, w->bytes, w->stream)) &&
	       good(w, cuStreamSynchronize(w->stream));
	for (uint64_t i = 0; i < words && well; i++)
		wrong += host[i] != prog_mix(w->seed, i);
	w->out.wrong += wrong;
	w->seed++;
	return good(w, cuMemFreeHost(host)) && well;
}

static void *comer(void *argument)
{
	struct worker *w = argument;

	if (good(w, cuCtxSetCurrent(w->ctx)))
		(void)round_rounds(w);
	return NULL;
}

/* Each round by a thread that was made for it. */
static bool round_comers(struct worker *w)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, comer, w) != 0)
		return false;
	pthread_join(thread, NULL);
	return true;
}

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;

static void callback(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&callback_lock);
	pthread_mutex_unlock(&callback_lock);
}

/* A callback waits for the lock of a thread that submits while it has it: work that does not end
 * unless the submission returns. */
static bool round_callbacks(struct worker *w)
{
	bool well = good(w, cuLaunchHostFunc(w->other, callback, NULL));

	pthread_mutex_lock(&callback_lock);
	well = well && round_rounds(w);
	pthread_mutex_unlock(&callback_lock);
	return well && good(w, cuStreamSynchronize(w->other));
}

/* w->other waits for a word that this thread writes afterwards, in w->stream. The word is zeroed in
 * w->other, and not in the legacy stream, for which neither of them waits. */
static bool round_values(struct worker *w)
{
	uint32_t value = (uint32_t)w->out.rounds + 1;

	if (!w->flag && (!good(w, cuMemAlloc_v2(&w->flag, 4)) ||
				!good(w, cuMemsetD32Async(w->flag, 0, 1, w->other)) ||
				!good(w, cuStreamSynchronize(w->other))))
		return false;
	return good(w, cuStreamWaitValue32_v2(
			       w->other, w->flag, value, CU_STREAM_WAIT_VALUE_EQ)) &&
	       round_rounds(w) &&
	       good(w, cuStreamWriteValue32_v2(w->stream, w->flag, value, 0)) &&
	       good(w, cuStreamSynchronize(w->other));
}

/* Captured each time, and launched twice. */
static bool round_graphs(struct worker *w)
{
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;
	bool well;

	if (!round_rounds(w))
		return false;
	if (!good(w, cuStreamBeginCapture_v2(w->stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
		return false;
	well = launch_fill(w, w->at, w->bytes, ++w->seed);
	prog_sleep_ms(w->pause_ms);
	well = good(w, cuStreamEndCapture(w->stream, &graph)) && well &&
	       good(w, cuGraphInstantiateWithFlags(&exec, graph, 0)) &&
	       good(w, cuGraphLaunch(exec, w->stream)) &&
	       good(w, cuGraphLaunch(exec, w->stream)) &&
	       check(w, w->at, w->bytes, w->seed);
	if (exec)
		well = good(w, cuGraphExecDestroy(exec)) && well;
	if (graph)
		well = good(w, cuGraphDestroy(graph)) && well;
	return well;
}

/* A context of its own each time: contexts come and go. */
static bool round_contexts(struct worker *w)
{
	struct worker in = *w;
	CUmodule module;
	CUcontext ctx;
	bool well;

	if (!good(w, cuCtxCreate_v2(&ctx, 0, 0)))
		return false;
	in.at = 0;
	in.out = (struct outcome){0};
	well = good(&in, prog_kernels_try(&module)) &&
	       good(&in, cuStreamCreate(&in.stream, CU_STREAM_NON_BLOCKING)) &&
	       good(&in, cuMemAlloc_v2(&in.bad, 4));
	if (well) {
		struct kernels own = {.fill = prog_kernel(module, "prog_fill"),
			.check = prog_kernel(module, "prog_check")};

		in.kernels = &own;
		well = round_rounds(&in) && round_rounds(&in);
	}
	w->out.wrong += in.out.wrong;
	w->out.errors += in.out.errors;
	w->out.last = in.out.errors ? in.out.last : w->out.last;
	well = good(w, cuCtxDestroy_v2(ctx)) && well;
	return good(w, cuCtxSetCurrent(w->ctx)) && well;
}

/* Asks, and submits nothing: must get on whatever has become of the memory. */
static bool round_queries(struct worker *w)
{
	size_t free_bytes, total, bytes = 0;
	CUdeviceptr base = 0;
	CUcontext ctx = NULL;
	unsigned int type = 0;

	if (!w->at && !good(w, cuMemAlloc_v2(&w->at, w->bytes)))
		return false;
	if (!good(w, cuMemGetInfo_v2(&free_bytes, &total)) ||
		!good(w, cuMemGetAddressRange_v2(&base, &bytes, w->at + w->bytes / 2)) ||
		!good(w, cuPointerGetAttribute(
				 &ctx, CU_POINTER_ATTRIBUTE_CONTEXT, w->at)) ||
		!good(w, cuPointerGetAttribute(
				 &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w->at)) ||
		!good(w, cuStreamSynchronize(w->stream)))
		return false;
	(void)cuStreamQuery(w->stream);
	w->out.wrong += base != w->at || bytes != w->bytes || ctx != w->ctx ||
			type != CU_MEMORYTYPE_DEVICE || free_bytes > total;
	return true;
}

/* --- threads ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool (*round)(struct worker *w);
} works[] = {
	{"rounds", round_rounds},
	{"churn", round_churn},
	{"copies", round_copies},
	{"comers", round_comers},
	{"callbacks", round_callbacks},
	{"values", round_values},
	{"graphs", round_graphs},
	{"contexts", round_contexts},
	{"queries", round_queries},
};

static void *work(void *argument)
{
	struct worker *w = argument;
	bool well = good(w, cuCtxSetCurrent(w->ctx)) &&
		    good(w, cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING)) &&
		    good(w, cuStreamCreate(&w->other, CU_STREAM_NON_BLOCKING)) &&
		    good(w, cuMemAllocHost_v2((void **)&w->host, 4)) &&
		    good(w, cuMemAlloc_v2(&w->bad, 4));

	while (well && !__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
		well = w->round(w);
		__atomic_store_n(&w->out.rounds, w->out.rounds + 1, __ATOMIC_RELAXED);
		prog_sleep_ms(w->pause_ms);
	}
	if (well && w->at)
		(void)good(w, cuMemFree_v2(w->at));
	return NULL;
}

bool swapper_begin(const char *name, uint64_t threads, uint64_t bytes, uint64_t pause_ms)
{
	size_t i = 0;

	while (i < sizeof(works) / sizeof(works[0]) && strcmp(works[i].name, name))
		i++;
	if (i == sizeof(works) / sizeof(works[0]) || worker_count + threads > WORKERS_MAX)
		return false;
	for (; threads > 0; threads--) {
		struct worker *w = &workers[worker_count++];

		*w = (struct worker){.round = works[i].round,
			.bytes = bytes,
			.pause_ms = pause_ms,
			.random = worker_count,
			.seed = (uint32_t)worker_count << 20};
		w->kernels = swapper_kernels();
		PROG_MUST(cuCtxGetCurrent(&w->ctx));
		if (pthread_create(&w->thread, NULL, work, w) != 0)
			exit(PROG_USAGE);
	}
	return true;
}

struct outcome swapper_so_far(void)
{
	struct outcome all = {0};

	for (size_t i = 0; i < worker_count; i++) {
		const struct outcome *one = &workers[i].out;

		all.rounds += __atomic_load_n(&one->rounds, __ATOMIC_RELAXED);
		all.wrong += __atomic_load_n(&one->wrong, __ATOMIC_RELAXED);
		all.errors += __atomic_load_n(&one->errors, __ATOMIC_RELAXED);
		all.last = one->errors ? one->last : all.last;
	}
	return all;
}

struct outcome swapper_stop(void)
{
	struct outcome all;

	__atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
	for (size_t i = 0; i < worker_count; i++)
		pthread_join(workers[i].thread, NULL);
	all = swapper_so_far();
	worker_count = 0;
	__atomic_store_n(&stopping, false, __ATOMIC_RELAXED);
	return all;
}
