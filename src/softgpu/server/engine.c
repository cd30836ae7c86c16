/*
 * engine - see the header
 *
 * Two locks on bytes of the GPU's memory file, which belong to processes and end with them: the
 * engine, and the place in front of it. A process that gives the engine up must take the place
 * before it may have the engine again, so a waiting process comes first.
 */
#include "softgpu/server/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { ENGINE, PLACE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static int file = -1;
static sl_ns slice, since;
static unsigned int inside;

static void set(int byte, short type)
{
	/* Beyond the memory itself. */
	struct flock range = {.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)1 << 60 | byte,
		.l_len = 1};

	while (fcntl(file, F_SETLKW, &range) < 0 && errno == EINTR)
		continue;
}

static void take(void)
{
	set(PLACE, F_WRLCK);
	set(ENGINE, F_WRLCK);
	set(PLACE, F_UNLCK);
	since = sl_clock_now();
}

void sl_engine_init(int fd, sl_ns length)
{
	(void)pthread_mutex_lock(&lock);
	file = length ? fd : -1;
	slice = length;
	(void)pthread_mutex_unlock(&lock);
}

void sl_engine_enter(void)
{
	(void)pthread_mutex_lock(&lock);
	if (file >= 0 && inside++ == 0)
		take();
	(void)pthread_mutex_unlock(&lock);
}

void sl_engine_leave(void)
{
	(void)pthread_mutex_lock(&lock);
	if (file >= 0 && --inside == 0)
		set(ENGINE, F_UNLCK);
	(void)pthread_mutex_unlock(&lock);
}

void sl_engine_pass(void)
{
	(void)pthread_mutex_lock(&lock);
	if (file >= 0 && inside == 1 && sl_clock_now() - since >= slice) {
		set(ENGINE, F_UNLCK);
		take();
	}
	(void)pthread_mutex_unlock(&lock);
}
