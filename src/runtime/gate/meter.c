/*
 * meter - see meter.h
 *
 * The state is changed first and the gate's word right after it, by the thread that changed the
 * state. An entry that comes in between sees the old word, gets no place, and looks again. The next
 * change waits until the word shows the last one.
 */
#include "runtime/gate/meter.h"
#include "runtime/gate/gate.h"
#include "runtime/process/futex.h"

#include <limits.h>

enum { OPEN, RUNS, SHUT };

static uint32_t state; /* atomic */
static int32_t left;   /* atomic */
static sl_ns until;    /* written while the gate is shut */
uint32_t sl_meter_bell;

void sl_meter_ring(void)
{
	__atomic_fetch_add(&sl_meter_bell, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&sl_meter_bell, INT_MAX);
}

static bool change(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		&state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Entries at a metered gate make their own fences, so this needs none. */
static bool shut_slice(void)
{
	if (!change(RUNS, SHUT))
		return false;
	__atomic_fetch_add(
		&sl_gate_word, SL_GATE_CLOSER - SL_GATE_METERED, __ATOMIC_SEQ_CST);
	return true;
}

static bool on_metered(void)
{
	if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) >= 0 && sl_clock_now() < until)
		return true;
	if (shut_slice())
		sl_meter_ring();
	return false;
}

/* The thread that has just shut the slice may not have changed the word yet. */
static void settle(void)
{
	while (__atomic_load_n(&state, __ATOMIC_SEQ_CST) == SHUT &&
		__atomic_load_n(&sl_gate_word, __ATOMIC_SEQ_CST) & SL_GATE_METERED)
		(void)syscall(SYS_sched_yield);
}

void sl_meter_shut(void)
{
	if (!shut_slice() && change(OPEN, SHUT))
		sl_gate_close();
	settle();
}

void sl_meter_run(uint32_t entries, sl_ns until_ns)
{
	sl_gate_on_metered = on_metered;
	until = until_ns;
	__atomic_store_n(&left, (int32_t)entries, __ATOMIC_RELAXED);
	__atomic_store_n(&state, RUNS, __ATOMIC_SEQ_CST);
	sl_gate_take_away(SL_GATE_CLOSER - SL_GATE_METERED);
}

void sl_meter_open(void)
{
	if (change(RUNS, OPEN)) {
		sl_gate_take_away(SL_GATE_METERED);
		return;
	}
	settle();
	if (change(SHUT, OPEN))
		sl_gate_open();
}

bool sl_meter_is_on(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != OPEN;
}

bool sl_meter_is_shut(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == SHUT;
}

uint32_t sl_meter_left(void)
{
	int32_t now = __atomic_load_n(&left, __ATOMIC_RELAXED);

	return now > 0 ? (uint32_t)now : 0;
}

void sl_meter_forget(void)
{
	state = OPEN;
	left = 0;
	sl_meter_bell = 0;
}
