/*
 * named - which workload or job a NAME on the command line means
 *
 * A name is one user's, so two users may have the same one: that of another is written user/name.
 * An ID (of `ps`) means one job or workload alone. A job and its workload have one name, and then
 * the job is meant. No state.
 */
#ifndef SL_CLI_CONN_NAMED_H
#define SL_CLI_CONN_NAMED_H

#include "cli/conn/rows.h"

enum sl_named_outcome {
	SL_NAMED_OK = 0,  /* *row is one of its rows */
	SL_NAMED_NONE,    /* err says so, with the nearest name there is */
	SL_NAMED_SEVERAL, /* err names their users and IDs */
};

/* Of the rows of SL_LIST_USES: the workload so called, one's own (uid) before others', else the one
 * with that id. *row points into uses, and is NULL unless OK. */
SL_MUST_CHECK int sl_named_find(const struct sl_rows *uses, const char *name,
	uint32_t uid, const struct sl_msg_use_row **row, struct sl_error *err);

/* The same among rows of SL_LIST_USES, of SL_LIST_JOBS or of both: one's own before others', what
 * lives before what has ended, a job before a workload, and of jobs that ended the last. noun: what
 * is looked for. */
SL_MUST_CHECK int sl_named_find_any(const struct sl_rows *rows, const char *noun,
	const char *name, uint32_t uid, const union sl_msg **row, struct sl_error *err);

/* Connects and finds it: the exit statuses of sl_conn_open, or REFUSED (err set as above), or USAGE
 * if name is NULL. The connection stays open, and uses hold the list, on OK and REFUSED; of a job
 * without such a workload err says how it stands. what: the verb, for a daemon that is too old for
 * it; since: the version that has it. */
SL_MUST_CHECK int sl_named_open(struct sl_conn *conn, struct sl_rows *uses,
	const char *name, uint32_t since, const char *what,
	const struct sl_msg_use_row **row, struct sl_error *err);

/* As sl_named_open, for jobs; with_workloads: for workloads, too, where a daemon is too old for
 * jobs for those alone. */
SL_MUST_CHECK int sl_named_open_job(struct sl_conn *conn, struct sl_rows *rows,
	const char *name, bool with_workloads, const char *what, const union sl_msg **row,
	struct sl_error *err);

/* "alice/train", as lists show what is another user's; "1000/train" where alice has no name here:
 * the name, and whose it is. NULL: it is none of these. */
const char *sl_named_owned(const char *name, uint32_t *owner);

/* Whether neither a workload nor a job that lives is called so, but one that ended was, as far as
 * the daemon still knows. */
bool sl_named_has_ended(struct sl_conn *conn, const char *name);

/* The job that has not ended and has a task called NAME.N, among rows as above; NULL: none. */
const struct sl_msg_job_row *sl_named_task(
	const struct sl_rows *rows, const char *name, uint32_t uid);

#endif
