/*
 * prove - see prove.h
 *
 * The driver cannot tell without waiting whether all streams of a context, non-blocking ones
 * included, are idle; so a thread waits. While a kernel runs, that thread stays in the driver;
 * started_ns tells callers since when.
 */
#include "runtime/contexts/prove.h"
#include "runtime/contexts/settle.h"
#include "runtime/gate/gate.h"
#include "runtime/hash/hash.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/wake.h"
#include "runtime/real/real.h"

#include "base/list.h"
#include "base/log.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct context {
	struct sl_link link;
	CUcontext ctx;
	CUdevice dev;
	uint32_t round;    /* of the last proof that visited it */
	bool inside;       /* the thread is in a driver call for it */
	unsigned int held; /* threads that may destroy it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All under the lock. */
static struct sl_link contexts = SL_LIST_INIT(contexts);
static bool forgot_one; /* no memory for a context: nothing can be proved from now on */
static struct sl_proof proof;
static bool started, hashes;
static uint32_t rounds;
/* Atomic. */
static uint32_t wanted; /* futex: counts requested proofs */
static uint32_t ended;  /* futex: counts ended proofs */

/* A thread that waits for a proof checks *stop this often. */
#define STOP_SPAN_NS (10 * SL_MS)

static struct context *find(CUcontext ctx)
{
	sl_list_foreach (link, &contexts) {
		struct context *c = SL_LIST_ENTRY(link, struct context, link);

		if (c->ctx == ctx)
			return c;
	}
	return NULL;
}

/* --- the thread ------------------------------------------------------------------------- */

/* The next context of this round, with `inside` set. *ok: false if one had to be skipped. */
static struct context *next_of_round(uint32_t round, bool *ok)
{
	struct context *found = NULL;

	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &contexts) {
		struct context *c = SL_LIST_ENTRY(link, struct context, link);

		if (c->round == round)
			continue;
		c->round = round;
		if (c->held) {
			*ok = false;
			continue;
		}
		c->inside = true;
		found = c;
		break;
	}
	*ok = *ok && !forgot_one;
	(void)pthread_mutex_unlock(&lock);
	return found;
}

static void leave(struct context *c)
{
	(void)pthread_mutex_lock(&lock);
	c->inside = false;
	(void)pthread_mutex_unlock(&lock);
}

static bool prove_all(uint32_t round, bool *failed)
{
	struct context *c;
	bool ok = true;

	while (ok && (c = next_of_round(round, &ok))) {
		CUresult result;
		int r = sl_settle_context(c->ctx, &result);

		leave(c);
		*failed = r == SL_SETTLE_FAILED;
		if (*failed)
			sl_debug("whether a context is idle is not known: error %d",
				(int)result);
		ok = ok && (r == SL_SETTLED || r == SL_SETTLE_BROKEN);
	}
	return ok;
}

static void prove_once(void)
{
	/* Threads inside a submission now are counted when they leave, so after this. */
	uint64_t submissions = sl_gate_submissions();
	bool ok, failed = false;

	/* The thread's own wait for a CPU is not part of the work's time. */
	(void)pthread_mutex_lock(&lock);
	proof.started_ns = sl_clock_now();
	(void)pthread_mutex_unlock(&lock);
	ok = prove_all(++rounds, &failed);
	(void)pthread_mutex_lock(&lock);
	if (ok)
		proof.submissions = submissions;
	proof.refused = !ok;
	proof.failed = failed;
	proof.ended_ns = sl_clock_now();
	proof.running = false;
	(void)pthread_mutex_unlock(&lock);
	__atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&ended, INT_MAX);
	sl_wake_agent();
}

static void *prove_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint32_t seen = 0;

	(void)prctl(PR_SET_NAME, "sluice-prove", 0, 0, 0);
	/* Our calls must not invalidate another thread's capture. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t now = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

		if (now == seen) {
			sl_futex_wait(&wanted, seen, SL_NS_NEVER);
			continue;
		}
		seen = now;
		prove_once();
	}
	return arg;
}

/* --- the other threads ------------------------------------------------------------------- */

void sl_prove_ask(void)
{
	(void)pthread_mutex_lock(&lock);
	if (!proof.running) {
		if (!started)
			started = sl_libc_start_thread(prove_main, NULL) == 0;
		proof.refused = proof.no_thread = !started;
		proof.running = started;
		proof.started_ns = sl_clock_now();
		__atomic_fetch_add(&wanted, started, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&lock);
	sl_futex_wake(&wanted, 1);
}

void sl_prove_look(struct sl_proof *out)
{
	(void)pthread_mutex_lock(&lock);
	*out = proof;
	(void)pthread_mutex_unlock(&lock);
}

int sl_prove_idle(sl_ns deadline_ns, const uint32_t *stop)
{
	sl_ns since_ns = sl_clock_now(), now_ns = since_ns;
	struct sl_proof now;

	for (;;) {
		uint32_t seen = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);

		sl_prove_look(&now);
		if (!now.running && now.started_ns >= since_ns)
			return now.refused ? SL_PROVE_REFUSED : SL_PROVE_IDLE;
		if (!now.running) {
			sl_prove_ask();
			continue;
		}
		now_ns = sl_clock_now();
		if (now_ns >= deadline_ns || __atomic_load_n(stop, __ATOMIC_ACQUIRE))
			return SL_PROVE_LATE;
		sl_futex_wait(
			&ended, seen, sl_min_u64(deadline_ns - now_ns, STOP_SPAN_NS));
	}
}

void sl_prove_created(CUcontext ctx, CUdevice dev)
{
	struct context *new = calloc(1, sizeof(*new));
	bool hash;

	(void)pthread_mutex_lock(&lock);
	if (!new)
		forgot_one = true;
	else if (!find(ctx)) {
		new->ctx = ctx;
		new->dev = dev;
		sl_list_push_tail(&contexts, &new->link);
		new = NULL;
	}
	hash = hashes && dev >= 0;
	(void)pthread_mutex_unlock(&lock);
	free(new);
	if (hash)
		sl_hasher_context(ctx, dev);
}

void sl_prove_hash_all(void)
{
	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &contexts) {
		struct context *c = SL_LIST_ENTRY(link, struct context, link);

		if (!hashes && c->dev >= 0 && !c->held)
			sl_hasher_context(c->ctx, c->dev);
	}
	hashes = true;
	(void)pthread_mutex_unlock(&lock);
}

void sl_prove_hash(CUcontext ctx)
{
	struct context *c;

	(void)pthread_mutex_lock(&lock);
	c = find(ctx);
	if (c && hashes && c->dev >= 0 && !c->held)
		sl_hasher_context(c->ctx, c->dev);
	(void)pthread_mutex_unlock(&lock);
}

void sl_prove_hold(CUcontext ctx)
{
	struct context *c;

	if (!ctx)
		return;
	(void)pthread_mutex_lock(&lock);
	c = find(ctx);
	if (c)
		c->held++;
	/* The destruction would wait for the same work as the proof does. */
	while ((c = find(ctx)) && c->inside) {
		(void)pthread_mutex_unlock(&lock);
		sl_futex_pause(100 * SL_US);
		(void)pthread_mutex_lock(&lock);
	}
	(void)pthread_mutex_unlock(&lock);
}

void sl_prove_unhold(CUcontext ctx, bool gone)
{
	struct context *c;

	if (!ctx)
		return;
	(void)pthread_mutex_lock(&lock);
	c = find(ctx);
	if (c && c->held)
		c->held--;
	if (c && gone && !c->inside)
		sl_list_unlink(&c->link);
	else
		c = NULL;
	(void)pthread_mutex_unlock(&lock);
	free(c);
}

size_t sl_prove_contexts(CUcontext *out, size_t room)
{
	size_t count = 0;

	(void)pthread_mutex_lock(&lock);
	sl_list_foreach (link, &contexts) {
		const struct context *c = SL_LIST_ENTRY(link, struct context, link);

		if (!c->held && count < room)
			out[count++] = c->ctx;
	}
	(void)pthread_mutex_unlock(&lock);
	return count;
}

void sl_prove_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_list_init(&contexts);
	forgot_one = started = hashes = false;
	proof = (struct sl_proof){0};
	wanted = ended = rounds = 0;
}
