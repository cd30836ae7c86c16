/*
 * external - semaphores and memory of other interfaces
 *
 * Semaphores as work: the head of the operation is a struct sl_call.
 */
#ifndef SL_SOFTGPU_MEMORY_EXTERNAL_H
#define SL_SOFTGPU_MEMORY_EXTERNAL_H

#include "softgpu/driver/api.h"

/* params: an array of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS or _SIGNAL_PARAMS, as is_wait says. */
SL_MUST_CHECK CUresult sl_semaphores_op(const CUexternalSemaphore *semaphores,
	const void *params, unsigned count, bool is_wait, struct sl_op **out);
/* The node that such an operation is in a graph; EMPTY for other work of the driver's own. */
CUgraphNodeType sl_semaphores_type(const struct sl_call *call);
/* The parameters; both kinds have one layout. Pointers live as long as the operation. */
void sl_semaphores_params(struct sl_call *call, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *out);

/* Frees a mapped buffer of external memory once the context's work is over. False: none begins
 * there. */
bool sl_external_free(CUcontext ctx, CUdeviceptr at);

#endif
