/*
 * state - what the daemon knows of a job, as the text of its record
 *
 * JSON. The reader trusts nothing: it rejects a number out of range, a text too long, a key missing
 * or unknown. Pure.
 */
#ifndef SL_DAEMON_JOBS_STATE_H
#define SL_DAEMON_JOBS_STATE_H

#include "daemon/jobs/store.h"

/* NUL-terminated text, which the caller frees; NULL without memory. */
char *sl_jobs_state_write(const struct sl_jobs_row *row);
/* Reads the text of job `id`. False: *row is empty, and err says what is wrong. */
SL_MUST_CHECK bool sl_jobs_state_read(
	const char *text, uint64_t id, struct sl_jobs_row *row, struct sl_error *err);

#endif
