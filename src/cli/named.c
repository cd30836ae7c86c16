/* A workload has a row per GPU, so rows of one id count once. */
#include "cli/named.h"

#include "base/file.h"
#include "cli/jobs.h"
#include "cli/text.h"
#include "daemon/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What decides, of a row of either list. */
struct key {
	const char *name;
	uint64_t id, workload; /* workload: the job's own, too */
	uint32_t uid;
	unsigned int rank; /* of the user's own 4, living 2, a job 1 */
};

static struct key key_of(const union sl_msg *row, uint32_t uid)
{
	const struct sl_msg_job_row *job = &row->job_row;
	const struct sl_msg_use_row *use = &row->use_row;

	if (row->head.type == SL_MSG_JOB_ROW)
		return (struct key){job->name, job->job, job->workload, job->uid,
			(job->uid == uid) * 4 + !sl_tell_job_is_over(job->state) * 2 + 1};
	return (struct key){use->name, use->workload, use->workload, use->uid,
		(use->uid == uid) * 4 + 2};
}

static int none(const struct sl_rows *rows, const char *noun, const char *name,
	struct sl_error *err)
{
	sl_cleanup(sl_freep) const char **names = calloc(rows->count + 1, sizeof(*names));
	const char *near = NULL;
	size_t jobs = 0;
	char tamed[64];

	for (size_t i = 0; names && i < rows->count; i++) {
		names[i] = key_of(&rows->all[i], 0).name;
		jobs += rows->all[i].head.type == SL_MSG_JOB_ROW;
	}
	if (names)
		near = sl_option_nearest(name, names);
	snprintf(tamed, sizeof(tamed), "%s", near ? near : "");
	sl_text_tame(tamed);
	sl_error_set(err, "there is no %s '%.63s'%s%s%s", noun, name,
		near                          ? "; did you mean '"
		: jobs && jobs == rows->count ? "; see: sluice ps --all"
					      : "; see: sluice ps",
		tamed, near ? "'?" : "");
	return SL_NAMED_NONE;
}

static int several(const struct sl_rows *rows, const char *noun, const char *name,
	struct sl_error *err)
{
	char ids[256] = "";
	uint64_t last = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], 0);
		size_t used = strlen(ids);

		if (strcmp(key.name, name) || key.id == last || used + 48 > sizeof(ids))
			continue;
		last = key.id;
		snprintf(ids + used, sizeof(ids) - used, "%s%llu (user %u)",
			used ? ", " : "", (unsigned long long)last, key.uid);
	}
	sl_error_set(err, "several users have a %s '%.63s'; give its id instead: %s",
		noun, name, ids);
	return SL_NAMED_SEVERAL;
}

/* No name, but perhaps a number. Those of jobs and of workloads overlap, and to stop the wrong one
 * is worse than to ask again. */
static int with_id(const struct sl_rows *rows, const char *noun, const char *text,
	const union sl_msg **found, struct sl_error *err)
{
	struct key first = {0};
	char *end;
	unsigned long long id = strtoull(text, &end, 10);

	if (*end || text[0] < '0' || text[0] > '9')
		return none(rows, noun, text, err);
	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], 0);

		if (key.id != id)
			continue;
		if (*found && key.workload != first.workload) {
			*found = NULL;
			sl_error_set(err,
				"%llu is the number of both a job ('%.63s') and a "
				"workload "
				"('%.63s'); give the name instead",
				id, key.rank & 1 ? key.name : first.name,
				key.rank & 1 ? first.name : key.name);
			return SL_NAMED_SEVERAL;
		}
		if (!*found || key.rank & 1) {
			*found = &rows->all[i];
			first = key;
		}
	}
	return *found ? SL_NAMED_OK : none(rows, noun, text, err);
}

int sl_named_find_any(const struct sl_rows *rows, const char *noun, const char *name,
	uint32_t uid, const union sl_msg **found, struct sl_error *err)
{
	struct key best = {0};
	bool ambiguous = false;

	*found = NULL;
	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], uid);

		if (strcmp(key.name, name) || (*found && key.rank < best.rank))
			continue;
		if (*found && key.rank == best.rank && key.uid != best.uid) {
			ambiguous = true;
			continue;
		}
		if (*found && key.rank == best.rank && key.id <= best.id)
			continue;
		ambiguous = ambiguous && *found && key.rank == best.rank;
		*found = &rows->all[i];
		best = key;
	}
	if (ambiguous) {
		*found = NULL;
		return several(rows, noun, name, err);
	}
	return *found ? SL_NAMED_OK : with_id(rows, noun, name, found, err);
}

int sl_named_find(const struct sl_rows *uses, const char *name, uint32_t uid,
	const struct sl_msg_use_row **found, struct sl_error *err)
{
	const union sl_msg *row;
	int outcome = sl_named_find_any(uses, "workload", name, uid, &row, err);

	*found = outcome == SL_NAMED_OK ? &row->use_row : NULL;
	return outcome;
}

const struct sl_msg_job_row *sl_named_task(
	const struct sl_rows *rows, const char *name, uint32_t uid)
{
	const char *dot = strrchr(name, '.');
	struct sl_error ignored = {0};
	char of[sizeof(((struct sl_msg_job_row *)NULL)->name)];
	const union sl_msg *row;
	unsigned long number;
	char *end;

	if (!dot || dot[1] < '0' || dot[1] > '9' || (size_t)(dot - name) >= sizeof(of))
		return NULL;
	number = strtoul(dot + 1, &end, 10);
	snprintf(of, sizeof(of), "%.*s", (int)(dot - name), name);
	if (*end ||
		sl_named_find_any(rows, "job", of, uid, &row, &ignored) != SL_NAMED_OK ||
		row->head.type != SL_MSG_JOB_ROW ||
		sl_tell_job_is_over(row->job_row.state) || number >= row->job_row.tasks)
		return NULL;
	return &row->job_row;
}

/* Why a job that was named has no workload of that name, and what to do. */
static void say_job(
	const struct sl_msg_job_row *job, const char *what, struct sl_error *err)
{
	char name[sizeof(job->name)], title[32];

	(void)sl_jobs_title(job->job, title, sizeof(title));
	memcpy(name, job->name, sizeof(name));
	sl_text_tame(name);
	if (sl_tell_job_is_over(job->state))
		sl_error_set(err, "%s (%s) has ended: sluice why %s says how", title,
			name, name);
	else if (!job->running && !job->parked)
		sl_error_set(err,
			"%s (%s) is queued, and %s works on what runs: sluice why "
			"%s says what it waits for; to change it, sluice stop %s and "
			"submit it anew",
			title, name, what, name, name);
	else
		sl_error_set(err,
			"%s (%s) has %u task%s, each a workload of its own: name "
			"one of them, as sluice ps shows them",
			title, name, job->tasks, job->tasks == 1 ? "" : "s");
}

/* No workload, but perhaps a job: then err says how that stands. Whatever goes wrong with that, err
 * stays. */
static void look_among_jobs(
	struct sl_conn *conn, const char *name, const char *what, struct sl_error *err)
{
	sl_cleanup(sl_rows_fini) struct sl_rows jobs = {0};
	struct sl_error ignored = {0};
	const struct sl_msg_job_row *job;
	const union sl_msg *row;

	if (conn->speaks < sl_wire_since(SL_MSG_JOB_ROW) ||
		sl_rows_list(&jobs, conn, SL_LIST_JOBS, &ignored))
		return;
	job = sl_named_task(&jobs, name, geteuid());
	if (job)
		sl_error_set(err,
			"task %.63s of job %llu does not run, and %s works on what does: "
			"sluice why %.63s says what it waits for",
			name, (unsigned long long)job->job, what, name);
	else if (sl_named_find_any(&jobs, "job", name, geteuid(), &row, &ignored) ==
		 SL_NAMED_OK)
		say_job(&row->job_row, what, err);
}

int sl_named_open(struct sl_conn *conn, struct sl_rows *uses, const char *name,
	uint32_t since, const char *what, const struct sl_msg_use_row **row,
	struct sl_error *err)
{
	int status;

	*row = NULL;
	*conn = (struct sl_conn){.fd = -1};
	if (!name) {
		sl_error_set(err, "no NAME: say which workload is meant (sluice ps)");
		return SL_EXIT_USAGE;
	}
	status = sl_conn_open(conn, err);
	if (!status)
		status = sl_conn_needs(conn, since, what, err);
	if (!status)
		status = sl_rows_list(uses, conn, SL_LIST_USES, err);
	if (!status) {
		int found = sl_named_find(uses, name, geteuid(), row, err);

		if (found == SL_NAMED_NONE)
			look_among_jobs(conn, name, what, err);
		if (found != SL_NAMED_OK)
			status = SL_EXIT_REFUSED;
	}
	return status;
}

int sl_named_open_job(struct sl_conn *conn, struct sl_rows *rows, const char *name,
	bool with_workloads, const char *what, const union sl_msg **row,
	struct sl_error *err)
{
	uint32_t since = sl_wire_since(SL_MSG_JOB_ROW);
	int status;

	*row = NULL;
	*conn = (struct sl_conn){.fd = -1};
	if (!name) {
		sl_error_set(err, "no NAME: say which %s is meant (sluice ps)",
			with_workloads ? "workload or job" : "job");
		return SL_EXIT_USAGE;
	}
	status = sl_conn_open(conn, err);
	if (!status)
		status = sl_conn_needs(conn, with_workloads ? 2 : since, what, err);
	if (!status && with_workloads)
		status = sl_rows_list(rows, conn, SL_LIST_USES, err);
	if (!status && conn->speaks >= since)
		status = sl_rows_list(rows, conn, SL_LIST_JOBS, err);
	if (!status && sl_named_find_any(rows, with_workloads ? "workload" : "job", name,
			       geteuid(), row, err))
		status = SL_EXIT_REFUSED;
	return status;
}
