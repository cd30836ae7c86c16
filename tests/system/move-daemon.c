/*
 * move-daemon - a daemon that does what it is told: the client's side of a move, step by step
 *
 * It stands in for sluiced in a test that plays the rest, that is sluice-move. It grants
 * everything. Its workload has the GPUs of the numbers given, without limit.
 *
 *   move-daemon SOCKET NUMBER...
 *
 * Lines on stdin, for all clients; "done" follows once all have answered:
 *	evict    restore           All memory goes to the host, and back.
 *	close    open              Gate and door.
 *	place ORDINAL NUMBER       The ordinal is on that GPU from now on.
 * It ends with stdin.
 */
#include "base/cuda_abi.h"
#include "wire/wire.h"
#include "prog.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS_MAX = 8, GPUS_MAX = 8, ANSWER_MS = 40000, STORE_MIB = 512 };

static struct client {
	int fd; /* -1: free */
	uint64_t evicted[GPUS_MAX], order;
	bool has_store;
} clients[CLIENTS_MAX];
static uint32_t first[GPUS_MAX], now[GPUS_MAX], gpu_count;
static CUuuid uuids[GPUS_MAX];
static size_t total;
static uint64_t last_order, last_epoch;
static int listener;

static void die(const char *what)
{
	prog_say("{\"error\":\"%s\"}", what);
	exit(PROG_WRONG);
}

static void say(struct client *c, const union sl_msg *msg)
{
	if (c->fd >= 0 && sl_wire_send(c->fd, msg) != SL_WIRE_OK) {
		(void)close(c->fd);
		c->fd = -1;
	}
}

static void say_gpu(struct client *c, uint32_t ordinal)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GPU);
	msg.gpu.ordinal = ordinal;
	msg.gpu.number = now[ordinal];
	msg.gpu.first_number = first[ordinal];
	memcpy(msg.gpu.uuid, &uuids[now[ordinal]], sizeof(msg.gpu.uuid));
	memcpy(msg.gpu.first_uuid, &uuids[first[ordinal]], sizeof(msg.gpu.first_uuid));
	msg.gpu.total_bytes = msg.gpu.limit_bytes = total;
	say(c, &msg);
}

static void welcome(struct client *c)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.welcome.daemon_epoch = 1;
	msg.welcome.client = (uint64_t)(c - clients) + 1;
	msg.welcome.workload = 1;
	msg.welcome.gpu_count = gpu_count;
	say(c, &msg);
	for (uint32_t i = 0; i < gpu_count; i++)
		say_gpu(c, i);
}

static void grant(struct client *c, const struct sl_msg_ask *ask)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GRANT);
	msg.grant.ask = ask->ask;
	msg.grant.epoch = ++last_epoch;
	msg.grant.bytes = ask->bytes;
	say(c, &msg);
}

static void give_store(struct client *c)
{
	int fd = memfd_create("move-daemon", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	union sl_msg msg;

	if (c->has_store || fd < 0 || ftruncate(fd, (off_t)STORE_MIB << 20) != 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		(void)close(fd);
		return;
	}
	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = 1;
	msg.store.bytes = (uint64_t)STORE_MIB << 20;
	c->has_store = sl_wire_send_fds(c->fd, &msg, &fd, 1) == SL_WIRE_OK;
	(void)close(fd);
}

static void on_message(struct client *c, const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_HELLO: welcome(c); break;
	case SL_MSG_ASK: grant(c, &msg->ask); break;
	case SL_MSG_MEASURE: say_gpu(c, msg->measure.ordinal % gpu_count); break;
	case SL_MSG_SWAPPED:
		c->evicted[msg->swapped.ordinal % GPUS_MAX] = msg->swapped.evicted_bytes;
		c->order = c->order == msg->swapped.order ? 0 : c->order;
		break;
	case SL_MSG_GATE_DONE:
		c->order = c->order == msg->gate_done.order ? 0 : c->order;
		break;
	default: break;
	}
}

static void hear(struct client *c)
{
	struct sl_wire_fds fds;
	struct sl_error error;
	union sl_msg msg;
	int result = sl_wire_recv_fds(c->fd, SL_FROM_CLIENT, &msg, &fds, &error);

	sl_wire_fds_close(&fds);
	if (result == SL_WIRE_OK) {
		on_message(c, &msg);
	} else if (result != SL_WIRE_AGAIN) {
		(void)close(c->fd);
		*c = (struct client){.fd = -1};
	}
}

static void take_in(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), i = 0;

	while (i < CLIENTS_MAX && clients[i].fd >= 0)
		i++;
	if (fd < 0 || i == CLIENTS_MAX)
		die("too many clients");
	clients[i] = (struct client){.fd = fd};
}

/* Takes what comes within so long. True: a line is on stdin. */
static bool serve(int wait_ms)
{
	struct pollfd ready[CLIENTS_MAX + 2] = {
		{STDIN_FILENO, POLLIN, 0}, {listener, POLLIN, 0}};

	for (int i = 0; i < CLIENTS_MAX; i++)
		ready[i + 2] = (struct pollfd){clients[i].fd, POLLIN, 0};
	(void)poll(ready, CLIENTS_MAX + 2, wait_ms);
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (clients[i].fd >= 0 && ready[i + 2].revents)
			hear(&clients[i]);
	if (ready[1].revents)
		take_in();
	return ready[0].revents;
}

/* Until it has answered, or is gone. */
static void order(struct client *c, union sl_msg *msg)
{
	uint64_t end_ms = prog_now_ms() + ANSWER_MS;

	c->order = last_order;
	say(c, msg);
	while (c->fd >= 0 && c->order) {
		if (prog_now_ms() > end_ms)
			die("an order is not answered");
		(void)serve(50);
	}
}

static void set_door(struct client *c, bool closed)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GATE);
	msg.gate.order = ++last_order;
	msg.gate.closed = closed;
	order(c, &msg);
}

static void evict(struct client *c, uint32_t ordinal)
{
	union sl_msg msg;

	give_store(c);
	sl_wire_init(&msg, SL_MSG_EVICT);
	msg.evict.order = ++last_order;
	msg.evict.ordinal = ordinal;
	msg.evict.deadline_ms = ANSWER_MS / 2;
	msg.evict.bytes = UINT64_MAX;
	order(c, &msg);
	if (c->fd >= 0 && !c->evicted[ordinal])
		die("nothing has left");
}

static void restore(struct client *c, uint32_t ordinal)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RESTORE);
	msg.restore.order = ++last_order;
	msg.restore.ordinal = ordinal;
	msg.restore.bytes = UINT64_MAX;
	order(c, &msg);
	if (c->fd >= 0 && c->evicted[ordinal])
		die("not all is back");
}

static void place(const char *line)
{
	unsigned int ordinal, number;

	if (sscanf(line, "place %u %u", &ordinal, &number) != 2 || ordinal >= gpu_count ||
		number >= GPUS_MAX)
		die("no such place");
	now[ordinal] = number;
	for (int i = 0; i < CLIENTS_MAX; i++)
		say_gpu(&clients[i], ordinal);
}

static void obey(const char *line)
{
	if (strncmp(line, "place", 5) == 0)
		place(line);
	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &clients[i];

		if (c->fd < 0)
			continue;
		if (strcmp(line, "open\n") == 0 || strcmp(line, "close\n") == 0)
			set_door(c, *line == 'c');
		for (uint32_t gpu = 0; gpu < gpu_count; gpu++) {
			if (strcmp(line, "evict\n") == 0)
				evict(c, gpu);
			else if (strcmp(line, "restore\n") == 0)
				restore(c, gpu);
		}
	}
	prog_say("{\"event\":\"done\"}");
}

static void start(const char *path, int numbers, char **number)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int count;

	PROG_MUST(cuInit(0));
	PROG_MUST(cuDeviceGetCount(&count));
	for (int i = 0; i < count && i < GPUS_MAX; i++)
		PROG_MUST(cuDeviceGetUuid(&uuids[i], i));
	PROG_MUST(cuDeviceTotalMem_v2(&total, 0));
	for (int i = 0; i < numbers && i < GPUS_MAX; i++)
		first[gpu_count] = now[gpu_count] = (uint32_t)atoi(number[i]),
		gpu_count++;
	for (int i = 0; i < CLIENTS_MAX; i++)
		clients[i].fd = -1;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (listener < 0 ||
		bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(listener, 4) < 0)
		die("cannot listen");
	prog_say("{\"event\":\"listening\"}");
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc < 3)
		return PROG_USAGE;
	/* No line is read ahead, so poll tells of each. */
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	start(argv[1], argc - 2, argv + 2);
	for (;;) {
		if (!serve(1000))
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return PROG_OK;
		obey(line);
	}
}
