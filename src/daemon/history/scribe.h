/*
 * scribe - state and steps of the thread that writes the history
 *
 * Used only by that thread, which history/recorder.c runs. Each call is one step; it may block on
 * the loop (through inside.h, with a deadline) and on the disk.
 */
#ifndef SL_DAEMON_HISTORY_SCRIBE_H
#define SL_DAEMON_HISTORY_SCRIBE_H

#include "daemon/history/sample.h"
#include "daemon/link/inside.h"

struct sl_history_scribe;

/* first_serial: this daemon's first event. NULL: no memory. */
struct sl_history_scribe *sl_history_scribe_new(
	const char *path, struct sl_inside_door *door, uint64_t first_serial);
struct sl_history_scribe *sl_history_scribe_free(struct sl_history_scribe *scribe);

struct sl_history_report {
	int outcome;          /* enum sl_history_store_outcome */
	struct sl_error err;  /* why it is not OK */
	struct sl_error note; /* a problem that was dealt with; "" if none */
	uint64_t rows, dropped, bytes;
	int64_t t;        /* complete up to this second; 0: nothing yet */
	int64_t ahead_ms; /* the history's time less the machine's clock */
	bool gone;        /* the daemon is ending */
};

/* One second: samples, and writes what is due. tell: also writes rows that are still open, because
 * a reader waits for them. */
void sl_history_scribe_step(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, bool tell, struct sl_history_report *report);
/* A reader found damage: the next step checks the whole file, and sets it aside if it is
 * damaged. */
void sl_history_scribe_suspect(struct sl_history_scribe *scribe);
/* wal_bytes: written to the -wal, which cannot be copied into the file while readers use it.
 * checkpoint copies it. False: a reader prevented it. */
uint64_t sl_history_scribe_wal_bytes(const struct sl_history_scribe *scribe);
SL_MUST_CHECK bool sl_history_scribe_checkpoint(
	struct sl_history_scribe *scribe, int patience_ms);
/* The history's time in milliseconds: since 1970, as far as the machine's clock was right when
 * sluiced started. It never goes back, and runs on if the clock is set. */
uint64_t sl_history_scribe_now(const struct sl_history_scribe *scribe);
/* Writes open rows, without taking a sample. */
void sl_history_scribe_tell(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, struct sl_history_report *report);
/* A copy of all sums and the state of the history, for another thread. NULL: no memory. */
struct sl_history_sums *sl_history_scribe_sums(
	const struct sl_history_scribe *scribe, const struct sl_history_report *report);

#endif
