/*
 * nvml - the same NVML that the daemon asks, asked by the bench
 *
 * The bench must learn when memory was released without relying on the daemon.
 */
#include "nvml.h"

#include "bench.h"

#include <dlfcn.h>

#include "base/nvml_abi.h"

static nvmlDevice_t device;
static __typeof__(nvmlDeviceGetMemoryInfo) *memory_info;

static void *find(void *library, const char *symbol)
{
	void *function = dlsym(library, symbol);

	bench_require(function, "NVML lacks %s", symbol);
	return function;
}

void bench_nvml_open(const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(nvmlInit_v2) *init;
	__typeof__(nvmlDeviceGetHandleByUUID) *by_uuid;
	char text[41];
	int r;

	bench_require(library, "%s", dlerror());
	init = (__typeof__(init))find(library, "nvmlInit_v2");
	by_uuid = (__typeof__(by_uuid))find(library, "nvmlDeviceGetHandleByUUID");
	memory_info = (__typeof__(memory_info))find(library, "nvmlDeviceGetMemoryInfo");
	r = (int)init();
	bench_require(r == 0, "nvmlInit: %d", r);
	sl_wire_uuid_format(uuid, text);
	r = (int)by_uuid(text, &device);
	bench_require(r == 0, "NVML does not know %s: %d", text, r);
}

uint64_t bench_nvml_used_bytes(void)
{
	nvmlMemory_t memory;
	int r = (int)memory_info(device, &memory);

	bench_require(r == 0, "nvmlDeviceGetMemoryInfo: %d", r);
	return memory.used;
}
