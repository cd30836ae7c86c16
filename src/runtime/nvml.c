/*
 * nvml - see nvml.h
 *
 * NVML is asked first, so that its errors and its checks of the struct are its own. Devices are
 * told apart by UUID. Asking for memory figures is a need to join: many programs size themselves
 * by NVML before they make a context. Without the daemon's word (bypass, rejected, a GPU that is not
 * the workload's) NVML's answer stands.
 */
#include "runtime/nvml.h"
#include "runtime/libc.h"
#include "runtime/mode.h"
#include "runtime/session.h"

#include "base/nvml_abi.h"

#include <string.h>

/* The daemon answers within 200 ms (messages.def). */
#define MEASURE_WAIT_NS (250 * SL_MS)

#define SL_NVML(symbol, params, args) nvmlReturn_t symbol params;
#include "runtime/nvml.def"
#undef SL_NVML

static const struct {
	const char *symbol;
	void *hook;
} rows[] = {
#define SL_NVML(symbol, params, args) {#symbol, (void *)symbol},
#include "runtime/nvml.def"
#undef SL_NVML
};

void *sl_nvml_hook(const char *symbol)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].symbol, symbol) == 0)
			return rows[i].hook;
	}
	return NULL;
}

void *sl_nvml_address(const char *symbol)
{
	static void *library;
	void *now = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
	sl_dlsym_fn look_up = sl_libc_dlsym();

	if (!now) {
		now = sl_libc_dlopen_loaded("libnvidia-ml.so.1");
		__atomic_store_n(&library, now, __ATOMIC_RELEASE);
	}
	return now && look_up ? look_up(now, symbol) : NULL;
}

static struct sl_gpu *gpu_of(nvmlDevice_t device)
{
	__typeof__(&nvmlDeviceGetUUID) get_uuid;
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	struct sl_gpu *gpu;

	*(void **)&get_uuid = sl_nvml_address("nvmlDeviceGetUUID");
	if (!sl_mode_is_active() || !get_uuid || sl_session_join() != CUDA_SUCCESS ||
		get_uuid(device, text, sizeof(text)) != NVML_SUCCESS ||
		!sl_wire_uuid_parse(text, uuid))
		return NULL;
	gpu = sl_session_gpu(uuid);
	/* NVML is what people watch other processes with, and never cheap: figures are fetched. */
	if (gpu)
		sl_session_measure(gpu, MEASURE_WAIT_NS);
	return gpu;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	__typeof__(&nvmlDeviceGetMemoryInfo) real;
	uint64_t free_bytes, total_bytes;
	struct sl_gpu *gpu;
	nvmlReturn_t r;

	*(void **)&real = sl_nvml_address("nvmlDeviceGetMemoryInfo");
	if (!real)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real(device, memory);
	gpu = r == NVML_SUCCESS ? gpu_of(device) : NULL;
	if (!gpu)
		return r;
	sl_session_view(gpu, &free_bytes, &total_bytes);
	memory->total = total_bytes;
	memory->free = free_bytes;
	memory->used = total_bytes - free_bytes;
	return r;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(
	nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	__typeof__(&nvmlDeviceGetMemoryInfo_v2) real;
	uint64_t free_bytes, total_bytes;
	struct sl_gpu *gpu;
	nvmlReturn_t r;

	*(void **)&real = sl_nvml_address("nvmlDeviceGetMemoryInfo_v2");
	if (!real)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real(device, memory);
	gpu = r == NVML_SUCCESS ? gpu_of(device) : NULL;
	if (!gpu)
		return r;
	sl_session_view(gpu, &free_bytes, &total_bytes);
	/* The driver's reserve is not the workload's affair: its limit does not hold it. */
	memory->total = total_bytes;
	memory->reserved = 0;
	memory->free = free_bytes;
	memory->used = total_bytes - free_bytes;
	return r;
}
