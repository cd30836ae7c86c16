/*
 * prog - context, kernels and launches of the test programs
 *
 * The driver is reached by linking, as most programs do; other ways in have a program of their own
 * (entry-points). If SLUICE_SOFTGPU is set, as in a box of software GPUs, the host module is tried
 * first. Otherwise the PTX is: a real driver gets a host module only after it refused the PTX.
 */
#include "prog.h"

#include <stdlib.h>
#include <string.h>

void prog_must(CUresult result, const char *call)
{
	char name[64];

	if (result == CUDA_SUCCESS)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(call, "("), call);
	prog_say("{\"error\":\"%s\",\"call\":\"%s\"}", prog_error_name(result), name);
	exit(result == CUDA_ERROR_OUT_OF_MEMORY ? PROG_OUT_OF_MEMORY : PROG_DRIVER);
}

CUcontext prog_context(CUdevice device)
{
	CUcontext context;

	PROG_MUST(cuInit(0));
	PROG_MUST(cuDevicePrimaryCtxRetain(&context, device));
	PROG_MUST(cuCtxSetCurrent(context));
	return context;
}

CUresult prog_kernels_try(CUmodule *module)
{
	const void *images[2] = {prog_ptx_image, prog_host_image};
	bool boxed = getenv("SLUICE_SOFTGPU");
	CUresult result = cuModuleLoadData(module, images[boxed]);

	/* Memory and a broken context are not the image's fault. */
	if (result == CUDA_ERROR_INVALID_IMAGE ||
		result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
		result == CUDA_ERROR_INVALID_PTX ||
		result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
		return cuModuleLoadData(module, images[!boxed]);
	return result;
}

CUmodule prog_kernels(void)
{
	CUmodule module;

	prog_must(prog_kernels_try(&module), "cuModuleLoadData");
	return module;
}

CUfunction prog_kernel(CUmodule module, const char *name)
{
	CUfunction function;

	PROG_MUST(cuModuleGetFunction(&function, module, name));
	return function;
}

CUresult prog_launch(CUfunction function, uint64_t threads, CUstream stream, void **args)
{
	const unsigned int block = threads < 256 ? (unsigned int)threads : 256;

	return cuLaunchKernel(function, (unsigned int)((threads + block - 1) / block), 1,
		1, block, 1, 1, 0, stream, args, NULL);
}

CUresult prog_fill(CUfunction fill, CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = PROG_PAGE_WORDS, count = (bytes + 4095) / 4096;
	void *args[] = {&at, &count, &stride, &seed};

	return prog_launch(fill, count, NULL, args);
}

CUresult prog_check(CUfunction check, CUdeviceptr at, uint64_t bytes, uint32_t seed,
	CUdeviceptr bad, uint32_t *out_wrong)
{
	uint64_t stride = PROG_PAGE_WORDS, count = (bytes + 4095) / 4096;
	void *args[] = {&at, &count, &stride, &seed, &bad};
	CUresult result = cuMemsetD32_v2(bad, 0, 1);

	if (result == CUDA_SUCCESS)
		result = prog_launch(check, count, NULL, args);
	if (result == CUDA_SUCCESS)
		result = cuMemcpyDtoH_v2(out_wrong, bad, sizeof(*out_wrong));
	return result;
}
