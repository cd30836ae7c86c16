/*
 * facts-lost - a GPU that falls off the bus, and how NVML tells of it
 *
 * No test can take a real GPU away, so these run on software ones alone, in a box of their own.
 * They follow reports of people with Xid 79: their programs end with CUDA_ERROR_UNKNOWN, as logs of
 * gpu-burn show, and nvidia-smi says that the GPU is lost.
 */
#include "contract.h"

#include "softgpu/link/box.h"

#include <stdlib.h>

#define REPORTS "programs' reports of Xid 79"
#define MANUAL  "NVML manual"

/* Two GPUs that are this process's alone; they go when it ends. */
static void private_box(void)
{
	static struct sl_softgpu_box box;
	struct sl_softgpu_config config;
	char why[200];

	if (!contract_software())
		contract_skip("a real GPU cannot be taken away");
	sl_softgpu_config_init(&config);
	config.gpus = 2;
	config.memory_bytes = SL_GIB;
	if (sl_softgpu_start(&box, &config, why, sizeof(why)))
		contract_skip(why);
	HOLDS(setenv(SL_SOFTGPU_ENV, box.socket, 1), ==, 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void happen(enum sl_softgpu_event event, uint32_t gpu, uint32_t xid)
{
	char why[200];

	HOLDS(sl_softgpu_event(getenv(SL_SOFTGPU_ENV), event, gpu, xid, why, sizeof(why)),
		==, 0);
}

static nvmlEventSet_t watch(nvmlDevice_t *device, unsigned int index)
{
	unsigned long long types = 0;
	nvmlEventSet_t set;

	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlDeviceGetHandleByIndex_v2, index, device);
	NVML_IS(SUCCESS, nvmlDeviceGetSupportedEventTypes, *device, &types);
	HOLDS(types & nvmlEventTypeXidCriticalError, !=, 0);
	NVML_IS(SUCCESS, nvmlEventSetCreate, &set);
	NVML_IS(SUCCESS, nvmlDeviceRegisterEvents, *device, nvmlEventTypeXidCriticalError,
		set);
	return set;
}

FACT(nvml_events, MANUAL, SAME,
	"Xids of a GPU can be waited for; without one the wait times out")
{
	nvmlEventData_t data;
	nvmlDevice_t device;
	nvmlEventSet_t set = watch(&device, 0);

	NVML_IS(ERROR_TIMEOUT, nvmlEventSetWait_v2, set, &data, 1);
	NVML_IS(ERROR_TIMEOUT, nvmlEventSetWait, set, &data, 0);
	NVML_IS(SUCCESS, nvmlEventSetFree, set);
}

FACT(nvml_event_data, MANUAL, NATIVE_ONLY,
	"an event names its GPU and carries the Xid; others' do not come")
{
	nvmlEventData_t data = {0};
	nvmlDevice_t device;
	nvmlEventSet_t set;

	private_box();
	happen(SL_SOFTGPU_XID, 1, 31); /* before the first question */
	set = watch(&device, 1);
	happen(SL_SOFTGPU_XID, 0, 13);
	NVML_IS(ERROR_TIMEOUT, nvmlEventSetWait_v2, set, &data, 1);
	happen(SL_SOFTGPU_XID, 1, 43);
	NVML_IS(SUCCESS, nvmlEventSetWait_v2, set, &data, 10000);
	HOLDS(data.device == device, ==, 1);
	HOLDS(data.eventType, ==, nvmlEventTypeXidCriticalError);
	HOLDS(data.eventData, ==, 43);
	NVML_IS(SUCCESS, nvmlEventSetFree, set);
}

FACT(lost_calls, REPORTS, NATIVE_ONLY,
	"on a lost GPU every call fails with UNKNOWN, for the life of the process")
{
	size_t free_bytes, total;
	CUcontext context, other;
	CUdeviceptr at;

	private_box();
	context = contract_context();
	at = contract_alloc(4096);
	happen(SL_SOFTGPU_LOSE, 0, SL_SOFTGPU_XID_LOST);
	IS(ERROR_UNKNOWN, cuMemsetD32_v2, at, 1, 1);
	IS(ERROR_UNKNOWN, cuCtxSynchronize);
	IS(ERROR_UNKNOWN, cuMemGetInfo_v2, &free_bytes, &total);
	IS(ERROR_UNKNOWN, cuMemAlloc_v2, &at, 4096);
	IS(ERROR_UNKNOWN, cuCtxCreate_v2, &other, 0, 0);
	happen(SL_SOFTGPU_REVIVE, 0, 0);
	OK(cuCtxSetCurrent, context);
	IS(ERROR_UNKNOWN, cuCtxSynchronize);
}

FACT(lost_kernel, REPORTS, NATIVE_ONLY, "a kernel on a lost GPU ends, in error")
{
	CUdeviceptr flag;
	uint32_t value = 1;
	void *args[] = {&flag, &value};

	private_box();
	contract_context();
	flag = contract_alloc(4);
	OK(cuMemsetD32_v2, flag, 0, 1);
	contract_is(CUDA_SUCCESS,
		contract_launch(contract_kernel("prog_wait"), NULL, args), "prog_wait",
		__FILE__, __LINE__);
	happen(SL_SOFTGPU_LOSE, 0, SL_SOFTGPU_XID_LOST);
	IS(ERROR_UNKNOWN, cuCtxSynchronize);
}

FACT(lost_others, REPORTS, NATIVE_ONLY, "other GPUs of the process work on")
{
	CUcontext lost;
	CUdeviceptr word;

	private_box();
	contract_context();
	OK(cuDevicePrimaryCtxRetain, &lost, 1);
	happen(SL_SOFTGPU_LOSE, 1, SL_SOFTGPU_XID_LOST);
	word = contract_alloc(4);
	contract_step(NULL, word, 0, 5);
	HOLDS(contract_read(word), ==, 5);
	OK(cuCtxSetCurrent, lost);
	IS(ERROR_UNKNOWN, cuCtxSynchronize);
}

FACT(lost_nvml, MANUAL, NATIVE_ONLY,
	"NVML reports Xid 79, and that the GPU is lost in every call about it")
{
	nvmlDevice_t device, again;
	nvmlEventData_t data = {0};
	nvmlMemory_t memory;
	unsigned int count;
	nvmlEventSet_t set;
	char uuid[96];

	private_box();
	set = watch(&device, 0);
	happen(SL_SOFTGPU_LOSE, 0, SL_SOFTGPU_XID_LOST);
	NVML_IS(SUCCESS, nvmlEventSetWait_v2, set, &data, 10000);
	HOLDS(data.eventData, ==, 79);
	NVML_IS(ERROR_GPU_IS_LOST, nvmlDeviceGetMemoryInfo, device, &memory);
	NVML_IS(ERROR_GPU_IS_LOST, nvmlDeviceGetUUID, device, uuid, sizeof(uuid));
	NVML_IS(ERROR_GPU_IS_LOST, nvmlDeviceGetHandleByIndex_v2, 0, &again);
	NVML_IS(SUCCESS, nvmlDeviceGetHandleByIndex_v2, 1, &again);
	NVML_IS(SUCCESS, nvmlDeviceGetMemoryInfo, again, &memory);
	NVML_IS(SUCCESS, nvmlDeviceGetCount_v2, &count);
	HOLDS(count, ==, 2);
	NVML_IS(SUCCESS, nvmlEventSetFree, set);
}
