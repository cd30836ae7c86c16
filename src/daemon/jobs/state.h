/*
 * state - what the daemon knows of a job, as text
 *
 * JSON with a format number. The reader trusts nothing: it rejects a number out of range, a text
 * too long, a key missing or unknown. Pure.
 */
#ifndef SL_DAEMON_JOBS_STATE_H
#define SL_DAEMON_JOBS_STATE_H

#include "daemon/jobs/store.h"

/* More than the largest job needs. */
#define SL_JOBS_STATE_BYTES_MAX (1u << 20)

/* NUL-terminated text, which the caller frees; NULL without memory. */
char *sl_jobs_state_write(const struct sl_jobs_row *row);
/* Reads job `id`; *row is empty unless the outcome is SL_JOBS_STORE_OK. err says what is wrong. */
SL_MUST_CHECK int sl_jobs_state_read(const char *text, size_t size, uint64_t id,
	struct sl_jobs_row *row, struct sl_error *err);

#endif
