/*
 * scribe - what the writing thread of the history knows and does
 *
 * The thread's own; history/recorder.c runs it. Each call is one step: it may block on the loop
 * (through inside.h, with a deadline) and on the disk.
 */
#ifndef SL_DAEMON_HISTORY_SCRIBE_H
#define SL_DAEMON_HISTORY_SCRIBE_H

#include "daemon/history/sample.h"
#include "daemon/link/inside.h"

struct sl_history_scribe;

/* first_serial: of the first event that this daemon has. NULL: no memory. */
struct sl_history_scribe *sl_history_scribe_new(
	const char *path, struct sl_inside_door *door, uint64_t first_serial);
struct sl_history_scribe *sl_history_scribe_free(struct sl_history_scribe *scribe);

struct sl_history_report {
	int outcome;         /* enum sl_history_store_outcome */
	struct sl_error err; /* why it is not OK */
	struct sl_error
		note; /* something that happened, and was dealt with; "" if nothing */
	uint64_t rows, dropped, bytes;
	int64_t t; /* it is known up to then; 0: nothing yet */
	bool gone; /* the daemon is ending */
};

/* One second: asks, and writes what there is to write. tell: also what is still open, for who is
 * about to read. */
void sl_history_scribe_step(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, bool tell, struct sl_history_report *report);
/* Somebody who reads met with damage: the next second looks at all of the file, and sets it aside
 * if that is so. */
void sl_history_scribe_suspect(struct sl_history_scribe *scribe);
/* So much was written that readers keep from being put in its place; and puts it there, if nobody
 * reads: true. */
uint64_t sl_history_scribe_wal_bytes(const struct sl_history_scribe *scribe);
SL_MUST_CHECK bool sl_history_scribe_checkpoint(struct sl_history_scribe *scribe);
/* Writes what is open, without asking. */
void sl_history_scribe_tell(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, struct sl_history_report *report);
/* All sums as they are now, and how the history is; for another thread. NULL: no memory. */
struct sl_history_sums *sl_history_scribe_sums(
	const struct sl_history_scribe *scribe, const struct sl_history_report *report);

#endif
