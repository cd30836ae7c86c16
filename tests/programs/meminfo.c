/*
 * meminfo - every number about memory that a program can ask for, on one line
 *
 * cuMemGetInfo, cuDeviceTotalMem and NVML (total, free, used, own process), before and after an
 * allocation. "One number everywhere" is checked by the tests that read the line (peer-failures
 * rows 1, 4, 10, 11, 12).
 */
#include "prog.h"
#include "base/nvml_abi.h"

#include <dlfcn.h>
#include <unistd.h>

struct nvml {
	__typeof__(&nvmlInit_v2) init;
	__typeof__(&nvmlDeviceGetHandleByPciBusId_v2) by_bus;
	__typeof__(&nvmlDeviceGetMemoryInfo) memory;
	__typeof__(&nvmlDeviceGetComputeRunningProcesses_v3) processes;
	nvmlDevice_t device;
	bool there;
};

static void nvml_open(struct nvml *nvml)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	char bus[32];

	if (!library)
		return;
	nvml->init = (__typeof__(nvml->init))dlsym(library, "nvmlInit_v2");
	nvml->by_bus = (__typeof__(nvml->by_bus))dlsym(
		library, "nvmlDeviceGetHandleByPciBusId_v2");
	nvml->memory =
		(__typeof__(nvml->memory))dlsym(library, "nvmlDeviceGetMemoryInfo");
	nvml->processes = (__typeof__(nvml->processes))dlsym(
		library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!nvml->init || !nvml->by_bus || !nvml->memory || !nvml->processes)
		return;
	PROG_MUST(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	nvml->there = nvml->init() == NVML_SUCCESS &&
		      nvml->by_bus(bus, &nvml->device) == NVML_SUCCESS;
}

static unsigned long long own_bytes(const struct nvml *nvml)
{
	nvmlProcessInfo_t infos[64];
	unsigned int count = 64;

	if (nvml->processes(nvml->device, &count, infos) != NVML_SUCCESS)
		return 0;
	for (unsigned int i = 0; i < count; i++)
		if (infos[i].pid == (unsigned int)getpid())
			return infos[i].usedGpuMemory;
	return 0;
}

static void say(const struct nvml *nvml, const char *when)
{
	size_t free_bytes = 0, total = 0, device_total = 0;
	nvmlMemory_t memory = {0};

	PROG_MUST(cuMemGetInfo_v2(&free_bytes, &total));
	PROG_MUST(cuDeviceTotalMem_v2(&device_total, 0));
	if (nvml->there)
		nvml->memory(nvml->device, &memory);
	prog_say("{\"when\":\"%s\",\"free_bytes\":%zu,\"total_bytes\":%zu,"
		 "\"device_total_bytes\":%zu,\"nvml\":%d,\"nvml_total_bytes\":%llu,"
		 "\"nvml_free_bytes\":%llu,\"nvml_used_bytes\":%llu,\"own_bytes\":%llu}",
		when, free_bytes, total, device_total, nvml->there, memory.total,
		memory.free, memory.used, nvml->there ? own_bytes(nvml) : 0);
}

/* Whether another device could register it: GPUDirect RDMA. */
static void say_registrable(CUdeviceptr at)
{
	unsigned int capable = 0;

	PROG_MUST(cuPointerGetAttribute(
		&capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, at));
	prog_say("{\"when\":\"attributes\",\"registrable\":%u}", capable);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 64 << 20, hold_ms = 0;
	const char *until = NULL;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "bytes to allocate"},
		{"hold-ms", PROG_NUMBER, &hold_ms, "time to hold them"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
	};
	struct nvml nvml = {0};
	CUdeviceptr at;

	prog_options(argc, argv, "Prints every number about memory.", options,
		sizeof(options) / sizeof(options[0]));
	prog_context(0);
	nvml_open(&nvml);
	/* NULL is legal where the answer is not wanted. */
	PROG_MUST(cuMemGetInfo_v2(NULL, NULL));
	say(&nvml, "before");
	PROG_MUST(cuMemAlloc_v2(&at, bytes));
	say(&nvml, "held");
	say_registrable(at);
	prog_rest(hold_ms, until);
	PROG_MUST(cuMemFree_v2(at));
	PROG_MUST(cuCtxSynchronize());
	say(&nvml, "freed");
	return PROG_OK;
}
