/*
 * external - semaphores and memory of other interfaces
 *
 * Work with semaphores is an operation with a struct sl_call at its head.
 */
#ifndef SL_SOFTGPU_MEMORY_EXTERNAL_H
#define SL_SOFTGPU_MEMORY_EXTERNAL_H

#include "softgpu/driver/api.h"

/* params: an array of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS or _SIGNAL_PARAMS, as is_wait says. */
SL_MUST_CHECK CUresult sl_semaphores_op(const CUexternalSemaphore *semaphores,
	const void *params, unsigned count, bool is_wait, struct sl_op **out);
/* The type of graph node for such an operation; EMPTY for other operations of the driver itself. */
CUgraphNodeType sl_semaphores_type(const struct sl_call *call);
/* The parameters; both kinds have one layout. Pointers live as long as the operation. */
void sl_semaphores_params(struct sl_call *call, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *out);

/* Frees a mapped buffer of external memory after the context's work. False: none begins there. */
bool sl_external_free(CUcontext ctx, CUdeviceptr at);

#endif
