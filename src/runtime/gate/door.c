/*
 * door - see door.h
 *
 * Correct for the reason that gate.c gives: a thread stores its count before it loads the word, and
 * the closer stores the word before it loads the counts, with a fence in every thread in between.
 */
#include "runtime/gate/door.h"
#include "runtime/process/wake.h"

static void note(struct sl_gate_thread *self, sl_ns now_ns)
{
	if (sl_gate_note_parked(self, now_ns))
		sl_wake_agent();
}

/* Counts that many more calls, outside of which the thread is until then. */
static void enter(struct sl_gate_thread *self, uint32_t calls)
{
	uint32_t before = self->calls, word;

	for (;;) {
		__atomic_store_n(&self->calls, before + calls, __ATOMIC_SEQ_CST);
		word = __atomic_load_n(&sl_gate_word, __ATOMIC_SEQ_CST);
		if (!(word & SL_GATE_DOOR) || before || self->depth)
			break;
		__atomic_store_n(&self->calls, before, __ATOMIC_RELEASE);
		note(self, sl_clock_now());
		sl_gate_sleep(word);
	}
	if (sl_unlikely(__atomic_load_n(&self->parked_ns, __ATOMIC_RELAXED)))
		note(self, 0);
}

struct sl_gate_thread *sl_door_enter_slowly(void)
{
	struct sl_gate_thread *self = sl_gate_record();

	if (self)
		enter(self, 1);
	return self;
}

uint32_t sl_door_step_out(void)
{
	uint32_t calls = sl_door_self ? sl_door_self->calls : 0;

	if (calls)
		__atomic_store_n(&sl_door_self->calls, 0, __ATOMIC_RELEASE);
	return calls;
}

void sl_door_step_in(uint32_t calls)
{
	if (calls)
		enter(sl_door_self, calls);
}

void sl_door_close(void)
{
	sl_gate_add(SL_GATE_DOOR + SL_GATE_CLOSER);
}

void sl_door_open(void)
{
	sl_gate_take_away(SL_GATE_DOOR + SL_GATE_CLOSER);
}

bool sl_door_is_closed(void)
{
	return __atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) & SL_GATE_DOOR;
}

bool sl_door_is_drained(void)
{
	const struct sl_gate_thread *record = sl_gate_records_first();

	for (; record; record = record->next) {
		if (__atomic_load_n(&record->calls, __ATOMIC_SEQ_CST) != 0)
			return false;
	}
	return sl_gate_is_drained();
}
