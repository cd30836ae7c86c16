/*
 * managed - see managed.h
 */
#include "runtime/driver/managed.h"
#include "runtime/driver/charge.h"
#include "runtime/gate/door.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

uint32_t sl_managed_is_used;

SL_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	SL_DOOR;
	bool possible =
		ptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
	uint64_t charge = possible ? bytes : 0;
	CUresult result = CUDA_SUCCESS;
	struct sl_passed passed;

	SL_PASSED_CALL(&passed, result, SL_PASSED_CURRENT, charge, SL_PASSED_HELD,
		sl_real.cuMemAllocManaged(ptr, bytes, flags));
	if (result == CUDA_SUCCESS) {
		__atomic_store_n(&sl_managed_is_used, 1, __ATOMIC_RELEASE);
		sl_charge_put(&passed, SL_OBJECT_MANAGED, *ptr);
	}
	return sl_measure_after(result);
}

CUresult sl_managed_free(CUdeviceptr ptr)
{
	return SL_CHARGE_END(SL_OBJECT_MANAGED, ptr, sl_real.cuMemFree_v2(ptr));
}

CUresult sl_managed_free_async(CUresult (*real)(CUdeviceptr ptr, CUstream stream),
	CUdeviceptr ptr, CUstream stream)
{
	if (sl_likely(!__atomic_load_n(&sl_managed_is_used, __ATOMIC_ACQUIRE)))
		return real(ptr, stream);
	return SL_CHARGE_END(SL_OBJECT_MANAGED, ptr, real(ptr, stream));
}
