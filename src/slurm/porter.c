/*
 * porter - parks the workload of a step that Slurm suspends, and resumes it
 *
 * A child of slurmstepd as root, in a session of its own, so that no process of the job's user may
 * send it a signal. Slurm suspends a step by SIGTSTP to those children of slurmstepd that are in
 * the step's cgroup, and freezes that cgroup 2 s later; SIGCONT precedes the thaw. One thread of
 * the porter stays in the cgroup, so Slurm sends them to it, and the other one, which takes them,
 * is outside and never frozen.
 *
 * A process that is stopped or frozen cannot move its memory. So while memory is still leaving, the
 * porter lets the processes that use CUDA run, in what Slurm has frozen, and freezes that again
 * once they are done. Their GPU calls wait meanwhile.
 *
 * Slurm may resume the step at any moment. Its SIGCONT comes before it thaws, so after each freeze
 * the porter looks whether that is pending, and takes the freeze back.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/conn/conn.h"
#include "cli/conn/rows.h"
#include "cli/line/cli.h"
#include "slurm/freezer.h"
#include "slurm/holder.h"
#include "slurm/standing.h"

/* Between two looks, or two attempts to reach the daemon. */
#define LOOK (50 * SL_MS)
/* Until it asks again for what the daemon has refused: there may be room for it by then. */
#define REFUSED SL_S
/* Longest wait for one answer of the daemon. */
#define ANSWER_MS 1000
/* For so long a suspended step may run until its memory has left. */
#define PATIENCE (120 * SL_S)
/* A new daemon takes in the reports of all processes for 2 s; a frozen one is late. */
#define REPORTS (3 * SL_S)

struct porter {
	const char *name; /* of the workload */
	uid_t uid;        /* whose it is */
	struct sl_freezer freezer;
	uint64_t epoch; /* of the daemon that answered last */
	sl_ns valid;    /* when its figures hold */
};

/* SIGTSTP and SIGCONT: each takes back the other that is pending, so the newest one counts. */
static bool is_pending(int number)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, number);
}

static void pause_for(sl_ns time)
{
	const struct timespec span = {
		.tv_sec = (time_t)(time / SL_S), .tv_nsec = (long)(time % SL_S)};

	(void)nanosleep(&span, NULL);
}

/* 0 or an exit status. */
static int reach_daemon(struct porter *porter, struct sl_conn *conn)
{
	int status = sl_conn_open_within(conn, ANSWER_MS, NULL);

	if (!status && conn->welcome.daemon_epoch != porter->epoch) {
		porter->epoch = conn->welcome.daemon_epoch;
		porter->valid = sl_clock_now() + REPORTS;
	}
	return status;
}

/* 0 or an exit status. Done: it is being parked or resumed. The reason of a refusal stays with the
 * daemon, for `sluice why`. */
static int ask(struct sl_conn *conn, uint64_t workload, bool parked, bool *done)
{
	union sl_msg park, reply;
	int status;

	sl_wire_init(&park, SL_MSG_PARK);
	park.park.parked = parked;
	park.park.workload = workload;
	status = sl_conn_call(conn, &park, SL_MSG_PARK_REPLY, &reply, NULL);
	*done = !status && reply.park_reply.ok;
	return status;
}

/* The daemon lists the processes of the workload that use CUDA. */
static void let_clients_run(
	struct porter *porter, struct sl_conn *conn, uint64_t workload)
{
	sl_cleanup(sl_rows_fini) struct sl_rows clients = {0};

	if (sl_rows_list(&clients, conn, SL_LIST_CLIENTS, NULL))
		return;
	for (size_t i = 0; i < clients.count && !is_pending(SIGCONT); i++) {
		const struct sl_msg_client_row *row = &clients.all[i].client_row;
		struct sl_pid_stat stat;

		if (row->workload != workload ||
			sl_file_pid_stat((int)row->pid, &stat) < 0)
			continue;
		sl_freezer_thaw(&porter->freezer, (pid_t)row->pid);
		if (stat.state == 'T')
			(void)kill((pid_t)row->pid, SIGCONT);
	}
}

/* The pause until the next push; 0: no more is to be done. End: 0 until its park is granted. */
static sl_ns push(struct porter *porter, sl_ns *end)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_standing now;
	bool granted;

	if (reach_daemon(porter, &conn) ||
		sl_standing_look(&conn, porter->name, porter->uid, &now))
		return LOOK;
	if (!now.workload)
		return 0;
	if (!*end) {
		granted = now.is_parked;
		if (!granted && ask(&conn, now.workload, true, &granted))
			return LOOK;
		if (!granted)
			return REFUSED;
		*end = sl_clock_now() + PATIENCE;
		return LOOK;
	}
	if (sl_clock_now() >= *end || (now.away && sl_clock_now() >= porter->valid))
		return 0;
	let_clients_run(porter, &conn, now.workload);
	return LOOK;
}

static void see_it_off(struct porter *porter)
{
	sl_ns end = 0, pause = LOOK;

	while (pause && !is_pending(SIGCONT)) {
		pause = push(porter, &end);
		pause_for(pause);
	}
}

/* Until a daemon answers, or the step is suspended again. */
static void bring_back(struct porter *porter)
{
	bool answered = false, done;

	while (!answered && !is_pending(SIGTSTP)) {
		sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
		struct sl_standing now;

		answered = !reach_daemon(porter, &conn) &&
			   !sl_standing_look(&conn, porter->name, porter->uid, &now) &&
			   (!now.workload || !ask(&conn, now.workload, false, &done));
		if (!answered)
			pause_for(LOOK);
	}
}

/* The daemon that admits the workload knows its processes from the first. */
static void meet_daemon(struct porter *porter)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};

	if (!reach_daemon(porter, &conn))
		porter->valid = 0;
}

static void *stay(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

/* Where there is no thread to leave behind, it stays in the cgroup itself, and has the 2 s. */
static void leave_cgroup(void)
{
	char path[SL_FREEZER_PATH_MAX];
	pthread_t thread;
	int fd;

	if (!sl_freezer_folder(getppid(), path, sizeof(path) - sizeof("/tasks")))
		return;
	fd = open(strcat(path, "/tasks"), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (pthread_create(&thread, NULL, stay, NULL) == 0)
		(void)!write(fd, "0", 1);
	(void)close(fd);
}

static void suspend(struct porter *porter)
{
	see_it_off(porter);
	sl_freezer_freeze(&porter->freezer);
	if (is_pending(SIGCONT))
		sl_freezer_release(&porter->freezer);
}

_Noreturn void sl_porter_main(char **argv)
{
	char job[SL_FREEZER_PATH_MAX];
	struct porter porter = {
		.name = argv[0],
		.uid = (uid_t)strtoul(argv[1], NULL, 10),
		.freezer.within = job,
	};
	sigset_t signals;

	(void)setsid();
	if (!sl_freezer_job(getpid(), job, sizeof(job)))
		job[0] = '\0';
	leave_cgroup();
	meet_daemon(&porter);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTSTP);
	sigaddset(&signals, SIGCONT);
	for (;;) {
		int number = sigwaitinfo(&signals, NULL);

		if (number == SIGTSTP)
			suspend(&porter);
		if (number == SIGCONT) {
			sl_freezer_release(&porter.freezer);
			bring_back(&porter);
		}
	}
}
