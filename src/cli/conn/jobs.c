/*
 * The daemon reports the end of a job in one message, perhaps hours later. A restarted daemon still
 * has the job but not the request, so the request is sent again.
 */
#include "cli/conn/jobs.h"

#include "cli/line/interrupt.h"
#include "cli/line/text.h"
#include "daemon/report/tell.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long to look for a daemon that ended, and how often. */
#define DAEMON_GONE    (60 * SL_S)
#define DAEMON_LOOK_MS 200
#define STOPPED_EXIT   (128 + SIGTERM)

int sl_jobs_exit(uint32_t state, uint32_t exit_status)
{
	int status = sl_tell_exit(exit_status);

	if (state == SL_JOB_DONE)
		return SL_EXIT_OK;
	if (status)
		return status;
	return state == SL_JOB_STOPPED ? STOPPED_EXIT : SL_EXIT_FAILED;
}

const char *sl_jobs_end_text(struct sl_msg_job_reply *end, char *buf, size_t size)
{
	sl_text_tame(end->name);
	sl_text_tame(end->text);
	if (end->state == SL_JOB_FAILED && end->text[0])
		snprintf(buf, size, "%s failed: %s", end->name, end->text);
	else {
		char how[96];

		snprintf(buf, size, "%s %s", end->name,
			sl_tell_ending(end->state, end->exit_status, how, sizeof(how)));
	}
	return buf;
}

const char *sl_jobs_title(uint64_t job, char *buf, size_t size)
{
	if (job & SL_JOB_FOREGROUND)
		snprintf(buf, size, "`sluice run`");
	else
		snprintf(buf, size, "job %llu", (unsigned long long)job);
	return buf;
}

uint64_t sl_jobs_span_ms(const struct sl_msg_job_row *row)
{
	return sl_tell_job_ran_ms(row, sl_tell_now_ms());
}

uint64_t sl_jobs_age_ms(const struct sl_msg_job_row *row)
{
	return sl_tell_job_age_ms(row, sl_tell_now_ms());
}

/* --- the wait --- */

static int failed(struct sl_jobs_watch *watch, int status)
{
	watch->status = status;
	return SL_JOBS_WATCH_FAILED;
}

static int lost(struct sl_jobs_watch *watch)
{
	watch->lost_at = sl_clock_now();
	watch->asked = false;
	sl_conn_close(&watch->conn);
	fprintf(stderr,
		"sluice %s: the daemon went away; jobs go on without it. Waiting for it "
		"to come back\n",
		sl_verbs[watch->verb].name);
	return SL_JOBS_WATCH_ON;
}

/* True once the daemon answers again. */
static bool look_for_daemon(
	struct sl_jobs_watch *watch, int *outcome, struct sl_error *err)
{
	int status;

	*outcome = SL_JOBS_WATCH_ON;
	if (!sl_interrupt_sleep(watch->unblocked, DAEMON_LOOK_MS))
		return false;
	status = sl_conn_open(&watch->conn, err);
	if (!status) {
		watch->lost_at = 0;
		return true;
	}
	sl_conn_close(&watch->conn);
	if (status != SL_EXIT_NO_DAEMON || sl_clock_now() - watch->lost_at > DAEMON_GONE)
		*outcome = failed(watch, status);
	return false;
}

static int ask(struct sl_jobs_watch *watch, struct sl_error *err)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_JOB_WAIT);
	msg.job_wait.job = watch->job;
	watch->asked = true;
	return sl_conn_send(&watch->conn, &msg, err);
}

static int take(struct sl_jobs_watch *watch, struct sl_error *err)
{
	union sl_msg msg;
	int status = sl_conn_receive(&watch->conn, SL_MSG_JOB_REPLY, &msg, err);

	if (status == SL_EXIT_NO_DAEMON)
		return lost(watch);
	if (status)
		return failed(watch, status);
	if (!msg.job_reply.ok) {
		sl_text_tame(msg.job_reply.text);
		sl_error_set(err, "%s", msg.job_reply.text);
		return failed(watch, SL_EXIT_REFUSED);
	}
	watch->end = msg.job_reply;
	return SL_JOBS_WATCH_OVER;
}

int sl_jobs_watch_step(struct sl_jobs_watch *watch, unsigned int ms, struct sl_error *err)
{
	const struct timespec span = {
		.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	struct pollfd daemon = {.events = POLLIN};
	int status, outcome;

	if (watch->lost_at && !look_for_daemon(watch, &outcome, err))
		return outcome;
	status = watch->asked ? SL_EXIT_OK : ask(watch, err);
	if (status)
		return status == SL_EXIT_NO_DAEMON ? lost(watch) : failed(watch, status);
	daemon.fd = watch->conn.fd;
	if (sl_interrupt_came() || ppoll(&daemon, 1, &span, watch->unblocked) <= 0)
		return SL_JOBS_WATCH_ON;
	return take(watch, err);
}

void sl_jobs_watch_fini(struct sl_jobs_watch *watch)
{
	sl_conn_close(&watch->conn);
}
