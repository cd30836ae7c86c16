/*
 * gate - calls of the program wait while the process is locked
 *
 * A call counts as inside from its first line to its end. Calls within calls, and within host
 * functions of the program, pass: what they belong to is inside already, or is work that the lock
 * waits for.
 */
#include "softgpu/driver/driver.h"

#include <time.h>

#define LOOK_NS 200000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static _Atomic bool closed, failed;
static _Atomic unsigned inside;
static __thread bool is_inside;

bool sl_gate_enter(void)
{
	if (is_inside)
		return false;
	is_inside = true;
	for (;;) {
		atomic_fetch_add(&inside, 1);
		if (!atomic_load(&closed))
			return true;
		atomic_fetch_sub(&inside, 1);
		pthread_mutex_lock(&lock);
		while (atomic_load(&closed))
			pthread_cond_wait(&opened, &lock);
		pthread_mutex_unlock(&lock);
	}
}

void sl_gate_leave(bool counted)
{
	if (!counted)
		return;
	is_inside = false;
	atomic_fetch_sub(&inside, 1);
}

/* No call is inside, so neither contexts nor streams come or go. */
static bool is_idle(void)
{
	bool idle = true;

	sl_list_foreach (at, &sl_drv.contexts) {
		CUcontext ctx = SL_LIST_ENTRY(at, struct CUctx_st, o.link);

		pthread_mutex_lock(&ctx->lock);
		sl_list_foreach (link, &ctx->streams) {
			CUstream s = SL_LIST_ENTRY(link, struct CUstream_st, o.link);

			pthread_mutex_lock(&s->lock);
			idle &= s->submitted == s->completed;
			pthread_mutex_unlock(&s->lock);
		}
		pthread_mutex_unlock(&ctx->lock);
	}
	return idle;
}

bool sl_gate_close(uint64_t until)
{
	atomic_store(&closed, true);
	while (atomic_load(&inside) || !is_idle()) {
		struct timespec t = {0, LOOK_NS};

		if (until && sl_drv_now_ns() >= until) {
			sl_gate_open();
			return false;
		}
		nanosleep(&t, NULL);
	}
	return true;
}

void sl_gate_open(void)
{
	pthread_mutex_lock(&lock);
	atomic_store(&closed, false);
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&lock);
}

void sl_gate_fail(void)
{
	atomic_store(&failed, true);
	sl_gate_open();
}

bool sl_gate_has_failed(void)
{
	return atomic_load(&failed);
}
