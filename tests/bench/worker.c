/*
 * worker - both ends: the bench that starts and orders, and the process that obeys
 *
 * Orders and answers are datagrams on a socket pair; its number is on the worker's command line.
 * `sluice run` becomes the program by exec, so the descriptor and the pid of the fork stay valid.
 */
#include "worker.h"

#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define LIMIT_S   60
#define SMALL_MAX 16384

extern char **environ;

/* --- the side that orders ------------------------------------------------------------------- */

static void become_worker(int fd, const char *sluice_name, const char *const options[])
{
	sl_cleanup(sl_freep) char *self = bench_path("tests/bench/bench");
	sl_cleanup(sl_freep) char *sluice = bench_path("sluice");
	const char *argv[16] = {sluice, "run", "--name", sluice_name};
	char number[16];
	size_t n = 4;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)fcntl(fd, F_SETFD, 0);
	(void)snprintf(number, sizeof(number), "%d", fd);
	while (options && *options && n < 10)
		argv[n++] = *options++;
	argv[n++] = "--";
	argv[n++] = self;
	argv[n++] = "worker";
	argv[n++] = number;
	if (sluice_name)
		(void)execv(sluice, (char *const *)argv);
	else
		(void)execl(self, self, "worker", number, (char *)NULL);
	bench_die("%s: %s", sluice_name ? sluice : self, strerror(errno));
}

void bench_worker_start(struct bench_worker *worker, const char *sluice_name)
{
	bench_worker_start_with(worker, sluice_name, NULL);
}

void bench_worker_start_with(
	struct bench_worker *worker, const char *sluice_name, const char *const options[])
{
	int pair[2];

	bench_require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0,
		"no socket pair");
	worker->name = sluice_name ? sluice_name : "native worker";
	worker->pid = fork();
	bench_require(worker->pid >= 0, "no process");
	if (worker->pid == 0)
		become_worker(pair[1], sluice_name, options);
	(void)close(pair[1]);
	worker->fd = pair[0];
}

void bench_worker_send(
	struct bench_worker *worker, enum bench_verb verb, uint32_t count, uint64_t bytes)
{
	struct bench_order order = {.verb = verb, .count = count, .bytes = bytes};

	bench_require(
		send(worker->fd, &order, sizeof(order), MSG_NOSIGNAL) == sizeof(order),
		"%s is gone", worker->name);
}

void bench_worker_wait(
	struct bench_worker *worker, struct bench_reply *reply, int limit_s)
{
	struct pollfd poll_fd = {.fd = worker->fd, .events = POLLIN};
	int r = poll(&poll_fd, 1, limit_s * 1000);

	bench_require(r == 1, "%s did not answer within %d s", worker->name, limit_s);
	bench_require(recv(worker->fd, reply, sizeof(*reply), 0) == sizeof(*reply),
		"%s died", worker->name);
	bench_require(reply->result == 0, "%s: order %u failed: %d", worker->name,
		reply->verb, reply->result);
}

void bench_worker_do(struct bench_worker *worker, enum bench_verb verb, uint32_t count,
	uint64_t bytes, struct bench_reply *reply)
{
	bench_worker_send(worker, verb, count, bytes);
	bench_worker_wait(worker, reply, LIMIT_S);
}

void bench_worker_stop(struct bench_worker *worker)
{
	(void)kill(worker->pid, SIGKILL);
	(void)waitpid(worker->pid, NULL, 0);
	sl_closep(&worker->fd);
}

/* --- the side that obeys -------------------------------------------------------------------- */

/* The loaded memory, in pieces of held_bytes each, of which `held` is the last; or held alone. */
#define PIECES_MAX 64
static CUdeviceptr piece[PIECES_MAX], held;
static uint32_t pieces;
static uint64_t held_bytes;

static void add(struct bench_reply *reply, uint64_t sample)
{
	if (reply->count < BENCH_REPLY_MAX)
		reply->sample[reply->count++] = sample;
}

static int hold(const struct bench_order *order, struct bench_reply *reply)
{
	int r;

	pieces = 0;
	add(reply, sl_clock_now());
	r = (int)bench_cu.cuMemAlloc_v2(&held, order->bytes);
	held_bytes = order->bytes;
	add(reply, sl_clock_now());
	return r;
}

static int let_go(struct bench_reply *reply)
{
	int r;

	add(reply, sl_clock_now());
	r = (int)bench_cu.cuMemFree_v2(held);
	add(reply, sl_clock_now());
	return r;
}

static int write_all(const struct bench_order *order, struct bench_reply *reply)
{
	int r;

	add(reply, sl_clock_now());
	r = (int)bench_cu.cuMemsetD32_v2(held, order->count, held_bytes / 4);
	if (!r)
		r = (int)bench_cu.cuCtxSynchronize();
	add(reply, sl_clock_now());
	return r;
}

static int read_last(struct bench_reply *reply)
{
	uint32_t word;
	int r;

	add(reply, sl_clock_now());
	r = (int)bench_cu.cuMemcpyDtoH_v2(&word, held + held_bytes - 4, 4);
	add(reply, sl_clock_now());
	return r;
}

static int load(const struct bench_order *order, struct bench_reply *reply)
{
	void *plain = malloc(order->bytes);
	int r;

	if (!plain)
		return -1;
	memset(plain, 7, order->bytes);
	add(reply, sl_clock_now());
	r = (int)bench_cu.cuMemcpyHtoD_v2(held, plain, order->bytes);
	add(reply, sl_clock_now());
	free(plain);
	return r;
}

/* As a model is loaded: in the end the last piece is held. */
static int grow(const struct bench_order *order, struct bench_reply *reply)
{
	void *plain = order->count <= PIECES_MAX ? malloc(order->bytes) : NULL;
	int r = 0;

	if (!plain)
		return -1;
	memset(plain, 7, order->bytes);
	add(reply, sl_clock_now());
	for (pieces = 0; !r && pieces < order->count; pieces++) {
		r = (int)bench_cu.cuMemAlloc_v2(&held, order->bytes);
		piece[pieces] = held;
		if (!r)
			r = (int)bench_cu.cuMemcpyHtoD_v2(held, plain, order->bytes);
	}
	held_bytes = order->bytes;
	add(reply, sl_clock_now());
	free(plain);
	return r;
}

static int copy_both_ways(const struct bench_order *order, struct bench_reply *reply)
{
	void *pinned = NULL;
	CUstream stream = NULL;
	int r = (int)bench_cu.cuMemHostAlloc(&pinned, order->bytes, 0);

	if (!r)
		r = (int)bench_cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (!r)
		memset(pinned, 0, order->bytes); /* its pages exist now */
	for (uint32_t i = 0; !r && i < 2 * order->count; i++) {
		sl_ns begin = sl_clock_now();

		r = (int)(i % 2 ? bench_cu.cuMemcpyHtoDAsync_v2(
					  held, pinned, order->bytes, stream)
				: bench_cu.cuMemcpyDtoHAsync_v2(
					  pinned, held, order->bytes, stream));
		if (!r)
			r = (int)bench_cu.cuStreamSynchronize(stream);
		add(reply, sl_clock_now() - begin);
	}
	if (pinned)
		(void)bench_cu.cuMemFreeHost(pinned);
	return r;
}

/* A round takes a fraction of a millisecond; one that took this long waited for its memory. */
#define WAITED_NS   (30 * SL_MS)
#define ROUND_BYTES SL_MIB

/* Each round changes the next part of loaded memory, so that nothing stays clean. Of memory that is
 * only held, it changes always the same part. */
static int work_once(void)
{
	static uint32_t round;
	uint64_t parts = held_bytes / ROUND_BYTES;
	CUdeviceptr at = held;
	int r;

	if (pieces) {
		round++;
		at = piece[round / parts % pieces] + round % parts * ROUND_BYTES;
	}
	r = (int)bench_cu.cuMemsetD32_v2(at, round, ROUND_BYTES / 4);
	return r ? r : (int)bench_cu.cuCtxSynchronize();
}

static int work(const struct bench_order *order, struct bench_reply *reply)
{
	sl_ns end = sl_clock_now() + order->count * SL_MS, now;
	uint64_t sample[6] = {0}, before_first = 0;
	sl_ns first = 0;
	int r = 0;

	while (!r && (now = sl_clock_now()) < end) {
		uint64_t span;

		r = work_once();
		span = sl_clock_now() - now;
		sample[0]++;
		sample[span < WAITED_NS ? 1 : 2] += span;
		if (span >= WAITED_NS)
			sample[3] = sl_max_u64(sample[3], span);
		/* A turn begins: those before it are whole. */
		if (span >= WAITED_NS && !first) {
			first = now + span;
			before_first = sample[1];
		} else if (span >= WAITED_NS) {
			sample[4] = now + span - first;
			sample[5] = sample[1] - before_first;
		}
		if (order->bytes)
			sl_clock_sleep(order->bytes * SL_MS);
	}
	for (int i = 0; i < 6; i++)
		add(reply, sample[i]);
	return r;
}

static int large(const struct bench_order *order, struct bench_reply *reply)
{
	for (uint32_t i = 0; i < order->count; i++) {
		CUdeviceptr ptr = 0;
		sl_ns begin = sl_clock_now(), middle;
		int r = (int)bench_cu.cuMemAlloc_v2(&ptr, order->bytes);

		middle = sl_clock_now();
		if (!r)
			r = (int)bench_cu.cuMemFree_v2(ptr);
		if (r)
			return r;
		add(reply, middle - begin);
		add(reply, sl_clock_now() - middle);
		/* A freed region may be kept until work is seen finished; begin afresh. */
		(void)bench_cu.cuCtxSynchronize();
	}
	return 0;
}

static int small_pairs(const struct bench_order *order, struct bench_reply *reply)
{
	sl_ns begin = sl_clock_now();

	for (uint32_t i = 0; i < order->count; i++) {
		CUdeviceptr ptr = 0;
		int r = (int)bench_cu.cuMemAlloc_v2(&ptr, order->bytes);

		if (!r)
			r = (int)bench_cu.cuMemFree_v2(ptr);
		if (r)
			return r;
	}
	add(reply, sl_clock_now() - begin);
	return 0;
}

/* The pool's reserve serves all but the first. */
static int async_pairs(const struct bench_order *order, struct bench_reply *reply)
{
	sl_ns begin = sl_clock_now();

	for (uint32_t i = 0; i < order->count; i++) {
		CUdeviceptr ptr = 0;
		int r = (int)bench_cu.cuMemAllocAsync(&ptr, order->bytes, NULL);

		if (!r)
			r = (int)bench_cu.cuMemFreeAsync(ptr, NULL);
		if (r)
			return r;
	}
	add(reply, sl_clock_now() - begin);
	return 0;
}

static int small_batch(const struct bench_order *order, struct bench_reply *reply)
{
	static CUdeviceptr ptrs[SMALL_MAX];
	sl_ns begin = sl_clock_now();
	int r = order->count > SMALL_MAX;

	for (uint32_t i = 0; !r && i < order->count; i++)
		r = (int)bench_cu.cuMemAlloc_v2(&ptrs[i], order->bytes);
	for (uint32_t i = 0; !r && i < order->count; i++)
		r = (int)bench_cu.cuMemFree_v2(ptrs[i]);
	add(reply, sl_clock_now() - begin);
	return r;
}

/* Sizes as frameworks ask for them: many small ones, some blocks, a few large. */
static uint64_t heavy_bytes(uint64_t random)
{
	uint64_t kind = random % 100;

	random /= 100;
	if (kind < 70)
		return 256 + random % (64 * SL_KIB);
	if (kind < 95)
		return 64 * SL_KIB + random % (1 * SL_MIB);
	return kind < 99 ? 2 * SL_MIB : 16 * SL_MIB;
}

/* Each allocation takes the place of a random one of those alive, so ends come in any order. */
static int heavy(const struct bench_order *order, struct bench_reply *reply)
{
	CUdeviceptr *alive = calloc(order->bytes, sizeof(*alive));
	uint64_t random = 88172645463325252ull;
	sl_ns begin = sl_clock_now();
	int r = alive ? 0 : -1;

	for (uint32_t i = 0; !r && i < order->count; i++) {
		CUdeviceptr *slot;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		slot = &alive[random % order->bytes];
		if (*slot)
			r = (int)bench_cu.cuMemFree_v2(*slot);
		if (!r)
			r = (int)bench_cu.cuMemAlloc_v2(slot, heavy_bytes(random >> 11));
	}
	for (uint64_t i = 0; !r && i < order->bytes; i++)
		r = alive[i] ? (int)bench_cu.cuMemFree_v2(alive[i]) : 0;
	add(reply, sl_clock_now() - begin);
	free(alive);
	return r;
}

/* From before the fork to after the wait: what a shell script would see. */
static int start(char *const argv[], struct bench_reply *reply)
{
	sl_ns begin = sl_clock_now();
	int status = 0;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		return -1;
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	add(reply, sl_clock_now() - begin);
	return status;
}

static int start_program(enum bench_verb verb, struct bench_reply *reply)
{
	sl_cleanup(sl_freep) char *sluice = bench_path("sluice");
	sl_cleanup(sl_freep) char *starter = bench_path("tests/bench/starter");
	char *const plain[] = {(char[]){"/bin/true"}, NULL};
	char *const init[] = {starter, (char[]){"init"}, NULL};
	char *const use[] = {starter, (char[]){"context"}, NULL};
	char *const names[] = {starter, (char[]){"names"}, NULL};
	char *const run[] = {sluice, (char[]){"run"}, (char[]){"--"}, starter,
		(char[]){"context"}, NULL};

	switch (verb) {
	case BENCH_DO_START_TRUE: return start(plain, reply);
	case BENCH_DO_START_INIT: return start(init, reply);
	case BENCH_DO_START_USE: return start(use, reply);
	case BENCH_DO_START_NAMES: return start(names, reply);
	default: return start(run, reply);
	}
}

static int obey(const struct bench_order *order, struct bench_reply *reply)
{
	switch ((enum bench_verb)order->verb) {
	case BENCH_DO_CONTEXT: return bench_driver_context();
	case BENCH_DO_HOLD: return hold(order, reply);
	case BENCH_DO_LET_GO: return let_go(reply);
	case BENCH_DO_LARGE: return large(order, reply);
	case BENCH_DO_SMALL_PAIR: return small_pairs(order, reply);
	case BENCH_DO_ASYNC_PAIR: return async_pairs(order, reply);
	case BENCH_DO_SMALL_BATCH: return small_batch(order, reply);
	case BENCH_DO_HEAVY: return heavy(order, reply);
	case BENCH_DO_WRITE: return write_all(order, reply);
	case BENCH_DO_READ: return read_last(reply);
	case BENCH_DO_GROW: return grow(order, reply);
	case BENCH_DO_LOAD: return load(order, reply);
	case BENCH_DO_COPY: return copy_both_ways(order, reply);
	case BENCH_DO_WORK: return work(order, reply);
	case BENCH_DO_START_NAMES:
	case BENCH_DO_START_TRUE:
	case BENCH_DO_START_INIT:
	case BENCH_DO_START_USE:
	case BENCH_DO_START_RUN:
		return start_program((enum bench_verb)order->verb, reply);
	}
	return -1;
}

int bench_part_worker(int argc, char **argv)
{
	int fd = argc > 1 ? atoi(argv[1]) : -1;
	struct bench_order order;

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	while (recv(fd, &order, sizeof(order), 0) == sizeof(order)) {
		struct bench_reply reply = {.verb = order.verb};

		reply.result = obey(&order, &reply);
		if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			return 1;
	}
	return 0;
}
