/*
 * gate-daemon - a daemon that grants everything and closes the gate again and again
 *
 * sluiced closes a gate only for a reason. This daemon stands in for it, with a program under real
 * load on a real driver. It serves one client: welcomes it, grants its demands, and all the while
 * closes its gate for a time drawn from the seed and opens it again. The client must answer every
 * order. Between a closed answer and the next opening it may submit nothing; the program shows that
 * by the longest time one of its calls took.
 *
 *   gate-daemon SOCKET CLOSED_MS_MAX [SEED [CYCLES FILE]]
 *
 * After CYCLES cycles it makes FILE, for a test that waits for them. It ends when the client does,
 * and prints {"cycles":...,"slowest_ms":...,"closed_ms":...}.
 */
#include "base/cuda_abi.h"
#include "wire/wire.h"
#include "prog.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Only a client that hangs takes so long. */
enum { ANSWER_MS = 20000 };

struct gates {
	int fd;
	uint64_t order, cycles, slowest_ms, closed_ms, random, epoch;
	bool answered, gone;
};

static void say(struct gates *g, const union sl_msg *msg)
{
	if (sl_wire_send(g->fd, msg) != SL_WIRE_OK)
		g->gone = true;
}

/* The one GPU there is, as the driver names it, without limit. */
static void say_gpu(struct gates *g)
{
	static CUuuid uuid;
	static size_t total;
	union sl_msg msg;

	if (!total) {
		PROG_MUST(cuInit(0));
		PROG_MUST(cuDeviceGetUuid(&uuid, 0));
		PROG_MUST(cuDeviceTotalMem_v2(&total, 0));
	}
	sl_wire_init(&msg, SL_MSG_GPU);
	memcpy(msg.gpu.uuid, &uuid, sizeof(msg.gpu.uuid));
	memcpy(msg.gpu.first_uuid, &uuid, sizeof(msg.gpu.first_uuid));
	msg.gpu.total_bytes = total;
	msg.gpu.limit_bytes = total;
	say(g, &msg);
}

static void welcome(struct gates *g)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.welcome.daemon_epoch = 1;
	msg.welcome.client = 1;
	msg.welcome.workload = 1;
	msg.welcome.gpu_count = 1;
	say(g, &msg);
	say_gpu(g);
}

static void grant(struct gates *g, const struct sl_msg_ask *ask)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GRANT);
	msg.grant.ask = ask->ask;
	msg.grant.epoch = ++g->epoch;
	msg.grant.bytes = ask->bytes;
	say(g, &msg);
}

/* Takes messages for so long, or until the last order is answered. */
static void serve(struct gates *g, uint64_t ms, bool until_answered)
{
	uint64_t stop_ms = prog_now_ms() + ms;

	while (!g->gone && !(until_answered && g->answered)) {
		struct pollfd ready = {g->fd, POLLIN, 0};
		uint64_t now_ms = prog_now_ms();
		union sl_msg msg;

		if (now_ms >= stop_ms)
			return;
		if (poll(&ready, 1, (int)(stop_ms - now_ms)) <= 0)
			continue;
		if (sl_wire_recv(g->fd, SL_FROM_CLIENT, &msg, NULL) != SL_WIRE_OK) {
			g->gone = true;
			return;
		}
		if (msg.head.type == SL_MSG_HELLO)
			welcome(g);
		else if (msg.head.type == SL_MSG_ASK)
			grant(g, &msg.ask);
		else if (msg.head.type == SL_MSG_MEASURE)
			say_gpu(g);
		else if (msg.head.type == SL_MSG_GATE_DONE &&
			 msg.gate_done.order == g->order)
			g->answered = true;
	}
}

/* Gives the order and waits for the answer. False if the client is gone or does not answer. */
static bool order(struct gates *g, bool closed)
{
	uint64_t start_ms = prog_now_ms();
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GATE);
	msg.gate.order = ++g->order;
	msg.gate.closed = closed;
	g->answered = false;
	say(g, &msg);
	serve(g, ANSWER_MS, true);
	if (prog_now_ms() - start_ms > g->slowest_ms)
		g->slowest_ms = prog_now_ms() - start_ms;
	if (!g->answered && !g->gone)
		prog_say("{\"error\":\"order %llu to %s was not answered\"}",
			(unsigned long long)g->order, closed ? "close" : "open");
	return g->answered;
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 4) < 0) {
		perror("gate-daemon: bind");
		exit(PROG_USAGE);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct gates g = {0};
	uint64_t closed_max_ms, enough;
	bool good = true;
	int listener;

	if (argc < 3)
		return PROG_USAGE;
	closed_max_ms = strtoull(argv[2], NULL, 10);
	g.random = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	enough = argc > 5 ? strtoull(argv[4], NULL, 10) : 0;
	listener = listen_at(argv[1]);
	prog_say("{\"event\":\"listening\"}");
	g.fd = accept(listener, NULL, NULL);
	/* HELLO, context, module: the load starts after that. */
	serve(&g, 700, false);
	while (good && !g.gone) {
		uint64_t closed_ms = prog_random(&g.random) % (closed_max_ms + 1);

		good = order(&g, true) || g.gone;
		serve(&g, closed_ms, false);
		g.closed_ms += closed_ms;
		good = good && (order(&g, false) || g.gone);
		serve(&g, prog_random(&g.random) % 10, false);
		if (++g.cycles == enough && creat(argv[5], 0600) < 0)
			good = false;
	}
	prog_say("{\"event\":\"end\",\"cycles\":%llu,\"slowest_ms\":%llu,\"closed_ms\":%"
		 "llu,"
		 "\"good\":%d}",
		(unsigned long long)g.cycles, (unsigned long long)g.slowest_ms,
		(unsigned long long)g.closed_ms, good);
	return good ? PROG_OK : PROG_WRONG;
}
