/*
 * every-call - makes each common call once, goes on after errors, and never crashes
 *
 * For fault plans: whichever call is made to fail, the program must get that error or success, and
 * end by itself. It counts the errors it saw and prints the first; it fails only if all calls
 * succeeded and a byte is wrong. With --list it prints the calls it makes.
 */
#include "prog.h"

#include <stdlib.h>
#include <string.h>

static unsigned int errors, calls;
static bool list_only;

/* Notes the outcome; false if the call failed. */
static bool try(CUresult result, const char *call)
{
	calls++;
	if (result == CUDA_SUCCESS)
		return true;
	if (errors++ == 0)
		prog_say("{\"event\":\"first\",\"call\":\"%.*s\",\"error\":\"%s\"}",
			(int)strcspn(call, "("), call, prog_error_name(result));
	return false;
}
#define TRY(call) try(call, #call)

/* Fills and reads back, by whatever still works. */
static bool round_trip(CUdeviceptr at, size_t bytes)
{
	static uint8_t sent[1 << 16], seen[1 << 16];
	bool all = true;

	memset(sent, 0x5a, sizeof(sent));
	all &= TRY(cuMemcpyHtoD_v2(at, sent, sizeof(sent)));
	all &= TRY(cuMemcpyDtoD_v2(at + bytes / 2, at, sizeof(sent)));
	all &= TRY(cuMemcpyDtoH_v2(seen, at + bytes / 2, sizeof(seen)));
	return !all || !memcmp(sent, seen, sizeof(sent));
}

static bool streams(CUdeviceptr at)
{
	CUstream stream;
	CUevent event;
	static uint8_t seen[4096];
	bool all = true;

	if (!TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
		return true;
	if (TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))) {
		all &= TRY(cuMemsetD8Async(at, 7, sizeof(seen), stream));
		TRY(cuEventRecord(event, stream));
		TRY(cuStreamWaitEvent(stream, event, 0));
		all &= TRY(cuMemcpyDtoHAsync_v2(seen, at, sizeof(seen), stream));
		all &= TRY(cuStreamSynchronize(stream));
		TRY(cuEventSynchronize(event));
		TRY(cuEventDestroy_v2(event));
		if (all && (seen[0] != 7 || seen[4095] != 7))
			return false;
	}
	TRY(cuStreamDestroy_v2(stream));
	return true;
}

static bool kernels(CUdeviceptr at)
{
	CUmodule module;
	CUfunction poke;
	uint32_t value = 42, seen = 0;
	void *args[] = {&at, &value};
	bool good = true;

	if (!try(prog_kernels_try(&module), "cuModuleLoadData"))
		return true;
	if (TRY(cuModuleGetFunction(&poke, module, "prog_poke")) &&
		try(prog_launch(poke, 1, NULL, args), "cuLaunchKernel") &&
		TRY(cuCtxSynchronize()) && TRY(cuMemcpyDtoH_v2(&seen, at, sizeof(seen))))
		good = seen == value;
	TRY(cuModuleUnload(module));
	return good;
}

static void vmm(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	size_t grain = 2 << 20;
	CUdeviceptr at;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	TRY(cuMemGetAllocationGranularity(
		&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (!TRY(cuMemAddressReserve(&at, grain, 0, 0, 0)))
		return;
	if (TRY(cuMemCreate(&handle, grain, &prop, 0))) {
		if (TRY(cuMemMap(at, grain, 0, handle, 0))) {
			if (TRY(cuMemSetAccess(at, grain, &access, 1)))
				TRY(cuMemsetD8_v2(at, 1, grain));
			/* Unmapping under running work is the program's own death. */
			TRY(cuCtxSynchronize());
			TRY(cuMemUnmap(at, grain));
		}
		TRY(cuMemRelease(handle));
	}
	TRY(cuMemAddressFree(at, grain));
}

int main(int argc, char **argv)
{
	const struct prog_option options[] = {
		{"list", PROG_FLAG, &list_only, "print the calls and end"},
	};
	static const char *const names[] = {"cuInit", "cuDevicePrimaryCtxRetain",
		"cuCtxSetCurrent", "cuMemGetInfo_v2", "cuDeviceTotalMem_v2",
		"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetAddressRange_v2",
		"cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuStreamCreate",
		"cuStreamDestroy_v2", "cuEventCreate", "cuEventRecord",
		"cuEventDestroy_v2", "cuStreamWaitEvent", "cuStreamSynchronize",
		"cuMemsetD8Async", "cuMemcpyDtoHAsync_v2", "cuModuleLoadData",
		"cuModuleGetFunction", "cuModuleUnload", "cuLaunchKernel",
		"cuCtxSynchronize", "cuMemGetAllocationGranularity",
		"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess",
		"cuMemUnmap", "cuMemRelease", "cuMemAddressFree", "cuMemsetD8_v2",
		"cuPointerGetAttribute", "cuDevicePrimaryCtxRelease_v2"};
	CUdeviceptr big = 0, small = 0, base = 0;
	size_t free_bytes, total, bytes = 0;
	unsigned int type;
	CUcontext context = NULL;
	bool good = true;

	prog_options(argc, argv, "Makes each common call once.", options,
		sizeof(options) / sizeof(options[0]));
	if (list_only) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			puts(names[i]);
		return PROG_OK;
	}
	TRY(cuInit(0));
	if (TRY(cuDevicePrimaryCtxRetain(&context, 0)))
		TRY(cuCtxSetCurrent(context));
	TRY(cuMemGetInfo_v2(&free_bytes, &total));
	TRY(cuDeviceTotalMem_v2(&total, 0));
	if (TRY(cuMemAlloc_v2(&big, 40 << 20))) {
		TRY(cuMemGetAddressRange_v2(&base, &bytes, big + 1000));
		TRY(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, big));
		good &= round_trip(big, 40 << 20);
		good &= streams(big);
		good &= kernels(big);
	}
	if (TRY(cuMemAlloc_v2(&small, 4096)))
		TRY(cuMemFree_v2(small));
	vmm();
	if (big)
		TRY(cuMemFree_v2(big));
	if (context)
		TRY(cuDevicePrimaryCtxRelease_v2(0));
	prog_say("{\"event\":\"end\",\"calls\":%u,\"errors\":%u,\"good\":%d}", calls,
		errors, good);
	return good ? PROG_OK : PROG_WRONG;
}
