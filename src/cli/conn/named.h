/*
 * named - which workload or job a NAME on the command line means
 *
 * Two users may use the same name; another user's is written user/name. An ID (of `ps`) is unique.
 * A job and its workload share a name; the name then means the job. No state.
 */
#ifndef SL_CLI_CONN_NAMED_H
#define SL_CLI_CONN_NAMED_H

#include "cli/conn/rows.h"

enum sl_named_outcome {
	SL_NAMED_OK = 0,  /* *row is one of its rows */
	SL_NAMED_NONE,    /* err says so, with the nearest existing name */
	SL_NAMED_SEVERAL, /* err names their users and IDs */
};

/* Finds the workload called name among rows of SL_LIST_USES: one of user uid first, then another
 * user's, then the workload with that id. *row points into uses; it is NULL unless OK. */
SL_MUST_CHECK int sl_named_find(const struct sl_rows *uses, const char *name,
	uint32_t uid, const struct sl_msg_use_row **row, struct sl_error *err);

/* The same among rows of SL_LIST_USES, of SL_LIST_JOBS or of both. Preferred are rows of user uid,
 * then living ones, then jobs, then the latest of ended jobs. noun names the kind in err. */
SL_MUST_CHECK int sl_named_find_any(const struct sl_rows *rows, const char *noun,
	const char *name, uint32_t uid, const union sl_msg **row, struct sl_error *err);

/* Connects and finds the workload. Outcomes: those of sl_conn_open; REFUSED (err set as above);
 * USAGE if name is NULL. On OK and REFUSED the connection stays open and uses hold the list. If
 * name is a job that has no workload now, err gives the job's state; what is the verb in that
 * message. */
SL_MUST_CHECK int sl_named_open(struct sl_conn *conn, struct sl_rows *uses,
	const char *name, const char *what, const struct sl_msg_use_row **row,
	struct sl_error *err);

/* As sl_named_open, for jobs. with_workloads: for workloads, too. */
SL_MUST_CHECK int sl_named_open_job(struct sl_conn *conn, struct sl_rows *rows,
	const char *name, bool with_workloads, const union sl_msg **row,
	struct sl_error *err);

/* Splits "alice/train", the form in which lists show another user's name ("1000/train" if the user
 * has no name here): returns the name and sets *owner. NULL: another form. */
const char *sl_named_owned(const char *name, uint32_t *owner);

/* True if no living workload or job has the name, but an ended one had it and the daemon still
 * knows. */
bool sl_named_has_ended(struct sl_conn *conn, const char *name);

/* The unfinished job with a task called NAME.N, among rows as above; NULL: none. */
const struct sl_msg_job_row *sl_named_task(
	const struct sl_rows *rows, const char *name, uint32_t uid);

#endif
