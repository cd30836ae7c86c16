/*
 * nvml_devices - which GPUs NVML has, for a workload
 *
 * NVML numbers the machine's GPUs, and so does CUDA_VISIBLE_DEVICES if it has numbers, as `sluice
 * run` sets it. A program that finds GPU 2 in the variable looks up GPU 2 of NVML, which must exist
 * (otherwise PyTorch sees no GPU at all). So numbers never change. Only GPUs behind the workload's
 * last one can be hidden: the list ends there. GPUs in front of it stay, as for any program with
 * such a variable, but report no processes.
 */
#include "runtime/hooks/nvml.h"

#include <errno.h>
#include <stdlib.h>

#define ALL UINT32_MAX

/* Where the list ends, once known. It stays: a workload's GPUs do not change. */
static uint32_t known_end;

/* The NVML index of the workload's last GPU, plus 1; ALL if it has none here or a GPU cannot be
 * queried now. */
static SL_COLD uint32_t find_end(void)
{
	__typeof__(&nvmlDeviceGetCount_v2) count_of;
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) handle_of;
	unsigned int count = 0;
	uint32_t end = ALL;

	*(void **)&count_of = sl_nvml_address("nvmlDeviceGetCount_v2");
	*(void **)&handle_of = sl_nvml_address("nvmlDeviceGetHandleByIndex_v2");
	if (!count_of || !handle_of || count_of(&count) != NVML_SUCCESS)
		return ALL;
	for (unsigned int i = 0; i < count; i++) {
		nvmlDevice_t device;

		/* A lost GPU may be the workload's. */
		if (handle_of(i, &device) != NVML_SUCCESS)
			return ALL;
		if (sl_nvml_gpu(device))
			end = i + 1;
	}
	return end;
}

static uint32_t end_of_machine(void)
{
	uint32_t end = __atomic_load_n(&known_end, __ATOMIC_RELAXED);
	int saved_errno = errno;

	if (end)
		return end;
	end = sl_nvml_is_active() ? find_end() : ALL;
	if (end != ALL)
		__atomic_store_n(&known_end, end, __ATOMIC_RELAXED);
	errno = saved_errno;
	return end;
}

/* NVML found the device: may the workload see it? */
static nvmlReturn_t show(nvmlReturn_t r, nvmlDevice_t found, nvmlDevice_t *device)
{
	__typeof__(&nvmlDeviceGetIndex) index_of;
	unsigned int index = 0;

	if (r != NVML_SUCCESS)
		return r;
	*(void **)&index_of = sl_nvml_address("nvmlDeviceGetIndex");
	if (index_of && index_of(found, &index) == NVML_SUCCESS &&
		index >= end_of_machine())
		return NVML_ERROR_NOT_FOUND;
	*device = found;
	return NVML_SUCCESS;
}

#define COUNT(symbol)                                               \
	SL_EXPORT nvmlReturn_t symbol(unsigned int *count)          \
	{                                                           \
		SL_NVML_REAL(real, symbol);                         \
		nvmlReturn_t r = real(count);                       \
                                                                    \
		if (r == NVML_SUCCESS && *count > end_of_machine()) \
			*count = end_of_machine();                  \
		return r;                                           \
	}
COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

#define BY_INDEX(symbol)                                                            \
	SL_EXPORT nvmlReturn_t symbol(unsigned int index, nvmlDevice_t *device)     \
	{                                                                           \
		SL_NVML_REAL(real, symbol);                                         \
		nvmlDevice_t found = NULL;                                          \
		nvmlReturn_t r = real(index, device ? &found : NULL);               \
                                                                                    \
		r = show(r, found, device);                                         \
		return r == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : r; \
	}
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

#define BY_NAME(symbol, type)                                          \
	SL_EXPORT nvmlReturn_t symbol(type name, nvmlDevice_t *device) \
	{                                                              \
		SL_NVML_REAL(real, symbol);                            \
		nvmlDevice_t found = NULL;                             \
		nvmlReturn_t r = real(name, device ? &found : NULL);   \
                                                                       \
		return show(r, found, device);                         \
	}
BY_NAME(nvmlDeviceGetHandleByPciBusId, const char *)
BY_NAME(nvmlDeviceGetHandleByPciBusId_v2, const char *)
BY_NAME(nvmlDeviceGetHandleBySerial, const char *)
BY_NAME(nvmlDeviceGetHandleByUUID, const char *)
BY_NAME(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *)
