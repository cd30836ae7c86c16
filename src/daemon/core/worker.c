/*
 * worker - see the header
 */
#include "daemon/core/worker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

int sl_worker_start(struct sl_worker *worker, void *(*body)(void *), void *argument)
{
	sl_cleanup(sl_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigset_t all, before;
	int r;

	if (fd < 0)
		return sl_err_origin(-errno);
	worker->event_fd = fd;
	worker->stop = false;
	(void)pthread_mutex_init(&worker->mutex, NULL);
	(void)pthread_cond_init(&worker->wake, NULL);
	/* The loop takes all signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&worker->thread, NULL, body, argument);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return sl_err_origin(-r);
	(void)sl_steal_fd(&fd);
	return 0;
}

void sl_worker_end(struct sl_worker *worker)
{
	(void)pthread_mutex_lock(&worker->mutex);
	worker->stop = true;
	(void)pthread_cond_signal(&worker->wake);
	(void)pthread_mutex_unlock(&worker->mutex);
	(void)pthread_join(worker->thread, NULL);
	(void)close(worker->event_fd);
	(void)pthread_cond_destroy(&worker->wake);
	(void)pthread_mutex_destroy(&worker->mutex);
}

void sl_worker_tell(struct sl_worker *worker)
{
	uint64_t one = 1;

	if (write(worker->event_fd, &one, sizeof(one)) < 0)
		sl_debug("an event of a thread: %s", strerror(errno));
}

void sl_worker_hear(struct sl_worker *worker)
{
	uint64_t count;

	if (read(worker->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		sl_debug("the event of a thread: %s", strerror(errno));
}
