/*
 * crew - runs a sequence: a process per worker, a thread per lane
 *
 * The parent never calls the driver, so its children start as any process does. It watches their
 * progress: a worker that dies ends the run, and so do thirty seconds without progress of any
 * worker.
 */
#include "lane.h"

#include "prog.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_MS 30000

int storm_place_sockets[STORM_PLACE_SLOTS][2];

static void futex_wait(uint32_t *at, uint32_t value)
{
	const struct timespec patience = {.tv_sec = 1};

	syscall(SYS_futex, at, FUTEX_WAIT, value, &patience, NULL, 0);
}

static void futex_wake(uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE, 1000, NULL, NULL, 0);
}

/* Linked workers: the turn goes from ticket to ticket. */
static void wait_turn(struct storm_answers *a, uint32_t ticket)
{
	uint32_t now;

	while ((now = __atomic_load_n(&a->turn, __ATOMIC_ACQUIRE)) != ticket)
		futex_wait(&a->turn, now);
}

static void end_turn(struct storm_answers *a, bool other_next)
{
	__atomic_fetch_add(&a->turn, 1, __ATOMIC_RELEASE);
	if (other_next)
		futex_wake(&a->turn);
}

struct job {
	const struct storm_sequence *q;
	struct storm_answers *answers;
	unsigned worker, lane;
	pthread_barrier_t *started;
	pthread_t thread;
	bool failed;
};

/* Is the step with the next ticket another worker's? After the last one all go on. */
static bool other_next(const struct storm_sequence *q, size_t i)
{
	for (size_t k = i + 1; k < q->count; k++)
		if (q->worker[q->step[k].worker].shape == STORM_SHAPE_LINKED)
			return q->step[k].worker != q->step[i].worker;
	return true;
}

/* The number of tickets: one more than the last. */
static uint32_t tickets(const struct storm_sequence *q)
{
	uint32_t count = 0;

	for (size_t i = 0; i < q->count; i++)
		count += q->worker[q->step[i].worker].shape == STORM_SHAPE_LINKED;
	return count;
}

static void *lane_main(void *arg)
{
	struct job *job = arg;
	const struct storm_sequence *q = job->q;
	struct storm_answers *answers = job->answers;
	struct storm_lane *l = calloc(1, sizeof(*l));

	if (l) {
		l->worker = job->worker;
		l->number = job->lane;
		l->shape = q->worker[job->worker].shape;
		l->answers = answers;
	}
	job->failed = !l || !storm_lane_start(l);
	pthread_barrier_wait(job->started);
	for (size_t i = 0; !job->failed && i < q->count; i++) {
		const struct storm_step *s = &q->step[i];
		bool linked = l->shape == STORM_SHAPE_LINKED;

		if (s->worker != job->worker || s->lane != job->lane)
			continue;
		if (linked)
			wait_turn(answers, s->ticket);
		storm_lane_step(
			l, s, &answers->result[i], storm_text(answers, q->count, i));
		if (linked)
			end_turn(answers, other_next(q, i));
	}
	/* What others have of ours must not go while they are at it. */
	if (l && l->shape == STORM_SHAPE_LINKED && !job->failed)
		wait_turn(answers, tickets(q));
	for (unsigned i = 0; l && i < STORM_IDS; i++) {
		__atomic_fetch_add(&answers->calls[i], l->calls[i], __ATOMIC_RELAXED);
		__atomic_fetch_add(&answers->refused[i], l->refused[i], __ATOMIC_RELAXED);
	}
	return NULL;
}

/* One worker's process. Its exit status says whether it could start. */
static int worker_main(
	const struct storm_sequence *q, struct storm_answers *answers, unsigned worker)
{
	struct job job[STORM_LANES_MAX];
	unsigned lanes = q->worker[worker].lanes;
	pthread_barrier_t started;
	int status = 0;

	pthread_barrier_init(&started, NULL, lanes);
	for (unsigned i = 0; i < lanes; i++) {
		job[i] = (struct job){q, answers, worker, i, &started, 0, false};
		if (i && pthread_create(&job[i].thread, NULL, lane_main, &job[i]))
			return 9;
	}
	lane_main(&job[0]);
	for (unsigned i = 0; i < lanes; i++) {
		if (i)
			pthread_join(job[i].thread, NULL);
		if (job[i].failed)
			status = 9;
	}
	return status;
}

static uint64_t progress(const struct storm_sequence *q, const struct storm_answers *a)
{
	uint64_t done = 0;

	for (size_t i = 0; i < q->count; i++)
		done += __atomic_load_n(&a->result[i].done, __ATOMIC_RELAXED);
	return done;
}

struct watch {
	pid_t pid[STORM_WORKERS_MAX];
	unsigned running;
	bool bad;
};

static void end_all(struct watch *w, const struct storm_sequence *q)
{
	for (unsigned i = 0; i < q->workers; i++)
		if (w->pid[i] > 0)
			kill(w->pid[i], SIGKILL);
}

/* Collects ended children. When one did badly the others are ended. */
static void reap(
	struct watch *w, const struct storm_sequence *q, struct storm_answers *answers)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < q->workers; i++) {
			if (w->pid[i] != pid)
				continue;
			w->pid[i] = 0;
			w->running--;
			if (!w->bad)
				answers->status[i] = status;
			if (status && !w->bad) {
				w->bad = true;
				end_all(w, q);
			}
		}
}

int storm_crew(const struct storm_sequence *q, struct storm_answers *answers)
{
	struct watch w = {.running = q->workers};
	uint64_t seen = 0, since = prog_now_ms();

	for (unsigned i = 0; i < STORM_PLACE_SLOTS; i++)
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0,
			    storm_place_sockets[i]))
			return 1;
	for (unsigned i = 0; i < q->workers; i++) {
		w.pid[i] = fork();
		if (w.pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(worker_main(q, answers, i));
		}
		if (w.pid[i] < 0)
			return 1;
	}
	while (w.running) {
		uint64_t now = prog_now_ms(), done;

		reap(&w, q, answers);
		done = progress(q, answers);
		if (done != seen) {
			seen = done;
			since = now;
		} else if (now - since > HANG_MS && !w.bad) {
			for (unsigned i = 0; i < q->workers; i++)
				if (w.pid[i] > 0)
					answers->status[i] = -1;
			w.bad = true;
			end_all(&w, q);
		}
		prog_sleep_ms(w.running ? 2 : 0);
	}
	return w.bad;
}
