/*
 * load - the daemon with 1,000 clients and 10,000 messages a second
 *
 * 50 workloads, each a process that registers itself and has 20 children: so 1,000 clients with a
 * pid each. Every client has a cycle of 400 ms, with an offset of its own: ASK, and when the GRANT
 * comes COMMIT; half a cycle later FREED and WORK. That is 10 messages a second from each, in a mix
 * that changes the accounts. Answers are read as they come.
 *
 * The daemon's CPU time is the kernel's count; its memory is the largest resident size since its
 * start. A row of its own counts messages that the clients could not send in time. The daemon may
 * be too slow, or the machine too small for a thousand processes.
 */
#include "bench.h"

#include "ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define WORKLOADS      50
#define CLIENTS_EACH   20
#define CLIENTS        (WORKLOADS * CLIENTS_EACH)
#define MESSAGES_PER_S 10000
#define TURN_NS        (400 * SL_MS) /* four messages */
#define ASK_BYTES      (2 * SL_MIB)
#define IDLE_NS        (2 * SL_S)
#define WARM_UP_NS     (1 * SL_S)
#define MEASURE_NS     (6 * SL_S)
#define LATENCIES_MAX  32
#define LIMIT_S        60

struct client {
	uint64_t sent;
	uint32_t latency_count;
	uint32_t latency_us[LATENCIES_MAX];
};

/* Shared by all processes of the load. */
struct board {
	uint32_t joined, failed, measuring, stop;
	sl_ns go; /* when turns begin; 0: not yet */
	struct client clients[CLIENTS];
};

static struct board *board;

/* --- a client --------------------------------------------------------------------------- */

struct turn {
	int fd;
	struct client *client;
	uint64_t ask;
	sl_ns asked;  /* 0: no answer is awaited */
	bool holding; /* granted, and FREED is due */
	sl_ns next;   /* when the next half turn begins */
};

static void count_sent(struct client *client, uint64_t messages)
{
	(void)__atomic_add_fetch(&client->sent, messages, __ATOMIC_RELAXED);
}

static void send_ask(struct turn *turn)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = ++turn->ask;
	msg.ask.bytes = ASK_BYTES;
	turn->asked = sl_clock_now();
	bench_send(turn->fd, &msg);
	count_sent(turn->client, 1);
}

static void send_commit(struct turn *turn, const struct sl_msg_grant *grant)
{
	uint64_t latency_us = (sl_clock_now() - turn->asked) / SL_US;
	struct client *client = turn->client;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = grant->epoch;
	msg.commit.used_bytes = grant->bytes;
	bench_send(turn->fd, &msg);
	count_sent(client, 1);
	turn->asked = 0;
	turn->holding = true;
	if (__atomic_load_n(&board->measuring, __ATOMIC_RELAXED) &&
		client->latency_count < LATENCIES_MAX)
		client->latency_us[client->latency_count++] = (uint32_t)latency_us;
}

static void send_freed(struct turn *turn)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.bytes = ASK_BYTES;
	bench_send(turn->fd, &msg);
	sl_wire_init(&msg, SL_MSG_WORK);
	msg.work.submissions = 1;
	bench_send(turn->fd, &msg);
	count_sent(turn->client, 2);
	turn->holding = false;
}

/* What the daemon says, until it has said all. */
static void read_answers(struct turn *turn)
{
	struct pollfd poll_fd = {.fd = turn->fd, .events = POLLIN};
	union sl_msg msg;

	while (poll(&poll_fd, 1, 0) == 1) {
		int r = sl_wire_recv(turn->fd, SL_FROM_DAEMON, &msg, NULL);

		bench_require(r == SL_WIRE_OK, "a client lost the daemon: %d", r);
		bench_require(
			msg.head.type != SL_MSG_DENY && msg.head.type != SL_MSG_REJECT,
			"a client was answered %s", sl_wire_name(msg.head.type));
		if (msg.head.type == SL_MSG_GRANT && msg.grant.ask == turn->ask)
			send_commit(turn, &msg.grant);
	}
}

static void half_turn(struct turn *turn)
{
	if (turn->holding)
		send_freed(turn);
	else if (!turn->asked)
		send_ask(turn);
	turn->next += TURN_NS / 2;
}

static void client_main(int index, const uint8_t *token)
{
	struct turn turn = {.client = &board->clients[index]};
	struct pollfd poll_fd = {.events = POLLIN};

	turn.fd = bench_dial(SL_ROLE_CLIENT, token, NULL);
	poll_fd.fd = turn.fd;
	bench_reported(turn.fd);
	(void)__atomic_add_fetch(&board->joined, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&board->stop, __ATOMIC_ACQUIRE)) {
		sl_ns go = __atomic_load_n(&board->go, __ATOMIC_ACQUIRE);
		sl_ns now = sl_clock_now(), wait_ns = 50 * SL_MS;

		if (go && !turn.next)
			turn.next = go + TURN_NS * (uint64_t)index / CLIENTS;
		if (turn.next)
			wait_ns = sl_min_u64(wait_ns, sl_sub_sat(turn.next, now));
		if (poll(&poll_fd, 1, (int)((wait_ns + SL_MS - 1) / SL_MS)) > 0)
			read_answers(&turn);
		if (turn.next && sl_clock_now() >= turn.next)
			half_turn(&turn);
	}
	_exit(0);
}

/* --- a workload --------------------------------------------------------------------------- */

static void on_exit_count(int status, void *unused)
{
	if (status)
		(void)__atomic_add_fetch(&board->failed, 1, __ATOMIC_ACQ_REL);
}

static void workload_main(int index)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	char name[32];
	int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);

	(void)snprintf(name, sizeof(name), "bench-load-%d", index);
	bench_register(control, name, 2 * CLIENTS_EACH * ASK_BYTES, 0, token);
	for (int i = 0; i < CLIENTS_EACH; i++) {
		pid_t pid = fork();

		bench_require(pid >= 0, "no process");
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)close(control);
			client_main(index * CLIENTS_EACH + i, token);
		}
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	_exit(0);
}

/* --- the daemon seen from outside --------------------------------------------------------- */

/* utime and stime of all its threads, in seconds. */
static double cpu_seconds(uint32_t pid)
{
	unsigned long long user = 0, system = 0;
	sl_cleanup(sl_freep) char *text = NULL;
	char path[64], *at;
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	bench_require(sl_file_read(path, 65536, &text, &size) == 0, "%s: gone", path);
	at = strrchr(text, ')');
	bench_require(
		at && sscanf(at + 2,
			      "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			      &user, &system) == 2,
		"%s: not understood", path);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double peak_rss_mib(uint32_t pid)
{
	unsigned long long kib = 0;
	sl_cleanup(sl_freep) char *text = NULL;
	char path[64], *at;
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
	bench_require(sl_file_read(path, 65536, &text, &size) == 0, "%s: gone", path);
	at = strstr(text, "VmHWM:");
	bench_require(at && sscanf(at, "VmHWM: %llu kB", &kib) == 1, "%s: not understood",
		path);
	return (double)kib / 1024;
}

static uint64_t sent_so_far(void)
{
	uint64_t sent = 0;

	for (int i = 0; i < CLIENTS; i++)
		sent += __atomic_load_n(&board->clients[i].sent, __ATOMIC_RELAXED);
	return sent;
}

static void wait_for_joiners(void)
{
	sl_ns give_up = sl_clock_now() + LIMIT_S * SL_S;

	while (__atomic_load_n(&board->joined, __ATOMIC_ACQUIRE) < CLIENTS) {
		bench_require(!board->failed, "%u clients failed to join", board->failed);
		bench_require(sl_clock_now() < give_up, "only %u clients joined",
			board->joined);
		sl_clock_sleep(10 * SL_MS);
	}
}

static double cores_over(uint32_t pid, sl_ns span, double *seconds)
{
	sl_ns begin = sl_clock_now();
	double cpu = cpu_seconds(pid);

	sl_clock_sleep(span);
	cpu = cpu_seconds(pid) - cpu;
	*seconds = (double)(sl_clock_now() - begin) / (double)SL_S;
	return cpu / *seconds;
}

static void measure(uint32_t pid)
{
	struct bench_samples *latency = bench_samples_new();
	double seconds, idle, load, rate;
	uint64_t sent;

	idle = cores_over(pid, IDLE_NS, &seconds);
	__atomic_store_n(&board->go, sl_clock_now(), __ATOMIC_RELEASE);
	sl_clock_sleep(WARM_UP_NS);
	__atomic_store_n(&board->measuring, 1, __ATOMIC_RELEASE);
	sent = sent_so_far();
	load = cores_over(pid, MEASURE_NS, &seconds);
	rate = (double)(sent_so_far() - sent) / seconds;
	__atomic_store_n(&board->measuring, 0, __ATOMIC_RELEASE);
	bench_require(!board->failed, "%u clients failed", board->failed);
	for (int i = 0; i < CLIENTS; i++) {
		for (uint32_t j = 0; j < board->clients[i].latency_count; j++)
			bench_samples_add(latency, board->clients[i].latency_us[j]);
	}
	bench_emit(BENCH_LOAD_CPU, NULL, load);
	bench_emit(BENCH_LOAD_IDLE, NULL, idle);
	bench_emit(BENCH_LOAD_RSS, NULL, peak_rss_mib(pid));
	bench_emit(BENCH_LOAD_RATE, NULL, rate);
	bench_emit(BENCH_LOAD_SHORT, NULL,
		rate < MESSAGES_PER_S ? 100 - 100 * rate / MESSAGES_PER_S : 0);
	bench_emit(BENCH_LOAD_ASK, NULL, (double)bench_quantile(latency, 990) / 1000);
	free(latency);
}

int bench_part_load(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct sl_msg_status_row status;
	int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);

	bench_status(control, &status);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench_require(board != MAP_FAILED, "out of memory");
	for (int i = 0; i < WORKLOADS; i++) {
		pid_t pid = fork();

		bench_require(pid >= 0, "no process");
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)on_exit(on_exit_count, NULL);
			(void)close(control);
			workload_main(i);
		}
	}
	wait_for_joiners();
	measure(status.pid);
	__atomic_store_n(&board->stop, 1, __ATOMIC_RELEASE);
	while (wait(NULL) > 0)
		;
	(void)close(control);
	return 0;
}
