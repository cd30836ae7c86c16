/*
 * internal - shared by history/recorder.c (the scribe's thread, start and end) and history/door.c
 * (questions)
 */
#ifndef SL_DAEMON_HISTORY_INTERNAL_H
#define SL_DAEMON_HISTORY_INTERNAL_H

#include <stdatomic.h>

#include "base/paths.h"
#include "daemon/core/worker.h"
#include "daemon/history/history.h"
#include "daemon/history/turns.h"

struct sl_history {
	struct sl_daemon *daemon; /* the loop's */
	sd_event_source *io;      /* the loop's */
	struct sl_link open;      /* the loop's: struct wait, of history/door.c */
	char path[SL_PATH_MAX];
	struct sl_inside_door *door;
	uint64_t first_serial;             /* the first event of this daemon */
	struct sl_worker scribe, answerer; /* scribe's mutex: the next few */
	struct sl_history_keep keep;
	uint64_t told, tell_asked; /* requests to write open rows: done, asked for */
	pthread_cond_t is_told;
	struct sl_part health;
	struct sl_error moved; /* the last problem dealt with, for the report */
	int64_t t;       /* the history is complete up to this second; 0: nothing yet */
	int64_t ahead_s; /* its time less the machine's clock */
	/* mutex of answerer: struct wait in each */
	struct sl_history_turns turns;
	struct sl_link answered, handed;
	struct sl_history_budget room; /* locks itself */
	atomic_bool ending;
	atomic_bool suspect; /* a reader found damage */
	/* The scribe's newest sums until the loop takes them; shown, which the loop took last, is
	 * the loop's. */
	_Atomic(struct sl_history_sums *) fresh;
	struct sl_history_sums *shown;
};

/* The thread that answers; its argument is the history. */
void *sl_history_answerer(void *argument);
/* The loop's: an answer is ready. */
int sl_history_on_answered(
	sd_event_source *source, int fd, uint32_t events, void *context);
void sl_history_door_init(struct sl_history *history);
/* stop cancels running questions; fini, once the thread has ended, frees the rest. */
void sl_history_door_stop(struct sl_history *history);
void sl_history_door_fini(struct sl_history *history);

#endif
