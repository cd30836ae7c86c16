/*
 * nvml - see nvml.h
 *
 * NVML is asked first, so that its errors and its checks of the struct are its own. Devices are
 * identified by UUID. A query for figures joins the daemon, since many programs choose their size
 * by NVML before they make a context. In bypass, if rejected, or for a GPU that is not the
 * workload's, NVML's answer stands.
 */
#include "runtime/hooks/nvml.h"
#include "runtime/process/libc.h"
#include "runtime/process/mode.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <string.h>

/* The daemon answers within 200 ms (messages.def). */
#define MEASURE_WAIT_NS (250 * SL_MS)

static const struct {
	const char *symbol;
	void *hook;
} rows[] = {
#define SL_NVML(symbol, params, args) {#symbol, (void *)symbol},
#include "runtime/hooks/nvml.def"
#undef SL_NVML
};

void *sl_nvml_hook(const char *symbol)
{
	/* Few of the names that programs look up are NVML's. */
	if (strncmp(symbol, "nvml", 4) != 0)
		return NULL;
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

bool sl_nvml_is_active(void)
{
	return sl_mode_is_active() && sl_session_join() == CUDA_SUCCESS;
}

bool sl_nvml_uuid(nvmlDevice_t device, uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	__typeof__(&nvmlDeviceGetUUID) get_uuid;
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];

	*(void **)&get_uuid = sl_nvml_address("nvmlDeviceGetUUID");
	return get_uuid && sl_nvml_is_active() &&
	       get_uuid(device, text, sizeof(text)) == NVML_SUCCESS &&
	       sl_wire_uuid_parse(text, uuid);
}

struct sl_gpu *sl_nvml_gpu(nvmlDevice_t device)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	struct sl_gpu *gpu = NULL;

	if (!sl_nvml_uuid(device, uuid))
		return NULL;
	for (int name = SL_GPU_NOW; name < SL_GPU_NAMES && !gpu; name++)
		gpu = sl_session_gpu_named((enum sl_gpu_name)name, uuid);
	return gpu;
}

void sl_nvml_measure(struct sl_gpu *gpu)
{
	/* NVML is used to watch other processes and is never cheap, so figures are measured
	 * anew. */
	sl_session_measure(gpu, MEASURE_WAIT_NS);
}

/* --- memory ---------------------------------------------------------------------------- */

/* False: NVML's own figures stand. */
static bool view(
	nvmlDevice_t device, unsigned long long *total, unsigned long long *free_now)
{
	int saved_errno = errno;
	struct sl_gpu *gpu = sl_nvml_gpu(device);
	uint64_t free_bytes, total_bytes;

	if (gpu) {
		sl_nvml_measure(gpu);
		sl_session_view(gpu, &free_bytes, &total_bytes);
		*total = total_bytes;
		*free_now = free_bytes;
	}
	errno = saved_errno;
	return gpu != NULL;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	SL_NVML_REAL(real, nvmlDeviceGetMemoryInfo);
	nvmlReturn_t r = real(device, memory);

	if (r == NVML_SUCCESS && view(device, &memory->total, &memory->free))
		memory->used = memory->total - memory->free;
	return r;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(
	nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	SL_NVML_REAL(real, nvmlDeviceGetMemoryInfo_v2);
	nvmlReturn_t r = real(device, memory);

	if (r == NVML_SUCCESS && view(device, &memory->total, &memory->free)) {
		/* The driver's reserve is not part of the workload's limit. */
		memory->reserved = 0;
		memory->used = memory->total - memory->free;
	}
	return r;
}
