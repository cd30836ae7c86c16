/*
 * measure - remembers that hidden bytes have changed
 *
 * Contexts, modules, first launches, pools, arrays, managed memory and the program's own handles
 * take memory that is not demanded here: the daemon measures it. This module remembers that a
 * measurement is due. The agent asks for it a moment later; a query about memory waits for one
 * first. Thread-safe, lock-free.
 */
#ifndef SL_RUNTIME_SESSION_MEASURE_H
#define SL_RUNTIME_SESSION_MEASURE_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_gpu;

enum {
	SL_MEASURE_FOR_VIEW = 1,  /* current figures are out of date */
	SL_MEASURE_FOR_AGENT = 2, /* the agent must ask for a measurement */
	SL_MEASURE_ALL = 3,
};

extern uint32_t sl_measure_due;

/* Hidden bytes have changed. */
void sl_measure_soon(void) SL_COLD;

/* After a call that may have changed them. One load if a measurement is due already. */
static inline CUresult sl_measure_after(CUresult result)
{
	if (result == CUDA_SUCCESS &&
		sl_unlikely(__atomic_load_n(&sl_measure_due, __ATOMIC_RELAXED) !=
			    SL_MEASURE_ALL))
		sl_measure_soon();
	return result;
}

/* Clears and returns whether a measurement is due for that use. */
bool sl_measure_take(uint32_t use);
/* The agent saw a change that no hook sees: current figures are out of date. */
void sl_measure_due_for_view(void);
/* In the child of a fork. */
void sl_measure_forget(void);

#endif
