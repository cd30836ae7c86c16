/*
 * control - see control.h
 *
 * One shared counter of threads inside and one word that says closed, in Dekker's pattern. A thread
 * that enters counts itself, then looks at the word; the closer writes the word, then looks at the
 * count. These calls go to the driver and cost it microseconds, so a shared counter is cheap.
 *
 * As with the gate, a signal handler may leave a call by siglongjmp. An entry that lies no deeper
 * in the stack than the previous one proves that the thread has left the previous call, and
 * replaces it. A thread that ends inside is counted out when it ends.
 */
#include "runtime/gate/control.h"
#include "runtime/gate/gate.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"

#include <limits.h>

static bool active;     /* atomic: a thread may close the lock */
static uint32_t closed; /* futex */
static uint32_t inside; /* futex */

static __thread struct {
	uint32_t depth;
	bool watched;
	uintptr_t stack; /* at the outermost entry */
} self __attribute__((tls_model("initial-exec")));

static struct sl_libc_watch watch;

static void count_out(void)
{
	if (__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 0 &&
		__atomic_load_n(&closed, __ATOMIC_SEQ_CST))
		sl_futex_wake(&inside, 1);
}

static void on_thread_exit(void *arg)
{
	(void)arg;
	self.watched = false;
	if (!self.depth)
		return;
	self.depth = 0;
	count_out();
}

static void count_in(void)
{
	for (;;) {
		__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&closed, __ATOMIC_SEQ_CST))
			return;
		count_out();
		sl_futex_wait(&closed, 1, SL_NS_NEVER);
	}
}

void sl_control_enter(void)
{
	int saved_errno = errno;
	uintptr_t stack = sl_gate_stack();

	if (!__atomic_load_n(&active, __ATOMIC_RELAXED))
		return;
	if (!self.watched) {
		self.watched = true;
		sl_libc_watch_exit(&watch, on_thread_exit, &self);
	}
	if (self.depth && (stack < self.stack || sl_gate_is_on_signal_stack())) {
		self.depth++;
	} else {
		/* Above 0: the former entry was left by a jump and is still counted. */
		if (!self.depth)
			count_in();
		self.stack = stack;
		self.depth = 1;
	}
	errno = saved_errno;
}

void sl_control_leave(void)
{
	int saved_errno = errno;

	if (self.depth && --self.depth == 0)
		count_out();
	errno = saved_errno;
}

void sl_control_start(void)
{
	__atomic_store_n(&active, true, __ATOMIC_RELAXED);
}

bool sl_control_close(sl_ns span_ns)
{
	sl_ns deadline_ns = sl_clock_now() + span_ns, now_ns;
	uint32_t count;

	__atomic_store_n(&closed, 1, __ATOMIC_SEQ_CST);
	while ((count = __atomic_load_n(&inside, __ATOMIC_SEQ_CST)) != 0) {
		now_ns = sl_clock_now();
		if (now_ns >= deadline_ns) {
			sl_control_open();
			return false;
		}
		sl_futex_wait(&inside, count, deadline_ns - now_ns);
	}
	/* The closer's own calls may enter: it counts as inside. */
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	self.stack = UINTPTR_MAX;
	self.depth = 1;
	return true;
}

void sl_control_open(void)
{
	if (self.depth) {
		self.depth = 0;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
	sl_futex_wake(&closed, INT_MAX);
}

void sl_control_forget(void)
{
	active = false;
	closed = inside = 0;
	self.depth = 0;
}
