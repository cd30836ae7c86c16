/*
 * holder - holds memory until told otherwise
 *
 * Says "ask" before each allocation and "held" after the last, so that a test can kill it while it
 * waits or while it holds. --fork forks a child before the first allocation, --fork-late after the
 * last. The child sleeps for --child-ms, so it can outlive its parent. It does not use the GPU, and
 * keeps copies of all descriptors but stdout.
 */
#include "prog.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void fork_sleeper(uint64_t ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		/* The reader of our output must not wait for the child's copy of it. */
		close(STDOUT_FILENO);
		prog_sleep_ms(ms);
		_exit(0);
	}
	prog_say("{\"event\":\"forked\",\"pid\":%d}", (int)pid);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 64 << 20, ms = 60000, child_ms = 20000, chunks = 1, gap_ms = 0;
	const char *until = NULL;
	bool fork_early = false, fork_late = false, verify = false;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "bytes to hold, per allocation"},
		{"count", PROG_NUMBER, &chunks, "allocations"},
		{"gap-ms", PROG_NUMBER, &gap_ms, "time between allocations"},
		{"ms", PROG_NUMBER, &ms, "time to hold them"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
		{"fork", PROG_FLAG, &fork_early, "fork a sleeper once a context exists"},
		{"fork-late", PROG_FLAG, &fork_late,
			"fork a sleeper once memory is held"},
		{"child-ms", PROG_NUMBER, &child_ms, "life of the sleeper"},
		{"verify", PROG_FLAG, &verify,
			"fill the memory, and check it at the end"},
	};
	CUmodule module = NULL;
	CUdeviceptr bad = 0, *at;
	uint32_t wrong = 0;

	prog_options(argc, argv, "Holds memory.", options,
		sizeof(options) / sizeof(options[0]));
	at = calloc(chunks, sizeof(*at));
	if (!at)
		return PROG_USAGE;
	prog_context(0);
	if (verify)
		module = prog_kernels();
	if (fork_early)
		fork_sleeper(child_ms);
	if (verify)
		PROG_MUST(cuMemAlloc_v2(&bad, 4));
	for (uint64_t i = 0; i < chunks; i++) {
		prog_sleep_ms(i ? gap_ms : 0);
		prog_say("{\"event\":\"ask\",\"bytes\":%llu}", (unsigned long long)bytes);
		PROG_MUST(cuMemAlloc_v2(&at[i], bytes));
		if (verify)
			PROG_MUST(prog_fill(prog_kernel(module, "prog_fill"), at[i],
				bytes, (uint32_t)i));
	}
	if (verify)
		PROG_MUST(cuCtxSynchronize());
	prog_say("{\"event\":\"held\",\"all\":1,\"bytes\":%llu}",
		(unsigned long long)(bytes * chunks));
	if (fork_late)
		fork_sleeper(child_ms);
	prog_rest(ms, until);
	for (uint64_t i = 0; i < chunks; i++) {
		uint32_t one = 0;

		if (verify)
			PROG_MUST(prog_check(prog_kernel(module, "prog_check"), at[i],
				bytes, (uint32_t)i, bad, &one));
		wrong += one;
		PROG_MUST(cuMemFree_v2(at[i]));
	}
	free(at);
	prog_say("{\"event\":\"end\",\"wrong\":%u}", wrong);
	return wrong ? PROG_WRONG : PROG_OK;
}
