/*
 * usage - memory, processes and utilisation, as the server counts them
 */
#include "softgpu/nvml/nvml.h"

#include <string.h>
#include <time.h>

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	r = sl_nvml_ask(i);
	if (r != NVML_SUCCESS)
		return r;
	memory->total = sl_nvml_figures.total_bytes;
	memory->used = sl_nvml_figures.used_bytes + sl_nvml_figures.reserved_bytes;
	memory->free = sl_sub_sat(memory->total, memory->used);
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = sl_nvml_ask(i);
	if (r != NVML_SUCCESS)
		return r;
	memory->total = sl_nvml_figures.total_bytes;
	memory->reserved = sl_nvml_figures.reserved_bytes;
	memory->used = sl_nvml_figures.used_bytes;
	memory->free = sl_sub_sat(sl_nvml_figures.total_bytes,
		sl_nvml_figures.used_bytes + sl_nvml_figures.reserved_bytes);
	return r;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	*memory = (nvmlBAR1Memory_t){256 * SL_MIB, 255 * SL_MIB, SL_MIB};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(
	nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(utilization);
	r = sl_nvml_ask(i);
	if (r == NVML_SUCCESS)
		*utilization = (nvmlUtilization_t){
			sl_nvml_figures.busy_pct, sl_nvml_figures.busy_pct};
	return r;
}

/* Rows of `stride` bytes; the longer form has the instance ids behind the short one's members. */
static nvmlReturn_t processes(
	nvmlDevice_t device, unsigned *count, char *rows, size_t stride)
{
	nvmlReturn_t r;
	unsigned room;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count);
	NEED(rows || !*count);
	r = sl_nvml_ask(i);
	if (r != NVML_SUCCESS)
		return r;
	room = *count;
	*count = sl_nvml_figures.process_count;
	if (room < sl_nvml_figures.process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned n = 0; n < sl_nvml_figures.process_count; n++) {
		nvmlProcessInfo_v2_t row = {sl_nvml_figures.process[n].pid,
			sl_nvml_figures.process[n].used_bytes, ~0u, ~0u};

		memcpy(rows + n * stride, &row, stride);
	}
	return r;
}

/* No process here uses graphics or MPS. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *count)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

#define LISTS(suffix, type)                                                     \
	nvmlReturn_t nvmlDeviceGetComputeRunningProcesses##suffix(              \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		return processes(device, count, (char *)infos, sizeof(*infos)); \
	}                                                                       \
	nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses##suffix(             \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		(void)infos;                                                    \
		return no_processes(device, count);                             \
	}                                                                       \
	nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses##suffix(           \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		(void)infos;                                                    \
		return no_processes(device, count);                             \
	}
LISTS(, nvmlProcessInfo_v1_t)
LISTS(_v2, nvmlProcessInfo_v2_t)
LISTS(_v3, nvmlProcessInfo_t)

/* --- single processes ----------------------------------------------------------------------- */

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000u +
	       (unsigned long long)now.tv_nsec / 1000u;
}

/* Prepares one sample of each listed process, as NVML returns them. *count is the space of the
 * caller's array, and then the number of samples, which are rows 0 to *count - 1 of the figures.
 * Errors: too little space, no processes, or a GPU without such figures. */
static nvmlReturn_t samples(nvmlDevice_t device, unsigned *count, bool has_array)
{
	unsigned room = *count;
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(has_array || !room);
	if (!sl_nvml_hello.process_use)
		return NVML_ERROR_NOT_SUPPORTED;
	r = sl_nvml_ask(i);
	if (r != NVML_SUCCESS)
		return r;
	*count = sl_nvml_figures.process_count;
	if (!*count)
		return NVML_ERROR_NOT_FOUND;
	return room < *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *rows, unsigned int *count,
	unsigned long long since_us)
{
	unsigned long long now = now_us();
	nvmlReturn_t r;

	NEED_READY;
	NEED(count);
	if (rows && since_us >= now)
		return NVML_ERROR_NOT_FOUND;
	r = samples(device, count, rows != NULL);
	for (unsigned n = 0; r == NVML_SUCCESS && n < *count; n++)
		rows[n] = (nvmlProcessUtilizationSample_t){
			.pid = sl_nvml_figures.process[n].pid,
			.timeStamp = now,
			.smUtil = sl_nvml_figures.process[n].busy_pct,
			.memUtil = sl_nvml_figures.process[n].busy_pct};
	return r;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
	unsigned long long now = now_us();
	nvmlReturn_t r;

	NEED_READY;
	NEED(info);
	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = samples(device, &info->processSamplesCount, info->procUtilArray != NULL);
	for (unsigned n = 0; r == NVML_SUCCESS && n < info->processSamplesCount; n++)
		info->procUtilArray[n] = (nvmlProcessUtilizationInfo_v1_t){
			.pid = sl_nvml_figures.process[n].pid,
			.timeStamp = now,
			.smUtil = sl_nvml_figures.process[n].busy_pct,
			.memUtil = sl_nvml_figures.process[n].busy_pct};
	return r;
}

#define MODE_COMPUTE 0u
#define MODE_LAST    2u

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
	unsigned room, found;
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(list);
	if (list->version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	NEED(list->mode <= MODE_LAST && (list->procArray || !list->numProcArrayEntries));
	r = sl_nvml_ask(i);
	if (r != NVML_SUCCESS)
		return r;
	room = list->numProcArrayEntries;
	found = list->mode == MODE_COMPUTE ? sl_nvml_figures.process_count : 0;
	list->numProcArrayEntries = found;
	if (room < found)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned n = 0; n < found; n++)
		list->procArray[n] =
			(nvmlProcessDetail_v1_t){sl_nvml_figures.process[n].pid,
				sl_nvml_figures.process[n].used_bytes, ~0u, ~0u, 0};
	return r;
}

/* Accounting is off, as on most machines. */
nvmlReturn_t nvmlDeviceGetAccountingPids(
	nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
	uint32_t i;

	(void)pids;
	NEED_DEVICE(device, &i);
	NEED(count);
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
	uint32_t i;

	(void)pid;
	(void)stats;
	NEED_DEVICE(device, &i);
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(
	nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
	uint32_t i;

	(void)stats;
	NEED_DEVICE(device, &i);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* One sample of the last second: the GPU's utilisation. */
#define SAMPLES_OF_GPU 1u

SL_NVML_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int what,
	unsigned long long since_us, unsigned int *type, unsigned int *count,
	nvmlSample_t *rows);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int what,
	unsigned long long since_us, unsigned int *type, unsigned int *count,
	nvmlSample_t *rows)
{
	unsigned long long now = now_us();
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(type && count);
	if (what != SAMPLES_OF_GPU)
		return NVML_ERROR_NOT_SUPPORTED;
	if (since_us >= now)
		return NVML_ERROR_NOT_FOUND;
	r = sl_nvml_ask(i);
	*type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (r == NVML_SUCCESS && rows && *count)
		rows[0] = (nvmlSample_t){now, {.uiVal = sl_nvml_figures.busy_pct}};
	*count = 1;
	return r;
}
