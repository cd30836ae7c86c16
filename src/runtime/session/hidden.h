/*
 * hidden - bytes on the GPU that nobody asked us for have changed
 *
 * Contexts, modules, first launches, pools, arrays, managed memory and the program's own handles
 * are not ours to count: the daemon measures them. This unit remembers that a measurement is due:
 * the agent has it made a moment later, and who tells figures to the program waits for one first.
 * Thread-safe, lock-free.
 */
#ifndef SL_RUNTIME_SESSION_HIDDEN_H
#define SL_RUNTIME_SESSION_HIDDEN_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_gpu;

enum {
	SL_HIDDEN_FOR_VIEW = 1,  /* figures told now would be old */
	SL_HIDDEN_FOR_AGENT = 2, /* the agent is to ask for a measurement */
	SL_HIDDEN_ALL = 3,
};

extern uint32_t sl_hidden_due;

/* Hidden bytes have changed. */
void sl_hidden_touch(void) SL_COLD;

/* After a call that may have changed them. One load where a measurement is due already. */
static inline CUresult sl_hidden_changed(CUresult result)
{
	if (result == CUDA_SUCCESS &&
		sl_unlikely(__atomic_load_n(&sl_hidden_due, __ATOMIC_RELAXED) !=
			    SL_HIDDEN_ALL))
		sl_hidden_touch();
	return result;
}

/* Clears and returns whether a measurement is due for that use. */
bool sl_hidden_take(uint32_t use);
/* The agent saw something no hook can see: figures told now would be old. */
void sl_hidden_due_for_view(void);
/* Waits for a measurement if one is due, at most 250 ms, once what is charged for nothing has
 * gone. */
void sl_hidden_settle(struct sl_gpu *gpu);
/* In the child of a fork. */
void sl_hidden_forget(void);

#endif
