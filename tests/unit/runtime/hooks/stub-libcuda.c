/*
 * stub-libcuda - a libcuda.so.1 of a few functions, for look-ups only
 *
 * cuGetProcAddress knows cuMemAlloc, cuLaunchKernel in both forms, an exported function that no
 * hook knows, and cuMemsetD8, which is not exported at all, as in some drivers.
 */
#include "base/cuda_abi.h"

#include <string.h>

CUresult cuDriverGetVersion(int *version)
{
	*version = 12040;
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
	void **extra)
{
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
	unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	CUstream stream, void **params, void **extra)
{
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
	return CUDA_ERROR_NO_DEVICE;
}

static CUresult inner_memset(CUdeviceptr dst, unsigned char value, size_t count)
{
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuMemAlloc_v9(CUdeviceptr *ptr, size_t bytes);
CUresult cuMemAlloc_v9(CUdeviceptr *ptr, size_t bytes)
{
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	*fn = NULL;
	if (strcmp(symbol, "cuMemAlloc") == 0)
		*fn = cuda_version >= 14000 ? (void *)cuMemAlloc_v9
					    : (void *)cuMemAlloc_v2;
	else if (strcmp(symbol, "cuLaunchKernel") == 0)
		*fn = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
			      ? (void *)cuLaunchKernel_ptsz
			      : (void *)cuLaunchKernel;
	else if (strcmp(symbol, "cuMemsetD8") == 0)
		*fn = (void *)inner_memset;
	else if (strcmp(symbol, "cuGetProcAddress") == 0)
		*fn = (void *)cuGetProcAddress_v2;
	return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, cuda_version, flags, NULL);
}
