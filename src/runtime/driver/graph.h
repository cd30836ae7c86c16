/*
 * graph - memory that graphs allocate when they run
 *
 * A graph with allocation nodes takes memory of the device's graph pool (pool.h) at its first
 * launch or upload; the driver keeps that memory until a trim. So the first launch of an executable
 * graph, and the first after a trim, asks for what its nodes take. A graph whose nodes take more
 * than it could ever get is refused at instantiation. Other launches cost one load here.
 * Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_DRIVER_GRAPH_H
#define SL_RUNTIME_DRIVER_GRAPH_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_gate_thread;

/* A graph has or will have an allocation node: from now on the hooks look for them. */
void sl_graph_has_memory(void);

/* Executable graphs whose next launch may take memory. */
extern uint32_t sl_graph_pending;

static inline bool sl_graph_is_pending(void)
{
	return __atomic_load_n(&sl_graph_pending, __ATOMIC_RELAXED) != 0;
}

/* A launch or upload (real) while sl_graph_pending is above 0: asks first if exec is one of
 * them. */
CUresult sl_graph_launch(CUresult (*real)(CUgraphExec exec, CUstream stream),
	struct sl_gate_thread *self, CUgraphExec exec, CUstream stream) SL_COLD;

/* The device has given back the graph memory that is not in use. */
void sl_graph_trimmed(void);
/* In the child of a fork. */
void sl_graph_forget(void);

#endif
