/*
 * forker - a parent whose children use the GPU, each in its own way
 *
 * Children forked before the parent's cuInit may use the driver; those forked after it get
 * NOT_INITIALIZED from the driver and must fork and exec instead. Parent and exec'd children all
 * hold memory at once, so a layer that loses track of children shows wrong sums (peer-failures
 * row 25).
 */
#include "prog.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *until;

/* Takes memory, checks it, holds it. The whole life of a child that may use the driver. */
static int use_gpu(uint64_t bytes, uint64_t ms, const char *who)
{
	CUmodule module;
	CUdeviceptr at, bad;
	uint32_t wrong = 0;

	prog_context(0);
	module = prog_kernels();
	PROG_MUST(cuMemAlloc_v2(&at, bytes));
	PROG_MUST(cuMemAlloc_v2(&bad, 4));
	PROG_MUST(prog_fill(
		prog_kernel(module, "prog_fill"), at, bytes, (uint32_t)getpid()));
	PROG_MUST(cuCtxSynchronize());
	prog_say("{\"event\":\"held\",\"who\":\"%s\",\"pid\":%d,\"bytes\":%llu}", who,
		(int)getpid(), (unsigned long long)bytes);
	prog_rest(ms, until);
	PROG_MUST(prog_check(prog_kernel(module, "prog_check"), at, bytes,
		(uint32_t)getpid(), bad, &wrong));
	PROG_MUST(cuMemFree_v2(at));
	return wrong ? PROG_WRONG : PROG_OK;
}

/* After the parent's cuInit: the driver must refuse, in whatever call. */
static int late_child(void)
{
	CUdeviceptr at;
	CUresult init = cuInit(0), alloc = cuMemAlloc_v2(&at, 1024);

	prog_say("{\"event\":\"late\",\"init\":\"%s\",\"alloc\":\"%s\"}",
		prog_error_name(init), prog_error_name(alloc));
	return alloc == CUDA_SUCCESS ? PROG_WRONG : PROG_OK;
}

static int wait_all(int count)
{
	int worst = 0, status;

	while (count-- > 0) {
		if (wait(&status) < 0 || !WIFEXITED(status))
			return PROG_WRONG;
		if (WEXITSTATUS(status) > worst)
			worst = WEXITSTATUS(status);
	}
	return worst;
}

int main(int argc, char **argv)
{
	uint64_t bytes = 32 << 20, ms = 300, children = 2;
	bool child = false;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "bytes that each process holds"},
		{"ms", PROG_NUMBER, &ms, "time to hold them"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
		{"children", PROG_NUMBER, &children, "children of each kind"},
		{"child", PROG_FLAG, &child, "be an exec'd child"},
	};
	char bytes_text[32], ms_text[32];
	int running = 0, worst, own;

	prog_options(argc, argv, "Uses the GPU from parent and children.", options,
		sizeof(options) / sizeof(options[0]));
	if (child)
		return use_gpu(bytes, ms, "exec");
	for (uint64_t i = 0; i < children; i++, running++)
		if (fork() == 0)
			exit(use_gpu(bytes, ms, "early"));
	prog_context(0);
	if (fork() == 0)
		_exit(late_child());
	running++;
	snprintf(bytes_text, sizeof(bytes_text), "%llu", (unsigned long long)bytes);
	snprintf(ms_text, sizeof(ms_text), "%llu", (unsigned long long)ms);
	for (uint64_t i = 0; i < children; i++, running++) {
		if (fork() == 0) {
			execl("/proc/self/exe", argv[0], "--child", "--bytes", bytes_text,
				"--ms", ms_text, until ? "--until" : NULL, until,
				(char *)NULL);
			_exit(PROG_USAGE);
		}
	}
	own = use_gpu(bytes, ms, "parent");
	worst = wait_all(running);
	prog_say("{\"event\":\"end\",\"own\":%d,\"children\":%d}", own, worst);
	return own ? own : worst;
}
