/* A workload has a row per GPU, so rows of one id count once. */
#include "cli/conn/named.h"

#include "base/file.h"
#include "base/nearest.h"
#include "cli/conn/jobs.h"
#include "cli/conn/state.h"
#include "cli/line/text.h"
#include "daemon/report/tell.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fields that decide, from a row of either list. */
struct key {
	const char *name;
	uint64_t id;
	uint32_t uid;
	unsigned int rank; /* one's own 4, alive 2, a job 1 */
};

static struct key key_of(const union sl_msg *row, uint32_t uid)
{
	const struct sl_msg_job_row *job = &row->job_row;
	const struct sl_msg_use_row *use = &row->use_row;

	if (row->head.type == SL_MSG_JOB_ROW)
		return (struct key){job->name, job->job & ~SL_JOB_FOREGROUND, job->uid,
			(job->uid == uid) * 4 + !sl_tell_job_is_over(job->state) * 2 + 1};
	return (struct key){
		use->name, use->workload, use->uid, (use->uid == uid) * 4 + 2};
}

static int none(const struct sl_rows *rows, const char *noun, const char *name,
	struct sl_error *err)
{
	struct sl_nearest near = sl_nearest_to(name);
	size_t jobs = 0;

	for (size_t i = 0; i < rows->count; i++) {
		sl_nearest_offer(&near, key_of(&rows->all[i], 0).name);
		jobs += rows->all[i].head.type == SL_MSG_JOB_ROW;
	}
	sl_error_set(err, "there is no %s '%.63s'", noun, name);
	sl_nearest_add(&near,
		jobs && jobs == rows->count ? "; see: sluice ps --all"
					    : "; see: sluice ps",
		err);
	sl_text_tame(err->text);
	return SL_NAMED_NONE;
}

static int several(const struct sl_rows *rows, const char *noun, const char *name,
	struct sl_error *err)
{
	char all[320] = "", user[64];
	uint64_t last = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], 0);
		size_t used = strlen(all);

		if (strcmp(key.name, name) || key.id == last || used + 148 > sizeof(all))
			continue;
		last = key.id;
		snprintf(all + used, sizeof(all) - used, "%s%s/%.63s (%llu)",
			used ? ", " : "", sl_state_user(key.uid, user, sizeof(user)),
			name, (unsigned long long)last);
	}
	sl_error_set(err,
		"several users have a %s '%.63s'; write USER/NAME or the ID: %s", noun,
		name, all);
	sl_text_tame(err->text);
	return SL_NAMED_SEVERAL;
}

/* Looks text up as a number; jobs and workloads share one range of numbers. */
static int with_id(const struct sl_rows *rows, const char *noun, const char *text,
	const union sl_msg **found, struct sl_error *err)
{
	char *end;
	unsigned long long id = strtoull(text, &end, 10);

	*found = NULL;
	if (*end || text[0] < '0' || text[0] > '9')
		return none(rows, noun, text, err);
	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], 0);

		/* A foreground job has the number of its workload. */
		if (key.id == id && (!*found || key.rank & 1))
			*found = &rows->all[i];
	}
	return *found ? SL_NAMED_OK : none(rows, noun, text, err);
}

/* The best match of the user `owner`, or of all users; NULL: none, or *ambiguous. */
static const union sl_msg *pick(const struct sl_rows *rows, const char *name,
	uint32_t uid, const uint32_t *owner, bool *ambiguous)
{
	const union sl_msg *found = NULL;
	struct key best = {0};

	*ambiguous = false;
	for (size_t i = 0; i < rows->count; i++) {
		const struct key key = key_of(&rows->all[i], uid);

		if (strcmp(key.name, name) || (owner && key.uid != *owner) ||
			(found && key.rank < best.rank))
			continue;
		if (found && key.rank == best.rank && key.uid != best.uid) {
			*ambiguous = true;
			continue;
		}
		if (found && key.rank == best.rank && key.id <= best.id)
			continue;
		*ambiguous = *ambiguous && found && key.rank == best.rank;
		found = &rows->all[i];
		best = key;
	}
	return *ambiguous ? NULL : found;
}

const char *sl_named_owned(const char *name, uint32_t *owner)
{
	const char *slash = strchr(name, '/');
	char user[64], *end;
	const struct passwd *known;

	if (!slash || slash == name || (size_t)(slash - name) >= sizeof(user))
		return NULL;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - name), name);
	*owner = (uint32_t)strtoul(user, &end, 10);
	known = *end ? getpwnam(user) : NULL;
	if (known)
		*owner = known->pw_uid;
	return *end && !known ? NULL : slash + 1;
}

int sl_named_find_any(const struct sl_rows *rows, const char *noun, const char *name,
	uint32_t uid, const union sl_msg **found, struct sl_error *err)
{
	const char *owned;
	uint32_t owner;
	bool ambiguous;

	*found = pick(rows, name, uid, NULL, &ambiguous);
	if (ambiguous)
		return several(rows, noun, name, err);
	owned = *found ? NULL : sl_named_owned(name, &owner);
	if (owned)
		*found = pick(rows, owned, uid, &owner, &ambiguous);
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

/* Explains why the named job has no workload of that name, and what to do. */
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
			"%s (%s) is queued, and %s needs a running workload: sluice why "
			"%s says what it waits for; to change the job, sluice stop %s "
			"and submit it again",
			title, name, what, name, name);
	else if (job->tasks > 1)
		sl_error_set(err,
			"%s (%s) has %u tasks, each a workload of its own: name one of "
			"them, as sluice ps shows them",
			title, name, job->tasks);
	else
		sl_error_set(err,
			"%s (%s) runs, and %s does not reach it: sluice why %s says "
			"why",
			title, name, what, name);
}

/* Returns the workload of a job with one task; lists show it under the job's number. NULL: none. */
static const struct sl_msg_use_row *workload_of(
	const struct sl_rows *uses, const struct sl_msg_job_row *job)
{
	for (size_t i = 0; i < uses->count && job->tasks == 1 && job->workload; i++)
		if (uses->all[i].use_row.workload == job->workload)
			return &uses->all[i].use_row;
	return NULL;
}

/* Looks the name up among jobs. Returns the job's workload, or NULL with the job's state in err. If
 * no job is found, or the list cannot be read, err stays as it was. */
static const struct sl_msg_use_row *look_among_jobs(struct sl_conn *conn,
	const struct sl_rows *uses, const char *name, const char *what,
	struct sl_error *err)
{
	const struct sl_msg_use_row *use;
	sl_cleanup(sl_rows_fini) struct sl_rows jobs = {0};
	struct sl_error ignored = {0};
	const struct sl_msg_job_row *job;
	const union sl_msg *row;

	if (sl_rows_list(&jobs, conn, SL_LIST_JOBS, &ignored))
		return NULL;
	job = sl_named_task(&jobs, name, geteuid());
	if (job)
		sl_error_set(err,
			"task %.63s of job %llu does not run, and %s needs a running "
			"workload: sluice why %.63s says what it waits for",
			name, (unsigned long long)job->job, what, name);
	if (job || sl_named_find_any(&jobs, "job", name, geteuid(), &row, &ignored) !=
			   SL_NAMED_OK)
		return NULL;
	use = workload_of(uses, &row->job_row);
	if (!use)
		say_job(&row->job_row, what, err);
	return use;
}

int sl_named_open(struct sl_conn *conn, struct sl_rows *uses, const char *name,
	const char *what, const struct sl_msg_use_row **row, struct sl_error *err)
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
		status = sl_rows_list(uses, conn, SL_LIST_USES, err);
	if (!status) {
		int found = sl_named_find(uses, name, geteuid(), row, err);

		if (found == SL_NAMED_NONE)
			*row = look_among_jobs(conn, uses, name, what, err);
		if (!*row)
			status = SL_EXIT_REFUSED;
	}
	return status;
}

int sl_named_open_job(struct sl_conn *conn, struct sl_rows *rows, const char *name,
	bool with_workloads, const union sl_msg **row, struct sl_error *err)
{
	int status;

	*row = NULL;
	*conn = (struct sl_conn){.fd = -1};
	if (!name) {
		sl_error_set(err, "no NAME: say which %s is meant (sluice ps)",
			with_workloads ? "workload or job" : "job");
		return SL_EXIT_USAGE;
	}
	status = sl_conn_open(conn, err);
	if (!status && with_workloads)
		status = sl_rows_list(rows, conn, SL_LIST_USES, err);
	if (!status)
		status = sl_rows_list(rows, conn, SL_LIST_JOBS, err);
	if (!status && sl_named_find_any(rows, with_workloads ? "workload" : "job", name,
			       geteuid(), row, err))
		status = SL_EXIT_REFUSED;
	return status;
}

bool sl_named_has_ended(struct sl_conn *conn, const char *name)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows events = {0};
	struct sl_error ignored = {0};
	const union sl_msg *row;
	union sl_msg ask;
	int found;

	if (sl_rows_list(&rows, conn, SL_LIST_USES, &ignored) ||
		sl_rows_list(&rows, conn, SL_LIST_JOBS, &ignored))
		return false;
	found = sl_named_find_any(&rows, "", name, geteuid(), &row, &ignored);
	if (found == SL_NAMED_OK)
		return row->head.type == SL_MSG_JOB_ROW &&
		       sl_tell_job_is_over(row->job_row.state);
	sl_wire_init(&ask, SL_MSG_WHY);
	sl_wire_str(ask.why.name, sizeof(ask.why.name), name);
	return found == SL_NAMED_NONE &&
	       !sl_rows_ask(&events, conn, &ask, SL_MSG_EVENT_ROW, &ignored) &&
	       events.count;
}
