/*
 * store - the part of jobs that outlives the daemon and the boot
 *
 * How a job stands is a record of state.db (store/store.h). The rest is files, because programs
 * open them: `folder` is data_dir/jobs, and in it ID/ holds for each job:
 *	spec        as submitted, with the submitter's uid, gid and groups (jobspec.h).
 *	log.T       output of task T, all attempts.
 *	exit.T.A    exit record of attempt A of task T (jobs/shim.h).
 *
 * The store's thread moves folder and record together, in this order:
 *	new job     part.ID/ is made with its spec, all of it fsynced; then the record is stored;
 *	            then part.ID/ becomes ID/.
 *	removed     ID/ becomes part.ID/; then the record is dropped; then part.ID/ is emptied.
 * So the record decides, whenever the daemon or the computer dies in between: at the next start the
 * part.ID/ of a job with a record becomes ID/ again, and any other is removed. A job counts as
 * accepted, and its submitter is answered, once all three steps are done.
 *
 * A folder ID/ without a record is left alone and named in the log: an earlier sluiced made it, or
 * its record is damaged. Its number is not given again.
 */
#ifndef SL_DAEMON_JOBS_STORE_H
#define SL_DAEMON_JOBS_STORE_H

#include "daemon/jobs/state.h"
#include "daemon/store/store.h"
#include "wire/jobspec.h"

/* Calls each(context, row) for every job; each() then owns what row owns. *next_id: above every
 * number ever given. Finishes what a crash left of folders. SL_STORE_*; err names what was left
 * out, or is left alone. */
SL_MUST_CHECK int sl_jobs_store_load(struct sl_store *store, const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err);

/* These add to a change what it is to do for a job. It copies all but folder, which must last until
 * done. */
void sl_jobs_store_put(struct sl_store_change *change, const struct sl_jobs_row *row);
/* A new job; the first one makes the folder (0700). No other step fits into the change, nor into
 * the ones below. */
void sl_jobs_store_add(struct sl_store_change *change, const char *folder,
	const struct sl_jobs_row *row, const struct sl_jobspec *spec);
/* Removes record and folder. */
void sl_jobs_store_drop(struct sl_store_change *change, const char *folder, uint64_t id);
/* Opens that log for reading; *fd: when done, its descriptor, or negative errno. */
void sl_jobs_store_read_log(struct sl_store_change *change, const char *folder,
	uint64_t id, uint32_t task, int *fd);

#endif
