/*
 * sweep - see sweep.h
 */
#include "runtime/memory/sweep.h"
#include "runtime/contexts/capture.h"
#include "runtime/process/futex.h"
#include "runtime/real/real.h"
#include "runtime/process/libc.h"
#include "runtime/memory/memory.h"
#include "runtime/share/import.h"
#include "runtime/driver/pool.h"
#include "runtime/contexts/space.h"

#include "base/log.h"

#include <stdlib.h>
#include <sys/prctl.h>

static uint32_t wanted; /* futex: counts requests */
static int started;
static int everything_wanted, owed;

static void begin_thread(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)prctl(PR_SET_NAME, "sluice-sweep", 0, 0, 0);
	/* Another thread's capture is not to be spoilt by our calls. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
}

/* --- the sweeper -------------------------------------------------------------------------- */

static void *sweep_main(void *arg)
{
	bool everything;
	uint32_t seen = 0;

	begin_thread();
	for (;;) {
		uint32_t now = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

		if (now == seen) {
			sl_futex_wait(&wanted, seen, SL_NS_NEVER);
			continue;
		}
		seen = now;
		everything = __atomic_exchange_n(&everything_wanted, 0, __ATOMIC_ACQ_REL);
		sl_memory_flush_all(everything);
		sl_import_sweep();
		sl_pool_synced();
		if (everything)
			(void)sl_passed_trim();
	}
	return arg;
}

void sl_sweep_soon(bool everything)
{
	int saved_errno = errno;

	if (everything)
		__atomic_store_n(&everything_wanted, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&wanted, 1, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
		sl_futex_wake(&wanted, 1);
	else if (sl_libc_start_thread(sweep_main, NULL) != 0)
		__atomic_store_n(&started, 0, __ATOMIC_RELEASE);
	errno = saved_errno;
}

void sl_sweep_owe(void)
{
	__atomic_store_n(&owed, 1, __ATOMIC_SEQ_CST);
	/* The capture that was in the way may have ended in between. */
	sl_sweep_if_owed();
}

void sl_sweep_if_owed(void)
{
	if (!sl_capture_is_open() && __atomic_exchange_n(&owed, 0, __ATOMIC_SEQ_CST))
		sl_sweep_soon(false);
}

void sl_sweep_forget(void)
{
	wanted = 0;
	started = 0;
	everything_wanted = owed = 0;
}

/* --- at once ------------------------------------------------------------------------------ */

/* One space that is flushed. A thread stays in the driver with a space that nobody else flushes, or
 * waits some seconds for who does: there are never many. */
struct task {
	struct task *next; /* of the same call */
	struct sl_space *space;
	uint32_t users; /* futex: its thread and who waits; the last one frees it */
};

static void leave_task(struct task *task)
{
	if (__atomic_sub_fetch(&task->users, 1, __ATOMIC_ACQ_REL) == 0)
		free(task);
	else
		sl_futex_wake(&task->users, 1);
}

static void do_task(struct task *task)
{
	if (sl_memory_flush(task->space, true) != CUDA_SUCCESS)
		sl_debug("a context that is broken cannot be flushed");
	sl_space_leave(task->space);
	leave_task(task);
}

static void *task_main(void *arg)
{
	begin_thread();
	do_task(arg);
	return NULL;
}

/* One for each space that hoards. Who finds no memory for that leaves the space as it is. */
static struct task *take_tasks(void)
{
	struct task *tasks = NULL;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces) {
		struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);
		struct task *task = sl_space_hoards(space) ? malloc(sizeof(*task)) : NULL;

		if (!task)
			continue;
		space->users++;
		*task = (struct task){.next = tasks, .space = space, .users = 2};
		tasks = task;
	}
	sl_books_unlock();
	return tasks;
}

static void await_task(struct task *task, sl_ns end_ns)
{
	sl_ns now_ns;

	while (__atomic_load_n(&task->users, __ATOMIC_ACQUIRE) > 1 &&
		(now_ns = sl_clock_now()) < end_ns)
		sl_futex_wait(&task->users, 2, end_ns - now_ns);
}

void sl_sweep_until(sl_ns end_ns)
{
	int saved_errno = errno;
	struct task *tasks = take_tasks(), *next;

	for (struct task *task = tasks; task; task = task->next) {
		if (sl_libc_start_thread(task_main, task) != 0)
			do_task(task);
	}
	for (struct task *task = tasks; task; task = next) {
		next = task->next;
		await_task(task, end_ns);
		leave_task(task);
	}
	errno = saved_errno;
}
