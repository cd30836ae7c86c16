/*
 * swapper - obeys commands on stdin, a line at a time: memory of every kind, used and checked
 *
 * Made for tests that move its memory away and back: they say when. Commands and answers are those
 * of told.h. Names stand for memory; BYTES is a number of bytes, or of so many k, m.
 *
 *	alloc NAME BYTES        many NAME COUNT BYTES     cuMemAlloc, once or often.
 *	handles NAME BYTES EACH segment NAME BYTES EACH   own handles, mapped; kept, or released at
 *	                                                  once.
 *	alias NAME OF           shrink NAME BYTES         handles mapped again; a segment's end
 *	                                                  given up.
 *	array NAME BYTES        managed NAME BYTES        pool NAME BYTES
 *	export NAME FILE        open NAME FILE BYTES SEED by cuIpc.
 *	free NAME               freeall
 *	fill NAME SEED          put NAME SEED             every word, by kernels or by copies.
 *	zero NAME               poke NAME OFFSET VALUE    copy NAME OF
 *	check NAME              checkall                  value: wrong words.
 *	digest NAME             value: follows from every word.
 *	run NAME ROUNDS PAUSE   check and fill anew so often, PAUSE ms between; value: wrong words.
 *	context NAME            use NAME   destroy NAME   contexts; "main" is the first device's.
 *	device N                its primary context       reset: the first device's is reset, and
 *	                                                  done for.
 *	peer N                  the current context may use device N's memory.
 *	info                    value: free bytes; total.
 *	query NAME              value: the driver's answers about the memory, in a number.
 *	begin WORK THREADS BYTES PAUSE   rounds of this work in threads (swapper-work.c has the
 *	                                 list).
 *	rounds                  stop                      value: rounds so far; wrong, errors.
 *	capture NAME SEED       endcapture   replay       a fill of NAME, captured; launched when
 *	                                                  replayed.
 *	endless                 release                   a kernel that ends when it is released.
 *	busy MS                 a kernel of so long.
 *	sync                    waits for all work of the context.
 *	catch                   signals are counted from now on; value: how many came so far.
 *	alarm MS                a signal every MS milliseconds, for threads to be interrupted by.
 *	fork                    a child that sleeps; value: its pid.
 *	quit                    exit                      at once; by returning from main, freeing
 *	                                                  nothing
 */
#include "swapper.h"
#include "told.h"

#include <signal.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { NAMED_MAX = 32 };

static struct {
	char name[THING_NAME_MAX];
	CUcontext ctx;
} contexts[NAMED_MAX];
static size_t context_count;

static struct {
	CUstream stream;
	CUgraphExec exec;
	struct thing *thing;
	uint32_t seed;
} captured;
static uint32_t *release_flag; /* pinned; the endless kernel looks at it */
static int signals;            /* atomic */

static uint64_t number(const char *word)
{
	char *end;
	uint64_t value = strtoull(word, &end, 0);

	return *end == 'k' ? value << 10 : *end == 'm' ? value << 20 : value;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void do_alloc(char **word)
{
	struct thing *thing = thing_named(word[1]);
	CUresult r = thing_alloc(thing, 1, number(word[2]));

	told_answer("alloc", r, thing->at[0]);
}

static void do_many(char **word)
{
	told_answer("many",
		thing_alloc(thing_named(word[1]), number(word[2]), number(word[3])), 0);
}

static void do_handles(char **word)
{
	told_answer("handles",
		thing_map(thing_named(word[1]), THING_HANDLES, number(word[2]),
			number(word[3])),
		0);
}

static void do_segment(char **word)
{
	told_answer("segment",
		thing_map(thing_named(word[1]), THING_SEGMENT, number(word[2]),
			number(word[3])),
		0);
}

static void do_alias(char **word)
{
	told_answer("alias", thing_alias(thing_named(word[1]), thing_named(word[2])), 0);
}

static void do_shrink(char **word)
{
	told_answer("shrink", thing_shrink(thing_named(word[1]), number(word[2])), 0);
}

static void do_array(char **word)
{
	told_answer("array", thing_array(thing_named(word[1]), number(word[2])), 0);
}

static void do_managed(char **word)
{
	told_answer("managed", thing_managed(thing_named(word[1]), number(word[2])), 0);
}

static void do_pool(char **word)
{
	told_answer("pool", thing_pool(thing_named(word[1]), number(word[2])), 0);
}

static void do_export(char **word)
{
	told_answer("export", told_export(thing_named(word[1])->at[0], word[2]), 0);
}

static void do_open(char **word)
{
	told_answer("open",
		thing_open(thing_named(word[1]), word[2], number(word[3]),
			(uint32_t)number(word[4])),
		0);
}

static void do_free(char **word)
{
	told_answer("free", thing_free(thing_named(word[1])), 0);
}

static void do_freeall(char **word)
{
	CUresult r = CUDA_SUCCESS;

	(void)word;
	/* Second mappings before their memory. */
	for (struct thing *t = NULL; r == CUDA_SUCCESS && (t = thing_next(t));)
		r = t->kind == THING_ALIAS ? thing_free(t) : r;
	for (struct thing *t = NULL; r == CUDA_SUCCESS && (t = thing_next(t));)
		r = thing_free(t);
	told_answer("freeall", r, 0);
}

/* --- contents --------------------------------------------------------------------------------- */

static void do_fill(char **word)
{
	told_answer(
		"fill", thing_fill(thing_named(word[1]), (uint32_t)number(word[2])), 0);
}

static void do_put(char **word)
{
	told_answer("put", thing_put(thing_named(word[1]), (uint32_t)number(word[2])), 0);
}

static void do_zero(char **word)
{
	told_answer("zero", thing_zero(thing_named(word[1])), 0);
}

static void do_poke(char **word)
{
	told_answer("poke",
		thing_poke(
			thing_named(word[1]), number(word[2]), (uint32_t)number(word[3])),
		0);
}

static void do_copy(char **word)
{
	told_answer("copy", thing_copy(thing_named(word[1]), thing_named(word[2])), 0);
}

static void do_check(char **word)
{
	uint64_t wrong = 0;
	CUresult r = thing_check(thing_named(word[1]), &wrong);

	told_answer("check", r, wrong);
}

/* In the context of each, and back. */
static void do_checkall(char **word)
{
	uint64_t wrong = 0, count = 0;
	CUresult r = CUDA_SUCCESS;
	CUcontext before;

	(void)word;
	PROG_MUST(cuCtxGetCurrent(&before));
	for (struct thing *t = NULL; r == CUDA_SUCCESS && (t = thing_next(t)); count++) {
		uint64_t one = 0;

		PROG_MUST(cuCtxSetCurrent(t->ctx));
		r = thing_check(t, &one);
		wrong += one;
	}
	PROG_MUST(cuCtxSetCurrent(before));
	told_answer_more("checkall", r, wrong, "things", count);
}

static void do_digest(char **word)
{
	uint64_t digest = 0;
	CUresult r = thing_digest(thing_named(word[1]), &digest);

	/* Readers of JSON have signed numbers. */
	told_answer("digest", r, digest >> 1);
}

static void do_run(char **word)
{
	struct thing *thing = thing_named(word[1]);
	uint64_t wrong = 0, rounds = number(word[2]);
	CUresult r = CUDA_SUCCESS;

	for (; rounds > 0 && r == CUDA_SUCCESS; rounds--) {
		uint64_t one = 0;

		r = thing_check(thing, &one);
		wrong += one;
		if (r == CUDA_SUCCESS)
			r = thing_fill(thing, thing->seed + 1000);
		prog_sleep_ms(number(word[3]));
	}
	told_answer("run", r, wrong);
}

/* --- contexts, devices, figures --------------------------------------------------------------- */

static size_t context_named(const char *name)
{
	size_t i = 0;

	while (i < context_count && strcmp(contexts[i].name, name))
		i++;
	if (i == NAMED_MAX)
		exit(PROG_USAGE);
	if (i == context_count) {
		context_count++;
		(void)snprintf(contexts[i].name, sizeof(contexts[i].name), "%s", name);
	}
	return i;
}

static void do_context(char **word)
{
	CUresult r = cuCtxCreate_v2(&contexts[context_named(word[1])].ctx, 0, 0);

	told_answer("context", r, 0);
}

static void do_use(char **word)
{
	told_answer("use", cuCtxSetCurrent(contexts[context_named(word[1])].ctx), 0);
}

static void do_destroy(char **word)
{
	size_t i = context_named(word[1]);

	swapper_forget(contexts[i].ctx);
	told_answer("destroy", cuCtxDestroy_v2(contexts[i].ctx), 0);
}

static void do_reset(char **word)
{
	(void)word;
	swapper_forget(contexts[context_named("main")].ctx);
	told_answer("reset", cuDevicePrimaryCtxReset_v2(0), 0);
}

static void do_device(char **word)
{
	(void)prog_context(atoi(word[1]));
	told_answer("device", CUDA_SUCCESS, number(word[1]));
}

static void do_peer(char **word)
{
	CUcontext peer;

	PROG_MUST(cuDevicePrimaryCtxRetain(&peer, atoi(word[1])));
	told_answer("peer", cuCtxEnablePeerAccess(peer, 0), 0);
}

static void do_info(char **word)
{
	size_t free_bytes = 0, total = 0;
	CUresult r = cuMemGetInfo_v2(&free_bytes, &total);

	(void)word;
	told_answer_more("info", r, free_bytes, "total", total);
}

static void mix_in(uint64_t *sum, uint64_t value)
{
	*sum = (*sum ^ value) * 0x9E3779B97F4A7C15u;
	*sum ^= *sum >> 31;
}

struct said {
	CUresult results[5];
	CUdeviceptr base, start;
	size_t bytes;
	CUcontext ctx;
	unsigned int type;
	unsigned long long id;
};

static struct said ask_about(CUdeviceptr at)
{
	struct said said = {{0}, 0, 0, 0, NULL, 0, 0};

	said.results[0] = cuMemGetAddressRange_v2(&said.base, &said.bytes, at);
	said.results[1] =
		cuPointerGetAttribute(&said.ctx, CU_POINTER_ATTRIBUTE_CONTEXT, at);
	said.results[2] =
		cuPointerGetAttribute(&said.type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	said.results[3] =
		cuPointerGetAttribute(&said.id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	said.results[4] = cuPointerGetAttribute(
		&said.start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at);
	return said;
}

/* The last part's is also told in words, for the person who debugs it. */
static void do_query(char **word)
{
	const struct thing *thing = thing_named(word[1]);
	struct said said = {{0}, 0, 0, 0, NULL, 0, 0};
	uint64_t sum = 1;

	for (uint64_t i = 0; i < thing->parts; i++) {
		said = ask_about(thing->at[i]);
		for (int j = 0; j < 5; j++)
			mix_in(&sum, (uint64_t)said.results[j]);
		mix_in(&sum, said.base ^ said.bytes);
		mix_in(&sum, (uint64_t)(uintptr_t)said.ctx ^ said.type);
		mix_in(&sum, said.id);
		mix_in(&sum, said.start);
	}
	prog_say("{\"did\":\"query\",\"result\":\"CUDA_SUCCESS\",\"value\":%" PRIu64
		 ",\"range\":%zu,\"said\":\"%d %d %d %d %d %llx %p %u %llu %llx\"}",
		sum >> 1, said.bytes, (int)said.results[0], (int)said.results[1],
		(int)said.results[2], (int)said.results[3], (int)said.results[4],
		(unsigned long long)said.base, (void *)said.ctx, said.type, said.id,
		(unsigned long long)said.start);
}

/* --- work ------------------------------------------------------------------------------------- */

static void do_begin(char **word)
{
	bool begun =
		swapper_begin(word[1], number(word[2]), number(word[3]), number(word[4]));

	told_answer("begin", begun ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, 0);
}

static void tell(const char *did, struct outcome out)
{
	flockfile(stdout);
	printf("{\"did\":\"%s\",\"result\":\"%s\",\"value\":%" PRIu64
	       ",\"wrong\":%" PRIu64 ",\"errors\":%" PRIu64 "}\n",
		did, out.errors ? prog_error_name(out.last) : "CUDA_SUCCESS", out.rounds,
		out.wrong, out.errors);
	fflush(stdout);
	funlockfile(stdout);
}

static void do_rounds(char **word)
{
	(void)word;
	tell("rounds", swapper_so_far());
}

static void do_stop(char **word)
{
	(void)word;
	tell("stop", swapper_stop());
}

static CUresult captured_fill(void)
{
	CUdeviceptr at = captured.thing->at[0];
	uint64_t stride = 1, count = captured.thing->bytes / 4;
	void *args[] = {&at, &count, &stride, &captured.seed};

	return prog_launch(swapper_kernels()->fill, count, captured.stream, args);
}

static void do_capture(char **word)
{
	CUresult r;

	captured.thing = thing_named(word[1]);
	captured.seed = (uint32_t)number(word[2]);
	/* Things needed for a launch are made before. */
	(void)swapper_kernels();
	r = cuStreamCreate(&captured.stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = cuStreamBeginCapture_v2(
			captured.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	told_answer("capture", r == CUDA_SUCCESS ? captured_fill() : r, 0);
}

static void do_endcapture(char **word)
{
	CUgraph graph = NULL;
	CUresult r = cuStreamEndCapture(captured.stream, &graph);

	(void)word;
	if (r == CUDA_SUCCESS)
		r = cuGraphInstantiateWithFlags(&captured.exec, graph, 0);
	told_answer("endcapture", r, 0);
}

static void do_replay(char **word)
{
	CUresult r = cuGraphLaunch(captured.exec, captured.stream);

	(void)word;
	if (r == CUDA_SUCCESS)
		r = cuStreamSynchronize(captured.stream);
	captured.thing->written = true;
	captured.thing->zero = false;
	captured.thing->poke_count = 0;
	captured.thing->seed = captured.seed;
	told_answer("replay", r, 0);
}

static void do_endless(char **word)
{
	CUdeviceptr flag = 0;
	uint32_t value = 1;
	void *args[] = {&flag, &value};
	CUstream stream;
	CUresult r;

	(void)word;
	if (!release_flag)
		PROG_MUST(cuMemHostAlloc(
			(void **)&release_flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	__atomic_store_n(release_flag, 0, __ATOMIC_RELEASE);
	PROG_MUST(cuMemHostGetDevicePointer_v2(&flag, release_flag, 0));
	r = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = prog_launch(swapper_kernels()->wait, 1, stream, args);
	told_answer("endless", r, 0);
}

static void do_release(char **word)
{
	(void)word;
	if (release_flag)
		__atomic_store_n(release_flag, 1, __ATOMIC_RELEASE);
	told_answer("release", CUDA_SUCCESS, 0);
}

static void do_busy(char **word)
{
	uint64_t ns = number(word[1]) * 1000000;
	void *args[] = {&ns};

	told_answer("busy", prog_launch(swapper_kernels()->spin, 1, NULL, args), 0);
}

static void do_sync(char **word)
{
	(void)word;
	told_answer("sync", cuCtxSynchronize(), 0);
}

/* --- the process ------------------------------------------------------------------------------ */

static void count_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

/* Without SA_RESTART, as Python's are: whatever waits is interrupted. */
static void do_catch(char **word)
{
	const struct sigaction action = {.sa_handler = count_signal};

	(void)word;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	told_answer("catch", CUDA_SUCCESS,
		(uint64_t)__atomic_load_n(&signals, __ATOMIC_RELAXED));
}

static void do_alarm(char **word)
{
	const struct sigaction action = {.sa_handler = count_signal};
	suseconds_t us = (suseconds_t)number(word[1]) * 1000;
	const struct itimerval every = {
		{us / 1000000, us % 1000000}, {us / 1000000, us % 1000000}};

	(void)sigaction(SIGALRM, &action, NULL);
	told_answer("alarm",
		setitimer(ITIMER_REAL, &every, NULL) == 0 ? CUDA_SUCCESS
							  : CUDA_ERROR_INVALID_VALUE,
		0);
}

static void do_quit(char **word)
{
	(void)word;
	told_answer("quit", CUDA_SUCCESS, 0);
	_exit(0);
}

static void do_exit(char **word)
{
	(void)word;
	told_end();
	told_answer("exit", CUDA_SUCCESS, 0);
}

/* --- the list --------------------------------------------------------------------------------- */

static const struct told_command commands[] = {
	{"alloc", 3, do_alloc},
	{"many", 4, do_many},
	{"handles", 4, do_handles},
	{"segment", 4, do_segment},
	{"alias", 3, do_alias},
	{"shrink", 3, do_shrink},
	{"array", 3, do_array},
	{"managed", 3, do_managed},
	{"pool", 3, do_pool},
	{"export", 3, do_export},
	{"open", 5, do_open},
	{"free", 2, do_free},
	{"freeall", 1, do_freeall},
	{"fill", 3, do_fill},
	{"put", 3, do_put},
	{"zero", 2, do_zero},
	{"poke", 4, do_poke},
	{"copy", 3, do_copy},
	{"check", 2, do_check},
	{"checkall", 1, do_checkall},
	{"digest", 2, do_digest},
	{"run", 4, do_run},
	{"context", 2, do_context},
	{"use", 2, do_use},
	{"destroy", 2, do_destroy},
	{"device", 2, do_device},
	{"peer", 2, do_peer},
	{"info", 1, do_info},
	{"query", 2, do_query},
	{"begin", 5, do_begin},
	{"rounds", 1, do_rounds},
	{"stop", 1, do_stop},
	{"capture", 3, do_capture},
	{"endcapture", 1, do_endcapture},
	{"replay", 1, do_replay},
	{"endless", 1, do_endless},
	{"release", 1, do_release},
	{"busy", 2, do_busy},
	{"sync", 1, do_sync},
	{"catch", 1, do_catch},
	{"alarm", 2, do_alarm},
	{"fork", 1, told_fork},
	{"reset", 1, do_reset},
	{"quit", 1, do_quit},
	{"exit", 1, do_exit},
};

/* Of order->line; NULL if it is no command. */
int main(int argc, char **argv)
{
	(void)prog_options(argc, argv, "Does what it is told on stdin.", NULL, 0);
	contexts[context_named("main")].ctx = prog_context(0);
	(void)swapper_kernels();
	told_obey(commands, sizeof(commands) / sizeof(commands[0]));
	return PROG_OK;
}
