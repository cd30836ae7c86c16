/*
 * facts-multicast - one range that stands for memory on several GPUs
 *
 * A team of one device is enough for most of it; facts that need a second GPU are skipped without
 * one.
 */
#include "contract.h"

#include <pthread.h>

#define MANUAL "driver API manual"

static CUmulticastObjectProp team_prop(unsigned int devices, size_t bytes)
{
	CUmulticastObjectProp prop = {.numDevices = devices, .size = bytes};

	return prop;
}

/* Device 0 current; ends the fact where its kind cannot do this. Returns the grain. */
static size_t begin(unsigned int devices)
{
	CUmulticastObjectProp prop = team_prop(devices, 2 << 20);
	int can = 0, count = 0;
	size_t grain = 0;

	contract_context();
	OK(cuDeviceGetCount, &count);
	if ((unsigned int)count < devices)
		contract_skip("not enough GPUs");
	for (unsigned int i = 0; i < devices; i++) {
		OK(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
			(CUdevice)i);
		if (!can)
			contract_skip("no multicast here");
	}
	OK(cuMulticastGetGranularity, &grain, &prop, CU_MULTICAST_GRANULARITY_MINIMUM);
	return grain;
}

static CUmemGenericAllocationHandle team(unsigned int devices, size_t bytes)
{
	CUmulticastObjectProp prop = team_prop(devices, bytes);
	CUmemGenericAllocationHandle object;

	OK(cuMulticastCreate, &object, &prop);
	for (unsigned int i = 0; i < devices; i++)
		OK(cuMulticastAddDevice, object, (CUdevice)i);
	return object;
}

static CUmemGenericAllocationHandle on_device(int device, size_t bytes)
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;

	prop.location.id = device;
	OK(cuMemCreate, &handle, bytes, &prop, 0);
	return handle;
}

/* Mapped with access of device 0. */
static CUdeviceptr mapped(CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUdeviceptr at = contract_reserve(bytes);

	OK(cuMemMap, at, bytes, 0, handle, 0);
	contract_allow(at, bytes);
	return at;
}

FACT(multicast_grain, MANUAL, SAME, "a multicast object is a whole number of grains")
{
	size_t grain = begin(1), wise = 0;
	CUmulticastObjectProp prop = team_prop(1, grain + 4096);
	CUmemGenericAllocationHandle object;

	OK(cuMulticastGetGranularity, &wise, &prop, CU_MULTICAST_GRANULARITY_RECOMMENDED);
	HOLDS(wise, >=, grain);
	FAILS(cuMulticastCreate, &object, &prop);
	prop = team_prop(0, grain);
	FAILS(cuMulticastCreate, &object, &prop);
}

FACT(multicast_takes_nothing, MANUAL, SAME, "it takes no memory by itself")
{
	size_t grain = begin(1), before = contract_free_bytes();

	team(1, 32 * grain);
	HOLDS(contract_free_bytes() + (8 << 20), >=, before);
}

FACT(multicast_write, MANUAL, SAME,
	"what is written through it is in the memory behind it")
{
	size_t grain = begin(1);
	CUmemGenericAllocationHandle object = team(1, 2 * grain), mem;
	CUdeviceptr wide, own;
	uint32_t words[2] = {61, 62};

	mem = on_device(0, grain);
	OK(cuMulticastBindMem, object, grain, mem, 0, grain, 0);
	wide = mapped(object, 2 * grain);
	own = mapped(mem, grain);
	OK(cuMemcpyHtoD_v2, wide + grain + 8, words, sizeof(words));
	OK(cuMemsetD32_v2, wide + grain, 60, 1);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(own), ==, 60);
	HOLDS(contract_read(own + 8), ==, 61);
	HOLDS(contract_read(own + 12), ==, 62);
}

FACT(multicast_kernel, MANUAL, SAME,
	"a kernel's write through it arrives on its own device")
{
	size_t grain = begin(1);
	CUmemGenericAllocationHandle object = team(1, 2 * grain), mem;
	CUdeviceptr wide, own;

	mem = on_device(0, 4 * grain);
	own = mapped(mem, 4 * grain);
	OK(cuMemsetD32_v2, own + grain, 4, 1);
	OK(cuMemsetD32_v2, own + 3 * grain, 5, 1);
	contract_step(NULL, own, 1, 0);
	OK(cuMulticastBindAddr, object, 0, own + grain, grain, 0);
	wide = mapped(object, 2 * grain);
	/* It may be bound after it was mapped, too. */
	OK(cuMulticastBindMem, object, grain, mem, 3 * grain, grain, 0);
	OK(cuCtxSynchronize);
	contract_step(NULL, wide, 10, 2);
	contract_step(NULL, wide + grain, 10, 2);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(own + grain), ==, 42);
	HOLDS(contract_read(own + 3 * grain), ==, 52);
}

FACT(multicast_all, MANUAL, SAME, "a copy through it reaches every device of the team")
{
	size_t grain = begin(2);
	CUmemGenericAllocationHandle object = team(2, grain), near, far;
	CUdeviceptr wide, first, second;

	near = on_device(0, grain);
	far = on_device(1, grain);
	OK(cuMulticastBindMem, object, 0, near, 0, grain, 0);
	OK(cuMulticastBindMem, object, 0, far, 0, grain, 0);
	wide = mapped(object, grain);
	first = mapped(near, grain);
	second = mapped(far, grain);
	OK(cuMemsetD32_v2, wide + 400, 5, 4);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(first + 412), ==, 5);
	HOLDS(contract_read(second + 412), ==, 5);
}

FACT(multicast_team, MANUAL, SAME,
	"memory of a device that is not in the team is refused")
{
	size_t grain = begin(2);
	CUmemGenericAllocationHandle object = team(1, grain);

	FAILS(cuMulticastBindMem, object, 0, on_device(1, grain), 0, grain, 0);
	OK(cuMulticastBindMem, object, 0, on_device(0, grain), 0, grain, 0);
}

FACT(multicast_unbind, MANUAL, SAME, "what is unbound is not written any more, and goes")
{
	size_t grain = begin(1), before;
	CUmemGenericAllocationHandle object = team(1, grain), first, second;
	CUdeviceptr wide, old, young;

	first = on_device(0, grain);
	OK(cuMulticastBindMem, object, 0, first, 0, grain, 0);
	wide = mapped(object, grain);
	old = mapped(first, grain);
	OK(cuMemsetD32_v2, wide, 1, 1);
	OK(cuCtxSynchronize);
	FAILS(cuMulticastUnbind, object, 0, 0, 2 * grain);
	OK(cuMulticastUnbind, object, 0, 0, grain);
	second = on_device(0, grain);
	OK(cuMulticastBindMem, object, 0, second, 0, grain, 0);
	young = mapped(second, grain);
	OK(cuMemsetD32_v2, wide, 2, 1);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(old), ==, 1);
	HOLDS(contract_read(young), ==, 2);
	before = contract_free_bytes();
	OK(cuMemUnmap, old, grain);
	OK(cuMemRelease, first);
	HOLDS(contract_free_bytes(), >=, before + grain);
}

FACT(multicast_bind_bad, MANUAL, SAME, "only memory of the team fits, within the object")
{
	size_t grain = begin(1);
	CUmemGenericAllocationHandle object = team(1, 2 * grain), mem;

	mem = on_device(0, grain);
	FAILS(cuMulticastBindMem, object, 2 * grain, mem, 0, grain, 0);
	FAILS(cuMulticastBindMem, object, 0, mem, 0, 2 * grain, 0);
	FAILS(cuMulticastBindMem, object, 4096, mem, 0, grain, 0);
	FAILS(cuMulticastBindMem, object, 0, mem, 0, grain, 1);
	FAILS(cuMulticastBindMem, mem, 0, mem, 0, grain, 0);
	FAILS(cuMulticastAddDevice, object, 0);
	FAILS(cuMulticastAddDevice, mem, 0);
	OK(cuMulticastBindMem, object, 0, mem, 0, grain, 0);
	FAILS(cuMulticastBindMem, object, 0, mem, 0, grain, 0);
}

static CUmemGenericAllocationHandle late_object;

static void *add_late(void *unused)
{
	(void)unused;
	contract_sleep_ms(100);
	OK(cuMulticastAddDevice, late_object, 0);
	return NULL;
}

FACT(multicast_waits, MANUAL, SAME, "binding waits until the team is whole")
{
	size_t grain = begin(1);
	CUmulticastObjectProp prop = team_prop(1, grain);
	CUmemGenericAllocationHandle mem;
	pthread_t thread;
	uint64_t start;

	OK(cuMulticastCreate, &late_object, &prop);
	mem = on_device(0, grain);
	start = contract_now_ms();
	if (pthread_create(&thread, NULL, add_late, NULL))
		contract_skip("no thread");
	OK(cuMulticastBindMem, late_object, 0, mem, 0, grain, 0);
	HOLDS(contract_now_ms() - start, >=, 100);
	pthread_join(thread, NULL);
}
