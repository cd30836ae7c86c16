/* The queue from within: what is late by a clock that the test reads, and what outlives the
 * books. */
#include "../inside.h"
#include "submitting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs/internal.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/workload.h"
#include "job_record.h"
#include "../sql.h"

#define MIB SL_MIB

static int setup(void **state)
{
	static struct inside inside;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 50ms\n"
			     "recover_wait: 1ms\nstop_grace: 1s\nhost_memory: 512MiB\n");
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	inside_fini(*state);
	return 0;
}

static struct sl_jobs *jobs_of(struct inside *inside)
{
	return inside->daemon.jobs;
}

/* --- Jobs and their processes. --- */

/* Of a job of one task that was submitted to run these words, and has begun to if it may. */
static struct sl_job_task *submitted(
	struct inside *inside, const char *name, const char *words)
{
	struct rig_peer peer = greet(rig_peer(&inside->rig));
	union sl_msg msg = submit_msg(name);
	struct sl_msg_submit_reply said;
	struct sl_job *job;

	msg.submit.retries = 9;
	said = submit(&peer, msg, words);
	if (!said.ok)
		fail_msg("%s", said.text);
	rig_peer_end(&peer);
	job = sl_jobs_find(jobs_of(inside), said.job);
	assert_non_null(job);
	return &job->tasks[0];
}

static struct sl_job_task *running(struct inside *inside)
{
	struct sl_job_task *task = submitted(inside, "job", "exec sleep 60");

	inside_until(inside, task->phase == SL_PHASE_RUNS);
	return task;
}

static struct sl_workload *workload_of(
	struct inside *inside, const struct sl_job_task *task)
{
	return sl_map_get(
		&inside->daemon.workloads, task->job->row.tasks[task->number].workload);
}

/* A process of it that has memory, and is deaf for orders. */
static struct rig_peer holder_of(struct inside *inside, const struct sl_job_task *task)
{
	const struct sl_workload *workload = workload_of(inside, task);
	struct rig_peer run = {.workload = workload->id}, client;

	memcpy(run.token, workload->token, sizeof(run.token));
	client = rig_join(&inside->rig, &run);
	rig_hold(&inside->rig, &client, 1, 64 * MIB);
	inside_until(
		inside, sl_node_use(inside->daemon.node, workload->id, 0).backing_bytes ==
				64 * MIB);
	return client;
}

static void order_park(struct inside *inside, const struct sl_job_task *task)
{
	struct sl_cluster_action action = {.type = SL_CLUSTER_ACTION_STOP};

	action.stop.job = task->job->row.id;
	action.stop.how = SL_STOP_PARK;
	sl_jobs_on_stop(jobs_of(inside), &action);
}

static void order_back(struct inside *inside, const struct sl_job_task *task)
{
	struct sl_cluster_action action = {.type = SL_CLUSTER_ACTION_BIND};

	action.bind.job = task->job->row.id;
	action.bind.node = task->node;
	action.bind.gpu_mask = task->gpu_mask;
	sl_jobs_on_bind(jobs_of(inside), &action);
}

static void end(struct inside *inside, struct sl_job_task *task)
{
	struct sl_job *job = task->job;

	(void)sl_jobs_end_task(jobs_of(inside), task, 0, true);
	sl_jobs_check_end(jobs_of(inside), job);
	inside_until(inside, job->over);
}

/* A task gets its go once its state is stored, too, not only the journal. */
static void waits_for_both_writes(void **state)
{
	struct inside *inside = *state;
	struct sl_jobs *jobs = jobs_of(inside);
	struct sl_job_task *task;
	struct rig_peer asks;
	struct sl_peer *peer;

	/* As if an earlier write of states were in progress. */
	jobs->writes = true;
	task = submitted(inside, "job", "exec sleep 60");
	inside_until(inside, task->phase == SL_PHASE_STARTING &&
				     sl_commit_is_done(&inside->daemon, task->commit));
	inside_turn(inside);
	assert_int_equal(task->phase, SL_PHASE_STARTING);
	jobs->writes = false;
	sl_jobs_awake(jobs);
	inside_until(inside, task->phase == SL_PHASE_RUNS);
	/* So does an answer to a peer. */
	asks = greet(rig_peer(&inside->rig));
	peer = SL_LIST_ENTRY(inside->daemon.peers->all.prev, struct sl_peer, link);
	inside_until(inside, !jobs->unwritten && !jobs->writes);
	jobs->writes = true;
	sl_jobs_hold_for(jobs, task->job, peer);
	inside_turn(inside);
	assert_true(sl_list_is_linked(&peer->held_link));
	jobs->writes = false;
	sl_jobs_awake(jobs);
	inside_until(inside, !sl_list_is_linked(&peer->held_link));
	rig_peer_end(&asks);
	end(inside, task);
}

/* What could not be written is written once it can be, without anything else to write. */
static void writes_again_what_failed(void **state)
{
	struct inside *inside = *state;
	struct sl_jobs *jobs = jobs_of(inside);
	struct sl_job_task *task = running(inside);
	const char *path = sl_store_path(inside->daemon.store, SL_KIND_JOB);

	inside_until(inside, !jobs->unwritten && !jobs->writes);
	sql_run(path, "CREATE TRIGGER jam BEFORE INSERT ON job BEGIN SELECT "
		      "RAISE(ABORT, 'jammed'); END");
	(void)sl_jobs_save(jobs, task->job);
	inside_until(inside, strstr(jobs->unstored.text, "jammed"));
	sql_run(path, "DROP TRIGGER jam");
	inside_until(inside, !jobs->unstored.text[0]);
	end(inside, task);
}

/* --- What takes too long. --- */

/* The machine decides nothing until it is let: what the test orders is all that happens. */
static void hold_cycles(struct inside *inside, bool held)
{
	jobs_of(inside)->cycle_at = held ? SL_NS_NEVER : 0;
	jobs_of(inside)->wake_at = SL_NS_NEVER;
	sl_jobs_awake(jobs_of(inside));
}

/* So long after `before` at the earliest, and after now at the latest. */
static void assert_due(const struct sl_job_task *task, sl_ns before, sl_ns after)
{
	assert_true(task->deadline >= before + after);
	assert_true(task->deadline <= sl_clock_now() + after);
}

/* The loop wakes for it: tried with a moment that is nearer than what else it wakes for. */
static void assert_wakes_for(struct inside *inside, struct sl_job_task *task)
{
	sl_ns was = task->deadline;
	uint64_t usec = 0;
	int enabled = SD_EVENT_OFF;

	inside_until(inside,
		!jobs_of(inside)->dirty || jobs_of(inside)->cycle_at == SL_NS_NEVER);
	task->deadline = sl_clock_now() + SL_S;
	sl_jobs_awake(jobs_of(inside));
	sl_jobs_settle(&inside->daemon);
	assert_true(sd_event_source_get_time(jobs_of(inside)->timer, &usec) >= 0);
	assert_true(sd_event_source_get_enabled(jobs_of(inside)->timer, &enabled) >= 0);
	assert_int_equal(enabled, SD_EVENT_ONESHOT);
	assert_true(usec <= task->deadline / SL_US + 1);
	task->deadline = was;
}

/* Its program goes on, and cannot be a victim for a while. */
static void who_does_not_leave_stays(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	struct rig_peer client = holder_of(inside, task);
	sl_ns before = sl_clock_now(), deadline;
	struct sl_cluster_event stops = {.type = SL_CLUSTER_EVENT_TASK_STOPS};

	/* The machine is told, as if it had decided so. */
	stops.task_stops.job = task->job->row.id;
	sl_jobs_tell(jobs_of(inside), &stops);
	order_park(inside, task);
	assert_int_equal(task->phase, SL_PHASE_PARKING);
	assert_due(task, before, 30 * SL_S);
	inside_turn(inside);
	assert_int_equal(task->phase, SL_PHASE_PARKING);
	assert_int_equal(workload_of(inside, task)->park, SL_PARK_PARKED);
	deadline = task->deadline;
	assert_wakes_for(inside, task);
	sl_jobs_look(jobs_of(inside), deadline - 1);
	assert_int_equal(task->phase, SL_PHASE_PARKING);
	sl_jobs_look(jobs_of(inside), deadline);
	assert_int_equal(task->phase, SL_PHASE_RUNS);
	assert_int_equal(task->deadline, 0);
	inside_until(inside, workload_of(inside, task)->park == SL_PARK_NOT);
	assert_true(sl_cluster_task(jobs_of(inside)->books.cluster, task->job->row.id, 0)
			    .spared_until > before);
	assert_int_equal(
		sl_cluster_task(jobs_of(inside)->books.cluster, task->job->row.id, 0)
			.state,
		SL_TASK_RUNNING);
	rig_peer_end(&client);
	rig_nvml(&inside->rig, client.pid, 0);
	end(inside, task);
}

/* `sluice set --request` of one that shares: only the node is asked. */
static void request(const struct rig_peer *run, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = run->workload;
	msg.set.which = SL_SET_REQUEST;
	msg.set.request_kind = SL_AMOUNT_BYTES;
	msg.set.request_value = bytes;
	rig_send(run, &msg);
	rig_expect(run, SL_MSG_SET_REPLY, &msg);
	if (!msg.set_reply.ok)
		fail_msg("not changed: %s", msg.set_reply.text);
}

/* A task resumes, but its place was given to a workload meanwhile: the task is parked again, and
 * resumes when there is room. */
static void who_finds_no_room_is_parked_again(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	struct rig_peer run = rig_run(&inside->rig, 0, 8 * RIG_GIB);
	sl_ns before, deadline;

	hold_cycles(inside, true);
	order_park(inside, task);
	sl_jobs_look(jobs_of(inside), sl_clock_now());
	assert_int_equal(task->phase, SL_PHASE_PARKED);
	/* Before the queue looks. */
	jobs_of(inside)->cycle_at = SL_NS_NEVER;
	request(&run, 8 * RIG_GIB);
	jobs_of(inside)->cycle_at = 0;
	before = sl_clock_now();
	order_back(inside, task);
	assert_int_equal(task->phase, SL_PHASE_RESUMING);
	assert_due(task, before, 30 * SL_S);
	inside_turn(inside);
	assert_int_equal(task->phase, SL_PHASE_RESUMING);
	deadline = task->deadline;
	assert_wakes_for(inside, task);
	sl_jobs_look(jobs_of(inside), deadline - 1);
	assert_int_equal(task->phase, SL_PHASE_RESUMING);
	sl_jobs_look(jobs_of(inside), deadline);
	assert_int_equal(task->phase, SL_PHASE_PARKED);
	assert_int_equal(workload_of(inside, task)->park, SL_PARK_PARKED);
	assert_non_null(strstr(task->job->node_said, "no room for its request"));
	assert_true(sl_list_is_linked(&task->active));
	rig_peer_end(&run);
	hold_cycles(inside, false);
	inside_until(inside, task->phase == SL_PHASE_RUNS);
	assert_int_equal(workload_of(inside, task)->park, SL_PARK_NOT);
	end(inside, task);
}

/* --- What a GPU's loss leaves. --- */

static void lose_gpu(struct inside *inside, bool lost)
{
	inside->daemon.gpus[0].lost = lost;
	sl_jobs_follow_gpus(jobs_of(inside));
}

/* A job that fails at once does not get round its pause by what happens to a GPU. */
static void a_back_off_outlives_a_gpu(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = submitted(inside, "fails", "exit 1");
	struct sl_jobs *jobs = jobs_of(inside);
	struct sl_cluster_job_view was, is;

	/* The pause after the third: 4 s. */
	inside_until(inside,
		task->job->row.tasks[0].failures == 3 && task->phase == SL_PHASE_WAITING);
	was = sl_cluster_job(jobs->books.cluster, task->job->row.id);
	assert_int_equal(was.failures, 3);
	lose_gpu(inside, true);
	assert_false(jobs->books.works);
	lose_gpu(inside, false);
	is = sl_cluster_job(jobs->books.cluster, task->job->row.id);
	assert_true(is.known);
	assert_int_equal(is.failures, was.failures);
	assert_int_equal(is.held_until, was.held_until);
	assert_int_equal(is.because.reason, SL_PENDING_BACK_OFF);
	end(inside, task);
}

static void a_spared_task_is_spared_after_a_change(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	struct sl_jobs *jobs = jobs_of(inside);
	uint64_t id = task->job->row.id;
	struct sl_cluster_event stops = {.type = SL_CLUSTER_EVENT_TASK_STOPS};
	struct sl_cluster_event failed = {.type = SL_CLUSTER_EVENT_STOP_FAILED};
	sl_ns was;

	stops.task_stops.job = failed.stop_failed.job = id;
	sl_jobs_tell(jobs, &stops);
	sl_jobs_tell(jobs, &failed);
	was = sl_cluster_task(jobs->books.cluster, id, 0).spared_until;
	assert_true(was > sl_clock_now());
	lose_gpu(inside, false);
	assert_int_equal(sl_cluster_task(jobs->books.cluster, id, 0).spared_until, was);
	assert_int_equal(
		sl_cluster_task(jobs->books.cluster, id, 0).state, SL_TASK_RUNNING);
	end(inside, task);
}

/* --- What the daemon before left half done. --- */

/* The only one that is active after a restart. */
static struct sl_job_task *found_again(struct inside *inside)
{
	struct sl_link *first;

	inside_begin(inside);
	first = jobs_of(inside)->active.next;
	assert_true(first != &jobs_of(inside)->active);
	assert_true(first->next == &jobs_of(inside)->active);
	return SL_LIST_ENTRY(first, struct sl_job_task, active);
}

/* The daemon finds a task that was to be stopped, but was not signalled. A disk that hangs from the
 * daemon's start does not delay the signal for ever. */
static void a_stop_that_is_found_has_a_deadline(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	sl_ns before;

	inside_turn(inside);
	inside_end(inside);
	/* RUNNING -> RELEASING: the daemon died before the journal had it, too. */
	job_record_edit(
		inside->rig.dir, "\"tasks\":[{\"state\":3", "\"tasks\":[{\"state\":4");
	before = sl_clock_now();
	task = found_again(inside);
	assert_int_equal(task->phase, SL_PHASE_STOPPING);
	assert_false(task->told);
	assert_due(task, before, SL_JOBS_STORE_NS);
	inside_until(inside, task->told || task->phase != SL_PHASE_STOPPING);
	end(inside, task);
}

/* No other job is let in where it comes back to. */
static void who_comes_back_keeps_its_place_over_a_restart(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	struct rig_peer run = rig_run(&inside->rig, 0, 8 * RIG_GIB);

	hold_cycles(inside, true);
	order_park(inside, task);
	sl_jobs_look(jobs_of(inside), sl_clock_now());
	assert_int_equal(task->phase, SL_PHASE_PARKED);
	jobs_of(inside)->cycle_at = SL_NS_NEVER;
	request(&run, 8 * RIG_GIB);
	order_back(inside, task);
	assert_int_equal(task->phase, SL_PHASE_RESUMING);
	inside_end(inside);
	inside_begin(inside);
	task = &sl_jobs_find(jobs_of(inside), 1)->tasks[0];
	assert_int_equal(task->phase, SL_PHASE_RESUMING);
	assert_int_equal(
		sl_jobs_gpus_at(&jobs_of(inside)->books, task->node, task->gpu_mask), 1);
	rig_peer_end(&run);
	inside_until(inside, task->phase == SL_PHASE_RUNS);
	end(inside, task);
}

/* A `sluice run` is being parked when the daemon ends. The next daemon goes on with that, does not
 * wait for ever, and notices the end. */
static void a_run_on_its_way_out_stays_on_it(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, 4 * RIG_GIB, 4 * RIG_GIB), client;
	struct sl_workload *workload =
		sl_map_get(&inside->daemon.workloads, run.workload);
	struct sl_job_task *task = workload->task;
	uint64_t id = run.workload;
	sl_ns before;

	hold_cycles(inside, true);
	client = holder_of(inside, task);
	order_park(inside, task);
	assert_int_equal(task->phase, SL_PHASE_PARKING);
	inside_end(inside);
	/* With all it had. */
	rig_peer_end(&client);
	before = sl_clock_now();
	task = found_again(inside);
	assert_int_equal(task->phase, SL_PHASE_PARKING);
	assert_due(task, before, SL_JOBS_PARK_NS);
	inside_until(inside, task->phase != SL_PHASE_PARKING);
	workload = sl_map_get(&inside->daemon.workloads, id);
	assert_non_null(workload);
	assert_true(task->phase == SL_PHASE_PARKED || task->phase == SL_PHASE_RESUMING ||
		    workload->park == SL_PARK_NOT);
	rig_peer_end(&run);
}

/* --- The end. --- */

/* sluiced ends while the answer to a stop waits for the disk. The peer is freed later, and must not
 * be left in a list that is freed. */
static void an_end_lets_go_of_who_waits_for_the_disk(void **state)
{
	struct inside *inside = *state;
	struct sl_job_task *task = running(inside);
	struct rig_peer asks;
	struct sl_peer *peer;

	end(inside, task);
	asks = greet(rig_peer(&inside->rig));
	peer = SL_LIST_ENTRY(inside->daemon.peers->all.prev, struct sl_peer, link);
	assert_int_equal(peer->pid, asks.pid);
	/* No turn of the loop from here on, so whatever the disk says is not heard. */
	sl_jobs_hold_for(jobs_of(inside), task->job, peer);
	assert_true(sl_list_is_linked(&peer->held_link));
	sl_jobs_close(&inside->daemon);
	assert_false(sl_list_is_linked(&peer->held_link));
	rig_peer_end(&asks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waits_for_both_writes),
		TEST(writes_again_what_failed),
		TEST(who_does_not_leave_stays),
		TEST(who_finds_no_room_is_parked_again),
		TEST(a_back_off_outlives_a_gpu),
		TEST(a_spared_task_is_spared_after_a_change),
		TEST(a_stop_that_is_found_has_a_deadline),
		TEST(who_comes_back_keeps_its_place_over_a_restart),
		TEST(a_run_on_its_way_out_stays_on_it),
		TEST(an_end_lets_go_of_who_waits_for_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
