/* The daemon's death: no client dies with it, nothing is forgotten, nothing is granted twice. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/store/journal.h"
#include "rig.h"
#include "sql.h"

#define CONFIG "context_reserve: 1GiB\nmeasure_interval: 50ms\nrecover_wait: 1s\n"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, CONFIG);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static void report(const struct rig_peer *peer, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = bytes;
	rig_send(peer, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(peer, &msg);
}

/* peer-failures row 35: clients survive the daemon. */
static void reports_rebuild_the_books(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 12 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run), late;
	uint64_t old_epoch, grant;
	struct sl_msg_use_row use;
	union sl_msg msg;

	rig_hold(rig, &a, 1, 3 * RIG_GIB);
	rig_hold(rig, &b, 1, RIG_GIB);
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	grant = msg.grant.epoch;
	old_epoch = a.epoch;
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	assert_int_equal(rig_uses(rig, &use, 1), 1);
	assert_int_equal(use.workload, run.workload);
	assert_int_equal(use.request_bytes, 8 * RIG_GIB);
	assert_int_equal(use.limit_bytes, 12 * RIG_GIB);
	assert_int_equal(use.pid, run.pid);
	assert_int_equal(rig_status(rig).recovering, 2);
	/* One reports; until the other has, nothing is granted. */
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, old_epoch);
	assert_int_not_equal(a.epoch, old_epoch);
	report(&a, 4 * RIG_GIB);
	rig_nvml(rig, a.pid, 4 * RIG_GIB);
	rig_commit(&a, grant, RIG_GIB); /* of the daemon before: in the report already */
	rig_ask(&a, 3, RIG_GIB);
	rig_expect_silence(&a, 300);
	rig_reconnect(rig, &b);
	rig_join_as(&b, &run, old_epoch);
	report(&b, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	/* The first grant of either daemon: not the same one. */
	rig_commit(&a, grant - 2, RIG_GIB / 2);
	rig_until(rig_log_has(rig, "commits a grant that is not open"));
	assert_int_equal(rig_gpu(rig).granted_bytes, RIG_GIB);
	rig_commit(&a, msg.grant.epoch, RIG_GIB);
	rig_nvml(rig, a.pid, 5 * RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == 6 * RIG_GIB);
	rig_until(rig_measured(rig) == 0);
	assert_int_equal(rig_gpu(rig).unmanaged_bytes, 0);
	assert_int_equal(rig_status(rig).recovering, 0);
	/* Ids go on. */
	late = rig_join(rig, &run);
	assert_true(late.client > b.client);
	rig_peer_end(&late);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_nvml(rig, a.pid, 0);
	rig_nvml(rig, b.pid, 0);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* A client that does not report is counted as the driver sees it, and does not delay
 * others for long. */
static void the_silent_are_measured(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer run_b = rig_run(rig, 7 * RIG_GIB, 7 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b;
	union sl_msg msg;
	sl_ns begin;

	rig_hold(rig, &a, 1, 5 * RIG_GIB);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	begin = sl_clock_now();
	b = rig_join(rig, &run_b);
	rig_ask(&b, 1, RIG_GIB);
	/* Bytes that it may still report are not measured as well. */
	sl_clock_sleep(300 * SL_MS);
	assert_int_equal(rig_measured(rig), 0);
	rig_expect(&b, SL_MSG_GRANT, &msg);
	assert_true(sl_clock_now() - begin > 500 * SL_MS);
	rig_until(rig_measured(rig) == 5 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).unmanaged_bytes, 0);
	/* It comes back late, and its bytes are not counted twice, not even for a moment. */
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, a.epoch);
	rig->nvml->hang = 1;
	sl_clock_sleep(100 * SL_MS);
	report(&a, 5 * RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == 5 * RIG_GIB);
	assert_int_equal(rig_measured(rig), 0);
	rig->nvml->hang = 0;
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_peer_end(&run_b);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void the_dead_are_dropped(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB), orphaned;
	struct rig_peer a = rig_join(rig, &run), b, c;
	struct sl_msg_use_row use[4];

	orphaned = rig_run(rig, RIG_GIB, RIG_GIB);
	b = rig_join(rig, &orphaned);
	c = rig_join(rig, &orphaned);
	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_hold(rig, &b, 1, RIG_GIB / 2);
	rig_kill_daemon(rig);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_peer_end(&orphaned); /* its clients live on */
	rig_peer_end(&c);
	rig_start(rig, CONFIG);
	assert_int_equal(rig_uses(rig, use, 4), 1);
	assert_int_equal(use[0].workload, orphaned.workload);
	assert_int_equal(rig_status(rig).clients, 1);
	/* The driver still has a dead client's bytes: they belong to no workload, so they
	 * are not shareable. */
	rig_until(rig_gpu(rig).unmanaged_bytes == 2 * RIG_GIB);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).unmanaged_bytes == 0);
	rig_peer_end(&b);
	rig_nvml(rig, b.pid, 0);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* An exec while the daemon was away: the process is the same, its program is not. */
static void a_program_that_changed_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	uint64_t client = a.client;

	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_kill_daemon(rig);
	rig_nvml(rig, a.pid, 0);
	rig_start(rig, CONFIG);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, 0);
	assert_int_not_equal(a.client, client);
	assert_int_equal(rig_status(rig).recovering, 0);
	rig_hold(rig, &a, 1, RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == RIG_GIB);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void other_ticks(struct sl_journal *journal)
{
	for (size_t i = 0; i < journal->client_count; i++)
		journal->clients[i].start_ticks = 1;
}

static void other_root(struct sl_journal *journal)
{
	for (size_t i = 0; i < journal->workload_count; i++)
		journal->workloads[i].root_start = 1;
}

static void other_boot(struct sl_journal *journal)
{
	sl_wire_str(journal->boot, sizeof(journal->boot), "another");
}

static void on_stored(void *context, int r, const struct sl_error *err)
{
	if (r < 0)
		fail_msg("%s", err->text);
}

static void edit_journal(const struct rig *rig, void (*edit)(struct sl_journal *journal))
{
	sl_cleanup(sl_journal_fini) struct sl_journal journal = {0};
	struct sl_store *store = NULL;
	struct sl_error err = {0};

	assert_int_equal(sl_store_new(rig->dir, rig->dir, &store), 0);
	assert_int_equal(sl_journal_load(store, &journal, &err), SL_STORE_OK);
	edit(&journal);
	assert_int_equal(sl_store_commit(store, sl_journal_change(NULL, &journal),
				 on_stored, NULL),
		0);
	sl_store_finish(store);
	store = sl_store_free(store);
}

/* The number of a process may belong to another one by now. */
static void a_pid_alone_is_nobody(void **state)
{
	static const struct {
		const char *name;
		void (*edit)(struct sl_journal *journal);
		unsigned int workloads, clients;
	} rows[] = {
		{"start time", other_ticks, 1, 0},
		{"root", other_root, 1, 1},
		{"boot", other_boot, 0, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig *rig = *state;
		struct rig_peer run = rig_run(rig, RIG_GIB, RIG_GIB),
				a = rig_join(rig, &run);

		rig_kill_daemon(rig);
		edit_journal(rig, rows[i].edit);
		rig_start(rig, CONFIG);
		if (rig_uses(rig, NULL, 0) != rows[i].workloads ||
			rig_status(rig).clients != rows[i].clients)
			fail_msg("with another %s: %u workloads, %u clients",
				rows[i].name, rig_uses(rig, NULL, 0),
				rig_status(rig).clients);
		rig_peer_end(&a);
		rig_peer_end(&run);
		rig_until(rig_uses(rig, NULL, 0) == 0);
	}
}

static void a_damaged_journal_is_put_aside(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB), lost, next;
	struct rig_peer a = rig_join(rig, &run);
	char path[96], aside[112];
	union sl_msg msg;

	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_kill_daemon(rig);
	(void)snprintf(path, sizeof(path), "%s/run.db", rig->dir);
	(void)snprintf(aside, sizeof(aside), "%s.bad-1", path);
	assert_int_equal(truncate(path, 100), 0);
	rig_start(rig, CONFIG);
	assert_true(rig_log_gets(rig, "is damaged (kept as"));
	assert_int_equal(access(aside, F_OK), 0);
	assert_int_equal(rig_uses(rig, NULL, 0), 0);
	/* The lost workload's bytes are in no account, but not free either. */
	rig_until(rig_gpu(rig).unmanaged_bytes == 2 * RIG_GIB);
	rig_reconnect(rig, &a);
	lost = a;
	rig_hello(&lost, SL_ROLE_CLIENT, a.epoch);
	rig_expect(&lost, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_WORKLOAD);
	next = rig_run(rig, RIG_GIB, RIG_GIB);
	assert_true(next.workload > run.workload);
	rig_peer_end(&next);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0 && rig_gpu(rig).unmanaged_bytes == 0);
}

/* One byte of one record costs that workload alone. */
static void damage_costs_what_is_damaged(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, RIG_GIB),
			other = rig_run(rig, 2 * RIG_GIB, 2 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &other);
	char path[96], change[160];

	rig_kill_daemon(rig);
	(void)snprintf(path, sizeof(path), "%s/run.db", rig->dir);
	(void)snprintf(change, sizeof(change),
		"UPDATE workload SET text = replace(text, '\"limit_bytes\":1', "
		"'\"limit_bytes\":2') WHERE number = %llu",
		(unsigned long long)run.workload);
	sql_run(path, change);
	rig_start(rig, CONFIG);
	assert_true(rig_log_has(rig, "run.db is damaged: its checksum is wrong"));
	assert_true(rig_log_has(rig,
		"is left out counts as unmanaged; there are 1 workloads and 1 clients"));
	assert_int_equal(rig_uses(rig, NULL, 0), 1);
	assert_int_equal(rig_status(rig).clients, 1);
	rig_reconnect(rig, &b);
	rig_join_as(&b, &other, b.epoch);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_peer_end(&other);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* NVML away at the restart: the GPU is known from the journal, and clients keep their place. */
static void a_restart_without_nvml(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB), other;
	struct rig_peer a = rig_join(rig, &run);
	union sl_msg msg;

	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_kill_daemon(rig);
	rig->nvml->broken = 1;
	rig_start(rig, CONFIG);
	assert_int_equal(rig_status(rig).nvml_ok, 0);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, a.epoch);
	report(&a, 2 * RIG_GIB);
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_commit(&a, msg.grant.epoch, RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == 3 * RIG_GIB);
	/* But no new one. */
	other = rig_peer(rig);
	rig_hello(&other, SL_ROLE_CONTROL, 0);
	rig_expect(&other, SL_MSG_WELCOME, &msg);
	rig_send_run(&other, RIG_GIB, 0, 1, "", NULL);
	rig_expect(&other, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	rig->nvml->broken = 0;
	rig_nvml(rig, a.pid, 3 * RIG_GIB);
	rig_until(rig_status(rig).nvml_ok == 1);
	rig_send_run(&other, RIG_GIB, 0, 1, "", NULL);
	rig_expect(&other, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	rig_peer_end(&other);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* A workload cannot live on fewer GPUs than its processes have ordinals for. */
static void a_gpu_that_cannot_be_had_again(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);

	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_kill_daemon(rig);
	rig->nvml->gpus[0].mig = 1;
	rig_start(rig, CONFIG);
	assert_int_equal(rig_uses(rig, NULL, 0), 0);
	assert_true(rig_log_has(rig, "could not be taken in again: GPU-"));
	assert_true(rig_log_has(rig, "is not managed: it is split into MIG instances"));
	rig->nvml->gpus[0].mig = 0;
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_stop(rig);
	rig_start(rig, CONFIG);
}

/* peer-failures row 5: kill -9 at any step. Whatever was welcomed is known afterwards. */
static void killed_at_random_moments(void **state)
{
	struct rig *rig = *state;
	unsigned int seed = (unsigned int)getpid();

	print_message("seed %u\n", seed);
	for (int round = 0; round < 15; round++) {
		struct rig_peer run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
		struct rig_peer a = rig_join(rig, &run);
		uint64_t client = a.client;
		union sl_msg msg;

		rig_ask(&a, 1, RIG_GIB);
		sl_clock_sleep((sl_ns)(rand_r(&seed) % 2000) * SL_US);
		rig_kill_daemon(rig);
		rig_start(rig, CONFIG);
		rig_reconnect(rig, &a);
		rig_join_as(&a, &run, a.epoch);
		if (a.client != client)
			fail_msg("round %d: client %llu became %llu", round,
				(unsigned long long)client, (unsigned long long)a.client);
		report(&a, 0);
		rig_ask(&a, 1, RIG_GIB);
		rig_expect(&a, SL_MSG_GRANT, &msg);
		assert_int_equal(rig_gpu(rig).granted_bytes, RIG_GIB);
		rig_peer_end(&a);
		rig_peer_end(&run);
		rig_until(rig_uses(rig, NULL, 0) == 0 && rig_gpu(rig).dying_bytes == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_rebuild_the_books),
		cmocka_unit_test(the_silent_are_measured),
		cmocka_unit_test(the_dead_are_dropped),
		cmocka_unit_test(a_program_that_changed_meanwhile),
		cmocka_unit_test(a_pid_alone_is_nobody),
		cmocka_unit_test(a_damaged_journal_is_put_aside),
		cmocka_unit_test(damage_costs_what_is_damaged),
		cmocka_unit_test(a_restart_without_nvml),
		cmocka_unit_test(a_gpu_that_cannot_be_had_again),
		cmocka_unit_test(killed_at_random_moments),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
