/* Which processes a client sees, and under which number (peer-failures row 18). */
#include "../inside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/link/pids.h"

static struct rig_peer run, other_run;

static int setup(void **state)
{
	static struct inside inside;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 50ms\n");
	run = rig_run(&inside.rig, RIG_GIB, 4 * RIG_GIB);
	other_run = rig_run(&inside.rig, RIG_GIB, 4 * RIG_GIB);
	inside_turn(&inside);
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	rig_peer_end(&run);
	rig_peer_end(&other_run);
	inside_fini(*state);
	return 0;
}

static void the_line_is_read(void **state)
{
	static const struct {
		const char *status;
		uint32_t count;
		pid_t first, last;
	} rows[] = {
		{"Name:\tx\nNSpid:\t4711\nVmPeak:", 1, 4711, 4711},
		{"Name:\tx\nNSpid:\t4711\t12\t1\nVmPeak:", 3, 4711, 1},
		{"Name:\tx\nNSpid:\t4711\t12", 2, 4711, 12},
		{"Name:\tNSpid:\t1\n", 0, 0, 0},
		{"", 0, 0, 0},
	};
	pid_t levels[4];

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		memset(levels, 0, sizeof(levels));
		assert_int_equal(
			sl_pids_levels(rows[i].status, levels, 4), rows[i].count);
		assert_int_equal(levels[0], rows[i].first);
		if (rows[i].count)
			assert_int_equal(levels[rows[i].count - 1], rows[i].last);
	}
	/* No more than fit. */
	levels[1] = 99;
	assert_int_equal(sl_pids_levels("x\nNSpid:\t1\t2\t3\n", levels, 1), 3);
	assert_int_equal(levels[1], 99);
}

/* A process has a child in a pid namespace of the child's own: the child has number 1 for
 * itself. */
static void numbers_by_namespace(void **state)
{
	int ready[2];
	pid_t outer, nested = 0;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	outer = fork();
	if (outer == 0) {
		pid_t child;

		if (unshare(CLONE_NEWPID) < 0)
			_exit(0);
		child = fork();
		if (child == 0) {
			(void)pause();
			_exit(0);
		}
		(void)!write(ready[1], &child, sizeof(child));
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	if (read(ready[0], &nested, sizeof(nested)) != sizeof(nested)) {
		(void)close(ready[0]);
		(void)waitpid(outer, NULL, 0);
		skip();
	}
	(void)close(ready[0]);
	assert_int_equal(sl_pids_inside(nested, nested), 1);
	assert_int_equal(sl_pids_inside(nested, getpid()), nested);
	assert_int_equal(sl_pids_inside(getpid(), getpid()), getpid());
	/* From inside no process outside is seen. */
	assert_int_equal(sl_pids_inside(getpid(), nested), 0);
	(void)kill(nested, SIGKILL);
	(void)kill(outer, SIGKILL);
	(void)waitpid(outer, NULL, 0);
	assert_int_equal(sl_pids_inside(outer, getpid()), 0);
}

/* Tells whether it could become so. */
static void be_apart(int spaces, const char *root, int ready)
{
	char is = (!spaces || unshare(spaces) == 0) && (!root || chroot(root) == 0);

	(void)!write(ready, &is, 1);
	(void)pause();
	_exit(0);
}

static void who_is_apart_is_told_how(void **state)
{
	static const struct {
		int spaces;
		const char *root, *want;
	} rows[] = {
		{0, NULL, "no"},
		{0, "/", "no"},
		{0, "/tmp", "chroot"},
		{CLONE_NEWNET, NULL, "network"},
		{CLONE_NEWIPC, NULL, "IPC"},
		{CLONE_NEWNS, NULL, "container"},
		{CLONE_NEWNS, "/tmp", "container"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		uint64_t start = 0;
		const char *apart;
		int ready[2];
		pid_t child;
		char is = 0;

		assert_int_equal(pipe(ready), 0);
		child = fork();
		if (child == 0)
			be_apart(rows[i].spaces, rows[i].root, ready[1]);
		(void)close(ready[1]);
		assert_int_equal(read(ready[0], &is, 1), 1);
		(void)close(ready[0]);
		assert_int_equal(sl_file_pid_start(child, &start), 0);
		apart = sl_pids_apart(child, start);
		if (is && !strstr(apart ? apart : "no", rows[i].want))
			fail_msg("row %zu: '%s', not '%s'", i, apart ? apart : "no",
				rows[i].want);
		/* Another one had that number. */
		assert_non_null(sl_pids_apart(child, start + 1));
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
		assert_non_null(sl_pids_apart(child, start));
	}
}

static uint32_t ask(const struct rig_peer *peer, struct sl_wire_pid *rows, uint32_t room)
{
	uint32_t count = 0;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PIDS);
	msg.pids.ask = 77;
	rig_send(peer, &msg);
	do {
		rig_expect(peer, SL_MSG_PIDS_ROWS, &msg);
		assert_int_equal(msg.pids_rows.ask, 77);
		assert_true(msg.pids_rows.flags & SL_PIDS_SAME);
		assert_true(count + msg.pids_rows.count <= room);
		memcpy(rows + count, msg.pids_rows.rows,
			msg.pids_rows.count * sizeof(*rows));
		count += msg.pids_rows.count;
	} while (!(msg.pids_rows.flags & SL_PIDS_LAST));
	return count;
}

static void own_ones_only(void **state)
{
	struct inside *inside = *state;
	struct rig_peer a = rig_join(&inside->rig, &run),
			b = rig_join(&inside->rig, &run);
	struct rig_peer idle = rig_join(&inside->rig, &run);
	struct rig_peer other = rig_join(&inside->rig, &other_run);
	struct sl_wire_pid rows[8];

	assert_int_equal(ask(&a, rows, 8), 0);
	rig_hold(&inside->rig, &a, 1, RIG_GIB / 2);
	rig_hold(&inside->rig, &b, 1, RIG_GIB / 4);
	rig_hold(&inside->rig, &other, 1, RIG_GIB);
	/* A process that only asks is not listed. */
	assert_int_equal(ask(&idle, rows, 8), 2);
	assert_int_equal(rows[0].pid, a.pid);
	assert_int_equal(rows[0].used_bytes, RIG_GIB / 2);
	assert_int_equal(rows[1].pid, b.pid);
	assert_int_equal(rows[1].used_bytes, RIG_GIB / 4);
	assert_int_equal(ask(&other, rows, 8), 1);
	assert_int_equal(rows[0].pid, other.pid);
	rig_peer_end(&b);
	inside_until(inside, ask(&a, rows, 8) == 1);
	rig_peer_end(&other);
	rig_peer_end(&idle);
	rig_peer_end(&a);
}

/* More than one message has room for. */
static void many(void **state)
{
	enum { COUNT = SL_PIDS_ROWS_MAX + 6 };
	struct inside *inside = *state;
	static struct rig_peer peers[COUNT];
	static struct sl_wire_pid rows[COUNT];

	for (int i = 0; i < COUNT; i++) {
		peers[i] = rig_join(&inside->rig, &run);
		rig_hold(&inside->rig, &peers[i], 1, 2 << 20);
	}
	/* The commit of the last one goes by another line than the question. */
	for (int tries = 0; ask(&peers[0], rows, COUNT) < COUNT && tries < 2000; tries++)
		(void)usleep(1000);
	assert_int_equal(ask(&peers[0], rows, COUNT), COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(rows[i].pid, peers[i].pid);
	for (int i = 0; i < COUNT; i++)
		rig_peer_end(&peers[i]);
}

static void no_such_gpu(void **state)
{
	struct inside *inside = *state;
	struct rig_peer a = rig_join(&inside->rig, &run);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PIDS);
	msg.pids.ordinal = 1;
	rig_send(&a, &msg);
	rig_expect_closed(&a);
	rig_peer_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_is_read),
		cmocka_unit_test(numbers_by_namespace),
		cmocka_unit_test(who_is_apart_is_told_how),
		cmocka_unit_test_setup_teardown(own_ones_only, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(no_such_gpu, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
