/* Signals: which processes get them, and which must not. */
#include "../inside.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/loop/settle.h"
#include "daemon/state/process.h"
#include "daemon/state/workload.h"
#include "daemon/workloads/stopper.h"
#include "daemon/workloads/strangers.h"

static int setup(void **state)
{
	static struct inside inside;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 20ms\n"
			     "recover_wait: 1ms\n");
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	inside_fini(*state);
	return 0;
}

static void stop(
	struct inside *inside, uint64_t client, uint64_t workload, uint32_t stage)
{
	struct sl_action action = {.type = SL_ACTION_STOP,
		.stop = {.client = client,
			.workload = workload,
			.stage = stage,
			.reason = SL_REASON_STOP_ASKED}};

	sl_stopper_stop(&inside->daemon, &action);
	assert_true(sl_list_is_empty(&inside->daemon.inbox));
}

/* The signal that ended a child; 0 if it lives. */
static int ended_by(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
		sl_clock_sleep(5 * SL_MS);
	}
	return 0;
}

static bool lives(pid_t pid)
{
	sl_clock_sleep(50 * SL_MS);
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void let_go(struct rig_peer *peer)
{
	sl_closep(&peer->order);
	sl_closep(&peer->fd);
}

static void a_client_and_nobody_else(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer a = rig_join(&inside->rig, &run);
	struct rig_peer b = rig_join(&inside->rig, &run);

	inside_turn(inside);
	stop(inside, a.client, a.workload, SL_STOP_TERM);
	assert_int_equal(ended_by(a.pid), SIGTERM);
	assert_true(lives(b.pid));
	assert_true(lives(run.pid));
	stop(inside, b.client, b.workload, SL_STOP_KILL);
	assert_int_equal(ended_by(b.pid), SIGKILL);
	assert_true(lives(run.pid));
	let_go(&a);
	let_go(&b);
	inside_turn(inside);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.workload_count == 0);
}

static void a_whole_workload_with_its_root(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer other = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer a = rig_join(&inside->rig, &run);

	inside_turn(inside);
	stop(inside, 0, run.workload, SL_STOP_TERM);
	assert_int_equal(ended_by(a.pid), SIGTERM);
	assert_int_equal(ended_by(run.pid), SIGTERM);
	assert_true(lives(other.pid));
	let_go(&a);
	let_go(&run);
	rig_peer_end(&other);
	inside_until(inside, inside->daemon.workload_count == 0);
}

static char process_state(pid_t pid)
{
	struct sl_pid_stat stat = {0};

	return sl_file_pid_stat(pid, &stat) == 0 ? stat.state : '?';
}

/* SIGTERM alone would wait in it until it is continued. */
static void a_stopped_process_is_let_run_for_its_sigterm(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer a = rig_join(&inside->rig, &run);

	inside_turn(inside);
	assert_int_equal(kill(a.pid, SIGSTOP), 0);
	rig_until(process_state(a.pid) == 'T');
	stop(inside, a.client, a.workload, SL_STOP_TERM);
	assert_int_equal(ended_by(a.pid), SIGTERM);
	let_go(&a);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.workload_count == 0);
}

/* The number was given away: the pidfd still means the dead process. */
static void the_next_owner_of_a_number_is_not_hit(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer a = rig_join(&inside->rig, &run);
	void (*idle)(void) = rig_idle;
	struct rig_peer next;

	inside_turn(inside);
	rig_peer_kill(&a);
	/* The loop is not turned in here: the daemon has not heard of the death. */
	rig_idle = NULL;
	next = rig_peer_with_pid(&inside->rig, a.pid);
	if (next.pid) {
		stop(inside, a.client, a.workload, SL_STOP_KILL);
		assert_true(lives(next.pid));
		rig_peer_end(&next);
	}
	rig_idle = idle;
	sl_closep(&a.fd);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.workload_count == 0);
	if (!next.pid)
		skip();
}

static void refusal_is_told_when_the_step_is_over(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	struct rig_peer a = rig_join(&inside->rig, &run);
	struct sl_client *client;
	struct sl_action action = {
		.type = SL_ACTION_STOP, .stop = {.stage = SL_STOP_KILL}};
	int pidfd;

	inside_turn(inside);
	client = inside_client(inside, &a);
	/* A descriptor that is no pidfd stands in for a process that we may not signal. */
	pidfd = client->process->pidfd;
	client->process->pidfd = STDERR_FILENO;
	action.stop.client = client->id;
	action.stop.workload = run.workload;
	sl_stopper_stop(&inside->daemon, &action);
	assert_true(inside->daemon.notes[SL_REASON_STOP_FAILED].lines == 1);
	assert_false(sl_list_is_empty(&inside->daemon.inbox));
	/* The second failure is the same letter. */
	sl_stopper_stop(&inside->daemon, &action);
	client->process->pidfd = pidfd;
	sl_settle(&inside->daemon);
	assert_true(sl_list_is_empty(&inside->daemon.inbox));
	assert_true(inside->daemon.notes[SL_REASON_STOP_FAILED].lines == 2);
	rig_peer_end(&a);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.workload_count == 0);
}

/* --- strangers ---------------------------------------------------------------------------- */

/* Maps a file and lives. */
static int be_a_stranger(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || ftruncate(fd, 4096) < 0 ||
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	(void)close(fd);
	for (;;)
		(void)pause();
}

static bool has_mapped(pid_t pid, const char *path)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char maps[32];

	(void)snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)pid);
	return sl_file_read(maps, 1 << 20, &text, NULL) == 0 && strstr(text, path);
}

/* A process that maps a file of this name; a program of its own, because a mere child would map
 * what this test does, NVML included. */
static pid_t stranger_new(const struct rig *rig, const char *library)
{
	char path[128];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/%s", rig->dir, library);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
		(void)execl("/proc/self/exe", "stranger", "--stranger", path, NULL);
		_exit(127);
	}
	rig_until(has_mapped(pid, path));
	return pid;
}

static struct sl_stranger *stranger_of(struct inside *inside, pid_t pid)
{
	return sl_map_get(&inside->daemon.strangers->by_pid, (uint64_t)pid);
}

static void stop_stranger(struct inside *inside, uint64_t id, uint32_t stage)
{
	struct sl_action action = {.type = SL_ACTION_STOP_STRANGER,
		.stop_stranger = {.stranger = id, .stage = stage, .bytes = RIG_GIB}};

	sl_stopper_stranger(&inside->daemon, &action);
}

static uint32_t refused(struct inside *inside)
{
	uint64_t *told = &inside->daemon.reasons[SL_REASON_STOP_FAILED_UNMANAGED];
	uint32_t count = (uint32_t)*told;

	*told = 0;
	return count;
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void an_unmanaged_process_is_stopped(void **state)
{
	struct inside *inside = *state;
	pid_t pid = stranger_new(&inside->rig, "libcuda.so.1");
	uint64_t id;

	rig_nvml(&inside->rig, pid, RIG_GIB);
	inside_until(inside, stranger_of(inside, pid));
	id = stranger_of(inside, pid)->id;
	/* One of ours may just be connecting: not at once. */
	assert_int_equal(stranger_of(inside, pid)->told_bytes[0], 0);
	inside_until(inside, stranger_of(inside, pid)->told_bytes[0] == RIG_GIB);
	stop_stranger(inside, id, SL_STOP_TERM);
	assert_int_equal(refused(inside), 0);
	assert_int_equal(ended_by(pid), SIGTERM);
	rig_nvml(&inside->rig, pid, 0);
	inside_until(inside, !stranger_of(inside, pid));
	stop_stranger(inside, id, SL_STOP_KILL); /* forgotten: nothing happens */
	assert_int_equal(refused(inside), 0);
}

static void who_shows_no_gpu_is_left_alone(void **state)
{
	struct inside *inside = *state;
	pid_t pid = stranger_new(&inside->rig, "nothing");

	rig_nvml(&inside->rig, pid, RIG_GIB);
	inside_until(inside, stranger_of(inside, pid));
	stop_stranger(inside, stranger_of(inside, pid)->id, SL_STOP_KILL);
	assert_int_equal(refused(inside), 1);
	assert_true(lives(pid));
	rig_nvml(&inside->rig, pid, 0);
	end_child(pid);
	inside_until(inside, !stranger_of(inside, pid));
}

static void some_are_never_signalled(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, RIG_GIB);
	pid_t gone = stranger_new(&inside->rig, "libcuda.so.1");
	pid_t pids[4];

	end_child(gone);
	pids[0] = 1;
	pids[1] = getpid(); /* maps the NVML of this test */
	pids[2] = run.pid;  /* the root of a workload */
	pids[3] = gone;
	for (size_t i = 0; i < SL_ARRAY_LEN(pids); i++)
		rig_nvml(&inside->rig, pids[i], RIG_GIB);
	for (size_t i = 0; i < SL_ARRAY_LEN(pids); i++) {
		inside_until(inside, stranger_of(inside, pids[i]));
		stop_stranger(inside, stranger_of(inside, pids[i])->id, SL_STOP_KILL);
		/* For an unknown number there is nothing to refuse. */
		assert_int_equal(refused(inside), pids[i] == gone ? 0 : 1);
	}
	assert_true(lives(run.pid));
	for (size_t i = 0; i < SL_ARRAY_LEN(pids); i++)
		rig_nvml(&inside->rig, pids[i], 0);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.strangers->count == 0 &&
				     inside->daemon.workload_count == 0);
}

/* NVML still lists the number, which is another process's by now. */
static void a_number_with_a_new_owner_is_another_stranger(void **state)
{
	struct inside *inside = *state;
	pid_t pid = stranger_new(&inside->rig, "libcuda.so.1");
	struct sl_stranger *stranger;

	rig_nvml(&inside->rig, pid, RIG_GIB);
	inside_until(inside, stranger_of(inside, pid));
	stranger = stranger_of(inside, pid);
	stranger->start_ticks--;
	stop_stranger(inside, stranger->id, SL_STOP_KILL);
	assert_int_equal(refused(inside), 1);
	assert_true(lives(pid));
	rig_nvml(&inside->rig, pid, 2 * RIG_GIB);
	inside_until(
		inside, stranger_of(inside, pid) != NULL &&
				stranger_of(inside, pid)->seen_bytes[0] == 2 * RIG_GIB);
	stop_stranger(inside, stranger_of(inside, pid)->id, SL_STOP_KILL);
	assert_int_equal(refused(inside), 0);
	assert_int_equal(ended_by(pid), SIGKILL);
	rig_nvml(&inside->rig, pid, 0);
	inside_until(inside, inside->daemon.strangers->count == 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_and_nobody_else),
		cmocka_unit_test(a_whole_workload_with_its_root),
		cmocka_unit_test(a_stopped_process_is_let_run_for_its_sigterm),
		cmocka_unit_test(the_next_owner_of_a_number_is_not_hit),
		cmocka_unit_test(refusal_is_told_when_the_step_is_over),
		cmocka_unit_test(an_unmanaged_process_is_stopped),
		cmocka_unit_test(who_shows_no_gpu_is_left_alone),
		cmocka_unit_test(some_are_never_signalled),
		cmocka_unit_test(a_number_with_a_new_owner_is_another_stranger),
	};

	if (argc == 3 && strcmp(argv[1], "--stranger") == 0)
		return be_a_stranger(argv[2]);
	return cmocka_run_group_tests(tests, setup, teardown);
}
