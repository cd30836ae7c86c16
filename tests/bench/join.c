/*
 * join - 200 clients at once
 *
 * Real processes, each with its own pid, and so its own pidfd at the daemon. One closing pipe
 * starts them all; they connect, say HELLO and wait for WELCOME and their GPUs. Each times its own
 * join. `bench join` registers itself as their workload.
 */
#include "bench.h"

#include "ask.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define JOINERS 200
#define ROUNDS  5
#define LIMIT_S 30

struct lane {
	sl_ns begin, end;
};

struct round {
	struct lane lanes[JOINERS];
	uint32_t ready, done;
};

static void wait_for(const uint32_t *counter, uint32_t value, const char *what)
{
	sl_ns give_up = sl_clock_now() + LIMIT_S * SL_S;

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value) {
		bench_require(sl_clock_now() < give_up, "only %u of %u joiners %s",
			*counter, value, what);
		sl_clock_sleep(SL_MS);
	}
}

/* One joiner; stays connected until the second pipe closes. */
static void joiner(
	struct round *round, int index, const uint8_t *token, int go_fd, int end_fd)
{
	struct lane *lane = &round->lanes[index];
	char byte;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)__atomic_add_fetch(&round->ready, 1, __ATOMIC_ACQ_REL);
	(void)!read(go_fd, &byte, 1);
	lane->begin = sl_clock_now();
	fd = bench_dial(SL_ROLE_CLIENT, token, NULL);
	lane->end = sl_clock_now();
	bench_reported(fd);
	(void)__atomic_add_fetch(&round->done, 1, __ATOMIC_ACQ_REL);
	(void)!read(end_fd, &byte, 1);
	_exit(0);
}

static void run_round(struct round *round, const uint8_t *token,
	struct bench_samples *slowest_of, struct bench_samples *all_of)
{
	sl_ns slowest = 0, last = 0, begin;
	int go[2], end[2];

	*round = (struct round){0};
	bench_require(pipe(go) == 0 && pipe(end) == 0, "no pipe");
	for (int i = 0; i < JOINERS; i++) {
		pid_t pid = fork();

		bench_require(pid >= 0, "no process");
		if (pid == 0) {
			(void)close(go[1]);
			(void)close(end[1]);
			joiner(round, i, token, go[0], end[0]);
		}
	}
	(void)close(go[0]);
	(void)close(end[0]);
	wait_for(&round->ready, JOINERS, "started");
	begin = sl_clock_now();
	(void)close(go[1]);
	wait_for(&round->done, JOINERS, "joined");
	(void)close(end[1]);
	for (int i = 0; i < JOINERS; i++) {
		int status = 0;

		bench_require(wait(&status) > 0 && status == 0, "a joiner failed");
		slowest =
			sl_max_u64(slowest, round->lanes[i].end - round->lanes[i].begin);
		last = sl_max_u64(last, round->lanes[i].end);
	}
	bench_samples_add(slowest_of, slowest);
	bench_samples_add(all_of, last - begin);
}

int bench_part_join(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	struct round *round = mmap(NULL, sizeof(*round), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct bench_samples *slowest = bench_samples_new(), *all = bench_samples_new();
	sl_cleanup(sl_closep) int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);

	bench_require(round != MAP_FAILED, "out of memory");
	bench_register(control, "bench-join", 64 * SL_MIB, 0, token);
	for (int i = 0; i < ROUNDS; i++)
		run_round(round, token, slowest, all);
	bench_emit(BENCH_JOIN_SLOWEST, NULL,
		(double)bench_quantile(slowest, 500) / (double)SL_MS);
	bench_emit(BENCH_JOIN_WORST, NULL,
		(double)bench_quantile(slowest, 1000) / (double)SL_MS);
	bench_emit(
		BENCH_JOIN_ALL, NULL, (double)bench_quantile(all, 500) / (double)SL_MS);
	free(slowest);
	free(all);
	(void)munmap(round, sizeof(*round));
	return 0;
}
