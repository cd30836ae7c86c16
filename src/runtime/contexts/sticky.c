/*
 * sticky - see sticky.h
 *
 * A call may return the error of a context that is not current, for example the context of an
 * event. So the current context is queried before it is marked as broken.
 */
#include "runtime/contexts/sticky.h"
#include "runtime/contexts/space.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

#include <errno.h>

bool sl_sticky_is(CUresult result)
{
	switch ((int)result) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case 717: /* invalid address space */
	case 718: /* invalid program counter */
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_UNKNOWN: return true; /* a GPU that fell off the bus */
	default: return false;
	}
}

CUresult sl_sticky_look(CUresult result)
{
	int saved_errno = errno;
	struct sl_space *space = NULL;
	CUcontext ctx = NULL;

	if (sl_sticky_is(result) && sl_mode_is_active() &&
		sl_real.cuCtxGetCurrent(&ctx) == CUDA_SUCCESS)
		space = sl_space_of(ctx);
	if (space) {
		if (sl_sticky_is(sl_real.cuStreamQuery(CU_STREAM_LEGACY)))
			__atomic_store_n(&space->broken, result, __ATOMIC_RELAXED);
		sl_space_leave(space);
	}
	errno = saved_errno;
	return result;
}
