/*
 * tenant - a user of GPUs whose manners are chosen by options
 *
 * It takes memory on one or several GPUs and fills it. Then it idles, works for a share of the
 * time, takes more from time to time, or launches a kernel that never ends. At the end every page
 * is compared with what was written. Out of memory it dies, or drops its cache and tries again, as
 * frameworks do. SIGTERM ends it, is ignored, or lets it finish in order.
 *
 * Lines: "start"; for each GPU "ask", "held" with what the driver says of the memory; "oom" and
 * "dropped" when memory ran out or the cache was given up; "burst" for each one that came and went;
 * "endless", "term", "error"; and "end" with the totals.
 */
#include "prog.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS_MAX = 16, SLICE_MS = 5, RETRY_PAUSE_MS = 20 };

struct gpu {
	CUcontext context;
	CUmodule module;
	/* Looked up once: a lost GPU fails that, too, and would end the program. */
	CUfunction fill, check, spin, wait;
	CUdeviceptr data, cache, word, flag;
	CUstream other;
	uint64_t bytes;
	bool lost;
};

static struct tenant {
	uint64_t gpus, bytes, share, ms, work, period_ms, burst, burst_ms, gap_ms, cache;
	uint64_t retries, seed, first, burst_on, modules;
	bool endless, keep_going, unchecked;
	const char *term;
	struct gpu gpu[GPUS_MAX];
	uint64_t ooms, bursts, launches, tell, wait_max_ms, errors, until_ms, random;
	uint32_t wrong;
} t = {
	.gpus = 1,
	.bytes = 64 << 20,
	.ms = 60000,
	.period_ms = 100,
	.burst_ms = 200,
	.gap_ms = 200,
	.burst_on = UINT64_MAX,
	.term = "die",
};

static volatile sig_atomic_t told;

static void on_term(int signal)
{
	(void)signal;
	told = 1;
}

static bool over(void)
{
	return told || prog_now_ms() >= t.until_ms;
}

/* Wakes for SIGTERM and for the end of the time. */
static void nap_ms(uint64_t ms)
{
	uint64_t end_ms = prog_now_ms() + ms;

	while (!over() && prog_now_ms() < end_ms)
		prog_sleep_ms(SLICE_MS);
}

static void say_end(void)
{
	prog_say("{\"event\":\"end\",\"wrong\":%u,\"ooms\":%llu,\"bursts\":%llu,"
		 "\"launches\":%llu,\"wait_max_ms\":%llu,\"errors\":%llu,\"term\":%d}",
		t.wrong, (unsigned long long)t.ooms, (unsigned long long)t.bursts,
		(unsigned long long)t.launches, (unsigned long long)t.wait_max_ms,
		(unsigned long long)t.errors, (int)told);
}

/* An error ends the program, or with --keep-going this GPU's part in it. */
static bool works(uint64_t i, CUresult result, const char *call)
{
	if (result == CUDA_SUCCESS)
		return true;
	prog_say("{\"event\":\"error\",\"gpu\":%llu,\"call\":\"%.*s\",\"error\":\"%s\"}",
		(unsigned long long)i, (int)strcspn(call, "("), call,
		prog_error_name(result));
	t.errors++;
	t.gpu[i].lost = true;
	if (t.keep_going)
		return false;
	say_end();
	exit(result == CUDA_ERROR_OUT_OF_MEMORY ? PROG_OUT_OF_MEMORY : PROG_DRIVER);
}
#define WORKS(i, call) works(i, call, #call)

static bool enter(uint64_t i)
{
	return !t.gpu[i].lost && WORKS(i, cuCtxSetCurrent(t.gpu[i].context));
}

/* --- memory ---------------------------------------------------------------------------- */

static void drop_cache(uint64_t i)
{
	struct gpu *g = &t.gpu[i];

	if (!g->cache)
		return;
	prog_say("{\"event\":\"dropped\",\"gpu\":%llu,\"bytes\":%llu}",
		(unsigned long long)i, (unsigned long long)t.cache);
	(void)WORKS(i, cuMemFree_v2(g->cache));
	g->cache = 0;
}

/* As a caching allocator does: out of memory, it gives its cache back and asks again. */
static CUresult take(uint64_t i, CUdeviceptr *out, uint64_t bytes)
{
	uint64_t asked_ms = prog_now_ms(), waited_ms;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	for (uint64_t try = 0; try <= t.retries; try++) {
		r = cuMemAlloc_v2(out, bytes);
		if (r != CUDA_ERROR_OUT_OF_MEMORY)
			break;
		t.ooms++;
		prog_say("{\"event\":\"oom\",\"gpu\":%llu,\"bytes\":%llu,\"try\":%llu}",
			(unsigned long long)i, (unsigned long long)bytes,
			(unsigned long long)try);
		if (try == t.retries || over())
			break;
		drop_cache(i);
		nap_ms(try ? RETRY_PAUSE_MS : 0);
	}
	waited_ms = prog_now_ms() - asked_ms;
	if (waited_ms > t.wait_max_ms)
		t.wait_max_ms = waited_ms;
	return r;
}

static CUresult fill(uint64_t i, CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	return prog_fill(t.gpu[i].fill, at, bytes, seed);
}

static void compare(uint64_t i, CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint32_t wrong = 0;

	if (WORKS(i, prog_check(t.gpu[i].check, at, bytes, seed, t.gpu[i].word, &wrong)))
		t.wrong += wrong;
}

static uint32_t seed_of(uint64_t i)
{
	return (uint32_t)(t.seed * 31 + i);
}

static void say_held(uint64_t i)
{
	size_t free_bytes = 0, total_bytes = 0;

	(void)WORKS(i, cuMemGetInfo_v2(&free_bytes, &total_bytes));
	prog_say(
		"{\"event\":\"held\",\"gpu\":%llu,\"bytes\":%llu,\"free\":%llu,\"total\":"
		"%llu}",
		(unsigned long long)i, (unsigned long long)t.gpu[i].bytes,
		(unsigned long long)free_bytes, (unsigned long long)total_bytes);
}

static void size_up(uint64_t i)
{
	size_t free_bytes = 0, total_bytes = 0;

	t.gpu[i].bytes = t.bytes;
	if (!t.share || !WORKS(i, cuMemGetInfo_v2(&free_bytes, &total_bytes)))
		return;
	t.gpu[i].bytes = (uint64_t)free_bytes / 100 * t.share;
}

/* Frameworks load code as they go, long after the memory was taken. */
static void load_late(uint64_t i)
{
	CUmodule module;

	for (uint64_t n = 0; n < t.modules; n++)
		(void)WORKS(i, prog_kernels_try(&module));
}

static void open_gpu(uint64_t i)
{
	struct gpu *g = &t.gpu[i];
	CUdevice device;

	if (!WORKS(i, cuDeviceGet(&device, (int)(t.first + i))) ||
		!WORKS(i, cuDevicePrimaryCtxRetain(&g->context, device)) || !enter(i) ||
		!WORKS(i, prog_kernels_try(&g->module)) ||
		!WORKS(i, cuStreamCreate(&g->other, CU_STREAM_NON_BLOCKING)) ||
		!WORKS(i, cuMemAlloc_v2(&g->word, 4)) ||
		!WORKS(i, cuMemAlloc_v2(&g->flag, 4)) ||
		!WORKS(i, cuMemsetD32_v2(g->flag, 0, 1)))
		return;
	g->fill = prog_kernel(g->module, "prog_fill");
	g->check = prog_kernel(g->module, "prog_check");
	g->spin = prog_kernel(g->module, "prog_spin");
	g->wait = prog_kernel(g->module, "prog_wait");
	if (t.cache && !WORKS(i, take(i, &g->cache, t.cache)))
		return;
	size_up(i);
	prog_say("{\"event\":\"ask\",\"gpu\":%llu,\"bytes\":%llu}", (unsigned long long)i,
		(unsigned long long)g->bytes);
	if (g->bytes && (!WORKS(i, take(i, &g->data, g->bytes)) ||
				!WORKS(i, fill(i, g->data, g->bytes, seed_of(i))) ||
				!WORKS(i, cuCtxSynchronize())))
		return;
	load_late(i);
	say_held(i);
}

/* --- manners --------------------------------------------------------------------------- */

static void work_once(uint64_t i)
{
	uint64_t ns = t.period_ms * t.work / 100 * 1000000;
	void *args[] = {&ns};

	if (!enter(i))
		return;
	t.launches++;
	if (t.launches == t.tell)
		prog_say("{\"event\":\"launched\"}");
	(void)WORKS(i, prog_launch(t.gpu[i].spin, 1, NULL, args));
}

/* One period: kernels on all GPUs at once, then the rest of it idle. */
static void work_all(void)
{
	uint64_t start_ms = prog_now_ms(), spent_ms;

	for (uint64_t i = 0; i < t.gpus; i++)
		work_once(i);
	for (uint64_t i = 0; i < t.gpus; i++)
		if (enter(i))
			(void)WORKS(i, cuCtxSynchronize());
	spent_ms = prog_now_ms() - start_ms;
	nap_ms(t.period_ms > spent_ms ? t.period_ms - spent_ms : 0);
}

/* Takes more on one GPU, fills and checks it, and gives it back. */
static void burst(uint64_t i)
{
	uint64_t bytes = t.seed ? 4096 + prog_random(&t.random) % t.burst : t.burst;
	uint64_t end_ms;
	CUdeviceptr at;

	if (!enter(i) || !WORKS(i, take(i, &at, bytes)))
		return;
	if (!WORKS(i, fill(i, at, bytes, 7)))
		return;
	end_ms = prog_now_ms() + t.burst_ms;
	while (!over() && prog_now_ms() < end_ms)
		prog_sleep_ms(SLICE_MS);
	compare(i, at, bytes, 7);
	if (!WORKS(i, cuMemFree_v2(at)))
		return;
	t.bursts++;
	prog_say("{\"event\":\"burst\",\"gpu\":%llu,\"bytes\":%llu}",
		(unsigned long long)i, (unsigned long long)bytes);
}

/* A kernel on the first GPU that ends only when the program lets it. */
static void launch_endless(void)
{
	struct gpu *g = &t.gpu[0];
	uint32_t value = 1;
	void *args[] = {&g->flag, &value};

	if (enter(0) && WORKS(0, prog_launch(g->wait, 1, NULL, args)))
		prog_say("{\"event\":\"endless\"}");
}

static void end_endless(void)
{
	if (enter(0) && WORKS(0, cuMemsetD32Async(t.gpu[0].flag, 1, 1, t.gpu[0].other)))
		(void)WORKS(0, cuCtxSynchronize());
}

static void live(void)
{
	for (uint64_t round = 0; !over(); round++) {
		if (t.burst) {
			burst(t.burst_on < t.gpus ? t.burst_on : round % t.gpus);
			nap_ms(t.gap_ms);
		} else if (t.work) {
			work_all();
		} else {
			nap_ms(1000);
		}
	}
}

static void close_all(void)
{
	for (uint64_t i = 0; i < t.gpus; i++) {
		if (!t.gpu[i].data || !enter(i))
			continue;
		if (!t.unchecked)
			compare(i, t.gpu[i].data, t.gpu[i].bytes, seed_of(i));
		if (enter(i))
			(void)WORKS(i, cuMemFree_v2(t.gpu[i].data));
	}
}

static bool set_term(void)
{
	struct sigaction action = {.sa_handler = on_term};

	if (!strcmp(t.term, "die"))
		return true;
	if (!strcmp(t.term, "ignore"))
		action.sa_handler = SIG_IGN;
	else if (strcmp(t.term, "finish"))
		return false;
	return sigaction(SIGTERM, &action, NULL) == 0;
}

static void read_options(int argc, char **argv)
{
	const struct prog_option options[] = {
		{"gpus", PROG_NUMBER, &t.gpus, "GPUs to use (1)"},
		{"first", PROG_NUMBER, &t.first, "the first of them (0)"},
		{"bytes", PROG_SIZE, &t.bytes, "memory to hold on each (64Mi; 0: none)"},
		{"share", PROG_NUMBER, &t.share,
			"hold so many % of the free memory instead"},
		{"ms", PROG_NUMBER, &t.ms, "time to live with it (60000)"},
		{"work", PROG_NUMBER, &t.work,
			"% of the time in which kernels run on all GPUs"},
		{"period-ms", PROG_NUMBER, &t.period_ms,
			"one kernel and its pause (100)"},
		{"burst", PROG_SIZE, &t.burst,
			"take so much more, again and again, on each GPU in turn"},
		{"burst-ms", PROG_NUMBER, &t.burst_ms, "time a burst is held (200)"},
		{"burst-on", PROG_NUMBER, &t.burst_on,
			"the only GPU for that (each in turn)"},
		{"gap-ms", PROG_NUMBER, &t.gap_ms, "time between bursts (200)"},
		{"seed", PROG_NUMBER, &t.seed, "not 0: bursts of random size up to it"},
		{"tell", PROG_NUMBER, &t.tell,
			"say when so many kernels have run (0: never)"},
		{"endless", PROG_FLAG, &t.endless,
			"run a kernel that ends only at the end of the time"},
		{"modules", PROG_NUMBER, &t.modules,
			"load its code so often again once the memory is full (0)"},
		{"cache", PROG_SIZE, &t.cache, "memory kept for nothing on each GPU"},
		{"retries", PROG_NUMBER, &t.retries,
			"out of memory: drop the cache and ask so often again (0)"},
		{"term", PROG_TEXT, &t.term,
			"what SIGTERM does: die, ignore or finish (die)"},
		{"keep-going", PROG_FLAG, &t.keep_going,
			"an error ends only the use of that GPU"},
		{"unchecked", PROG_FLAG, &t.unchecked,
			"do not compare the memory at the end"},
	};

	prog_options(argc, argv, "Uses GPUs in the way that the options say.", options,
		sizeof(options) / sizeof(options[0]));
	if (t.gpus < 1 || t.gpus > GPUS_MAX || t.work > 100 || t.share > 100 ||
		!t.period_ms || !set_term()) {
		fprintf(stderr,
			"%s: 1 to %d GPUs, at most 100 %%, a period above 0, "
			"SIGTERM die, ignore or finish\n",
			argv[0], GPUS_MAX);
		exit(PROG_USAGE);
	}
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	t.random = t.seed;
	t.until_ms = UINT64_MAX;
	prog_say("{\"event\":\"start\",\"pid\":%d}", (int)getpid());
	PROG_MUST(cuInit(0));
	for (uint64_t i = 0; i < t.gpus; i++)
		open_gpu(i);
	t.until_ms = prog_now_ms() + t.ms;
	if (t.endless)
		launch_endless();
	live();
	if (told)
		prog_say("{\"event\":\"term\"}");
	if (t.endless)
		end_endless();
	close_all();
	say_end();
	if (t.wrong)
		return PROG_WRONG;
	return t.errors ? PROG_DRIVER : PROG_OK;
}
