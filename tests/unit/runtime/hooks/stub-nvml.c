#include "stub-nvml.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern struct stub_nvml stub_nvml;
struct stub_nvml stub_nvml;

static bool is_bad(nvmlDevice_t device)
{
	stub_nvml.calls++;
	return !device;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = STUB_NVML_GPUS;
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (!device || index >= STUB_NVML_GPUS)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = (nvmlDevice_t)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	*index = (unsigned int)((uintptr_t)device - 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	unsigned int byte = 0x40u + (unsigned int)(uintptr_t)device - 1;
	char *at = uuid;

	if (length < 41)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	at += sprintf(at, "GPU-");
	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", byte);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char text[64];

	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < STUB_NVML_GPUS; i++) {
		(void)nvmlDeviceGetHandleByIndex_v2(i, device);
		(void)nvmlDeviceGetUUID(*device, text, sizeof(text));
		if (strcmp(text, uuid) == 0)
			return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
	unsigned int bus;

	if (!bus_id || sscanf(bus_id, "0000:%x:00.0", &bus) != 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvmlDeviceGetHandleByIndex_v2(bus, device);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	if (is_bad(device) || !memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	*memory = (nvmlMemory_t){80ull << 30, 50ull << 30, 30ull << 30};
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (is_bad(device) || !memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*memory = (nvmlMemory_v2_t){
		nvmlMemory_v2, 80ull << 30, 1ull << 30, 50ull << 30, 29ull << 30};
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	unsigned int room;

	if (is_bad(device) || !count || (!infos && *count))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (stub_nvml.result != NVML_SUCCESS)
		return stub_nvml.result;
	room = *count;
	*count = stub_nvml.processes;
	if (room < *count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < *count; i++)
		infos[i] = (nvmlProcessInfo_t){stub_nvml.pid[i], 1ull << 30, ~0u, ~0u};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *count,
	unsigned long long since_us)
{
	(void)since_us;
	if (is_bad(device))
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = stub_nvml.processes;
	for (unsigned int i = 0; i < *count; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){
			.pid = stub_nvml.pid[i], .smUtil = 10 + i};
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
	if (is_bad(device) || !stats)
		return NVML_ERROR_INVALID_ARGUMENT;
	*stats = (nvmlAccountingStats_t){.maxMemoryUsage = pid};
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(
	nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
	if (is_bad(device) || !stats)
		return NVML_ERROR_INVALID_ARGUMENT;
	stats->maxMemoryUsage = stats->pid;
	return stub_nvml.result;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(
	nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
	if (is_bad(device))
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = stub_nvml.processes;
	memcpy(pids, stub_nvml.pid, *count * sizeof(*pids));
	return stub_nvml.result;
}
