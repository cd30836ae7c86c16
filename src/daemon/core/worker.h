/*
 * worker - the common part of the daemon's own threads
 *
 * The loop hands work to a thread, and the thread tells the loop by event_fd when some work is
 * done. If the thread itself polls, the loop tells it by event_fd instead. The owner defines the
 * work and keeps its data under the mutex. The threads take no signals; all go to the loop.
 */
#ifndef SL_DAEMON_CORE_WORKER_H
#define SL_DAEMON_CORE_WORKER_H

#include <pthread.h>

#include "base/sl.h"

struct sl_worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake; /* there is work, or stop */
	bool stop;           /* under the mutex */
	int event_fd;
};

/* Runs body(argument) in the thread. 0 or negative errno; after an error *worker needs no end. */
SL_MUST_CHECK int sl_worker_start(
	struct sl_worker *worker, void *(*body)(void *), void *argument);
/* Sets stop, and waits until the body returns. */
void sl_worker_end(struct sl_worker *worker);
/* Makes event_fd readable. */
void sl_worker_tell(struct sl_worker *worker);
/* event_fd is not readable until the next tell. */
void sl_worker_hear(struct sl_worker *worker);

#endif
