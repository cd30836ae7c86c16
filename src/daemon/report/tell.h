/*
 * tell - the daemon's messages in words and as JSON
 *
 * Serves both the command line's --json and the page, so that both have the same keys. Names come
 * from users: bytes that are not UTF-8 become U+FFFD, and JSON escapes the rest. Control characters
 * are replaced in sentences only. Pure, thread-safe. JSON is a new reference; NULL when out of
 * memory.
 */
#ifndef SL_DAEMON_REPORT_TELL_H
#define SL_DAEMON_REPORT_TELL_H

#include "wire/wire.h"

#include <jansson.h>

/* Room for a sentence of an event. */
#define SL_TELL_TEXT_MAX 640

/* --- words; "?" for one that only a newer daemon knows ---------------------------------------- */

const char *sl_tell_state(uint32_t state);         /* "bound" */
const char *sl_tell_residency(uint32_t residency); /* "evicted" */
/* Is its memory on the host or moving, so that its processes may have to wait? */
bool sl_tell_is_away(const struct sl_msg_use_row *row);
/* Its shares of the GPUs' time: request and limit, null if not set; used, null if not metered. */
json_t *sl_tell_compute(const struct sl_msg_use_row *row);
/* State of a workload on a GPU: "stopping", "gpu lost", "untakeable", else where its memory is
 * ("evicted"), "over limit", or the state. */
const char *sl_tell_shown(const struct sl_msg_use_row *row);
/* "lost", "degraded", "stale" (not measured for 5 s), "ok". */
const char *sl_tell_gpu_state(const struct sl_msg_gpu_row *row);
/* Has a job in this state ended? */
bool sl_tell_job_is_over(uint32_t state);
/* As in a shell; 0 if nothing is known. */
int sl_tell_exit(uint32_t exit_status);
/* "is done", "failed: exit status 3", "failed: killed by signal 9 (Killed)", "was stopped"; for a
 * job that has not ended, its state. Returns buf; 96 bytes suffice. */
const char *sl_tell_ending(uint32_t state, uint32_t exit_status, char *buf, size_t size);
/* The sentence without its full stop, safe for a terminal. For a reason that only a newer daemon
 * knows, its number. Returns buf. */
const char *sl_tell_sentence(const struct sl_msg_event_row *row, char *buf, size_t size);

/* Time since it was submitted; and its run time so far, 0 if it has not run. */
uint64_t sl_tell_job_age_ms(const struct sl_msg_job_row *row, uint64_t now_ms);
uint64_t sl_tell_job_ran_ms(const struct sl_msg_job_row *row, uint64_t now_ms);

/* --- rows ------------------------------------------------------------------------------------- */

json_t *sl_tell_event(const struct sl_msg_event_row *row);
/* The reverse. Missing fields, and those of another type, become 0 or "". */
struct sl_msg_event_row sl_tell_event_row(const json_t *object);
json_t *sl_tell_gpu(const struct sl_msg_gpu_row *row);
json_t *sl_tell_pool(const struct sl_msg_pool_row *row);
/* Null for a program run in the foreground: its number is never shown. */
json_t *sl_tell_job_number(uint64_t job);
json_t *sl_tell_job(const struct sl_msg_job_row *row, uint64_t now_ms);
json_t *sl_tell_project(const struct sl_msg_project_row *row);
json_t *sl_tell_resource(const struct sl_msg_resource_row *row);
/* Does the user mean this resource by that name? A user's own ones come after the common ones and
 * take precedence: the last match counts. */
bool sl_tell_resource_is(
	const struct sl_msg_resource_row *row, const char *name, uint32_t uid);
json_t *sl_tell_journal_trouble(const struct sl_msg_status_row *row);
/* An amount as users write it, "0.25" or "4GiB"; null if unset. */
json_t *sl_tell_amount(uint32_t kind, uint64_t value);
/* "wait priority": the workload's own chain in flags; null: the daemon's. */
json_t *sl_tell_chain(uint32_t flags);

/* Milliseconds since 1970. */
uint64_t sl_tell_now_ms(void);

#endif
