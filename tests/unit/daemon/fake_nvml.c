/*
 * fake_nvml - libnvidia-ml.so.1 for tests of the daemon alone
 *
 * Test and daemon share the state without a lock: rows change one word at a time, and counts change
 * last, so a reader sees the state of some moment.
 */
#include "fake_nvml.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/nvml_abi.h"

static volatile struct fake_nvml *state;
/* Sessions are counted, as NVML does: the measuring and the watching thread have one each. */
static pthread_mutex_t sessions_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned int sessions;

struct nvmlEventSet_st {
	unsigned int gpus;
};

static nvmlReturn_t map_state(void)
{
	const char *path = getenv("FAKE_NVML");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	map = mmap(NULL, sizeof(struct fake_nvml), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		0);
	(void)close(fd);
	if (map == MAP_FAILED)
		return NVML_ERROR_UNKNOWN;
	state = map;
	state->opened++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t result = NVML_SUCCESS;

	(void)pthread_mutex_lock(&sessions_mutex);
	if (sessions == 0)
		result = map_state();
	if (result == NVML_SUCCESS)
		sessions++;
	(void)pthread_mutex_unlock(&sessions_mutex);
	while (result == NVML_SUCCESS && state->hang_init)
		(void)usleep(1000);
	if (result == NVML_SUCCESS && state->broken) {
		(void)nvmlShutdown();
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	return result;
}

nvmlReturn_t nvmlShutdown(void)
{
	(void)pthread_mutex_lock(&sessions_mutex);
	if (sessions > 0 && --sessions == 0) {
		(void)munmap((void *)state, sizeof(*state));
		state = NULL;
	}
	(void)pthread_mutex_unlock(&sessions_mutex);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	(void)snprintf(version, length, "535.0-fake");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (state->broken)
		return NVML_ERROR_UNKNOWN;
	*count = state->gpu_count;
	return NVML_SUCCESS;
}

static struct fake_gpu *gpu_of(nvmlDevice_t device)
{
	return (struct fake_gpu *)device;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= state->gpu_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (state->gpus[state->order[index]].lost)
		return NVML_ERROR_GPU_IS_LOST;
	*device = (nvmlDevice_t)&state->gpus[state->order[index]];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	if (state->broken)
		return NVML_ERROR_UNKNOWN;
	for (unsigned int i = 0; i < state->gpu_count; i++) {
		const volatile struct fake_gpu *gpu = &state->gpus[state->order[i]];

		if (strcmp((const char *)gpu->uuid, uuid) == 0) {
			if (gpu->lost)
				return NVML_ERROR_GPU_IS_LOST;
			*device = (nvmlDevice_t)gpu;
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	(void)snprintf(uuid, length, "%s", gpu_of(device)->uuid);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	(void)snprintf(name, length, "%s", gpu_of(device)->name);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	pci->bus = gpu_of(device)->bus;
	(void)snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	const struct fake_gpu *gpu = gpu_of(device);

	memory->total = gpu->total_bytes;
	memory->used = gpu->unlisted_bytes;
	for (unsigned int i = 0; i < gpu->count; i++)
		memory->used += gpu->rows[i].bytes;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	*current = *pending = gpu_of(device)->mig;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	*mode = gpu_of(device)->exclusive ? NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
					  : NVML_COMPUTEMODE_DEFAULT;
	return NVML_SUCCESS;
}

/* An implausible count, the same numbers again and again, unknown numbers, bytes beyond any GPU. */
static nvmlReturn_t garbage(unsigned int *count, nvmlProcessInfo_t *infos)
{
	unsigned int room = *count;

	*count = 0x7fffffff;
	for (unsigned int i = 0; i < room; i++)
		infos[i] = (nvmlProcessInfo_t){
			.pid = i % 3 == 0 ? 4294967295u - i : 1 + i % 5,
			.usedGpuMemory = i % 2 ? ~0ull - 1 : 1ull << 62,
		};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	const struct fake_gpu *gpu = gpu_of(device);
	unsigned int room = *count, rows;

	state->questions++;
	while (state->hang)
		(void)usleep(1000);
	if (gpu->lost)
		return NVML_ERROR_GPU_IS_LOST;
	if (state->garbage)
		return garbage(count, infos);
	rows = gpu->count;
	*count = rows;
	if (rows > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < rows; i++)
		infos[i] = (nvmlProcessInfo_t){
			.pid = gpu->rows[i].pid,
			.usedGpuMemory = gpu->rows[i].bytes,
		};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(
	nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	utilization->gpu = utilization->memory = gpu_of(device)->busy_pct;
	return NVML_SUCCESS;
}

/* Of processes that did something. Each question makes a new sample; only this file reads the
 * clock. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *rows, unsigned int *count,
	unsigned long long since_us)
{
	static unsigned long long clock_us = 5000000;
	const struct fake_gpu *gpu = gpu_of(device);
	unsigned int room = *count, used = 0;

	if (gpu->process_use)
		return (nvmlReturn_t)gpu->process_use;
	*count = 100;
	if (!rows || room < *count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	clock_us = (since_us > clock_us ? since_us : clock_us) + 1000;
	for (unsigned int i = 0; i < gpu->count && used < room; i++) {
		if (gpu->rows[i].busy_pct)
			rows[used++] =
				(nvmlProcessUtilizationSample_t){.pid = gpu->rows[i].pid,
					.timeStamp = clock_us,
					.smUtil = gpu->rows[i].busy_pct};
	}
	*count = used;
	return used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	*set = calloc(1, sizeof(**set));
	return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	set->gpus |= 1u << (gpu_of(device) - (struct fake_gpu *)state->gpus);
	return types == nvmlEventTypeXidCriticalError ? NVML_SUCCESS
						      : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	state->watching++;
	while (state->hang_wait)
		(void)usleep(1000);
	for (unsigned int i = 0; i < timeout_ms; i++) {
		unsigned int xid = state->xid;

		if (xid && set->gpus & 1u << state->xid_gpu) {
			state->xid = 0;
			*data = (nvmlEventData_t){
				.device = (nvmlDevice_t)&state->gpus[state->xid_gpu],
				.eventType = nvmlEventTypeXidCriticalError,
				.eventData = xid,
			};
			return NVML_SUCCESS;
		}
		(void)usleep(1000);
	}
	return NVML_ERROR_TIMEOUT;
}
