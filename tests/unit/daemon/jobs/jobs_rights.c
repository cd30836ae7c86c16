/* The rights of a job: no more than its submitter's, with that process's limits, capabilities and
 * sandbox, and as many workloads as its user may have. */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "submitting.h"

/* It does not wait for memory. */
static union sl_msg small_msg(const char *name, uint32_t tasks)
{
	union sl_msg msg = submit_msg(name);

	msg.submit.request_kind = msg.submit.limit_kind = SL_AMOUNT_BYTES;
	msg.submit.request_value = msg.submit.limit_value = RIG_GIB / 4;
	msg.submit.tasks = tasks;
	return msg;
}

static void expect_bound(const struct rig_peer *peer, const char *name, const char *words)
{
	struct sl_msg_job_row row = row_of(peer, name);

	if (row.state != SL_JOB_QUEUED || !strstr(row.why, words))
		fail_msg("%s is %u: '%s' lacks '%s'", name, row.state, row.why, words);
}

/* A user's bound on workloads holds for queued jobs as for runs: too many wait, a gang as a whole,
 * and what can never fit is refused. */
static void holds_to_max_workloads(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_submit_reply said;
	struct rig_peer peer, run;
	union sl_msg msg;
	char config[96];

	/* The daemon's own user is held to a row of its own. */
	(void)snprintf(config, sizeof(config), "bounds:\n  user %u: {max_workloads: 3}\n",
		(unsigned int)geteuid());
	rig_start(rig, config);
	peer = greet(rig_peer(rig));
	expect_refusal(&peer, small_msg("huge", 4), "4 tasks of it must run together");
	assert_true(submit(&peer, small_msg("one", 1), "exec sleep 60").ok);
	rig_until(row_of(&peer, "one").state == SL_JOB_RUNNING);
	run = rig_run(rig, RIG_GIB, RIG_GIB);
	/* Two of three places are taken. */
	said = submit(&peer, small_msg("gang", 2), "exec sleep 60");
	assert_true(said.ok);
	if (!strstr(said.text,
		    "with it there would be 4 tasks of its user at a time, and "
		    "the administrator allows 3"))
		fail_msg("%s", said.text);
	assert_true(submit(&peer, small_msg("two", 1), "exec sleep 60").ok);
	rig_until(row_of(&peer, "two").state == SL_JOB_RUNNING);
	expect_bound(&peer, "gang", "there would be 5 tasks of its user");
	msg = small_msg("three", 1);
	msg.submit.flags |= SL_SUBMIT_TRY;
	said = submit(&peer, msg, "exec sleep 60");
	assert_true(said.ok && strstr(said.text, "there would be 4 tasks of its user"));
	assert_true(submit(&peer, small_msg("three", 1), "exec sleep 60").ok);
	/* Also for a daemon that follows. */
	rig_kill_daemon(rig);
	rig_start(rig, config);
	rig_peer_end(&peer);
	peer = greet(rig_peer(rig));
	rig_until(row_of(&peer, "two").state == SL_JOB_RUNNING);
	expect_bound(&peer, "three", "there would be 4 tasks of its user");
	/* One place: not enough for the gang, which does not keep it from others. */
	stop_job(&peer, "one");
	rig_until(row_of(&peer, "three").state == SL_JOB_RUNNING);
	expect_bound(&peer, "gang", "there would be 5 tasks of its user");
	stop_job(&peer, "two");
	expect_bound(&peer, "gang", "there would be 4 tasks of its user");
	/* It was no job. */
	rig_peer_end(&run);
	rig_until(row_of(&peer, "gang").state == SL_JOB_RUNNING);
	assert_int_equal(row_of(&peer, "gang").running, 2);
	/* Also for one without request, which asks the machine for nothing. */
	msg = small_msg("free", 1);
	msg.submit.request_value = 0;
	said = submit(&peer, msg, "exec sleep 60");
	assert_true(said.ok && strstr(said.text, "there would be 4 tasks of its user"));
	assert_null(strstr(said.text, "Once it runs"));
	expect_bound(&peer, "free", "there would be 4 tasks of its user");
	/* Nor does a run without request wait, and it is told what does. */
	run = greet(rig_peer(rig));
	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = SL_RUN_WAIT;
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "/usr/bin/server");
	rig_send(&run, &msg);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_false(msg.run_reply.ok);
	assert_non_null(strstr(msg.run_reply.text, "allows you 3 at a time"));
	assert_non_null(strstr(msg.run_reply.text, "sluice submit waits without one"));
	rig_peer_end(&run);
	stop_job(&peer, "three");
	rig_until(row_of(&peer, "free").state == SL_JOB_RUNNING);
	stop_job(&peer, "free");
	stop_job(&peer, "gang");
	rig_peer_end(&peer);
}

/* A run that waits for a place of its user has it as soon as there is one. */
static void has_its_place_at_once(void **state)
{
	struct rig *rig = *state;
	struct rig_peer before, run;
	union sl_msg msg;
	char config[96];

	(void)snprintf(config, sizeof(config), "bounds:\n  user %u: {max_workloads: 1}\n",
		(unsigned int)geteuid());
	rig_start(rig, config);
	before = rig_run(rig, RIG_GIB, RIG_GIB);
	run = greet(rig_peer(rig));
	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = RIG_GIB;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = SL_RUN_WAIT;
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "/usr/bin/server");
	rig_send(&run, &msg);
	rig_expect(&run, SL_MSG_RUN_WAITS, &msg);
	assert_non_null(strstr(msg.run_waits.text, "allows you 1 at a time"));
	rig_peer_end(&before);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	rig_peer_end(&run);
}

static bool limits_are(const char *log, const char *name, rlim_t soft, rlim_t hard)
{
	const char *line = strstr(log, name);
	unsigned long long got_soft = 0, got_hard = 0;

	return line &&
	       sscanf(line + strlen(name), "%llu %llu", &got_soft, &got_hard) == 2 &&
	       got_soft == soft && got_hard == hard;
}

/*
 * A service has other limits than a user's session. The job has those of its submitter, soft and
 * hard: lower ones than the daemon's, and, from a daemon that runs as root, higher ones. The job's
 * end is recorded whatever the job itself may write.
 */
static void has_its_submitters_limits(void **state)
{
	struct rig *rig = *state;
	struct rlimit before, few, files = {700, 800}, none = {0, 0};
	sl_cleanup(sl_freep) char *log = NULL;
	struct rig_peer peer;
	char path[128];

	/* The daemon is started with fewer than its users have. */
	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	few.rlim_cur = few.rlim_max = before.rlim_cur / 2;
	if (geteuid() == 0)
		assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &few), 0);
	rig_start(rig, NULL);
	if (geteuid() == 0 && setrlimit(RLIMIT_SIGPENDING, &before) < 0)
		before = few; /* without CAP_SYS_RESOURCE */
	peer = greet(rig_peer(rig));
	assert_int_equal(prlimit(peer.pid, RLIMIT_NOFILE, &files, NULL), 0);
	assert_true(submit(&peer, submit_msg("one"), "cat /proc/$$/limits").ok);
	rig_until(row_of(&peer, "one").state == SL_JOB_DONE);
	(void)snprintf(path, sizeof(path), "%s/jobs/1/log.0", rig->dir);
	assert_int_equal(sl_file_read(path, 1 << 20, &log, NULL), 0);
	if (!limits_are(log, "Max open files", files.rlim_cur, files.rlim_max) ||
		!limits_are(log, "Max pending signals", before.rlim_cur, before.rlim_max))
		fail_msg("%s", log);
	assert_int_equal(prlimit(peer.pid, RLIMIT_FSIZE, &none, NULL), 0);
	assert_true(submit(&peer, submit_msg("two"), "exit 6").ok);
	rig_until(row_of(&peer, "two").state == SL_JOB_FAILED);
	assert_int_equal(WEXITSTATUS(row_of(&peer, "two").exit_status), 6);
	rig_peer_end(&peer);
}

static void become_humble(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(1);
}

/* Gives up rights for good: the bounding set, and the capabilities themselves, which only root
 * would get back with execve. */
static void lose_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_CAPBSET_DROP, CAP_NET_RAW) < 0 ||
		syscall(SYS_capget, &header, data) < 0)
		_exit(1);
	data[0].permitted &= ~(1u << CAP_KILL);
	data[0].effective &= ~(1u << CAP_KILL);
	if (syscall(SYS_capset, &header, data) < 0)
		_exit(1);
}

static void enter_sandbox(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {.len = 1, .filter = &allow};

	become_humble();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(1);
}

static uint64_t number_in(const char *log, const char *line, int base)
{
	const char *at = strstr(log, line);

	if (!at)
		fail_msg("no %s in %s", line, log);
	return strtoull(at + strlen(line), NULL, base);
}

/* A job gives no user more rights: what the submitting process has given up, the job does not have.
 * A sandbox that the job could not have keeps the process from submitting. */
static void has_its_submitters_rights(void **state)
{
	enum { GIVEN_UP = 1 << CAP_NET_RAW | 1 << CAP_KILL };
	static const struct {
		const char *name;
		void (*prepare)(void);
		uint64_t without;
		uint64_t no_new_privs;
		bool roots;
	} rows[] = {
		{"whole", NULL, 0, 0, false},
		{"humble", become_humble, 0, 1, false},
		{"capable", lose_capabilities, GIVEN_UP, 0, true},
	};
	struct rig *rig = *state;
	struct rig_peer peer;
	uint64_t all = 0;

	rig_start(rig, NULL);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		sl_cleanup(sl_freep) char *log = NULL;
		char path[128];

		if (rows[i].roots && geteuid() != 0)
			continue;
		peer = greet(rig_peer_after(rig, rows[i].prepare));
		assert_true(submit(&peer, submit_msg(rows[i].name),
			"cat /proc/$$/status >&2; test -s /proc/self/fd/2")
				    .ok);
		rig_until(row_of(&peer, rows[i].name).state == SL_JOB_DONE);
		(void)snprintf(path, sizeof(path), "%s/jobs/%d/log.0", rig->dir,
			(int)row_of(&peer, rows[i].name).job);
		assert_int_equal(sl_file_read(path, 1 << 20, &log, NULL), 0);
		if (i == 0)
			all = number_in(log, "\nCapBnd:\t", 16);
		assert_int_equal(
			number_in(log, "\nCapBnd:\t", 16), all & ~rows[i].without);
		assert_int_equal(
			number_in(log, "\nNoNewPrivs:\t", 10), rows[i].no_new_privs);
		rig_peer_end(&peer);
	}
	peer = greet(rig_peer_after(rig, enter_sandbox));
	expect_refusal(&peer, submit_msg("none"), "sandbox");
	rig_peer_end(&peer);
	/* It has gone before it is looked at. */
	peer = greet(rig_peer(rig));
	rig_peer_kill(&peer);
	expect_refusal(&peer, submit_msg("none"), "wait for the answer");
	sl_closep(&peer.fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_gpus, two_gpus_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(holds_to_max_workloads),
		TEST(has_its_place_at_once),
		TEST(has_its_submitters_limits),
		TEST(has_its_submitters_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
