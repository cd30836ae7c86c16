#include "gpu-memory.h"

#include <dlfcn.h>

static struct {
	nvmlDevice_t device;
	__typeof__(&nvmlDeviceGetMemoryInfo) memory;
} nvml;

bool prog_gpu_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(&nvmlInit_v2) init;
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;

	if (!library)
		return false;
	init = (__typeof__(init))dlsym(library, "nvmlInit_v2");
	by_index = (__typeof__(by_index))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	nvml.memory = (__typeof__(nvml.memory))dlsym(library, "nvmlDeviceGetMemoryInfo");
	return init && by_index && nvml.memory && init() == NVML_SUCCESS &&
	       by_index(0, &nvml.device) == NVML_SUCCESS;
}

nvmlMemory_t prog_gpu_memory(void)
{
	nvmlMemory_t memory = {0};

	nvml.memory(nvml.device, &memory);
	return memory;
}
