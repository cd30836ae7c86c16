/*
 * sluice logs: the output of a job's task. The daemon passes a descriptor of the file, so the
 * output does not go through the daemon, and --follow works while the daemon is away.
 *
 * The file grows at its end, and may lose its beginning (job_log_max). If output was lost before
 * the verb read it, reading goes on at the line in the file that reports the loss. Once the job has
 * ended the file is final, and the verb reads the rest before it ends.
 */
#include "cli/line/interrupt.h"
#include "cli/conn/jobs.h"
#include "cli/conn/named.h"
#include "cli/line/text.h"
#include "daemon/report/tell.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between two looks at a followed file, in milliseconds. */
#define LOOK_MS    100
#define PIECE      65536
#define LINES_MAX  1000000000
#define VERB       SL_VERB_logs
#define FROM_START (-1)

struct settings {
	const char *name;
	int64_t task, last;
	bool follow;
};

const struct sl_option sl_verb_logs_options[] = {
	SL_OPT_OPERAND(struct settings, name, "NAME",
		"The job: its name or ID, as sluice ps shows it."),
	SL_OPT(struct settings, task, INTEGER, "N", 0, SL_JOB_TASKS_MAX - 1,
		"Which of its tasks, from 0. Default 0."),
	SL_OPT_SHORT(struct settings, follow, 'f',
		"Follow the output until the job has ended."),
	SL_OPT(struct settings, last, INTEGER, "N", 0, LINES_MAX,
		"Begin with the last N lines. Default: at the beginning."),
	SL_OPT_END,
};

static int fail_reading(int error)
{
	return sl_cli_fail(
		VERB, false, SL_EXIT_SYSTEM, "reading the output: %s", strerror(error));
}

/* Copies the content from *at on. -1 to go on, else the exit status; a reader that closed the
 * output is a success. */
static int copy(int file, off_t *at)
{
	static char piece[PIECE];

	for (;;) {
		off_t first = sl_file_first(file);
		ssize_t n;

		if (*at < first)
			*at = first;
		n = pread(file, piece, sizeof(piece), *at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_reading(errno);
		/* That part was dropped while it was read. */
		if (sl_file_first(file) > *at)
			continue;
		if (n == 0)
			break;
		*at += n;
		if (fwrite(piece, 1, (size_t)n, stdout) != (size_t)n)
			return sl_cli_finish(VERB, SL_EXIT_OK);
	}
	if (!fflush(stdout) && !ferror(stdout))
		return -1;
	return sl_cli_finish(VERB, SL_EXIT_OK);
}

/* The offset of the last `lines` lines, searched from the end. */
static off_t last_lines(int file, int64_t lines)
{
	static char piece[PIECE];
	off_t first = sl_file_first(file), end = lseek(file, 0, SEEK_END), at = end;

	while (at > first) {
		size_t want = at - first < (off_t)sizeof(piece) ? (size_t)(at - first)
								: sizeof(piece);
		ssize_t n = pread(file, piece, want, at - (off_t)want);

		if (n != (ssize_t)want)
			return first;
		for (size_t i = want; i-- > 0;)
			/* The newline at the end of the last line starts no line. */
			if (piece[i] == '\n' && at - (off_t)(want - i) != end - 1 &&
				lines-- == 1)
				return at - (off_t)(want - i) + 1;
		at -= (off_t)want;
	}
	return lines > 0 ? first : end;
}

/* Opens the file; if there is none, prints the daemon's reason. */
static int open_log(const struct settings *s, struct sl_conn *conn, uint64_t job,
	int *file, union sl_msg *reply, struct sl_error *err)
{
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_JOB_LOG);
	ask.job_log.job = job;
	ask.job_log.task = (uint32_t)s->task;
	return sl_conn_call_taking(
		conn, &ask, SL_MSG_JOB_LOG_FILE, SL_MSG_JOB_REPLY, reply, file, err);
}

/* A queued task has written nothing yet, so --follow waits with it. */
static int open_when_there(const struct settings *s, struct sl_conn *conn,
	const struct sl_msg_job_row *row, int *file, const sigset_t *unblocked)
{
	bool waits = s->follow && !sl_tell_job_is_over(row->state);
	struct sl_error err = {0};
	union sl_msg reply;
	int status;

	for (;;) {
		status = open_log(s, conn, row->job, file, &reply, &err);
		if (status)
			return sl_cli_fail(
				VERB, false, (enum sl_exit)status, "%s", err.text);
		if (*file >= 0)
			return -1;
		if (!waits || sl_tell_job_is_over(reply.job_reply.state) ||
			s->task >= row->tasks)
			break;
		if (!sl_interrupt_sleep(unblocked, LOOK_MS)) {
			sl_interrupt_die();
			break;
		}
	}
	sl_text_tame(reply.job_reply.text);
	return sl_cli_fail(VERB, false, SL_EXIT_REFUSED, "%s", reply.job_reply.text);
}

/* Prints the cause of a failure on standard error, behind the output. */
static int say_failed(struct sl_msg_job_reply *end)
{
	char text[SL_JOBS_END_MAX];

	fflush(stdout);
	if (end->state == SL_JOB_FAILED)
		fprintf(stderr, "sluice logs: %s\n",
			sl_jobs_end_text(end, text, sizeof(text)));
	return sl_cli_finish(VERB, SL_EXIT_OK);
}

/* In the form of the daemon's answer to a wait. */
static struct sl_msg_job_reply end_of(const struct sl_msg_job_row *row)
{
	struct sl_msg_job_reply end = {
		.state = row->state, .exit_status = row->exit_status};

	memcpy(end.name, row->name, sizeof(end.name));
	memcpy(end.text, row->why, sizeof(end.text));
	return end;
}

static int follow(int file, off_t at, struct sl_jobs_watch *watch)
{
	struct sl_error err = {0};
	int status = copy(file, &at), outcome = SL_JOBS_WATCH_ON;

	while (status < 0 && outcome == SL_JOBS_WATCH_ON) {
		if (sl_interrupt_came())
			sl_interrupt_die();
		outcome = sl_jobs_watch_step(watch, LOOK_MS, &err);
		status = copy(file, &at);
	}
	if (status >= 0)
		return status;
	if (outcome == SL_JOBS_WATCH_FAILED)
		return sl_cli_fail(
			VERB, false, (enum sl_exit)watch->status, "%s", err.text);
	return say_failed(&watch->end);
}

int sl_verb_logs(int argc, char **argv)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	sl_cleanup(sl_closep) int file = -1;
	sl_cleanup(sl_jobs_watch_fini) struct sl_jobs_watch watch = {.conn = {.fd = -1}};
	struct settings s = {.last = FROM_START};
	struct sl_error err = {0};
	const union sl_msg *row;
	sigset_t unblocked;
	int first, status;
	off_t at;

	status = sl_cli_parse(VERB, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	status = sl_named_open_job(&conn, &rows, s.name, false, &row, &err);
	if (status)
		return sl_cli_fail(VERB, false, (enum sl_exit)status, "%s", err.text);
	if (s.follow)
		sl_interrupt_catch(&unblocked);
	status = open_when_there(&s, &conn, &row->job_row, &file, &unblocked);
	if (status >= 0)
		return status;
	at = s.last == FROM_START ? 0 : last_lines(file, s.last);
	if (!s.follow) {
		struct sl_msg_job_reply end = end_of(&row->job_row);

		status = copy(file, &at);
		return status < 0 ? say_failed(&end) : status;
	}
	watch = (struct sl_jobs_watch){.conn = conn,
		.job = row->job_row.job,
		.unblocked = &unblocked,
		.verb = VERB};
	conn.fd = -1;
	return follow(file, at, &watch);
}
