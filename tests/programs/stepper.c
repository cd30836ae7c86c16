/*
 * stepper - a job with a result: so many steps, each of which needs the memory of the one before on
 * the GPU
 *
 * A step checks every page for what the step before wrote, and writes it anew. It moves a word on
 * the GPU from one state to the next (word * 3 + step). So lost memory, a step that was left out
 * and one that was done twice all show. At the latest they show in the result, which is worked out
 * on the CPU as well. Nothing is kept outside the process: a process that starts again begins at
 * step 1.
 *
 * Lines: "begin" with the attempt (of $SLUICE_ATTEMPT); "step" after each; "end" with the result,
 * and whether it is right.
 */
#include "prog.h"

#include <stdlib.h>
#include <unistd.h>

/* The longest wait for a file: only a test that failed has no such file by then. */
enum { UNTIL_MS = 100000 };

static uint64_t steps = 10, bytes = 64 << 20, ms = 100, seed = 1;
static const char *until;

/* What the words of a page come to after the last step, and the word that counts. */
static uint32_t expected(void)
{
	uint32_t word = (uint32_t)seed, sum = 0;

	for (uint64_t i = 1; i <= steps; i++)
		word = word * 3 + (uint32_t)i;
	for (uint64_t i = 0; i < (bytes + 4095) / 4096; i++)
		sum += prog_mix((uint32_t)(seed + steps), i);
	return word ^ sum;
}

/* As the GPU has it, page by page. */
static uint32_t result(CUdeviceptr data, CUdeviceptr word)
{
	uint32_t out = 0, sum = 0;

	PROG_MUST(cuMemcpyDtoH_v2(&out, word, sizeof(out)));
	for (uint64_t at = 0; at < bytes; at += 4096) {
		uint32_t first;

		PROG_MUST(cuMemcpyDtoH_v2(&first, data + at, sizeof(first)));
		sum += first;
	}
	return out ^ sum;
}

int main(int argc, char **argv)
{
	const struct prog_option options[] = {
		{"steps", PROG_NUMBER, &steps, "how many"},
		{"bytes", PROG_SIZE, &bytes, "of memory"},
		{"ms", PROG_NUMBER, &ms, "pause after each step"},
		{"seed", PROG_NUMBER, &seed, "what it begins with"},
		{"until", PROG_TEXT, &until, "wait for such a file before the last step"},
	};
	const char *attempt = getenv("SLUICE_ATTEMPT");
	CUfunction fill, check, step;
	CUdeviceptr data, word, bad;
	uint32_t wrong = 0, factor = 3, got;
	CUmodule module;

	prog_options(argc, argv, "Does steps that build on each other.", options,
		sizeof(options) / sizeof(options[0]));
	prog_say("{\"event\":\"begin\",\"pid\":%d,\"attempt\":%d}", (int)getpid(),
		attempt ? atoi(attempt) : 0);
	(void)prog_context(0);
	module = prog_kernels();
	fill = prog_kernel(module, "prog_fill");
	check = prog_kernel(module, "prog_check");
	step = prog_kernel(module, "prog_step");
	PROG_MUST(cuMemAlloc_v2(&data, bytes));
	PROG_MUST(cuMemAlloc_v2(&word, sizeof(uint32_t)));
	PROG_MUST(cuMemAlloc_v2(&bad, sizeof(uint32_t)));
	PROG_MUST(cuMemsetD32_v2(word, (uint32_t)seed, 1));
	PROG_MUST(prog_fill(fill, data, bytes, (uint32_t)seed));
	for (uint64_t i = 1; i <= steps; i++) {
		uint32_t add = (uint32_t)i;
		void *args[] = {&word, &factor, &add};

		if (until && i == steps)
			prog_rest(UNTIL_MS, until);
		PROG_MUST(prog_check(
			check, data, bytes, (uint32_t)(seed + i - 1), bad, &got));
		wrong += got;
		PROG_MUST(prog_fill(fill, data, bytes, (uint32_t)(seed + i)));
		PROG_MUST(prog_launch(step, 1, NULL, args));
		PROG_MUST(cuCtxSynchronize());
		prog_say("{\"event\":\"step\",\"n\":%llu,\"wrong\":%u}",
			(unsigned long long)i, got);
		prog_sleep_ms(ms);
	}
	got = result(data, word);
	prog_say("{\"event\":\"end\",\"result\":%u,\"wrong\":%u,\"right\":%s}", got,
		wrong, !wrong && got == expected() ? "true" : "false");
	return !wrong && got == expected() ? PROG_OK : PROG_WRONG;
}
