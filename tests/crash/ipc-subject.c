/*
 * ipc-subject - walks through every step of sharing memory: hold, export, offer, open, map, close,
 * withdraw
 *
 * Two processes, of which either may be killed: the giver makes memory and offers it; the taker
 * (its child, this program again) opens, checks and changes it. One piece is shared for the whole
 * time and opened again and again. So after a daemon's death there is always an offer to repeat
 * and a process that asks for it. If the taker is killed the giver ends in the same way. Exit
 * status 0: every word was right; PROG_WRONG: one was not.
 */
#include "prog.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	CUipcMemHandle kept, round;
	uint64_t kept_bytes, round_bytes;
	uint32_t seed;
};

static CUfunction fill, check;
static CUdeviceptr bad;

static void ready(void)
{
	CUmodule module;

	prog_context(0);
	module = prog_kernels();
	fill = prog_kernel(module, "prog_fill");
	check = prog_kernel(module, "prog_check");
	PROG_MUST(cuMemAlloc_v2(&bad, 4));
}

static void must_be(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint32_t wrong = 0;

	PROG_MUST(prog_check(check, at, bytes, seed, bad, &wrong));
	if (!wrong)
		return;
	prog_say("{\"event\":\"wrong\",\"seed\":%u,\"words\":%u}", seed, wrong);
	exit(PROG_WRONG);
}

static void put(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	PROG_MUST(prog_fill(fill, at, bytes, seed));
	PROG_MUST(cuCtxSynchronize());
}

/* --- the taker -------------------------------------------------------------------------------- */

/* Between orders it opens the lasting piece again and again, so that soon after a daemon's death
 * it asks for memory that no process offers yet. */
static void pass_the_time(const struct order *order)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&more, 1, 0) == 0) {
		CUdeviceptr kept;

		PROG_MUST(cuIpcOpenMemHandle_v2(&kept, order->kept, 1));
		PROG_MUST(cuIpcCloseMemHandle(kept));
	}
}

static int take(void)
{
	struct order order;

	ready();
	while (read(STDIN_FILENO, &order, sizeof(order)) == sizeof(order)) {
		CUdeviceptr kept, round;

		PROG_MUST(cuIpcOpenMemHandle_v2(&kept, order.kept, 1));
		must_be(kept, order.kept_bytes, 1);
		PROG_MUST(cuIpcOpenMemHandle_v2(&round, order.round, 1));
		must_be(round, order.round_bytes, order.seed);
		put(round, order.round_bytes, order.seed + 1);
		PROG_MUST(cuIpcCloseMemHandle(round));
		PROG_MUST(cuIpcCloseMemHandle(kept));
		if (write(STDOUT_FILENO, "", 1) != 1)
			break;
		pass_the_time(&order);
	}
	return PROG_OK;
}

/* --- the giver -------------------------------------------------------------------------------- */

static pid_t start_taker(int *orders, int *answers)
{
	int down[2], up[2];
	pid_t pid;

	if (pipe(down) != 0 || pipe(up) != 0)
		exit(PROG_USAGE);
	pid = fork();
	if (pid == 0) {
		(void)dup2(down[0], STDIN_FILENO);
		(void)dup2(up[1], STDOUT_FILENO);
		(void)close(down[0]);
		(void)close(down[1]);
		(void)close(up[0]);
		(void)close(up[1]);
		(void)execl("/proc/self/exe", "ipc-subject", "--take", (char *)NULL);
		_exit(PROG_USAGE);
	}
	(void)close(down[0]);
	(void)close(up[1]);
	*orders = down[1];
	*answers = up[0];
	return pid;
}

static void end_as(pid_t taker)
{
	int status = 0;

	(void)waitpid(taker, &status, 0);
	if (WIFSIGNALED(status))
		(void)raise(WTERMSIG(status));
	exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : PROG_DRIVER);
}

static void one_round(pid_t taker, int orders, int answers, struct order *order)
{
	CUdeviceptr at;
	char answer;

	PROG_MUST(cuMemAlloc_v2(&at, order->round_bytes));
	put(at, order->round_bytes, order->seed);
	PROG_MUST(cuIpcGetMemHandle(&order->round, at));
	if (write(orders, order, sizeof(*order)) != sizeof(*order) ||
		read(answers, &answer, 1) != 1)
		end_as(taker);
	must_be(at, order->round_bytes, order->seed + 1);
	PROG_MUST(cuMemFree_v2(at));
}

static int give(uint64_t ms)
{
	struct order order = {.kept_bytes = 70 << 20, .round_bytes = 20 << 20, .seed = 2};
	uint64_t until_ms = prog_now_ms() + ms;
	int orders, answers;
	pid_t taker;
	CUdeviceptr at;

	/* A write to a taker that is dead is an answer. */
	(void)signal(SIGPIPE, SIG_IGN);
	taker = start_taker(&orders, &answers);
	ready();
	PROG_MUST(cuMemAlloc_v2(&at, order.kept_bytes));
	put(at, order.kept_bytes, 1);
	PROG_MUST(cuIpcGetMemHandle(&order.kept, at));
	prog_say("{\"event\":\"held\"}");
	while (prog_now_ms() < until_ms) {
		one_round(taker, orders, answers, &order);
		order.seed += 2;
	}
	(void)close(orders);
	must_be(at, order.kept_bytes, 1);
	prog_say("{\"event\":\"end\",\"rounds\":%u}", order.seed / 2 - 1);
	return waitpid(taker, NULL, 0) == taker ? PROG_OK : PROG_USAGE;
}

int main(int argc, char **argv)
{
	uint64_t ms = 2500;
	bool taker = false;
	const struct prog_option options[] = {
		{"ms", PROG_NUMBER, &ms, "time to share memory for"},
		{"take", PROG_FLAG, &taker, "be the one that opens it"},
	};

	prog_options(argc, argv, "Shares memory between two processes.", options,
		sizeof(options) / sizeof(options[0]));
	return taker ? take() : give(ms);
}
