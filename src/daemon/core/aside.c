/*
 * aside - see the header
 */
#include "daemon/core/aside.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct look {
	void (*body)(void *work);
	void *work;
	uid_t uid;
	bool busy; /* under the mutex */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct look looks[SL_ASIDE_MOST];

static struct look *take(uid_t uid)
{
	struct look *found = NULL;
	unsigned int same = 0;

	(void)pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < SL_ARRAY_LEN(looks); i++) {
		if (!looks[i].busy)
			found = &looks[i];
		else
			same += looks[i].uid == uid;
	}
	if (same >= SL_ASIDE_EACH)
		found = NULL;
	if (found)
		*found = (struct look){.uid = uid, .busy = true};
	(void)pthread_mutex_unlock(&mutex);
	return found;
}

static void give_back(struct look *look)
{
	(void)pthread_mutex_lock(&mutex);
	look->busy = false;
	(void)pthread_mutex_unlock(&mutex);
}

static void *thread_main(void *argument)
{
	struct look *look = argument;

	look->body(look->work);
	give_back(look);
	return NULL;
}

bool sl_aside(uid_t uid, void (*body)(void *work), void *work)
{
	struct look *look = take(uid);
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (!look)
		return false;
	look->body = body;
	look->work = work;
	/* The loop takes all signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, thread_main, look);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		(void)pthread_detach(thread);
	else
		give_back(look);
	return r == 0;
}
