/*
 * told - from a collision to the victim's SIGTERM
 *
 * A victim is a process with a workload of its own that has nearly all of the GPU in the daemon's
 * accounts, far above its request. The bench, of higher priority, asks for more than is left. The
 * time begins just before the ASK is sent, so it includes the way to the daemon. It ends at the
 * first line of the victim's SIGTERM handler, so it includes the wake-up: more than the budget
 * counts. To show the kernel's part of that time, the bench also signals such a process itself. The
 * daemon must run with `resolvers: priority wait`; tests/bench/run sees to that.
 */
#include "bench.h"

#include "ask.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define ROUNDS_LEAST 40
#define ROUNDS_MOST  1000
#define SPAN_NS      (15 * SL_S)
#define LIMIT_NS     (10 * SL_S)
#define LEFT_BYTES   (64 * SL_MIB)
#define WANTED_BYTES (256 * SL_MIB)

struct board {
	uint32_t ready;
	sl_ns told;
};

static struct board *board;
static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];

static void on_term(int number)
{
	__atomic_store_n(&board->told, sl_clock_now(), __ATOMIC_RELEASE);
	_exit(0);
}

static void victim_main(uint64_t bytes)
{
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	struct sl_msg_use_row use;
	int control, fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGTERM, on_term);
	control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	bench_register(control, "bench-victim", bytes + LEFT_BYTES, 0, token);
	fd = bench_dial(SL_ROLE_CLIENT, token, NULL);
	bench_reported(fd);
	bench_ask(fd, 1, bytes);
	bench_collect(fd, 1, bytes);
	/* Messages of two connections may pass each other. */
	do
		bench_require(bench_use(control, "bench-victim", &use), "no victim");
	while (use.backing_bytes != bytes);
	__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		(void)pause();
}

static uint64_t free_bytes(int control)
{
	struct sl_msg_gpu_row gpu;

	bench_gpu(control, &gpu);
	return gpu.free_bytes;
}

/* Until the victim before it is gone from the books, too. */
static uint64_t wait_until_free(int control, uint64_t bytes)
{
	sl_ns give_up = sl_clock_now() + LIMIT_NS;
	uint64_t now_free;

	while ((now_free = free_bytes(control)) < bytes) {
		bench_require(sl_clock_now() < give_up, "the GPU does not get free");
		sl_clock_sleep(5 * SL_MS);
	}
	return now_free;
}

/* Waiting for its death, not for its word, leaves both cores to the daemon and to it. */
static void wait_for_death(pid_t pid)
{
	sl_cleanup(sl_closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	int status = 0;

	bench_require(pidfd >= 0 && poll(&poll_fd, 1, LIMIT_NS / SL_MS) == 1,
		"the victim is not stopped; does the daemon run with 'resolvers: "
		"priority wait'?");
	bench_require(waitpid(pid, &status, 0) == pid && status == 0,
		"the victim ended with %#x", status);
}

static sl_ns run_round(int client, uint64_t ask, uint64_t bytes)
{
	sl_ns begin, give_up = sl_clock_now() + LIMIT_NS;
	pid_t pid;

	*board = (struct board){0};
	pid = fork();
	bench_require(pid >= 0, "no process");
	if (pid == 0)
		victim_main(bytes);
	while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE)) {
		bench_require(sl_clock_now() < give_up, "the victim does not start");
		sl_clock_sleep(SL_MS);
	}
	begin = sl_clock_now();
	bench_ask(client, ask, WANTED_BYTES);
	wait_for_death(pid);
	bench_require(board->told >= begin, "the victim was not told");
	bench_collect(client, ask, 0);
	return board->told - begin;
}

/* The kernel's time from a signal to its handler, whichever process sends it. */
static sl_ns run_bare_round(void)
{
	sl_ns begin;
	pid_t pid;

	*board = (struct board){0};
	pid = fork();
	bench_require(pid >= 0, "no process");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGTERM, on_term);
		__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
		for (;;)
			(void)pause();
	}
	while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE))
		sl_clock_sleep(SL_MS);
	sl_clock_sleep(2 * SL_MS); /* it sleeps by now, as a victim does */
	begin = sl_clock_now();
	bench_require(kill(pid, SIGTERM) == 0, "no victim");
	wait_for_death(pid);
	return board->told - begin;
}

static void measure_bare(void)
{
	struct bench_samples *bare = bench_samples_new();
	sl_ns begin = sl_clock_now();

	for (int i = 0; bench_more(i, ROUNDS_LEAST, ROUNDS_MOST, begin, SPAN_NS); i++)
		bench_samples_add(bare, run_bare_round());
	bench_emit(BENCH_TOLD_BARE, "median",
		(double)bench_quantile(bare, 500) / (double)SL_US);
	bench_emit(BENCH_TOLD_BARE, "p99",
		(double)bench_quantile(bare, 990) / (double)SL_US);
	free(bare);
}

int bench_part_told(int argc, char **argv)
{
	struct bench_samples *told = bench_samples_new();
	sl_cleanup(sl_closep) int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	sl_cleanup(sl_closep) int client = -1;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	sl_ns begin = sl_clock_now();
	uint64_t all = free_bytes(control);

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench_require(board != MAP_FAILED, "out of memory");
	bench_register(control, "bench-asker", 2 * WANTED_BYTES, 5, token);
	client = bench_dial(SL_ROLE_CLIENT, token, NULL);
	bench_reported(client);
	for (int i = 0; bench_more(i, ROUNDS_LEAST, ROUNDS_MOST, begin, SPAN_NS); i++) {
		uint64_t bytes = wait_until_free(control, all) - LEFT_BYTES;

		bench_samples_add(told, run_round(client, (uint64_t)i + 1, bytes));
	}
	bench_emit(BENCH_TOLD_MEDIAN, NULL,
		(double)bench_quantile(told, 500) / (double)SL_US);
	bench_emit(
		BENCH_TOLD_P99, NULL, (double)bench_quantile(told, 990) / (double)SL_US);
	free(told);
	measure_bare();
	return 0;
}
