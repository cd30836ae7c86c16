/*
 * state - what the daemon knows of a job, as text
 *
 * JSON with a format number. Reading doubts everything: a number out of its range, a text too long,
 * a key that is missing or unknown is a reason to leave the file alone. Pure.
 */
#ifndef SL_DAEMON_JOBS_STATE_H
#define SL_DAEMON_JOBS_STATE_H

#include "daemon/jobs/store.h"

/* Larger than what the largest job comes to. */
#define SL_JOBS_STATE_BYTES_MAX (1u << 20)

/* The text, NUL-terminated, to be freed by the caller; NULL without memory. */
char *sl_jobs_state_write(const struct sl_jobs_row *row);
/* Of job `id`; *row is empty unless it is SL_JOBS_STORE_OK. err says what is wrong with the
 * text. */
SL_MUST_CHECK int sl_jobs_state_read(const char *text, size_t size, uint64_t id,
	struct sl_jobs_row *row, struct sl_error *err);

#endif
