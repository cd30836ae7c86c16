/* Descriptors of memory that pass through the daemon: offers, opens, bounds, deaths, restarts, bad
 * peers. */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "sharing.h"

/* The history opens files of its own at times of its own. */
#define CONFIG \
	"context_reserve: 1GiB\nmeasure_interval: 50ms\nmax_clients: 8\nhistory: no\n"
#define OTHER_USER 4242

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	/* 64 + 3 * 8 for other things, so 312 for memory, and 156 for one client. */
	rig_descriptors = 400;
	rig_start(&rig, CONFIG);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

/* --- words ------------------------------------------------------------------------------------ */

static union sl_msg opened(const struct rig_peer *peer, unsigned int key, uint32_t reason)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_IPC_OPENED, &msg);
	assert_int_equal(msg.ipc_opened.ask, 1000 + key);
	assert_int_equal(msg.ipc_opened.reason, reason);
	return msg;
}

/* All descriptors that were told of come, and are this file. */
static void taken(const struct rig_peer *peer, uint32_t count, int fd)
{
	struct stat want, got;

	assert_int_equal(fstat(fd, &want), 0);
	while (count) {
		struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
		struct sl_wire_fds fds;
		union sl_msg msg;

		assert_int_equal(poll(&ready, 1, 5000), 1);
		assert_int_equal(
			sl_wire_recv_fds(peer->fd, SL_FROM_DAEMON, &msg, &fds, NULL),
			SL_WIRE_OK);
		if (msg.head.type == SL_MSG_GPU)
			continue;
		assert_int_equal(msg.head.type, SL_MSG_IPC_TAKE);
		assert_true(fds.count <= count);
		count -= fds.count;
		for (uint32_t i = 0; i < fds.count; i++) {
			assert_int_equal(fstat(fds.fd[i], &got), 0);
			assert_int_equal(got.st_ino, want.st_ino);
		}
		sl_wire_fds_close(&fds);
	}
}

static void open_all(
	const struct rig_peer *peer, unsigned int key, uint32_t count, int fd)
{
	union sl_msg msg;

	ask(peer, key);
	msg = opened(peer, key, SL_IPC_OK);
	assert_int_equal(msg.ipc_opened.count, count);
	taken(peer, count, fd);
}

static void open_fails(const struct rig_peer *peer, unsigned int key, uint32_t reason)
{
	ask(peer, key);
	(void)opened(peer, key, reason);
}

static int some_file(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A pipe shows when the last copy of its end is gone. */
struct watched {
	int watch, end;
};

static struct watched watched_file(void)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	return (struct watched){ends[0], ends[1]};
}

static bool is_closed_everywhere(struct watched *file)
{
	struct pollfd ready = {.fd = file->watch};

	sl_closep(&file->end);
	return poll(&ready, 1, 5000) == 1 && ready.revents & POLLHUP;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void shared_withdrawn_and_dead(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), run_b = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	struct rig_peer c = rig_join(rig, &run_b);
	unsigned int before = daemon_fds_at_rest(rig);
	struct watched file = watched_file();

	open_fails(&b, 1, SL_IPC_UNKNOWN);
	share(&a, 1, 70, file.end);
	open_all(&b, 1, 70, file.end);
	open_all(&b, 1, 70, file.end);
	open_all(&c, 1, 70, file.end); /* another workload of the same user */
	share(&a, 2, 1, file.end);
	say(&a, SL_MSG_IPC_WITHDRAW, 1);
	rig_until(daemon_fds(rig) == before + 1);
	open_fails(&b, 1, SL_IPC_UNKNOWN);
	open_all(&b, 2, 1, file.end);
	/* Only its owner may withdraw it. */
	say(&b, SL_MSG_IPC_WITHDRAW, 2);
	open_all(&c, 2, 1, file.end);
	/* Offered again by its maker: the new one counts. */
	share(&a, 2, 3, file.end);
	open_all(&b, 2, 3, file.end);
	rig_peer_kill(&a);
	assert_true(is_closed_everywhere(&file));
	open_fails(&b, 2, SL_IPC_UNKNOWN);
	sl_closep(&file.watch);
	sl_closep(&a.fd);
	rig_peer_end(&b);
	rig_peer_end(&c);
	rig_peer_end(&run);
	rig_peer_end(&run_b);
}

/* The time of death is the process's, not that of a socket that another process holds. */
static void connection_lost(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	struct watched file = watched_file();
	union sl_msg msg;

	share(&a, 1, 2, file.end);
	sl_closep(&a.fd);
	open_all(&b, 1, 2, file.end);
	/* It is back: its earlier offers are void, and waited for until it has settled. */
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, a.epoch);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&a, &msg);
	ask(&b, 1);
	ask(&b, 2);
	rig_expect_silence(&b, 100);
	share(&a, 1, 1, file.end);
	(void)opened(&b, 1, SL_IPC_OK);
	taken(&b, 1, file.end);
	rig_expect_silence(&b, 100);
	say(&a, SL_MSG_IPC_SETTLED, 0);
	(void)opened(&b, 2, SL_IPC_UNKNOWN);
	open_fails(&b, 3, SL_IPC_UNKNOWN);
	/* And one that goes instead of settling. */
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, a.epoch);
	ask(&b, 1);
	rig_expect_silence(&b, 100);
	rig_peer_kill(&a);
	(void)opened(&b, 1, SL_IPC_UNKNOWN);
	assert_true(is_closed_everywhere(&file));
	sl_closep(&file.watch);
	sl_closep(&a.fd);
	rig_peer_end(&b);
	rig_peer_end(&run);
}

static void half_and_bad_offers(void **state)
{
	static const struct {
		uint64_t bytes, chunk_bytes;
		uint32_t count;
	} rows[] = {
		{0, 1, 1},
		{1, 0, 1},
		{4, 2, 1},
		{4, 2, 3},
		{UINT64_MAX, 1, UINT32_MAX},
		{1ull << 40, 1, 9000},
		{4, 2, 0},
	};
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	unsigned int before = daemon_fds_at_rest(rig);
	int file = some_file();
	union sl_msg msg;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		sl_wire_init(&msg, SL_MSG_IPC_OFFER);
		key_of(msg.ipc_offer.key, 9);
		msg.ipc_offer.bytes = rows[i].bytes;
		msg.ipc_offer.chunk_bytes = rows[i].chunk_bytes;
		msg.ipc_offer.count = rows[i].count;
		rig_send(&a, &msg);
		offered(&a, 9, SL_IPC_BAD);
		/* What follows a refused one is dropped. */
		give(&a, 9, 2, file);
	}
	offer(&a, 1, 3);
	give(&a, 1, 2, file);
	open_fails(&b, 1, SL_IPC_UNKNOWN);
	/* Another client's key cannot be used, nor one that begins like it. */
	offer(&b, 1, 1);
	offered(&b, 1, SL_IPC_BAD);
	give(&b, 1, 1, file);
	give(&a, 1, 1, file);
	offered(&a, 1, SL_IPC_OK);
	open_all(&b, 1, 3, file);
	rig_until(daemon_fds(rig) == before + 3);
	/* Too many for the rest of it. */
	offer(&a, 2, 3);
	give(&a, 2, 4, file);
	rig_expect_closed(&a);
	rig_until(daemon_fds(rig) <= before + 5);
	rig_peer_end(&a);
	rig_until(daemon_fds(rig) < before);
	open_fails(&b, 1, SL_IPC_UNKNOWN);
	/* A GPU that there is not. */
	sl_wire_init(&msg, SL_MSG_IPC_OFFER);
	msg.ipc_offer.ordinal = 7;
	rig_send(&b, &msg);
	rig_expect_closed(&b);
	sl_closep(&file);
	rig_peer_end(&b);
	rig_peer_end(&run);
}

static void unseen_gpu(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), both = rig_peer(rig);
	struct rig_peer a, b = rig_join(rig, &run);
	int file = some_file();
	union sl_msg msg;

	rig_hello(&both, SL_ROLE_CONTROL, 0);
	rig_expect(&both, SL_MSG_WELCOME, &msg);
	rig_send_run(&both, RIG_GIB, 0, 2, "", NULL);
	rig_expect(&both, SL_MSG_RUN_REPLY, &msg);
	both.workload = msg.run_reply.workload;
	memcpy(both.token, msg.run_reply.token, sizeof(both.token));
	a = rig_join(rig, &both);
	share(&b, 1, 1, file); /* of GPU 0 */
	ask(&a, 1);
	assert_int_equal(opened(&a, 1, SL_IPC_OK).ipc_opened.ordinal, 0);
	taken(&a, 1, file);
	sl_wire_init(&msg, SL_MSG_IPC_OFFER);
	key_of(msg.ipc_offer.key, 2);
	msg.ipc_offer.bytes = msg.ipc_offer.chunk_bytes = 2 << 20;
	msg.ipc_offer.count = 1;
	msg.ipc_offer.ordinal = 1;
	rig_send(&a, &msg);
	give(&a, 2, 1, file);
	offered(&a, 2, SL_IPC_OK);
	open_fails(&b, 2, SL_IPC_UNSEEN);
	sl_closep(&file);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&both);
	rig_peer_end(&run);
}

static void another_user(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, other_run, a, b;
	int file;

	if (geteuid() != 0)
		skip();
	run = rig_run(rig, RIG_GIB, 0);
	a = rig_join(rig, &run);
	b = rig_join_as_other(rig, OTHER_USER, &other_run);
	file = some_file();
	share(&a, 1, 2, file);
	open_fails(&b, 1, SL_IPC_UNKNOWN);
	rig_until(rig_log_has(rig, "has a handle of memory of user 0, and may not open"));
	/* Root may. */
	share(&b, 2, 2, file);
	open_all(&a, 2, 2, file);
	/* Nor may it take the key for its own. */
	offer(&b, 1, 1);
	offered(&b, 1, SL_IPC_BAD);
	open_all(&a, 1, 2, file);
	sl_closep(&file);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_peer_end(&other_run);
}

/* Thousands of offers: refused with a reason, and no other client suffers. */
static void bounds(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), run_b, a = rig_join(rig, &run), b,
			c;
	unsigned int before = daemon_fds_at_rest(rig), kept = 0;
	int file = some_file();
	union sl_msg msg;

	/* Offers that nothing is given for count as much. */
	for (unsigned int i = 0; i < 15; i++)
		offer(&a, 100 + i, 10);
	for (unsigned int i = 0; i < 3000; i++) {
		offer(&a, 1000 + i, 1);
		give(&a, 1000 + i, 1, file);
		rig_expect(&a, SL_MSG_IPC_OFFERED, &msg);
		kept += msg.ipc_offered.reason == SL_IPC_OK;
		/* Those that are refused are closed by a thread, which a busy machine may not let
		 * run for a while. */
		if (i % 64 == 63)
			rig_until(daemon_fds(rig) < before + kept + 64);
	}
	assert_int_equal(kept, 6);
	rig_until(daemon_fds(rig) == before + kept);
	assert_true(rig_log_has(rig, "raise sluiced's limit of them (LimitNOFILE=)"));
	b = rig_join(rig, &run);
	share(&b, 1, 100, file);
	if (geteuid() == 0) {
		/* Of 312, 256 are charged: a user with none gets a quarter at most. */
		c = rig_join_as_other(rig, OTHER_USER, &run_b);
		offer(&c, 2, 79);
		offered(&c, 2, SL_IPC_FULL);
		give(&c, 2, 79, file);
		share(&c, 3, 50, file);
		open_all(&c, 3, 50, file);
		rig_peer_end(&c);
		rig_peer_end(&run_b);
	}
	rig_peer_end(&a);
	rig_until(daemon_fds(rig) < before + 110);
	open_all(&b, 1, 100, file);
	sl_closep(&file);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* A client that does not read its answers is dropped, and its copies with it. */
static void deaf_opener(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	struct watched file = watched_file();
	union sl_msg msg;

	share(&a, 1, 40, file.end);
	sl_wire_init(&msg, SL_MSG_IPC_OPEN);
	key_of(msg.ipc_open.key, 1);
	for (int i = 0; i < 3000; i++) {
		if (sl_wire_send(b.fd, &msg) != SL_WIRE_OK)
			break;
	}
	rig_until(rig_status(rig).clients == 2);
	rig_peer_end(&b);
	rig_peer_kill(&a);
	assert_true(is_closed_everywhere(&file));
	sl_closep(&file.watch);
	sl_closep(&a.fd);
	rig_peer_end(&run);
}

/* A socket whose last close waits for a minute, because its data was never read. */
static int lingering(int *reader)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct linger minute = {1, 60};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	static char bytes[1 << 16];

	assert_int_equal(bind(listener, (void *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&address, &size), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (void *)&address, size), 0);
	*reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*reader >= 0);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, bytes, sizeof(bytes)) > 0) {
	}
	sl_closep(&listener);
	return fd;
}

/* Sends size bytes with the descriptor, which is then the receiver's alone. */
static void send_last(int to, const void *data, size_t size, int fd)
{
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	union sl_wire_control control;

	sl_wire_attach(&header, &control, &fd, 1);
	assert_true(sendmsg(to, &header, MSG_NOSIGNAL) > 0);
	sl_closep(&fd);
}

/* To the daemon, which stands still until we have closed ours: the last close must be its. */
static void pass_last(struct rig *rig, int to, const void *data, size_t size, int fd)
{
	siginfo_t stopped;

	assert_int_equal(kill(rig->daemon, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)rig->daemon, &stopped, WSTOPPED), 0);
	send_last(to, data, size, fd);
	assert_int_equal(kill(rig->daemon, SIGCONT), 0);
}

/* Whatever strangers pass along, and however long its end takes: the loop never waits for it. */
static void lingering_sockets(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), a, stranger;
	int reader[6], between[2];
	union sl_msg msg;

	a = rig_join(rig, &run);
	sl_wire_init(&msg, SL_MSG_WORK);
	pass_last(rig, a.fd, &msg, sizeof(msg.work), lingering(&reader[0]));
	assert_int_equal(rig_status(rig).clients, 1);
	/* As memory. */
	offer(&a, 1, 1);
	sl_wire_init(&msg, SL_MSG_IPC_GIVE);
	key_of(msg.ipc_give.key, 1);
	msg.ipc_give.fds = 1;
	pass_last(rig, a.fd, &msg, sizeof(msg.ipc_give), lingering(&reader[1]));
	offered(&a, 1, SL_IPC_BAD);
	/* Inside a socket. */
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, between), 0);
	send_last(between[0], "x", 1, lingering(&reader[2]));
	sl_closep(&between[0]);
	sl_wire_init(&msg, SL_MSG_WORK);
	pass_last(rig, a.fd, &msg, sizeof(msg.work), between[1]);
	assert_int_equal(rig_status(rig).clients, 1);
	/* With a broken message, and after it. */
	assert_int_equal(kill(rig->daemon, SIGSTOP), 0);
	send_last(a.fd, "nonsense", 8, lingering(&reader[3]));
	send_last(a.fd, "nonsense", 8, lingering(&reader[4]));
	assert_int_equal(kill(rig->daemon, SIGCONT), 0);
	rig_expect_closed(&a);
	/* From a peer that has not identified itself. */
	stranger = rig_peer(rig);
	pass_last(rig, stranger.fd, "nonsense", 8, lingering(&reader[5]));
	rig_expect_closed(&stranger);
	/* And descriptors that are memory come through as before, for a good client. */
	sl_closep(&a.fd);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, 0);
	between[0] = some_file();
	share(&a, 7, 1, between[0]);
	sl_closep(&between[0]);
	for (size_t i = 0; i < SL_ARRAY_LEN(reader); i++)
		sl_closep(&reader[i]);
	rig_peer_end(&a);
	rig_peer_end(&stranger);
	rig_peer_end(&run);
}

/* peer-failures row 35: a daemon that has just started waits for clients that may offer again. */
static void restart(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	int file = some_file();
	union sl_msg msg;

	share(&a, 1, 2, file);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	rig_reconnect(rig, &b);
	rig_join_as(&b, &run, b.epoch);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&b, &msg);
	say(&b, SL_MSG_IPC_SETTLED, 0);
	ask(&b, 1);
	ask(&b, 2);
	rig_expect_silence(&b, 200);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, a.epoch);
	rig_send(&a, &msg);
	rig_expect_silence(&b, 100);
	share(&a, 1, 2, file);
	(void)opened(&b, 1, SL_IPC_OK);
	taken(&b, 2, file);
	say(&a, SL_MSG_IPC_SETTLED, 0);
	(void)opened(&b, 2, SL_IPC_UNKNOWN);
	sl_closep(&file);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_withdrawn_and_dead),
		cmocka_unit_test(connection_lost),
		cmocka_unit_test(half_and_bad_offers),
		cmocka_unit_test(unseen_gpu),
		cmocka_unit_test(another_user),
		cmocka_unit_test(bounds),
		cmocka_unit_test(deaf_opener),
		cmocka_unit_test(lingering_sockets),
		cmocka_unit_test(restart),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
