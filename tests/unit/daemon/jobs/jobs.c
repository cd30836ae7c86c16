/* Jobs over the wire: which are accepted, which wait and why, rights over others' jobs, and what
 * counts beside them. */
#include <glob.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "job_record.h"
#include "policy/words/reason.h"
#include "../sql.h"
#include "submitting.h"

#define OTHER_USER 12345

/* --- Refusals. --- */

static void set_gpus(struct sl_msg_submit *submit)
{
	submit->gpu_count = 3;
}

static void set_tasks(struct sl_msg_submit *submit)
{
	submit->tasks = SL_JOB_TASKS_MAX + 1;
}

static void set_least(struct sl_msg_submit *submit)
{
	submit->least = 2;
}

static void set_retries(struct sl_msg_submit *submit)
{
	submit->retries = SL_JOB_RETRIES_MAX + 1;
}

static void set_flags(struct sl_msg_submit *submit)
{
	submit->flags |= 0x8000;
}

static void set_name(struct sl_msg_submit *submit)
{
	sl_wire_str(submit->name, sizeof(submit->name), "two words");
}

/* It would stand in front of the job with that number. */
static void set_number(struct sl_msg_submit *submit)
{
	sl_wire_str(submit->name, sizeof(submit->name), "3");
}

/* One byte more than leaves room for the numbers of tasks. */
static void set_long_gang(struct sl_msg_submit *submit)
{
	submit->tasks = 2;
	memset(submit->name, 'x', 59);
	submit->name[59] = '\0';
}

static void set_project(struct sl_msg_submit *submit)
{
	sl_wire_str(submit->project, sizeof(submit->project), "nowhere");
}

static void set_bytes(struct sl_msg_submit *submit)
{
	submit->request_kind = SL_AMOUNT_BYTES;
	submit->request_value = 20 * RIG_GIB;
}

static void set_limit(struct sl_msg_submit *submit)
{
	submit->request_kind = submit->limit_kind = SL_AMOUNT_FRACTION;
	submit->request_value = 500000;
	submit->limit_value = 400000;
}

static void set_blind(struct sl_msg_submit *submit)
{
	submit->flags |= SL_RUN_VISIBLE_SET;
}

static void set_warm(struct sl_msg_submit *submit)
{
	submit->warm_after_ms = UINT64_MAX;
}

static void refuses(void **state)
{
	static const struct {
		void (*set)(struct sl_msg_submit *submit);
		const char *words;
	} rows[] = {
		{set_gpus, "wants 3 GPUs"},
		{set_tasks, "--gang"},
		{set_least, "--min"},
		{set_retries, "--retries"},
		{set_flags, "flag"},
		{set_name, "--name"},
		{set_number, "must not be a number"},
		{set_long_gang, "at most 58 bytes"},
		{set_project, "no project 'nowhere'"},
		{set_bytes, "does not fit any GPU: the best one, GPU 0"},
		{set_limit, "--limit"},
		{set_blind, "names no GPU that sluiced manages"},
		{set_warm, "--warm-after"},
	};
	struct rig *rig = *state;
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		union sl_msg msg = submit_msg("x");
		struct sl_msg_submit_reply said;

		rows[i].set(&msg.submit);
		said = submit(&peer, msg, "true");
		if (said.ok || !strstr(said.text, rows[i].words))
			fail_msg("row %zu: ok %u, '%s' lacks '%s'", i, said.ok, said.text,
				rows[i].words);
	}
	assert_int_equal(row_of(&peer, "x").job, 0);
	rig_peer_end(&peer);
}

/* Broken specs: another size than announced, or a file that may still be changed. */
static void refuses_what_is_no_spec(void **state)
{
	struct rig *rig = *state;
	union sl_msg msg = submit_msg("x");
	struct rig_peer peer;
	int fd;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	fd = spec_fd("true", &msg.submit.spec_bytes);
	msg.submit.spec_bytes++;
	assert_int_equal(sl_wire_send_fds(peer.fd, &msg, &fd, 1), SL_WIRE_OK);
	(void)close(fd);
	rig_expect(&peer, SL_MSG_SUBMIT_REPLY, &msg);
	assert_false(msg.submit_reply.ok);
	msg = submit_msg("x");
	msg.submit.spec_bytes = 16;
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sl_wire_send_fds(peer.fd, &msg, &fd, 1), SL_WIRE_OK);
	(void)close(fd);
	rig_expect(&peer, SL_MSG_SUBMIT_REPLY, &msg);
	assert_false(msg.submit_reply.ok);
	rig_peer_end(&peer);
}

/* --- The queue. --- */

static void waits_its_turn(void **state)
{
	struct rig *rig = *state;
	union sl_msg msg = submit_msg("both");
	struct sl_msg_submit_reply said;
	struct rig_peer peer, waiter;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	waiter = greet(rig_peer(rig));
	msg.submit.gpu_count = 2;
	said = submit(&peer, msg, "exec sleep 60");
	assert_true(said.ok);
	assert_int_equal(said.job, 1);
	rig_until(row_of(&peer, "both").state == SL_JOB_RUNNING);
	said = submit(&peer, submit_msg("next"), "exit 7");
	assert_true(said.ok);
	assert_int_equal(said.state, SL_JOB_QUEUED);
	assert_non_null(strstr(said.text, "it waits: it wants 1 GPU"));
	assert_non_null(strstr(row_of(&peer, "next").why, "it wants 1 GPU"));
	/* A question changes nothing. */
	msg = submit_msg("third");
	msg.submit.flags |= SL_SUBMIT_TRY;
	said = submit(&peer, msg, "true");
	assert_true(said.ok);
	assert_int_equal(said.job, 0);
	assert_non_null(strstr(said.text, "it waits: it wants 1 GPU"));
	assert_int_equal(row_of(&peer, "third").job, 0);
	/* One of that name is enough. */
	assert_false(submit(&peer, submit_msg("next"), "true").ok);
	ask_job(&waiter, SL_MSG_JOB_WAIT, "next");
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "both").ok);
	rig_expect(&waiter, SL_MSG_JOB_REPLY, &msg);
	assert_int_equal(msg.job_reply.state, SL_JOB_FAILED);
	assert_int_equal(WEXITSTATUS(msg.job_reply.exit_status), 7);
	assert_int_equal(row_of(&peer, "both").state, SL_JOB_STOPPED);
	assert_false(reply_of(&peer, SL_MSG_JOB_STOP, "both").ok);
	assert_false(reply_of(&peer, SL_MSG_JOB_STOP, "nobody").ok);
	rig_peer_end(&waiter);
	rig_peer_end(&peer);
}

/* --- Names. --- */

/* What the daemon says to a job of that name and so many tasks that would have to wait; "" if it is
 * fine. */
static const char *said_of(
	const struct rig_peer *peer, const char *name, uint32_t tasks, bool only_asks)
{
	static struct sl_msg_submit_reply said;
	union sl_msg msg = submit_msg(name);

	msg.submit.tasks = tasks;
	msg.submit.least = 1;
	if (only_asks)
		msg.submit.flags |= SL_SUBMIT_TRY;
	said = submit(peer, msg, "exec sleep 60");
	return said.ok ? "" : said.text;
}

static void expect_name(const struct rig_peer *peer, const char *name, uint32_t tasks,
	const char *in_the_way)
{
	const char *said = said_of(peer, name, tasks, true);

	if (in_the_way ? !strstr(said, in_the_way) : said[0])
		fail_msg("%s with %u tasks: '%s', not '%s'", name, tasks, said,
			in_the_way ? in_the_way : "");
}

/* A job, a gang and its tasks, and a workload of `sluice run` never share a name, whichever was
 * first. */
static void names_do_not_meet(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer, run;
	union sl_msg msg;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	run = greet(rig_peer(rig));
	rig_send_run(&run, 0, RIG_GIB, 1, "held.1", "0");
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	assert_string_equal(said_of(&peer, "gang", 3, false), "");
	assert_string_equal(said_of(&peer, "one.1", 1, false), "");

	expect_name(&peer, "gang", 1, "named gang is there already");
	expect_name(&peer, "gang.0", 1, "what a task of job gang is named");
	expect_name(&peer, "gang.2", 5, "what a task of job gang is named");
	expect_name(&peer, "one", 2, "would be named one.1");
	expect_name(&peer, "held", 2, "would be named held.1");
	expect_name(&peer, "held.1", 1, "named held.1 is there already");
	/* Not quite. */
	expect_name(&peer, "gang.3", 1, NULL);
	expect_name(&peer, "gang.00", 1, NULL);
	expect_name(&peer, "gang.", 1, NULL);
	expect_name(&peer, "gang.x", 1, NULL);
	expect_name(&peer, "gan", 3, NULL);
	expect_name(&peer, "one", 1, NULL);
	expect_name(&peer, "held", 1, NULL);

	rig_peer_end(&run);
	run = greet(rig_peer(rig));
	rig_send_run(&run, 0, RIG_GIB, 1, "gang.2", "0");
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_false(msg.run_reply.ok);
	assert_int_equal(msg.run_reply.reason, SL_REASON_DUPLICATE);
	rig_send_run(&run, 0, RIG_GIB, 1, "3", "0");
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_false(msg.run_reply.ok);
	assert_non_null(strstr(msg.run_reply.text, "must not be a number"));
	rig_peer_end(&run);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "gang").ok);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "one.1").ok);
	rig_until(row_of(&peer, "gang").state == SL_JOB_STOPPED &&
		  row_of(&peer, "one.1").state == SL_JOB_STOPPED);
	rig_peer_end(&peer);
}

/* A workload of `sluice run` with a request has its place in the same books. */
static void counts_workloads(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer, run;

	rig_start(rig, "context_reserve: 0\n");
	peer = greet(rig_peer(rig));
	run = rig_run(rig, 2 * RIG_GIB, 4 * RIG_GIB);
	assert_true(submit(&peer, submit_msg("one"), "exec sleep 60").ok);
	rig_until(row_of(&peer, "one").state == SL_JOB_RUNNING);
	assert_int_equal(submit(&peer, submit_msg("two"), "true").state, SL_JOB_QUEUED);
	rig_peer_end(&run);
	rig_until(row_of(&peer, "two").state == SL_JOB_DONE);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "one").ok);
	rig_until(row_of(&peer, "one").state == SL_JOB_STOPPED);
	rig_peer_end(&peer);
}

/* --- Of one user. --- */

/* An ended job gives its place to a new one; others are not touched, and count in the bound. */
static void a_user_has_a_bound(void **state)
{
	struct rig *rig = *state;
	union sl_msg msg = submit_msg("many");
	struct rig_peer peer, other;

	rig_start(rig, "jobs_per_user: 2\n");
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("first"), "true").ok);
	rig_until(row_of(&peer, "first").state == SL_JOB_DONE);
	assert_true(submit(&peer, submit_msg("second"), "true").ok);
	rig_until(row_of(&peer, "second").state == SL_JOB_DONE);
	assert_true(submit(&peer, submit_msg("third"), "exec sleep 60").ok);
	assert_int_equal(row_of(&peer, "first").job, 0);
	assert_int_equal(row_of(&peer, "second").state, SL_JOB_DONE);
	msg.submit.tasks = 20;
	msg.submit.least = 1;
	expect_refusal(&peer, msg, "would have above 20, ten for each of jobs_per_user");
	/* Nothing was removed for the refused one. */
	assert_int_equal(row_of(&peer, "second").state, SL_JOB_DONE);
	assert_true(submit(&peer, submit_msg("fourth"), "exec sleep 60").ok);
	expect_refusal(
		&peer, submit_msg("fifth"), "has 2 jobs in the queue, and may have 2");
	if (geteuid() == 0) {
		other = greet(rig_peer_as(rig, OTHER_USER, OTHER_USER));
		msg = submit_msg("theirs");
		msg.submit.flags |= SL_SUBMIT_TRY;
		assert_true(submit(&other, msg, "true").ok);
		rig_peer_end(&other);
	}
	stop_job(&peer, "fourth");
	assert_true(submit(&peer, submit_msg("fifth"), "exec sleep 60").ok);
	assert_int_equal(row_of(&peer, "fourth").job, 0);
	stop_job(&peer, "third");
	stop_job(&peer, "fifth");
	rig_peer_end(&peer);
}

/* A refusal by the disk has cost its user nothing. */
static void old_results_go_once_the_new_job_is_stored(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	char command[256], words[64];
	int third;

	rig_start(rig, "jobs_per_user: 2\n");
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("first"), "true").ok);
	rig_until(row_of(&peer, "first").state == SL_JOB_DONE);
	assert_true(submit(&peer, submit_msg("second"), "true").ok);
	rig_until(row_of(&peer, "second").state == SL_JOB_DONE);
	/* A foreign file stands where the third job would be made, whose number follows that of
	 * the second's workload. */
	third = (int)row_of(&peer, "second").job + 2;
	(void)snprintf(command, sizeof(command), "mkdir -p %s/jobs/part.%d/in-the-way",
		rig->dir, third);
	assert_int_equal(system(command), 0);
	(void)snprintf(words, sizeof(words), "cannot store job %d", third);
	expect_refusal(&peer, submit_msg("third"), words);
	assert_int_equal(row_of(&peer, "first").state, SL_JOB_DONE);
	assert_int_equal(row_of(&peer, "second").state, SL_JOB_DONE);
	assert_true(submit(&peer, submit_msg("fourth"), "exec sleep 60").ok);
	assert_int_equal(row_of(&peer, "first").job, 0);
	assert_int_equal(row_of(&peer, "second").state, SL_JOB_DONE);
	stop_job(&peer, "fourth");
	rig_peer_end(&peer);
}

/* Also after a restart, when the daemon remembers no write. */
static void a_users_output_has_a_bound(void **state)
{
	struct rig *rig = *state;
	union sl_msg asks = submit_msg("asks");
	struct rig_peer peer;

	rig_start(rig, "jobs_disk_per_user: 256KiB\n");
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("small"), "echo little").ok);
	rig_until(row_of(&peer, "small").state == SL_JOB_DONE);
	assert_true(submit(
		&peer, submit_msg("large"), "head -c 500000 /dev/urandom; exec sleep 60")
			    .ok);
	/* Once it has written. */
	asks.submit.flags |= SL_SUBMIT_TRY;
	rig_until(!submit(&peer, asks, "true").ok);
	expect_refusal(&peer, submit_msg("next"), "would have above 256 KiB");
	/* It has lost nothing by that. */
	assert_int_equal(row_of(&peer, "large").state, SL_JOB_RUNNING);
	rig_kill_daemon(rig);
	rig_peer_end(&peer);
	rig_start(rig, "jobs_disk_per_user: 256KiB\n");
	peer = greet(rig_peer(rig));
	expect_refusal(&peer, submit_msg("next"), "jobs_disk_per_user");
	stop_job(&peer, "large");
	assert_true(submit(&peer, submit_msg("next"), "exec sleep 60").ok);
	assert_int_equal(row_of(&peer, "large").job, 0);
	assert_int_equal(row_of(&peer, "small").job, 0);
	stop_job(&peer, "next");
	rig_peer_end(&peer);
}

/* Stopped as a workload, a job does not begin anew. */
static void ends_with_its_workload(void **state)
{
	struct rig *rig = *state;
	union sl_msg msg = submit_msg("job");
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	msg.submit.retries = 5;
	assert_true(submit(&peer, msg, "exec sleep 60").ok);
	rig_until(row_of(&peer, "job").started == 1);
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.grace_ms = 1000;
	sl_wire_str(msg.stop.name, sizeof(msg.stop.name), "job");
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_STOP_REPLY, &msg);
	assert_true(msg.stop_reply.ok);
	rig_until(row_of(&peer, "job").state == SL_JOB_STOPPED);
	assert_int_equal(row_of(&peer, "job").started, 1);
	rig_peer_end(&peer);
}

/* Programs often end by the loss of their GPU before the driver tells of it. */
static void a_loss_that_is_not_told_is_no_failure(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	char words[256], path[200];

	rig_start(rig, "measure_interval: 60s\n");
	peer = greet(rig_peer(rig));
	(void)snprintf(path, sizeof(path), "%s/go", rig->dir);
	(void)snprintf(words, sizeof(words),
		"while [ ! -e %s ]; do sleep 0.01; done; exit 4", path);
	assert_true(submit(&peer, submit_msg("bereft"), words).ok);
	rig_until(row_of(&peer, "bereft").started == 1);
	rig->nvml->gpus[0].lost = rig->nvml->gpus[1].lost = 1;
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	rig_until(row_of(&peer, "bereft").state != SL_JOB_RUNNING);
	assert_int_equal(row_of(&peer, "bereft").state, SL_JOB_QUEUED);
	/* With its GPU, the same end is its failure. */
	rig->nvml->gpus[0].lost = rig->nvml->gpus[1].lost = 0;
	rig_until(row_of(&peer, "bereft").state == SL_JOB_FAILED);
	assert_true(row_of(&peer, "bereft").started >= 2);
	rig_peer_end(&peer);
}

static void is_found_again(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_submit_reply said;
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("lives"), "exec sleep 60").ok);
	assert_true(submit(&peer, submit_msg("ends"), "sleep 0.2; exit 9").ok);
	assert_true(submit(&peer, submit_msg("waits"), "exit 0").ok);
	rig_until(row_of(&peer, "ends").started && row_of(&peer, "lives").started);
	rig_kill_daemon(rig);
	rig_peer_end(&peer);
	sl_clock_sleep(400 * SL_MS);
	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	rig_until(row_of(&peer, "waits").state == SL_JOB_DONE);
	assert_int_equal(row_of(&peer, "lives").state, SL_JOB_RUNNING);
	assert_int_equal(row_of(&peer, "lives").started, 1);
	assert_int_equal(WEXITSTATUS(row_of(&peer, "ends").exit_status), 9);
	said = submit(&peer, submit_msg("new"), "true");
	assert_true(said.job > row_of(&peer, "waits").job);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "lives").ok);
	rig_until(row_of(&peer, "lives").state == SL_JOB_STOPPED);
	rig_peer_end(&peer);
}

/* A file of the only job there is. */
static void path_of(const struct rig *rig, const char *file, char *path, size_t size)
{
	glob_t found;

	(void)snprintf(path, size, "%s/jobs/[0-9]*/%s", rig->dir, file);
	if (glob(path, 0, NULL, &found) == 0) {
		(void)snprintf(path, size, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
}

static bool has_bytes(const char *path)
{
	struct stat stat_now;

	return stat(path, &stat_now) == 0 && stat_now.st_size > 0;
}

/* The only child of the daemon. */
static pid_t shim_of(const struct rig *rig)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)rig->daemon,
		(int)rig->daemon);
	assert_int_equal(sl_file_read(path, 4096, &text, NULL), 0);
	return (pid_t)strtol(text, NULL, 10);
}

static bool is_dead(pid_t pid)
{
	struct sl_pid_stat now;

	return sl_file_pid_stat((int)pid, &now) < 0 || now.state == 'Z' ||
	       now.state == 'X';
}

/*
 * A daemon that dies after the go, but before it stores RUNNING, leaves BINDING, and so does one
 * that dies before the go: the exit record tells which. Neither a stored RUNNING nor a living shim
 * replaces the record.
 */
static void knows_what_began(void **state)
{
	static const struct {
		const char *name;
		bool binding, begun, lives;
		enum sl_job_state ends;
		uint32_t started;
	} rows[] = {
		{"told, and killed", true, true, false, SL_JOB_FAILED, 1},
		{"not told", true, false, false, SL_JOB_DONE, 1},
		{"stored, and killed", false, true, false, SL_JOB_FAILED, 1},
		{"stored, and killed before it began", false, false, false, SL_JOB_DONE,
			2},
		{"told, and lives", true, true, true, SL_JOB_DONE, 1},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_msg_job_row row;
		struct rig_peer peer;
		char path[128];
		pid_t shim;

		rig_start(rig, NULL);
		peer = greet(rig_peer(rig));
		assert_true(submit(
			&peer, submit_msg("job"), "[ $SLUICE_ATTEMPT != 1 ] || sleep 0.6")
				    .ok);
		rig_until(row_of(&peer, "job").started == 1);
		path_of(rig, "exit.0.1", path, sizeof(path));
		rig_until(has_bytes(path));
		rig_until(job_record_has(rig->dir, "\"tasks\":[{\"state\":3"));
		shim = shim_of(rig);
		rig_kill_daemon(rig);
		rig_peer_end(&peer);
		if (!rows[i].lives) {
			assert_int_equal(kill(shim, SIGKILL), 0);
			rig_until(is_dead(shim));
		}
		if (rows[i].binding) {
			job_record_edit(rig->dir, "\"tasks\":[{\"state\":3",
				"\"tasks\":[{\"state\":2");
			job_record_edit(rig->dir, "\"started\":1", "\"started\":0");
		}
		if (!rows[i].begun)
			assert_int_equal(truncate(path, 0), 0);
		rig_start(rig, NULL);
		peer = greet(rig_peer(rig));
		rig_until(row_of(&peer, "job").state >= SL_JOB_DONE);
		row = row_of(&peer, "job");
		if (row.state != rows[i].ends || row.started != rows[i].started)
			fail_msg("%s: state %u, started %u times", rows[i].name,
				row.state, row.started);
		rig_peer_end(&peer);
		rig_stop(rig);
		(void)snprintf(
			path, sizeof(path), "cd %s && rm -rf jobs state.db*", rig->dir);
		assert_int_equal(system(path), 0);
	}
}

/* From now on, and until it is lifted, how job `id` stands cannot be written. */
static void jam(const struct rig *rig, int id)
{
	char path[160], sql[160];

	(void)snprintf(path, sizeof(path), "%s/" SL_STORE_STATE_FILE, rig->dir);
	(void)snprintf(sql, sizeof(sql),
		"CREATE TRIGGER jam BEFORE INSERT ON job WHEN new.number = %d BEGIN "
		"SELECT RAISE(ABORT, 'jammed'); END",
		id);
	sql_run(path, sql);
}

static void lift(const struct rig *rig)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/" SL_STORE_STATE_FILE, rig->dir);
	sql_run(path, "DROP TRIGGER jam");
}

/* A start that cannot be written down does not happen; once it can, it happens once. */
static void does_not_go_unwritten(void **state)
{
	struct rig *rig = *state;
	union sl_msg msg = submit_msg("before");
	struct rig_peer peer;
	char path[128];
	int after;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	msg.submit.gpu_count = 2;
	assert_true(submit(&peer, msg, "exec sleep 60").ok);
	rig_until(row_of(&peer, "before").state == SL_JOB_RUNNING);
	assert_true(submit(&peer, submit_msg("after"), "echo went").ok);
	after = (int)row_of(&peer, "after").job;
	jam(rig, after);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "before").ok);
	assert_true(rig_log_gets(rig, "state.db: jammed"));
	rig_until(row_of(&peer, "after").state == SL_JOB_QUEUED);
	assert_int_equal(row_of(&peer, "after").started, 0);
	lift(rig);
	rig_until(row_of(&peer, "after").state == SL_JOB_DONE);
	assert_int_equal(row_of(&peer, "after").started, 1);
	(void)snprintf(
		path, sizeof(path), "grep -qx went %s/jobs/%d/log.0", rig->dir, after);
	assert_int_equal(system(path), 0);
	rig_peer_end(&peer);
}

/* A stop that cannot be written down happens all the same, and its sender is answered. */
static void is_stopped_unwritten(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("job"), "exec sleep 60").ok);
	rig_until(row_of(&peer, "job").state == SL_JOB_RUNNING);
	rig_until(job_record_has(rig->dir, "\"tasks\":[{\"state\":3"));
	jam(rig, 1);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "job").ok);
	assert_true(rig_log_gets(rig, "is stopped without that being written down"));
	rig_until(row_of(&peer, "job").state == SL_JOB_STOPPED);
	rig_peer_end(&peer);
}

/* A client that was told that a job is taken, or is being stopped, need not check whether the next
 * daemon knows. */
static void answers_once_stored(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	assert_true(submit(
		&peer, submit_msg("job"), "trap '' TERM; while :; do sleep 0.05; done")
			    .ok);
	assert_true(job_record_has(rig->dir, "\"name\":\"job\""));
	rig_until(row_of(&peer, "job").state == SL_JOB_RUNNING);
	assert_true(reply_of(&peer, SL_MSG_JOB_STOP, "job").ok);
	/* ENDED, as the next daemon will find it. */
	assert_true(job_record_has(rig->dir, "\"tasks\":[{\"state\":5"));
	rig_until(row_of(&peer, "job").state == SL_JOB_STOPPED);
	rig_peer_end(&peer);
}

/* What a task writes last is trimmed, too. */
static void output_keeps_within_its_bound(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	struct stat log;
	char path[128];

	rig_start(rig, "job_log_max: 64KiB\n");
	peer = greet(rig_peer(rig));
	assert_true(submit(&peer, submit_msg("job"), "yes | head -c 2000000").ok);
	rig_until(row_of(&peer, "job").state == SL_JOB_DONE);
	path_of(rig, "log.0", path, sizeof(path));
	rig_until(stat(path, &log) == 0 && log.st_blocks * 512 <= 65536);
	assert_int_equal(log.st_size, 2000000);
	rig_peer_end(&peer);
}

/* A client that submits and goes has submitted; one that waits and goes is not missed. */
static void outlives_its_peers(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer, other;
	union sl_msg msg = submit_msg("alone");

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	other = greet(rig_peer(rig));
	send_submit(&other, &msg, "exec sleep 0.3");
	rig_until(row_of(&peer, "alone").job);
	rig_peer_end(&other);
	other = greet(rig_peer(rig));
	ask_job(&other, SL_MSG_JOB_WAIT, "alone");
	rig_peer_end(&other);
	rig_until(row_of(&peer, "alone").state == SL_JOB_DONE);
	rig_peer_end(&peer);
}

static void is_its_owners(void **state)
{
	struct rig *rig = *state;
	struct rig_peer root, other;

	if (geteuid() != 0)
		skip();
	rig_start(rig, NULL);
	root = greet(rig_peer(rig));
	assert_true(submit(&root, submit_msg("job"), "exec sleep 60").ok);
	rig_until(row_of(&root, "job").state == SL_JOB_RUNNING);
	other = greet(rig_peer_as(rig, OTHER_USER, OTHER_USER));
	assert_int_equal(row_of(&other, "job").uid, 0);
	ask_job(&other, SL_MSG_JOB_STOP, "job");
	rig_expect_closed(&other);
	rig_peer_end(&other);
	other = greet(rig_peer_as(rig, OTHER_USER, OTHER_USER));
	ask_job(&other, SL_MSG_JOB_LOG, "job");
	rig_expect_closed(&other);
	rig_peer_end(&other);
	assert_int_equal(row_of(&root, "job").state, SL_JOB_RUNNING);
	assert_true(reply_of(&root, SL_MSG_JOB_STOP, "job").ok);
	rig_until(row_of(&root, "job").state == SL_JOB_STOPPED);
	rig_peer_end(&root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_gpus, two_gpus_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refuses),
		TEST(refuses_what_is_no_spec),
		TEST(waits_its_turn),
		TEST(names_do_not_meet),
		TEST(counts_workloads),
		TEST(a_user_has_a_bound),
		TEST(old_results_go_once_the_new_job_is_stored),
		TEST(a_users_output_has_a_bound),
		TEST(ends_with_its_workload),
		TEST(a_loss_that_is_not_told_is_no_failure),
		TEST(is_found_again),
		TEST(knows_what_began),
		TEST(does_not_go_unwritten),
		TEST(is_stopped_unwritten),
		TEST(answers_once_stored),
		TEST(output_keeps_within_its_bound),
		TEST(outlives_its_peers),
		TEST(is_its_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
