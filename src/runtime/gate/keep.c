/*
 * keep - see keep.h
 */
#include "runtime/gate/keep.h"
#include "runtime/gate/gate.h"
#include "runtime/process/libc.h"

#include <errno.h>

/* The kernel puts more than that on the stack before a handler runs. */
#define SIGNAL_FRAME_BYTES 1024

static uint32_t keepers; /* atomic: threads with a depth above 0 */

static __thread struct {
	uint32_t depth;
	bool watched;
	uintptr_t stack; /* at the outermost entry */
} self __attribute__((tls_model("initial-exec")));

static struct sl_libc_watch watch;

static void count_out(void)
{
	if (!self.depth)
		return;
	self.depth = 0;
	__atomic_fetch_sub(&keepers, 1, __ATOMIC_ACQ_REL);
}

static void on_thread_exit(void *arg)
{
	(void)arg;
	self.watched = false;
	count_out();
}

/* Does the outermost entry go on, with a call from so deep in it? */
static bool goes_on(uintptr_t stack)
{
	return stack < self.stack || sl_gate_is_on_signal_stack();
}

void sl_keep_enter(uintptr_t stack)
{
	int saved_errno = errno;

	if (!self.watched) {
		self.watched = true;
		sl_libc_watch_exit(&watch, on_thread_exit, &self);
	}
	if (self.depth && goes_on(stack)) {
		self.depth++;
	} else {
		/* Above 0: the former entry was left by a jump, and is still counted. */
		if (!self.depth)
			__atomic_fetch_add(&keepers, 1, __ATOMIC_ACQ_REL);
		self.stack = stack;
		self.depth = 1;
	}
	errno = saved_errno;
}

void sl_keep_leave(void)
{
	if (self.depth > 1)
		self.depth--;
	else
		count_out();
}

void sl_keep_look(uintptr_t stack)
{
	int saved_errno = errno;

	/* Only a signal handler comes there, from beyond its frame. */
	if (self.depth && !goes_on(stack + SIGNAL_FRAME_BYTES))
		count_out();
	errno = saved_errno;
}

bool sl_keep_is_any(void)
{
	return __atomic_load_n(&keepers, __ATOMIC_ACQUIRE) > 0;
}

void sl_keep_forget(void)
{
	keepers = 0;
	self.depth = 0;
}
