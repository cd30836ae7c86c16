/*
 * gate - close, drain, open
 *
 * Correctness: a thread stores its depth before it loads the word; the closer stores the word,
 * forces a fence in every thread, then loads the depths. So for each thread either the closer sees
 * its depth, or the thread sees the gate closed and takes its depth back. A thread's record is on
 * the list before its first entry, so the same argument covers threads that start while the gate
 * closes.
 *
 * A thread that leaves wakes no other, so leaving is a plain store; the closer polls. Closing is
 * rare and a submission takes microseconds, so polling costs less than a check in every leave.
 */
#include "runtime/gate/gate.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/mode.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

#ifndef SYS_membarrier
#define SYS_membarrier 324
#endif
#define MEMBARRIER_PRIVATE_EXPEDITED          8
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

__thread struct sl_gate_thread *sl_gate_self __attribute__((tls_model("initial-exec")));
__thread struct sl_gate_thread *sl_door_self __attribute__((tls_model("initial-exec")));
uint32_t sl_gate_word = SL_GATE_FENCED;
void (*sl_gate_on_attach)(void);
void (*sl_gate_on_park)(void);
void (*sl_gate_on_entry)(void);
bool (*sl_gate_on_metered)(void);

/* A parked thread reports that repeatedly; a thread that left by a jump out of a signal handler
 * cannot. */
#define PARK_SPAN_NS  (1 * SL_S)
#define PARK_STALE_NS (3 * SL_S)

static struct sl_gate_thread *records; /* newest first; grows only */

static struct sl_libc_watch watch;

static void on_thread_exit(void *arg)
{
	struct sl_gate_thread *record = arg;

	/* A thread that was cancelled inside the driver leaves its depth behind. */
	__atomic_store_n(&record->depth, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&record->calls, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&record->parked_ns, 0, __ATOMIC_RELAXED);
	record->lent = false;
	sl_gate_self = sl_door_self = NULL;
	__atomic_store_n(&record->in_use, 0, __ATOMIC_RELEASE);
}

static struct sl_gate_thread *reuse_record(void)
{
	struct sl_gate_thread *record = __atomic_load_n(&records, __ATOMIC_ACQUIRE);

	for (; record; record = record->next) {
		uint32_t unused = 0;

		if (__atomic_compare_exchange_n(&record->in_use, &unused, 1, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return record;
	}
	return NULL;
}

static void publish(struct sl_gate_thread *record)
{
	struct sl_gate_thread *head = __atomic_load_n(&records, __ATOMIC_RELAXED);

	do {
		record->next = head;
	} while (!__atomic_compare_exchange_n(
		&records, &head, record, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* A page of records at a time; the first is the caller's. */
static struct sl_gate_thread *make_records(void)
{
	enum { BYTES = 4096, COUNT = BYTES / sizeof(struct sl_gate_thread) };
	struct sl_gate_thread *page = mmap(
		NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	page[0].in_use = 1;
	for (int i = 0; i < COUNT; i++)
		publish(&page[i]);
	return &page[0];
}

struct sl_gate_thread *sl_gate_record(void)
{
	int saved_errno = errno;
	struct sl_gate_thread *record = sl_door_self;

	if (record || !sl_mode_is_active())
		return record;
	record = reuse_record();
	if (!record)
		record = make_records();
	if (record) {
		/* If the exit cannot be watched, only the ended thread's record is lost. */
		sl_libc_watch_exit(&watch, on_thread_exit, record);
		sl_door_self = record;
	}
	errno = saved_errno;
	return record;
}

struct sl_gate_thread *sl_gate_attach(void)
{
	int saved_errno = errno;

	sl_gate_self = sl_gate_record();
	if (sl_gate_self && sl_gate_on_attach)
		sl_gate_on_attach();
	errno = saved_errno;
	return sl_gate_self;
}

struct sl_gate_thread *sl_gate_borrow(void)
{
	struct sl_gate_thread *record = sl_gate_self;

	if (!record) {
		record = sl_gate_self = sl_gate_record();
		if (record)
			record->lent = true;
	}
	return record;
}

static void return_record(struct sl_gate_thread *self)
{
	if (!self->lent || self->depth)
		return;
	self->lent = false;
	sl_gate_self = NULL;
}

void sl_gate_give_back(struct sl_gate_thread *self)
{
	if (!self || !self->depth)
		return;
	__atomic_store_n(&self->depth, self->depth - 1, __ATOMIC_RELEASE);
	return_record(self);
}

static bool is_stale(sl_ns told_ns, sl_ns now_ns)
{
	return !told_ns || sl_sub_sat(now_ns, told_ns) >= PARK_STALE_NS;
}

bool sl_gate_note_parked(struct sl_gate_thread *self, sl_ns now_ns)
{
	sl_ns told_ns = __atomic_load_n(&self->parked_ns, __ATOMIC_RELAXED);

	__atomic_store_n(&self->parked_ns, now_ns, __ATOMIC_SEQ_CST);
	return !now_ns || is_stale(told_ns, now_ns);
}

static void tell_parked(struct sl_gate_thread *self, sl_ns now_ns)
{
	if (sl_gate_note_parked(self, now_ns) && sl_gate_on_park)
		sl_gate_on_park();
}

void sl_gate_sleep(uint32_t word)
{
	sl_futex_wait(&sl_gate_word, word, PARK_SPAN_NS);
}

/* While parked the thread counts as outside, also for a signal handler that enters. A closed door
 * closes the gate, too: a thread that finds the gate open afterwards needs not look at the door. */
static void park(struct sl_gate_thread *self, uint32_t word)
{
	uint32_t calls = self->calls;

	__atomic_store_n(&self->depth, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&self->calls, 0, __ATOMIC_RELEASE);
	tell_parked(self, sl_clock_now());
	sl_gate_sleep(word);
	__atomic_store_n(&self->calls, calls, __ATOMIC_SEQ_CST);
}

/* The thread is inside, so the agent that this wakes sees it at work. */
static void tell_entry(uint32_t word)
{
	if (word & SL_GATE_LISTENS &&
		__atomic_fetch_and(&sl_gate_word, ~SL_GATE_LISTENS, __ATOMIC_SEQ_CST) &
			SL_GATE_LISTENS &&
		sl_gate_on_entry)
		sl_gate_on_entry();
}

/* The word as a thread finds it that has just stored its depth. Sequentially consistent on both
 * sides, so correct without membarrier, too. */
static uint32_t meet_word(void)
{
	uint32_t word = __atomic_load_n(&sl_gate_word, __ATOMIC_SEQ_CST);

	while (word < SL_GATE_CLOSER && word & SL_GATE_METERED && !sl_gate_on_metered())
		word = __atomic_load_n(&sl_gate_word, __ATOMIC_SEQ_CST);
	return word;
}

void sl_gate_enter_slowly(struct sl_gate_thread *self)
{
	uint32_t word;

	for (;;) {
		__atomic_store_n(&self->depth, 1, __ATOMIC_SEQ_CST);
		word = meet_word();
		if (word < SL_GATE_CLOSER)
			break;
		park(self, word);
	}
	if (sl_unlikely(__atomic_load_n(&self->parked_ns, __ATOMIC_RELAXED)))
		tell_parked(self, 0);
	tell_entry(word);
}

bool sl_gate_try(struct sl_gate_thread *self)
{
	uint32_t word;

	if (self->depth) {
		sl_gate_enter(self);
		return true;
	}
	self->stack = sl_gate_stack();
	__atomic_store_n(&self->depth, 1, __ATOMIC_SEQ_CST);
	word = meet_word();
	if (word >= SL_GATE_CLOSER) {
		__atomic_store_n(&self->depth, 0, __ATOMIC_RELEASE);
		tell_parked(self, sl_clock_now());
		return false;
	}
	if (__atomic_load_n(&self->parked_ns, __ATOMIC_RELAXED))
		tell_parked(self, 0);
	tell_entry(word);
	return true;
}

void sl_gate_give_up(struct sl_gate_thread *self)
{
	if (__atomic_load_n(&self->parked_ns, __ATOMIC_RELAXED))
		tell_parked(self, 0);
	return_record(self);
}

bool sl_gate_is_on_signal_stack(void)
{
	stack_t now = {0};

	return sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK;
}

void sl_gate_enter_again(struct sl_gate_thread *self, uintptr_t stack)
{
	int saved_errno = errno;

	if (stack < self->stack || sl_gate_is_on_signal_stack()) {
		__atomic_store_n(&self->depth, self->depth + 1, __ATOMIC_RELAXED);
	} else {
		self->stack = stack;
		sl_gate_enter_slowly(self);
	}
	errno = saved_errno;
}

void sl_gate_start(bool may_use_membarrier)
{
	if (may_use_membarrier &&
		syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0) == 0)
		__atomic_fetch_and(&sl_gate_word, ~SL_GATE_FENCED, __ATOMIC_SEQ_CST);
}

static void fence_all_threads(void)
{
	if (__atomic_load_n(&sl_gate_word, __ATOMIC_RELAXED) & SL_GATE_FENCED)
		return;
	if (syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0) == 0)
		return;
	/* membarrier worked at the start but is refused now: the program has entered a sandbox
	 * since. From now on entries make their own fences. The pause lets entries that did not yet
	 * become visible. */
	__atomic_fetch_or(&sl_gate_word, SL_GATE_FENCED, __ATOMIC_SEQ_CST);
	sl_futex_pause(SL_MS);
}

void sl_gate_listen(void)
{
	__atomic_fetch_or(&sl_gate_word, SL_GATE_LISTENS, __ATOMIC_SEQ_CST);
	fence_all_threads();
}

bool sl_gate_is_listening(void)
{
	return __atomic_load_n(&sl_gate_word, __ATOMIC_SEQ_CST) & SL_GATE_LISTENS;
}

void sl_gate_add(uint32_t bits)
{
	int saved_errno = errno;

	__atomic_fetch_add(&sl_gate_word, bits, __ATOMIC_SEQ_CST);
	fence_all_threads();
	errno = saved_errno;
}

void sl_gate_take_away(uint32_t bits)
{
	uint32_t word = __atomic_sub_fetch(&sl_gate_word, bits, __ATOMIC_SEQ_CST);

	if (word < SL_GATE_CLOSER || bits & SL_GATE_DOOR)
		sl_futex_wake(&sl_gate_word, INT_MAX);
}

void sl_gate_close(void)
{
	sl_gate_add(SL_GATE_CLOSER);
}

void sl_gate_open(void)
{
	sl_gate_take_away(SL_GATE_CLOSER);
}

bool sl_gate_is_drained(void)
{
	struct sl_gate_thread *record = __atomic_load_n(&records, __ATOMIC_ACQUIRE);

	for (; record; record = record->next) {
		if (__atomic_load_n(&record->depth, __ATOMIC_SEQ_CST) != 0)
			return false;
	}
	return true;
}

bool sl_gate_drain(sl_ns span_ns)
{
	sl_ns deadline_ns = sl_clock_now() + span_ns, pause_ns = 10 * SL_US;

	while (!sl_gate_is_drained()) {
		if (sl_clock_now() >= deadline_ns)
			return false;
		sl_futex_pause(pause_ns);
		pause_ns = sl_min_u64(2 * pause_ns, SL_MS);
	}
	return true;
}

uint32_t sl_gate_parked(void)
{
	struct sl_gate_thread *record = __atomic_load_n(&records, __ATOMIC_ACQUIRE);
	sl_ns now_ns = sl_clock_now();
	uint32_t count = 0;

	for (; record; record = record->next) {
		sl_ns at_ns = __atomic_load_n(&record->parked_ns, __ATOMIC_SEQ_CST);

		count += !is_stale(at_ns, now_ns);
	}
	return count;
}

uint64_t sl_gate_submissions(void)
{
	struct sl_gate_thread *record = __atomic_load_n(&records, __ATOMIC_ACQUIRE);
	uint64_t sum = 0;

	for (; record; record = record->next)
		sum += __atomic_load_n(&record->submissions, __ATOMIC_RELAXED);
	return sum;
}

struct sl_gate_thread *sl_gate_records_first(void)
{
	return __atomic_load_n(&records, __ATOMIC_ACQUIRE);
}

uint32_t sl_gate_records(void)
{
	struct sl_gate_thread *record = __atomic_load_n(&records, __ATOMIC_ACQUIRE);
	uint32_t count = 0;

	for (; record; record = record->next)
		count++;
	return count;
}

void sl_gate_forget(void)
{
	records = NULL;
	sl_gate_self = sl_door_self = NULL;
	__atomic_store_n(&sl_gate_word, SL_GATE_FENCED, __ATOMIC_RELAXED);
}
