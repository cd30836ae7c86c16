/*
 * reclaim - see reclaim.h
 */
#include "runtime/link/reclaim.h"
#include "runtime/contexts/space.h"
#include "runtime/driver/passed.h"
#include "runtime/driver/pool.h"
#include "runtime/memory/giving.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/supply.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/session/session.h"
#include "runtime/share/import.h"

#include "base/log.h"

#include <stdlib.h>

/* --- spaces ----------------------------------------------------------------------------------- */

/* The flush of one space, by a thread of its own. There are never many: each thread either waits in
 * the driver for its space's work, or waits a few seconds for another flush of that space. */
struct task {
	struct task *next; /* of the same call */
	struct sl_space *space;
	uint32_t
		users; /* futex: the flushing and the waiting thread; the last frees it */
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
	sl_sweep_begin_thread();
	do_task(arg);
	return NULL;
}

/* A task for each space that hoards. If there is no memory for one, its space is skipped. */
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

void sl_reclaim_spaces(sl_ns end_ns)
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

/* --- everything ------------------------------------------------------------------------------- */

/* An allocation waits so long for freed memory. The memory is back when the work that may use it
 * has ended; a driver would have to wait for that, too. If the work lasts longer, or waits for the
 * caller's next step, out-of-memory is final. */
#define GIVE_BACK_NS (10 * SL_S)

static bool is_hoarded(void)
{
	bool found = false;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces)
		found = found ||
			sl_space_hoards(SL_LIST_ENTRY(link, struct sl_space, link));
	sl_books_unlock();
	return found;
}

static void give_back_soon(void)
{
	if (is_hoarded() || sl_passed_has_spare())
		sl_sweep_soon(true);
}

static bool give_back_now(uint32_t frees)
{
	sl_ns end_ns = sl_clock_now() + GIVE_BACK_NS;
	bool hoarded = is_hoarded();

	if (hoarded)
		sl_reclaim_spaces(end_ns);
	hoarded |= sl_pool_give_back(end_ns);
	hoarded |= sl_passed_trim();
	/* Memory that another thread is just giving back is no longer hoarded, but not free yet. */
	sl_memory_await_giving();
	return hoarded || sl_session_frees() != frees;
}

static void sweep(bool everything)
{
	sl_memory_flush_all(everything);
	sl_import_sweep();
	sl_pool_synced();
	if (everything)
		(void)sl_passed_trim();
}

void (*const sl_sweep_on_due)(bool everything) = sweep;
void (*const sl_supply_on_slow)(void) = give_back_soon;
bool (*const sl_supply_on_denial)(uint32_t frees) = give_back_now;
