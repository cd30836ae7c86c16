/*
 * subject - walks through every step that a client can be at: join, ask, wait, grant, free, exit
 *
 * It takes memory within its request, which must never fail, then again and again more than that,
 * which may be denied, until one such burst has come and gone; at the end every page is compared
 * with what was written. Exit status 0: all of it; PROG_WRONG: a page was wrong.
 */
#include "prog.h"

enum { PAUSE_MS = 50 };

static CUfunction fill, check;
static CUdeviceptr word;
static uint32_t wrong_all;

static void compare(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint32_t wrong = 0;

	PROG_MUST(prog_check(check, at, bytes, seed, word, &wrong));
	wrong_all += wrong;
}

/* True if it was granted. */
static bool burst(uint64_t bytes, uint64_t hold_ms, uint32_t seed)
{
	CUdeviceptr at = 0;
	CUresult r = cuMemAlloc_v2(&at, bytes);

	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return false;
	PROG_MUST(r);
	PROG_MUST(prog_fill(fill, at, bytes, seed));
	prog_sleep_ms(hold_ms);
	compare(at, bytes, seed);
	PROG_MUST(cuMemFree_v2(at));
	return true;
}

int main(int argc, char **argv)
{
	uint64_t bytes = 200 << 20, burst_bytes = 400 << 20, hold_ms = 200, bursts = 2;
	uint64_t patience_ms = 15000, done = 0, denied = 0, until_ms;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "memory within the request"},
		{"burst", PROG_SIZE, &burst_bytes, "memory above it"},
		{"hold-ms", PROG_NUMBER, &hold_ms, "time a burst is held"},
		{"bursts", PROG_NUMBER, &bursts, "bursts that must succeed"},
		{"patience-ms", PROG_NUMBER, &patience_ms, "time for them"},
	};
	CUdeviceptr own = 0;
	CUmodule module;

	prog_options(argc, argv, "Goes through all a client can go through.", options,
		sizeof(options) / sizeof(options[0]));
	prog_context(0);
	module = prog_kernels();
	fill = prog_kernel(module, "prog_fill");
	check = prog_kernel(module, "prog_check");
	PROG_MUST(cuMemAlloc_v2(&word, 4));
	PROG_MUST(cuMemAlloc_v2(&own, bytes));
	PROG_MUST(prog_fill(fill, own, bytes, 1));
	PROG_MUST(cuCtxSynchronize());
	prog_say("{\"event\":\"held\",\"bytes\":%llu}", (unsigned long long)bytes);
	until_ms = prog_now_ms() + patience_ms;
	while (done < bursts && prog_now_ms() < until_ms) {
		if (burst(burst_bytes, hold_ms, (uint32_t)done + 2)) {
			done++;
		} else {
			denied++;
			prog_sleep_ms(PAUSE_MS);
		}
	}
	compare(own, bytes, 1);
	PROG_MUST(cuMemFree_v2(own));
	prog_say("{\"event\":\"end\",\"wrong\":%u,\"bursts\":%llu,\"denied\":%llu}",
		wrong_all, (unsigned long long)done, (unsigned long long)denied);
	if (wrong_all)
		return PROG_WRONG;
	return done == bursts ? PROG_OK : PROG_USAGE;
}
