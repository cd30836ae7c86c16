/*
 * device - see device.h
 *
 * A GPU once known never moves and never leaves the session's table, so a kept pointer is good
 * for ever. That a device is not the workload's is not kept: the daemon may add it.
 */
#include "runtime/device.h"
#include "runtime/hooks.h"

#include <string.h>

static struct sl_gpu *known[SL_GPUS_MAX];

struct sl_gpu *sl_device_gpu(CUdevice dev)
{
	struct sl_gpu *gpu;
	CUuuid uuid;

	if (dev < 0 || dev >= SL_GPUS_MAX)
		return NULL;
	gpu = __atomic_load_n(&known[dev], __ATOMIC_ACQUIRE);
	if (gpu || sl_real.cuDeviceGetUuid(&uuid, dev) != CUDA_SUCCESS)
		return gpu;
	gpu = sl_session_gpu((const uint8_t *)uuid.bytes);
	__atomic_store_n(&known[dev], gpu, __ATOMIC_RELEASE);
	return gpu;
}

void sl_device_forget(void)
{
	memset(known, 0, sizeof(known));
}
