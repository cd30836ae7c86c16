#include "fake.h"
#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITING_MAX 64

struct fake fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int listener = -1, client = -1;
static bool running;
static pthread_t thread;
/* Of the grants of contexts, which have no bytes. */
#define CONTEXT_EPOCH UINT32_MAX

static uint64_t epoch = 100, next_grant = 1;
static struct sl_msg_ask waiting[WAITING_MAX];
static size_t waiting_count;
static struct {
	uint64_t epoch, bytes;
	uint64_t ask;
	bool there;
} grants[8192]; /* more than any test asks for while one is open */

void fake_lock(void)
{
	pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void say(union sl_msg *msg)
{
	if (client >= 0 && sl_wire_send(client, msg) < 0)
		fake.protocol_error = true;
}

static void say_gpu(uint32_t ordinal)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GPU);
	msg.gpu.ordinal = ordinal;
	msg.gpu.first_number = ordinal;
	msg.gpu.number = ordinal + fake.moved_by;
	stub_uuid((int)msg.gpu.first_number, msg.gpu.first_uuid);
	stub_uuid((int)msg.gpu.number, msg.gpu.uuid);
	msg.gpu.total_bytes = fake.limit_bytes;
	msg.gpu.limit_bytes = fake.limit_bytes;
	msg.gpu.request_bytes =
		fake.request_bytes ? fake.request_bytes : fake.limit_bytes / 2;
	msg.gpu.others_bytes = fake.others_bytes;
	say(&msg);
}

static void on_pids(const struct sl_msg_pids *ask)
{
	unsigned int at = 0, count;
	union sl_msg msg;

	fake.pids_asked++;
	for (bool last = fake.pids_silent; !last; at += count) {
		count = fake.pids - at;
		last = count <= SL_PIDS_ROWS_MAX;
		count = last ? count : SL_PIDS_ROWS_MAX;
		sl_wire_init(&msg, SL_MSG_PIDS_ROWS);
		msg.pids_rows.ask = ask->ask;
		msg.pids_rows.count = count;
		msg.pids_rows.flags = fake.pids_flags | (last ? SL_PIDS_LAST : 0);
		memcpy(msg.pids_rows.rows, &fake.pid_rows[at],
			count * sizeof(fake.pid_rows[0]));
		say(&msg);
	}
}

static void on_hello(const struct sl_msg_hello *hello)
{
	union sl_msg msg;

	fake.hellos++;
	fake.hello_flags = hello->flags;
	fake.last_epoch_seen = hello->daemon_epoch;
	if (fake.mute)
		return;
	if (fake.reject >= 0 && fake.reject_count > 0) {
		fake.reject_count--;
		sl_wire_init(&msg, SL_MSG_REJECT);
		msg.reject.reason = (uint32_t)fake.reject;
		if (fake.reject == SL_REJECT_VERSION)
			msg.head.version = SL_PROTOCOL_VERSION + 1;
		msg.reject.daemon_version = msg.head.version;
		sl_wire_str(
			msg.reject.text, sizeof(msg.reject.text), "as the test wants it");
		say(&msg);
		return;
	}
	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.welcome.daemon_epoch = epoch;
	msg.welcome.gpu_count = fake.gpus;
	say(&msg);
	for (uint32_t i = 0; i < fake.gpus; i++)
		say_gpu(i);
}

/* Every process may have its contexts. */
static void grant_context(const struct sl_msg_ask *ask)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GRANT);
	msg.grant.ask = ask->ask;
	msg.grant.epoch = CONTEXT_EPOCH;
	say(&msg);
}

static void on_ask(const struct sl_msg_ask *ask)
{
	union sl_msg msg;

	if (ask->flags & SL_ASK_CONTEXT) {
		grant_context(ask);
		return;
	}
	fake.asks++;
	fake.last_ask = ask->ask;
	fake.ask_flags = ask->flags;
	fake.asked_bytes = ask->bytes;
	if (fake.silent) {
		waiting[waiting_count++] = *ask;
		return;
	}
	if (fake.deny ||
		fake.held_bytes + ask->bytes > fake.limit_bytes - fake.others_bytes) {
		sl_wire_init(&msg, SL_MSG_DENY);
		msg.deny.ask = ask->ask;
		msg.deny.flags = fake.deny_flags;
		say(&msg);
		return;
	}
	sl_wire_init(&msg, SL_MSG_GRANT);
	msg.grant.ask = ask->ask;
	msg.grant.epoch = next_grant;
	msg.grant.bytes = ask->bytes;
	grants[next_grant % SL_ARRAY_LEN(grants)].epoch = next_grant;
	grants[next_grant % SL_ARRAY_LEN(grants)].bytes = ask->bytes;
	grants[next_grant % SL_ARRAY_LEN(grants)].ask = ask->ask;
	grants[next_grant % SL_ARRAY_LEN(grants)].there = ask->flags & SL_ASK_THERE;
	next_grant++;
	fake.grants++;
	fake.held_bytes += ask->bytes;
	fake.uncommitted_bytes += ask->bytes;
	say(&msg);
}

/* The rest of the grant of that epoch; this closes it. */
static uint64_t close_grant(uint64_t of, uint64_t *ask)
{
	uint64_t bytes = grants[of % SL_ARRAY_LEN(grants)].bytes;

	if (grants[of % SL_ARRAY_LEN(grants)].epoch != of || bytes == 0)
		fake.protocol_error = true;
	*ask = grants[of % SL_ARRAY_LEN(grants)].ask;
	grants[of % SL_ARRAY_LEN(grants)].bytes = 0;
	fake.uncommitted_bytes -= bytes;
	return bytes;
}

static void on_commit(const struct sl_msg_commit *commit)
{
	uint64_t ask, bytes;

	if (commit->epoch == CONTEXT_EPOCH)
		return;
	bytes = close_grant(commit->epoch, &ask);
	fake.commits++;
	if (commit->used_bytes > bytes)
		fake.protocol_error = true;
	/* Of bytes that were there before nothing more is charged. */
	if (grants[commit->epoch % SL_ARRAY_LEN(grants)].there)
		fake.held_bytes -= bytes;
	else
		fake.held_bytes -= bytes - commit->used_bytes;
}

static void on_failed(const struct sl_msg_create_failed *failed)
{
	struct sl_msg_ask again = {0};
	uint64_t bytes = close_grant(failed->epoch, &again.ask);

	fake.fails++;
	fake.held_bytes -= bytes;
	again.bytes = bytes;
	fake.asks--;
	on_ask(&again);
}

static void on_freed(const struct sl_msg_freed *freed)
{
	fake.freeds++;
	if (freed->bytes > fake.held_bytes)
		fake.protocol_error = true;
	fake.held_bytes -= freed->bytes;
	if (!(freed->flags & SL_FREED_EVICTED))
		return;
	fake.freed_evicteds++;
	if (freed->bytes > fake.evicted_bytes)
		fake.protocol_error = true;
	fake.evicted_bytes -= freed->bytes;
}

static void on_moved(const struct sl_msg_moved *moved)
{
	if (fake.moveds < SL_ARRAY_LEN(fake.moved))
		fake.moved[fake.moveds] = *moved;
	fake.moveds++;
}

static void on_swapped(const struct sl_msg_swapped *swapped)
{
	fake.last_swapped = *swapped;
	fake.evicted_bytes = swapped->evicted_bytes;
	if (!swapped->evicted_bytes)
		fake.wanted = 0;
	fake.swappeds++;
}

static void on_evicted(const struct sl_msg_evicted *evicted)
{
	fake.told_evicted_bytes = fake.evicted_bytes = evicted->evicted_bytes;
	fake.evicteds++;
}

static void on_report(const struct sl_msg_report *report)
{
	fake.reports++;
	fake.reported_bytes += report->backing_bytes;
	fake.held_bytes += report->backing_bytes;
}

static void on_measure(const struct sl_msg_measure *measure)
{
	fake.measures++;
	fake.others_bytes = sl_max_u64(fake.others_bytes, 8 * SL_MIB);
	say_gpu(measure->ordinal);
}

static void say_offered(enum sl_wire_ipc_reason reason)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OFFERED);
	memcpy(msg.ipc_offered.key, fake.offered_key, sizeof(fake.offered_key));
	msg.ipc_offered.reason = reason;
	say(&msg);
}

static uint32_t offered_count, offered_got;

static void on_offer(const struct sl_msg_ipc_offer *offer)
{
	fake.offers++;
	memcpy(fake.offered_key, offer->key, sizeof(fake.offered_key));
	offered_count = offer->count;
	offered_got = 0;
	if (fake.offer_reason != SL_IPC_OK)
		say_offered(fake.offer_reason);
}

static void on_give(const struct sl_msg_ipc_give *give)
{
	fake.given += give->fds;
	offered_got += give->fds;
	if (memcmp(give->key, fake.offered_key, sizeof(give->key)) != 0)
		fake.protocol_error = true;
	if (fake.offer_reason == SL_IPC_OK && offered_got == offered_count)
		say_offered(SL_IPC_OK);
}

/* Makes a file that the stub accepts as a memory handle of `bytes`. Uses raw system calls: the fd
 * number may be one that the library has just closed, and TSan would report that reuse as a race.
 */
static int handle_file(uint64_t bytes)
{
	char name[] = "/tmp/sluice-fake-handle-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) != 0 ||
		syscall(SYS_pwrite64, fd, &bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort();
	return fd;
}

static void on_open(const struct sl_msg_ipc_open *open_msg)
{
	uint64_t left = fake.opened.bytes;
	union sl_msg msg, head;

	fake.opens++;
	msg.ipc_opened = fake.opened;
	sl_wire_init(&head, SL_MSG_IPC_OPENED);
	msg.head = head.head;
	msg.ipc_opened.ask = open_msg->ask;
	msg.ipc_opened.reason = fake.open_reason;
	say(&msg);
	for (uint32_t i = 0; fake.open_reason == SL_IPC_OK && i < fake.opened.count;
		i++) {
		uint64_t bytes = sl_min_u64(left, fake.opened.chunk_bytes);
		int fd = handle_file(bytes);

		sl_wire_init(&msg, SL_MSG_IPC_TAKE);
		msg.ipc_take.ask = open_msg->ask;
		msg.ipc_take.fds = 1;
		if (client >= 0 && sl_wire_send_fds(client, &msg, &fd, 1) < 0)
			fake.protocol_error = true;
		(void)syscall(SYS_close, fd);
		left -= bytes;
	}
}

static void handle(const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_HELLO: on_hello(&msg->hello); break;
	case SL_MSG_ASK: on_ask(&msg->ask); break;
	case SL_MSG_COMMIT: on_commit(&msg->commit); break;
	case SL_MSG_CREATE_FAILED: on_failed(&msg->create_failed); break;
	case SL_MSG_FREED: on_freed(&msg->freed); break;
	case SL_MSG_REPORT: on_report(&msg->report); break;
	case SL_MSG_REPORTED: fake.reporteds++; break;
	case SL_MSG_MEASURE: on_measure(&msg->measure); break;
	case SL_MSG_HELD:
		fake.helds++;
		fake.unevictable_bytes = msg->held.held_bytes;
		break;
	case SL_MSG_CHUNK:
		fake.chunks++;
		fake.chunk_bytes = msg->chunk.bytes;
		break;
	case SL_MSG_PIDS: on_pids(&msg->pids); break;
	case SL_MSG_WORK: fake.works++; break;
	case SL_MSG_MOVED: on_moved(&msg->moved); break;
	case SL_MSG_SWAPPED: on_swapped(&msg->swapped); break;
	case SL_MSG_EVICTED: on_evicted(&msg->evicted); break;
	case SL_MSG_STORE_HELD: fake.stores_held++; break;
	case SL_MSG_STORE_BACK: fake.stores_back++; break;
	case SL_MSG_WANT:
		fake.wants++;
		fake.last_want = fake.wanted = msg->want.wants;
		break;
	case SL_MSG_METERED:
		if (msg->metered.ended)
			fake.last_end = msg->metered;
		fake.meter_ends += msg->metered.ended;
		fake.meter_wants += !msg->metered.ended;
		break;
	case SL_MSG_PULSE:
		fake.last_pulse = msg->pulse;
		fake.pulses++;
		break;
	case SL_MSG_GATE_DONE:
		fake.last_gate_order = msg->gate_done.order;
		fake.last_gate_closed = msg->gate_done.closed;
		fake.gate_dones++;
		break;
	case SL_MSG_IPC_SETTLED: fake.settleds++; break;
	case SL_MSG_IPC_OFFER: on_offer(&msg->ipc_offer); break;
	case SL_MSG_IPC_GIVE: on_give(&msg->ipc_give); break;
	case SL_MSG_IPC_WITHDRAW: fake.withdrawn++; break;
	case SL_MSG_IPC_OPEN: on_open(&msg->ipc_open); break;
	default: fake.protocol_error = true;
	}
}

static void hang_up(void)
{
	if (client >= 0)
		close(client);
	client = -1;
	waiting_count = 0;
	fake.uncommitted_bytes = 0;
	fake.held_bytes = 0;
	memset(grants, 0, sizeof(grants));
}

static void serve_once(void)
{
	union sl_msg msg;
	int r;

	if (client < 0) {
		client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		fake.connections += client >= 0;
		return;
	}
	while ((r = sl_wire_recv(client, SL_FROM_CLIENT, &msg, NULL)) == SL_WIRE_OK)
		handle(&msg);
	if (r == SL_WIRE_AGAIN)
		return;
	if (r != SL_WIRE_CLOSED)
		fake.protocol_error = true;
	hang_up();
}

static void *fake_main(void *arg)
{
	fake_lock();
	while (running) {
		serve_once();
		fake_unlock();
		usleep(200);
		fake_lock();
	}
	fake_unlock();
	return NULL;
}

void fake_listen(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	unlink(fake.path);
	strcpy(address.sun_path, fake.path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(listener, 16) != 0)
		abort();
	running = true;
	epoch++;
	if (pthread_create(&thread, NULL, fake_main, NULL) != 0)
		abort();
}

void fake_start(bool later)
{
	char folder[] = "/tmp/sluice-fake-XXXXXX";

	memset(&fake, 0, sizeof(fake));
	listener = client = -1;
	waiting_count = 0;
	fake.gpus = 1;
	fake.limit_bytes = 8 * SL_GIB;
	fake.reject = -1;
	fake.reject_count = 1;
	if (!mkdtemp(folder))
		abort();
	snprintf(fake.path, sizeof(fake.path), "%s/s", folder);
	setenv("SLUICE_SOCKET", fake.path, 1);
	setenv("SLUICE_WORKLOAD", "000102030405060708090a0b0c0d0e0f", 1);
	if (!later)
		fake_listen();
}

void fake_die(void)
{
	fake_lock();
	running = false;
	fake_unlock();
	pthread_join(thread, NULL);
	hang_up();
	close(listener);
	unlink(fake.path);
}

void fake_stop(void)
{
	if (running)
		fake_die();
	*strrchr(fake.path, '/') = '\0';
	rmdir(fake.path);
}

static void answer_waiting(void)
{
	fake.silent = false;
	for (size_t i = 0; i < waiting_count; i++) {
		fake.asks--;
		on_ask(&waiting[i]);
	}
	waiting_count = 0;
}

void fake_answer_waiting(void)
{
	fake_lock();
	answer_waiting();
	fake_unlock();
}

void fake_deny_waiting(void)
{
	fake_lock();
	fake.deny = true;
	answer_waiting();
	fake.deny = false;
	fake_unlock();
}

void fake_send_gpu(void)
{
	fake_lock();
	for (uint32_t i = 0; i < fake.gpus; i++)
		say_gpu(i);
	fake_unlock();
}

void fake_send_gate(uint64_t order, uint32_t closed)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GATE);
	msg.gate.order = order;
	msg.gate.closed = closed;
	fake_lock();
	say(&msg);
	fake_unlock();
}

void fake_send_meter(uint64_t order, enum sl_wire_meter mode, sl_ns span)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_METER);
	msg.meter.order = order;
	msg.meter.mode = mode;
	msg.meter.span_us = (uint32_t)(span / SL_US);
	fake_lock();
	say(&msg);
	fake_unlock();
}

void fake_send_order(
	enum sl_msg_type type, uint64_t order, uint64_t bytes, uint32_t deadline_ms)
{
	union sl_msg msg;

	sl_wire_init(&msg, type);
	msg.evict.order = order;
	if (type != SL_MSG_ABORT)
		msg.evict.ordinal = 0;
	if (type == SL_MSG_RESTORE)
		msg.restore.bytes = bytes ? bytes : UINT64_MAX;
	if (type == SL_MSG_EVICT) {
		msg.evict.bytes = bytes;
		msg.evict.deadline_ms = deadline_ms;
		msg.evict.tell_bytes = fake.tell_bytes;
	}
	fake_lock();
	say(&msg);
	fake_unlock();
}

void fake_send_probe(enum sl_wire_probe mode, uint32_t span_ms)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PROBE);
	msg.probe.mode = mode;
	msg.probe.span_ms = span_ms;
	fake_lock();
	say(&msg);
	fake_unlock();
}

bool fake_wait(const unsigned int *what, unsigned int value)
{
	for (int i = 0; i < 20000; i++) {
		bool done;

		fake_lock();
		done = *what >= value;
		fake_unlock();
		if (done)
			return true;
		usleep(100);
	}
	return false;
}

bool fake_wait_u64(const uint64_t *what, uint64_t value)
{
	for (int i = 0; i < 20000; i++) {
		bool done;

		fake_lock();
		done = *what == value;
		fake_unlock();
		if (done)
			return true;
		usleep(100);
	}
	return false;
}
