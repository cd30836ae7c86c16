/*
 * nvml_devices - which GPUs NVML has, for a workload
 *
 * NVML numbers the machine's GPUs, and so does CUDA_VISIBLE_DEVICES if it has numbers, as `sluice
 * run` sets it. A program that finds GPU 2 in the variable looks up GPU 2 of NVML, which must exist
 * (otherwise PyTorch sees no GPU at all). So numbers never change. Only GPUs behind the workload's
 * last one can be hidden: the list ends there. GPUs in front of it stay, as for any program with
 * such a variable, but report no processes.
 *
 * A workload that has moved finds the GPUs of today under the numbers with which it began. A
 * process gets them by its bus ids, too, although the driver tells those from before the move.
 */
#include "runtime/hooks/nvml.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL UINT32_MAX

/* Where the list ends, once known. It stays, even when the workload moves. */
static uint32_t known_end;

/* The workload's GPU that has the number of this one, or NULL. */
static struct sl_gpu *gpu_numbered(nvmlDevice_t device)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];

	return sl_nvml_uuid(device, uuid) ? sl_session_gpu_named(SL_GPU_FIRST, uuid)
					  : NULL;
}

/* The last NVML index of a GPU on which the workload began, plus 1; ALL if it has none here or a
 * GPU cannot be queried now. */
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
		if (gpu_numbered(device))
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

static nvmlReturn_t handle_by(
	const struct sl_gpu *gpu, enum sl_gpu_name name, nvmlDevice_t *device)
{
	SL_NVML_REAL(real, nvmlDeviceGetHandleByUUID);
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char text[41];

	sl_session_uuid(gpu, name, uuid);
	sl_wire_uuid_format(uuid, text);
	return real(text, device);
}

/* The workload's GPU that a look-up by such a name means, when NVML found this one. */
static struct sl_gpu *meant(nvmlDevice_t found, enum sl_gpu_name name)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	struct sl_gpu *gpu = NULL;

	if (name == SL_GPU_FIRST)
		return gpu_numbered(found);
	if (name == SL_GPU_JOINED && sl_nvml_uuid(found, uuid))
		gpu = sl_session_gpu_named(name, uuid);
	return gpu ? gpu : sl_nvml_gpu(found);
}

/* NVML found the device: which one may the workload see instead? */
static nvmlReturn_t show(
	nvmlReturn_t r, nvmlDevice_t found, enum sl_gpu_name name, nvmlDevice_t *device)
{
	__typeof__(&nvmlDeviceGetIndex) index_of;
	int saved_errno = errno;
	unsigned int index = 0;
	struct sl_gpu *gpu;

	if (r != NVML_SUCCESS)
		return r;
	*(void **)&index_of = sl_nvml_address("nvmlDeviceGetIndex");
	gpu = meant(found, name);
	errno = saved_errno;
	if (gpu)
		return handle_by(gpu, SL_GPU_NOW, device);
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
		r = show(r, found, SL_GPU_FIRST, device);                           \
		return r == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : r; \
	}
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

#define BY_NAME(symbol, type, kind)                                    \
	SL_EXPORT nvmlReturn_t symbol(type name, nvmlDevice_t *device) \
	{                                                              \
		SL_NVML_REAL(real, symbol);                            \
		nvmlDevice_t found = NULL;                             \
		nvmlReturn_t r = real(name, device ? &found : NULL);   \
                                                                       \
		return show(r, found, kind, device);                   \
	}
BY_NAME(nvmlDeviceGetHandleByPciBusId, const char *, SL_GPU_JOINED)
BY_NAME(nvmlDeviceGetHandleByPciBusId_v2, const char *, SL_GPU_JOINED)
BY_NAME(nvmlDeviceGetHandleBySerial, const char *, SL_GPU_NOW)
BY_NAME(nvmlDeviceGetHandleByUUID, const char *, SL_GPU_NOW)
BY_NAME(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *, SL_GPU_NOW)

SL_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	SL_NVML_REAL(real, nvmlDeviceGetIndex);
	int saved_errno = errno;
	const struct sl_gpu *gpu = sl_nvml_gpu(device);
	nvmlDevice_t first;

	errno = saved_errno;
	if (!gpu || handle_by(gpu, SL_GPU_FIRST, &first) != NVML_SUCCESS)
		first = device;
	return real(first, index);
}
