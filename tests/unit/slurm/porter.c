/* The porter in a process of its own, with stand-ins for the daemon and for Slurm's cgroups. */
#include "../base/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/conn/conn.h"
#include "cli/conn/rows.h"
#include "slurm/freezer.h"
#include "slurm/holder.h"

#define PATIENCE (20 * SL_S)
#define BYTES    4096

/* Both processes'. The test sets the upper ones, the porter counts the lower ones. */
static struct world {
	_Atomic bool answers, refuses, is_there;
	_Atomic uint64_t epoch, evicted, residency;
	_Atomic int looks, parks, resumes, thaws, freezes, releases;
} * world;
static pid_t porter;

/* --- the daemon --------------------------------------------------------------------------- */

int sl_conn_open_within(struct sl_conn *conn, uint64_t timeout_ms, struct sl_error *err)
{
	conn->welcome.daemon_epoch = world->epoch;
	return world->answers ? SL_EXIT_OK : SL_EXIT_NO_DAEMON;
}

void sl_conn_close(struct sl_conn *conn)
{
}

int sl_rows_list(struct sl_rows *rows, struct sl_conn *conn, enum sl_list_what what,
	struct sl_error *err)
{
	rows->all = calloc(2, sizeof(*rows->all));
	rows->count = world->is_there ? 2 : 0;
	if (what == SL_LIST_CLIENTS) {
		rows->all[0].client_row.workload = 8;
		rows->all[1].client_row.workload = 7;
		rows->all[0].client_row.pid = rows->all[1].client_row.pid =
			(uint32_t)getpid();
		return SL_EXIT_OK;
	}
	/* Another user's of the same name. */
	rows->all[0].use_row = (struct sl_msg_use_row){
		.workload = 8, .uid = 1001, .name = "slurm-1.0", .backing_bytes = 1};
	rows->all[1].use_row = (struct sl_msg_use_row){.workload = 7,
		.uid = 1000,
		.name = "slurm-1.0",
		.residency = (uint32_t)world->residency,
		.backing_bytes = BYTES,
		.evicted_bytes = world->evicted};
	world->looks++;
	return SL_EXIT_OK;
}

void sl_rows_fini(struct sl_rows *rows)
{
	free(rows->all);
	*rows = (struct sl_rows){0};
}

int sl_conn_call(struct sl_conn *conn, const union sl_msg *ask, uint32_t want,
	union sl_msg *answer, struct sl_error *err)
{
	if (ask->park.workload != 7)
		return SL_EXIT_PROTOCOL;
	answer->park_reply.ok = !world->refuses;
	if (ask->park.parked)
		world->parks++;
	else
		world->resumes++;
	return SL_EXIT_OK;
}

/* --- the cgroups -------------------------------------------------------------------------- */

bool sl_freezer_folder(pid_t pid, char *path, size_t size)
{
	return false;
}

bool sl_freezer_job(pid_t pid, char *path, size_t size)
{
	return false;
}

void sl_freezer_thaw(struct sl_freezer *freezer, pid_t pid)
{
	world->thaws++;
}

void sl_freezer_freeze(struct sl_freezer *freezer)
{
	world->freezes++;
}

void sl_freezer_release(struct sl_freezer *freezer)
{
	world->releases++;
}

/* ------------------------------------------------------------------------------------------ */

static bool reaches(const _Atomic int *count, int value)
{
	sl_ns end = sl_clock_now() + PATIENCE;

	while (*count < value && sl_clock_now() < end)
		(void)usleep(2000);
	return *count >= value;
}

static int begin(void **state)
{
	static char name[] = "slurm-1.0", user[] = "1000";
	char *argv[] = {name, user, NULL};
	sigset_t all, before;

	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (world == MAP_FAILED)
		return -1;
	*world = (struct world){.answers = true, .is_there = true, .epoch = 1};
	/* As slurmstepd's child has them before it becomes the porter. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	porter = fork();
	if (porter == 0)
		sl_porter_main(argv);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return porter > 0 ? 0 : -1;
}

static int end(void **state)
{
	(void)kill(porter, SIGKILL);
	(void)waitpid(porter, NULL, 0);
	return munmap(world, sizeof(*world));
}

static void suspend(void)
{
	assert_int_equal(kill(porter, SIGTSTP), 0);
}

static void resume(void)
{
	assert_int_equal(kill(porter, SIGCONT), 0);
}

static void suspended_and_resumed(void **state)
{
	suspend();
	/* While memory leaves, its own processes run, and no others. */
	assert_true(reaches(&world->thaws, 3));
	assert_int_equal(world->parks, 1);
	assert_int_equal(world->freezes, 0);
	world->evicted = BYTES;
	assert_true(reaches(&world->freezes, 1));
	assert_int_equal(world->releases, 0);
	resume();
	assert_true(reaches(&world->resumes, 1));
	assert_true(world->releases >= 1);
	(void)usleep(200000);
	assert_int_equal(world->resumes, 1);
	assert_int_equal(world->parks, 1);
}

static void resumed_while_it_leaves(void **state)
{
	suspend();
	assert_true(reaches(&world->thaws, 1));
	resume();
	assert_true(reaches(&world->resumes, 1));
	/* What it froze after the signal it has let go. */
	assert_true(world->releases >= 2);
	assert_int_equal(world->freezes, 1);
}

static void refused_at_first(void **state)
{
	world->refuses = true;
	suspend();
	assert_true(reaches(&world->parks, 2));
	/* In vain nothing runs. */
	assert_int_equal(world->thaws, 0);
	world->refuses = false;
	assert_true(reaches(&world->thaws, 1));
	world->evicted = BYTES;
	assert_true(reaches(&world->freezes, 1));
}

static void refused_until_resumed(void **state)
{
	world->refuses = true;
	suspend();
	assert_true(reaches(&world->parks, 1));
	resume();
	assert_true(reaches(&world->resumes, 1));
	assert_int_equal(world->thaws, 0);
}

static void daemon_away(void **state)
{
	world->answers = false;
	suspend();
	(void)usleep(200000);
	assert_int_equal(world->parks, 0);
	world->answers = true;
	assert_true(reaches(&world->parks, 1));
	world->answers = false;
	resume();
	(void)usleep(200000);
	assert_int_equal(world->resumes, 0);
	world->answers = true;
	assert_true(reaches(&world->resumes, 1));
}

static void workload_gone(void **state)
{
	world->is_there = false;
	suspend();
	assert_true(reaches(&world->freezes, 1));
	assert_int_equal(world->parks, 0);
}

static void parked_by_its_user(void **state)
{
	world->residency = SL_WIRE_PARKING;
	suspend();
	assert_true(reaches(&world->thaws, 1));
	assert_int_equal(world->parks, 0);
	world->evicted = BYTES;
	assert_true(reaches(&world->freezes, 1));
}

/* A new daemon has not heard of all memory yet: what it calls away may not be. */
static void daemon_restarted(void **state)
{
	suspend();
	assert_true(reaches(&world->thaws, 1));
	world->evicted = BYTES;
	world->epoch = 2;
	world->looks = 0;
	assert_true(reaches(&world->looks, 3));
	assert_int_equal(world->freezes, 0);
	assert_true(reaches(&world->freezes, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(suspended_and_resumed, begin, end),
		cmocka_unit_test_setup_teardown(resumed_while_it_leaves, begin, end),
		cmocka_unit_test_setup_teardown(refused_at_first, begin, end),
		cmocka_unit_test_setup_teardown(refused_until_resumed, begin, end),
		cmocka_unit_test_setup_teardown(daemon_away, begin, end),
		cmocka_unit_test_setup_teardown(workload_gone, begin, end),
		cmocka_unit_test_setup_teardown(parked_by_its_user, begin, end),
		cmocka_unit_test_setup_teardown(daemon_restarted, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
