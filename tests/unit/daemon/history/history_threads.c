/*
 * The history's threads in a daemon at work: several clients ask at once, one leaves without its
 * answer, metrics are read, the retention changes, and the daemon ends in the middle of that.
 * Checks the answers, and is run under TSan.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "../rig.h"

/* With two that go away no more than a user may have waiting. */
#define ASKERS 2
#define ROUNDS 12

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static struct rig_peer control(const struct rig *rig)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

static void ask(const struct rig_peer *peer, unsigned int round)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HISTORY);
	msg.history.what = SL_HISTORY_USAGE;
	msg.history.by = round % SL_HISTORY_BYS;
	msg.history.format = round % 2 ? SL_HISTORY_CSV : SL_HISTORY_JSON;
	msg.history.from_ms = 1;
	msg.history.step_s = 86400;
	rig_send(peer, &msg);
}

static void take_answer(const struct rig_peer *peer)
{
	struct sl_wire_fds fds;
	struct sl_error err = {0};
	union sl_msg msg;

	assert_int_equal(
		sl_wire_recv_fds(peer->fd, SL_FROM_DAEMON, &msg, &fds, &err), SL_WIRE_OK);
	if (msg.head.type != SL_MSG_HISTORY_FILE)
		fail_msg("%s: %s", sl_wire_name(msg.head.type),
			msg.head.type == SL_MSG_HISTORY_REPLY ? msg.history_reply.text
							      : "");
	assert_int_equal(fds.count, 1);
	assert_int_equal(lseek(fds.fd[0], 0, SEEK_END), (off_t)msg.history_file.bytes);
	sl_wire_fds_close(&fds);
}

/* All of an answer with metrics; is this in it? */
static bool metrics_have(const struct rig *rig, const char *text)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
	static char buf[1 << 18];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sl_cleanup(sl_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t used = 0;
	ssize_t got;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/m", rig->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(
		write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
	while ((got = read(fd, buf + used, sizeof(buf) - used - 1)) > 0)
		used += (size_t)got;
	buf[used] = '\0';
	return strstr(buf, text) != NULL;
}

static void many_ask_while_it_is_written(void **state)
{
	struct rig *rig = *state;
	struct rig_peer askers[ASKERS], run, client;
	char config[2][256];

	for (int i = 0; i < 2; i++)
		(void)snprintf(config[i], sizeof(config[i]),
			"context_reserve: 1GiB\nmeasure_interval: 50ms\ndata_dir: %s/d\n"
			"metrics: %s/m\nhistory_seconds: %dm\n",
			rig->dir, rig->dir, 10 + i);
	rig_start(rig, config[0]);
	run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	client = rig_join(rig, &run);
	rig_hold(rig, &client, 1, RIG_GIB);
	for (int i = 0; i < ASKERS; i++)
		askers[i] = control(rig);
	rig_until(metrics_have(rig, "\nsluice_project_gpu_seconds_total{project="));
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct rig_peer hasty = control(rig);

		for (int i = 0; i < ASKERS; i++)
			ask(&askers[i], round + (unsigned int)i);
		ask(&hasty, round);
		rig_peer_end(&hasty);
		rig_configure(rig, config[round % 2]);
		assert_true(metrics_have(rig, "\nsluice_history_rows_total "));
		for (int i = 0; i < ASKERS; i++)
			take_answer(&askers[i]);
	}
	rig_until(metrics_have(rig, "\nsluice_part_up{part=\"history\"} 1\n"));
	for (int i = 0; i < ASKERS; i++)
		ask(&askers[i], (unsigned int)i);
	rig_stop(rig);
	for (int i = 0; i < ASKERS; i++)
		rig_peer_end(&askers[i]);
	rig_peer_kill(&client);
	rig_peer_end(&run);
}

static sqlite3 *open_file(const struct rig *rig, const char *begin)
{
	char path[256], *said = NULL;
	sqlite3 *db = NULL;

	(void)snprintf(path, sizeof(path), "%s/d/history.db", rig->dir);
	assert_int_equal(
		sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 10000);
	if (sqlite3_exec(db, begin, NULL, NULL, &said) != SQLITE_OK)
		fail_msg("%s: %s", begin, said);
	return db;
}

static int64_t wal_bytes(const struct rig *rig)
{
	struct stat about = {0};
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/d/history.db-wal", rig->dir);
	return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

/* The write-ahead log grows as long as a reader uses an older part of it. Above a bound, it is
 * copied into the file as soon as that reader has ended, although others ask all the time. */
static void what_was_written_is_put_in_its_place(void **state)
{
	struct rig *rig = *state;
	struct rig_peer asker;
	sqlite3 *reader, *writer;
	char config[128];

	(void)snprintf(config, sizeof(config), "context_reserve: 1GiB\ndata_dir: %s/d\n",
		rig->dir);
	rig_start(rig, config);
	asker = control(rig);
	ask(&asker, 0);
	take_answer(&asker);
	reader = open_file(rig, "BEGIN; SELECT count(*) FROM gpus");
	writer = open_file(rig,
		"PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (bytes BLOB); "
		"INSERT INTO filler VALUES (zeroblob(68 << 20))");
	assert_true(wal_bytes(rig) > 64ll << 20);
	ask(&asker, 0);
	take_answer(&asker);
	assert_true(wal_bytes(rig) > 64ll << 20);
	assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	/* The daemon looks once a second. */
	for (int rounds = 0; wal_bytes(rig) > 1 << 20; rounds++) {
		assert_true(rounds < 60);
		ask(&asker, 0);
		take_answer(&asker);
		(void)usleep(100000);
	}
	(void)sqlite3_close(reader);
	(void)sqlite3_close(writer);
	rig_stop(rig);
	rig_peer_end(&asker);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_ask_while_it_is_written),
		cmocka_unit_test(what_was_written_is_put_in_its_place),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
