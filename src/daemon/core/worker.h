/*
 * worker - what the daemon's writing threads have in common
 *
 * A thread that the loop hands work to, and that tells the loop by an event when some of it is
 * over. What the work is, and whose its data are, is the owner's: it keeps both under the mutex.
 * All signals are the loop's.
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

/* Runs body(argument) in the thread. 0 or negative errno, and then *worker needs no end. */
SL_MUST_CHECK int sl_worker_start(
	struct sl_worker *worker, void *(*body)(void *), void *argument);
/* Sets stop, and waits until the body returns. */
void sl_worker_end(struct sl_worker *worker);
/* The thread's: makes event_fd readable. */
void sl_worker_tell(struct sl_worker *worker);
/* The loop's: event_fd is not readable until the next tell. */
void sl_worker_hear(struct sl_worker *worker);

#endif
