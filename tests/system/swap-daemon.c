/*
 * swap-daemon - a daemon that moves its clients' memory to the host and back for no reason
 *
 * sluiced moves memory when another client needs it, in a sensible order. This daemon stands in for
 * it to test the library with any possible order of messages. It grants everything and evicts all
 * or a few bytes. It aborts its latest order, restores at once or much later, and takes copies
 * back. It loses connections between orders and in the middle of one.
 *
 * It keeps the rules that the library may rely on: no order while a grant or another order of that
 * client is open, host memory before an EVICT (unless --stingy), no grant while anything is on the
 * host.
 *
 * The client must answer every order in time, with possible figures. The daemon ends after SIGTERM,
 * once the last client is gone. One line of JSON tells what was done; exit status 1 means that an
 * answer was wrong.
 */
#include "base/cuda_abi.h"
#include "wire/wire.h"
#include "prog.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Stores are remembered by their number; later ones are not given back here. */
enum { STORES_MAX = 512 };
enum { CLIENTS_MAX = 256, GPUS_MAX = 8, ASKS_MAX = 64, ANSWER_MS = 40000 };
enum { WAIT_MS = 15000 };

struct order {
	uint64_t id, since_ms, cut_ms; /* the line is lost then; 0: not in this one */
	enum sl_msg_type type;         /* 0: none open */
	uint32_t gpu;
	bool aborted;
};

struct client {
	int fd; /* -1: free */
	struct order order;
	uint64_t backing[GPUS_MAX], evicted[GPUS_MAX];
	uint64_t store_bytes, next_ms, shut_ms, stores[STORES_MAX];
	uint32_t store_number;
	struct ask {
		struct sl_msg_ask msg;
		uint64_t since_ms, epoch; /* 0: it waits */
		bool told;
	} asks[ASKS_MAX];
	size_t ask_count;
	bool reported, wants;
};

static struct client clients[CLIENTS_MAX];
static struct {
	uint64_t seed, pause_ms, lose, stingy;
	const char *socket;
} options = {.seed = 1, .pause_ms = 40};
static struct {
	uint64_t evicts, part, refused, restores, aborts, trims, backs, lost, asks, wants,
		cut, moved, clean, zero, captured, busy, no_host, driver, slowest_ms,
		failed, wrong;
} did;
static volatile sig_atomic_t is_over;
static uint64_t order_id, epoch, random_state;
static int gpu_count;
static CUuuid uuids[GPUS_MAX];
static size_t totals[GPUS_MAX];

static uint64_t draw(uint64_t below)
{
	return prog_random(&random_state) % below;
}

static void wrong(const struct client *c, const char *what, uint64_t value)
{
	did.wrong++;
	prog_say("{\"error\":\"%s\",\"client\":%d,\"value\":%llu,\"order\":%llu,"
		 "\"backing\":%llu,\"evicted\":%llu,\"lost\":%llu,\"cut\":%llu}",
		what, (int)(c - clients), (unsigned long long)value,
		(unsigned long long)c->order.id, (unsigned long long)c->backing[0],
		(unsigned long long)c->evicted[0], (unsigned long long)did.lost,
		(unsigned long long)did.cut);
}

static void drop(struct client *c)
{
	(void)close(c->fd);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

static void say(struct client *c, const union sl_msg *msg)
{
	/* A client that is gone shows when it is read from. */
	if (c->fd >= 0 && sl_wire_send(c->fd, msg) < 0)
		drop(c);
}

/* --- what a client needs to begin ------------------------------------------------------------- */

static void look_at_gpus(void)
{
	PROG_MUST(cuInit(0));
	PROG_MUST(cuDeviceGetCount(&gpu_count));
	if (gpu_count > GPUS_MAX)
		gpu_count = GPUS_MAX;
	for (int i = 0; i < gpu_count; i++) {
		PROG_MUST(cuDeviceGetUuid(&uuids[i], i));
		PROG_MUST(cuDeviceTotalMem_v2(&totals[i], i));
	}
}

static void say_gpu(struct client *c, uint32_t ordinal)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GPU);
	msg.gpu.ordinal = ordinal;
	memcpy(msg.gpu.uuid, &uuids[ordinal], sizeof(msg.gpu.uuid));
	memcpy(msg.gpu.first_uuid, &uuids[ordinal], sizeof(msg.gpu.first_uuid));
	msg.gpu.total_bytes = totals[ordinal];
	msg.gpu.limit_bytes = totals[ordinal];
	say(c, &msg);
}

static void welcome(struct client *c)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.welcome.daemon_epoch = 1;
	msg.welcome.client = (uint64_t)(c - clients) + 1;
	msg.welcome.workload = 1;
	msg.welcome.gpu_count = (uint32_t)gpu_count;
	say(c, &msg);
	for (int i = 0; i < gpu_count; i++)
		say_gpu(c, (uint32_t)i);
}

/* --- host memory ------------------------------------------------------------------------------ */

/* False: it was sent with no reader left; a lost peer shows when its socket is read. */
static bool give_store(struct client *c, uint64_t bytes)
{
	int fd = memfd_create("swap-daemon", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	union sl_msg msg;
	bool sent;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		perror("swap-daemon: memfd");
		exit(PROG_USAGE);
	}
	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = ++c->store_number;
	msg.store.bytes = bytes;
	sent = sl_wire_send_fds(c->fd, &msg, &fd, 1) == SL_WIRE_OK;
	if (sent) {
		c->store_bytes += bytes;
		c->stores[c->store_number % STORES_MAX] = bytes;
	}
	(void)close(fd);
	return sent;
}

/* In pieces of any size, as long as the chunks fit somewhere. */
static void give_room(struct client *c)
{
	uint64_t need = 96 << 20;

	for (int i = 0; i < gpu_count; i++)
		need += c->backing[i] + c->backing[i] / 2;
	while (c->store_bytes < need && give_store(c, (uint64_t)(64 + draw(192)) << 20))
		;
}

/* --- orders ----------------------------------------------------------------------------------- */

static bool is_out(const struct client *c)
{
	uint64_t out = 0;

	for (int i = 0; i < gpu_count; i++)
		out += c->evicted[i];
	return out > 0;
}

/* One in a few orders is cut off at any time while it is carried out. */
static uint64_t draw_cut_ms(uint64_t now_ms)
{
	return options.lose && draw(options.lose / 4 + 1) == 0 ? now_ms + 1 + draw(100)
							       : 0;
}

static void order(struct client *c, enum sl_msg_type type, uint32_t gpu, uint64_t bytes)
{
	uint64_t now_ms = prog_now_ms();
	union sl_msg msg;

	sl_wire_init(&msg, type);
	if (!c->shut_ms)
		c->shut_ms = now_ms;
	c->order =
		(struct order){++order_id, now_ms, draw_cut_ms(now_ms), type, gpu, false};
	if (type == SL_MSG_EVICT) {
		msg.evict.order = order_id;
		msg.evict.ordinal = gpu;
		msg.evict.deadline_ms = 100 + (uint32_t)draw(400);
		msg.evict.bytes = bytes;
		did.evicts++;
	} else {
		msg.restore.order = order_id;
		msg.restore.ordinal = gpu;
		msg.restore.bytes = bytes;
		did.restores++;
	}
	say(c, &msg);
}

static void order_abort(struct client *c)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ABORT);
	msg.abort.order = c->order.id;
	c->order.aborted = true;
	did.aborts++;
	say(c, &msg);
}

static void trim(struct client *c)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_TRIM);
	msg.trim.bytes = draw(UINT64_C(256) << 20);
	did.trims++;
	say(c, &msg);
}

static void evict_some(struct client *c)
{
	uint32_t gpu = (uint32_t)draw((uint64_t)gpu_count);
	uint64_t bytes = UINT64_MAX;

	if (c->backing[gpu] <= c->evicted[gpu])
		return;
	if (!options.stingy || draw(3))
		give_room(c);
	switch (draw(4)) {
	case 0: bytes = 1; break;
	case 1: bytes = 1 + draw(c->backing[gpu]); break;
	case 2: bytes = c->backing[gpu] - c->evicted[gpu]; break;
	default: break;
	}
	if (c->fd >= 0)
		order(c, SL_MSG_EVICT, gpu, bytes);
	if (c->fd >= 0 && draw(6) == 0)
		order_abort(c);
}

/* True if there was anything to bring back. */
static bool restore_next(struct client *c)
{
	for (int i = 0; i < gpu_count; i++) {
		if (c->evicted[i]) {
			order(c, SL_MSG_RESTORE, (uint32_t)i, c->evicted[i]);
			return true;
		}
	}
	return false;
}

/* Of those that wait, or those that are granted and neither committed nor failed. */
static size_t count_asks(const struct client *c, bool granted)
{
	size_t count = 0;

	for (size_t i = 0; i < c->ask_count; i++)
		count += (c->asks[i].epoch != 0) == granted;
	return count;
}

/* None is granted when it begins. */
static void grant_all(struct client *c)
{
	for (size_t i = 0; i < c->ask_count && c->fd >= 0; i++) {
		struct ask *ask = &c->asks[i];
		union sl_msg msg;

		ask->epoch = ++epoch;
		sl_wire_init(&msg, SL_MSG_GRANT);
		msg.grant.ask = ask->msg.ask;
		msg.grant.epoch = ask->epoch;
		msg.grant.bytes = ask->msg.bytes;
		/* Its bytes count from now: too many is as good as enough. */
		c->backing[ask->msg.ordinal % GPUS_MAX] += ask->msg.bytes;
		did.asks++;
		say(c, &msg);
	}
}

/* A very long wait is reported with its cause, so that a test that hangs says why. */
static void look_at_waits(struct client *c)
{
	uint64_t now_ms = prog_now_ms();

	for (size_t i = 0; i < c->ask_count; i++) {
		struct ask *ask = &c->asks[i];

		if (ask->told || now_ms - ask->since_ms < WAIT_MS)
			continue;
		ask->told = true;
		prog_say("{\"event\":\"an ask waits\",\"ask\":%llu,\"bytes\":%llu,"
			 "\"epoch\":%llu,\"granted\":%zu,\"order\":%llu,\"type\":%d,"
			 "\"backing\":%llu,\"evicted\":%llu,\"restores\":%llu,"
			 "\"busy\":%llu}",
			(unsigned long long)ask->msg.ask,
			(unsigned long long)ask->msg.bytes,
			(unsigned long long)ask->epoch, count_asks(c, true),
			(unsigned long long)c->order.id, (int)c->order.type,
			(unsigned long long)c->backing[0],
			(unsigned long long)c->evicted[0],
			(unsigned long long)did.restores, (unsigned long long)did.busy);
	}
}

/* What to do next, if nothing is open. */
static void move(struct client *c)
{
	uint64_t now_ms = prog_now_ms();

	if (!c->reported || c->order.type || count_asks(c, true))
		return;
	if (!is_out(c) && c->ask_count) {
		grant_all(c);
		return;
	}
	if (now_ms < c->next_ms && !c->ask_count)
		return;
	c->next_ms = now_ms + draw(2 * options.pause_ms + 1);
	if (options.lose && draw(options.lose) == 0) {
		did.lost++;
		drop(c);
	} else if (is_out(c) && (c->wants || c->ask_count || draw(3) == 0)) {
		(void)restore_next(c);
	} else if (draw(12) == 0) {
		trim(c);
	} else if (!c->ask_count) {
		evict_some(c);
	}
}

/* --- messages of the clients ------------------------------------------------------------------ */

/* Nothing is evicted, or all is back. The client may now run for as long as its gate was closed,
 * however slow the machine is. */
static void leave_time(struct client *c)
{
	uint64_t now_ms = prog_now_ms();

	if (is_out(c))
		return;
	c->next_ms = now_ms + (now_ms - c->shut_ms) + draw(2 * options.pause_ms + 1);
	c->shut_ms = 0;
}

static void on_swapped(struct client *c, const struct sl_msg_swapped *m)
{
	struct order o = c->order;
	uint64_t span_ms = prog_now_ms() - o.since_ms;

	if (!o.type || m->order != o.id || m->ordinal != o.gpu) {
		wrong(c, "an answer to nothing", m->order);
		return;
	}
	if (span_ms > did.slowest_ms)
		did.slowest_ms = span_ms;
	c->order.type = 0;
	c->evicted[o.gpu] = m->evicted_bytes;
	leave_time(c);
	did.moved += m->moved_bytes;
	did.clean += m->clean_bytes;
	did.zero += m->zero_bytes;
	did.captured += m->cause == SL_WIRE_SWAP_CAPTURE;
	did.busy += m->cause == SL_WIRE_SWAP_BUSY;
	did.no_host += m->cause == SL_WIRE_SWAP_NO_HOST;
	did.driver += m->cause == SL_WIRE_SWAP_DRIVER;
	did.part += m->outcome == SL_WIRE_SWAP_PART;
	did.refused += m->outcome == SL_WIRE_SWAP_REFUSED;
	if (m->evicted_bytes > c->backing[o.gpu])
		wrong(c, "more is out than there is", m->evicted_bytes);
	if (o.type == SL_MSG_RESTORE && m->outcome == SL_WIRE_SWAP_OK && m->evicted_bytes)
		wrong(c, "restored, and still out", m->evicted_bytes);
	if (m->outcome != SL_WIRE_SWAP_OK && m->cause == SL_WIRE_SWAP_NO_CAUSE)
		wrong(c, "not all, and no cause", m->outcome);
	if (m->cause == SL_WIRE_SWAP_ABORTED && !o.aborted)
		wrong(c, "aborted by nobody", m->order);
}

static void on_freed(struct client *c, const struct sl_msg_freed *m)
{
	uint32_t gpu = m->ordinal % GPUS_MAX;

	if (m->bytes > c->backing[gpu])
		wrong(c, "more freed than there is", m->bytes);
	c->backing[gpu] -= m->bytes < c->backing[gpu] ? m->bytes : c->backing[gpu];
	if (!(m->flags & SL_FREED_EVICTED))
		return;
	if (m->bytes > c->evicted[gpu])
		wrong(c, "more freed on the host than is there", m->bytes);
	c->evicted[gpu] -= m->bytes < c->evicted[gpu] ? m->bytes : c->evicted[gpu];
}

static void on_ask(struct client *c, const struct sl_msg_ask *m)
{
	if (c->ask_count == ASKS_MAX) {
		wrong(c, "too many asks", m->ask);
		return;
	}
	c->asks[c->ask_count++] = (struct ask){.msg = *m, .since_ms = prog_now_ms()};
}

static struct ask *granted_ask(struct client *c, uint64_t number)
{
	for (size_t i = 0; i < c->ask_count; i++) {
		if (c->asks[i].epoch && c->asks[i].epoch == number)
			return &c->asks[i];
	}
	wrong(c, "an answer to no grant", number);
	return NULL;
}

static void on_commit(struct client *c, const struct sl_msg_commit *m)
{
	struct ask *ask = granted_ask(c, m->epoch);

	if (ask)
		*ask = c->asks[--c->ask_count];
}

/* It waits again under the same number. */
static void on_create_failed(struct client *c, const struct sl_msg_create_failed *m)
{
	struct ask *ask = granted_ask(c, m->epoch);

	did.failed++;
	if (!ask)
		return;
	ask->epoch = 0;
	c->backing[ask->msg.ordinal % GPUS_MAX] -= ask->msg.bytes;
}

static void on_cancel(struct client *c, const struct sl_msg_cancel *m)
{
	for (size_t i = 0; i < c->ask_count; i++) {
		if (c->asks[i].msg.ask == m->ask && !c->asks[i].epoch)
			c->asks[i] = c->asks[--c->ask_count];
	}
}

static void on_back(struct client *c, const struct sl_msg_store_back *m)
{
	uint64_t *bytes = &c->stores[m->number % STORES_MAX];

	if (!*bytes)
		wrong(c, "a store is given back that it does not have", m->number);
	c->store_bytes -= *bytes;
	*bytes = 0;
	did.backs++;
}

static void on_report(struct client *c, const union sl_msg *msg)
{
	if (msg->head.type == SL_MSG_REPORT)
		c->backing[msg->report.ordinal % GPUS_MAX] = msg->report.backing_bytes;
	else if (msg->head.type == SL_MSG_EVICTED)
		c->evicted[msg->evicted.ordinal % GPUS_MAX] = msg->evicted.evicted_bytes;
	else
		c->store_bytes += c->stores[msg->store_held.number % STORES_MAX] =
			msg->store_held.bytes;
	if (c->reported)
		wrong(c, "a report behind its end", msg->head.type);
	if (msg->head.type == SL_MSG_STORE_HELD &&
		msg->store_held.number > c->store_number)
		c->store_number = msg->store_held.number;
}

static void on_reported(struct client *c)
{
	c->reported = true;
	for (int i = 0; i < gpu_count; i++)
		if (c->evicted[i] > c->backing[i])
			wrong(c, "more is reported out than there is", c->evicted[i]);
}

static void on_message(struct client *c, const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_HELLO: welcome(c); break;
	case SL_MSG_REPORT:
	case SL_MSG_EVICTED:
	case SL_MSG_STORE_HELD: on_report(c, msg); break;
	case SL_MSG_REPORTED: on_reported(c); break;
	case SL_MSG_ASK: on_ask(c, &msg->ask); break;
	case SL_MSG_CANCEL: on_cancel(c, &msg->cancel); break;
	case SL_MSG_COMMIT: on_commit(c, &msg->commit); break;
	case SL_MSG_CREATE_FAILED: on_create_failed(c, &msg->create_failed); break;
	case SL_MSG_FREED: on_freed(c, &msg->freed); break;
	case SL_MSG_MEASURE:
		say_gpu(c, msg->measure.ordinal % (uint32_t)gpu_count);
		break;
	case SL_MSG_SWAPPED: on_swapped(c, &msg->swapped); break;
	case SL_MSG_STORE_BACK: on_back(c, &msg->store_back); break;
	case SL_MSG_WANT:
		c->wants = msg->want.wants;
		did.wants++;
		break;
	default: break;
	}
}

static void hear(struct client *c)
{
	struct sl_wire_fds fds;
	struct sl_error error;
	union sl_msg msg;
	int result = sl_wire_recv_fds(
		c->fd, SL_FROM_CLIENT | SL_FROM_CONTROL, &msg, &fds, &error);

	sl_wire_fds_close(&fds);
	if (result == SL_WIRE_BAD)
		wrong(c, "a message that is none", msg.head.type);
	if (result == SL_WIRE_AGAIN)
		return;
	if (result == SL_WIRE_OK)
		on_message(c, &msg);
	else
		drop(c);
}

/* --- the loop --------------------------------------------------------------------------------- */

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 64) < 0) {
		perror("swap-daemon: bind");
		exit(PROG_USAGE);
	}
	return fd;
}

static void take_in(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	size_t i = 0;

	while (i < CLIENTS_MAX && clients[i].fd >= 0)
		i++;
	if (fd < 0 || i == CLIENTS_MAX)
		exit(PROG_USAGE);
	clients[i] = (struct client){
		.fd = fd, .next_ms = prog_now_ms() + draw(2 * options.pause_ms + 1)};
}

static void late(struct client *c)
{
	uint64_t now_ms = prog_now_ms();

	if (c->order.type && c->order.cut_ms && now_ms >= c->order.cut_ms) {
		did.cut++;
		drop(c);
		return;
	}
	if (!c->order.type || now_ms - c->order.since_ms < ANSWER_MS)
		return;
	wrong(c, "an order is not answered", c->order.id);
	drop(c);
}

static size_t round_of(int listener)
{
	struct pollfd ready[CLIENTS_MAX + 1] = {{listener, POLLIN, 0}};
	size_t there = 0;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		ready[i + 1] = (struct pollfd){clients[i].fd, POLLIN, 0};
	(void)poll(ready, CLIENTS_MAX + 1, 5);
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (clients[i].fd >= 0 && ready[i + 1].revents)
			hear(&clients[i]);
		if (clients[i].fd >= 0)
			late(&clients[i]);
		if (clients[i].fd >= 0)
			look_at_waits(&clients[i]);
		if (clients[i].fd >= 0)
			move(&clients[i]);
		there += clients[i].fd >= 0;
	}
	if (ready[0].revents)
		take_in(listener);
	return there;
}

static void on_term(int signal)
{
	is_over = signal;
}

int main(int argc, char **argv)
{
	const struct prog_option rows[] = {
		{"socket", PROG_TEXT, &options.socket, "where to listen"},
		{"seed", PROG_NUMBER, &options.seed, "of what is drawn"},
		{"pause-ms", PROG_NUMBER, &options.pause_ms,
			"between orders, in the mean"},
		{"lose", PROG_NUMBER, &options.lose,
			"one in so many orders is a lost line; four times as many are "
			"cut off"},
		{"stingy", PROG_NUMBER, &options.stingy,
			"1: not always enough room on the host"},
	};
	const struct sigaction on_end = {.sa_handler = on_term};
	int listener;

	(void)prog_options(argc, argv, "Moves memory for no reason.", rows,
		sizeof(rows) / sizeof(rows[0]));
	random_state = options.seed;
	look_at_gpus();
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		clients[i].fd = -1;
	listener = listen_at(options.socket);
	(void)sigaction(SIGTERM, &on_end, NULL);
	prog_say("{\"event\":\"listening\"}");
	while (round_of(listener) > 0 || !is_over)
		;
#define TOLD(name) "\"" #name "\":%llu,"
#define TELL(name) (unsigned long long)did.name
	prog_say("{\"event\":\"end\"," TOLD(evicts) TOLD(part) TOLD(refused) TOLD(
			 restores) TOLD(aborts) TOLD(trims) TOLD(backs) TOLD(lost)
			 TOLD(cut) TOLD(asks) TOLD(wants) TOLD(moved) TOLD(clean)
				 TOLD(zero) TOLD(captured) TOLD(busy) TOLD(no_host)
					 TOLD(driver) TOLD(slowest_ms)
						 TOLD(failed) "\"wrong\":%llu}",
		TELL(evicts), TELL(part), TELL(refused), TELL(restores), TELL(aborts),
		TELL(trims), TELL(backs), TELL(lost), TELL(cut), TELL(asks), TELL(wants),
		TELL(moved), TELL(clean), TELL(zero), TELL(captured), TELL(busy),
		TELL(no_host), TELL(driver), TELL(slowest_ms), TELL(failed), TELL(wrong));
	return did.wrong ? PROG_WRONG : PROG_OK;
}
