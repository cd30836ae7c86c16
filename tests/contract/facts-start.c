/*
 * facts-start - before and at cuInit, devices, errors' names, ways to find functions
 */
#include "contract.h"

#include <dlfcn.h>
#include <stdio.h>

#define MANUAL "driver API manual"

FACT(init_first, MANUAL, SAME, "most calls before cuInit give NOT_INITIALIZED")
{
	CUcontext context;
	CUdevice device;
	int count;

	IS(ERROR_NOT_INITIALIZED, cuDeviceGetCount, &count);
	IS(ERROR_NOT_INITIALIZED, cuDeviceGet, &device, 0);
	IS(ERROR_NOT_INITIALIZED, cuCtxGetCurrent, &context);
	IS(ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain, &context, 0);
}

FACT(init_memory_first, MANUAL, SAME, "memory calls before cuInit give NOT_INITIALIZED")
{
	size_t free_bytes, total;
	CUdeviceptr at;

	IS(ERROR_NOT_INITIALIZED, cuMemAlloc_v2, &at, 1024);
	IS(ERROR_NOT_INITIALIZED, cuMemFree_v2, (CUdeviceptr)0);
	IS(ERROR_NOT_INITIALIZED, cuMemGetInfo_v2, &free_bytes, &total);
}

FACT(init_flags, MANUAL, SAME, "cuInit takes no flag but 0")
{
	IS(ERROR_INVALID_VALUE, cuInit, 1);
	OK(cuInit, 0);
}

FACT(init_twice, MANUAL, SAME, "cuInit may be called again")
{
	OK(cuInit, 0);
	OK(cuInit, 0);
}

FACT(version_early, "libraries rely on it", SAME,
	"cuDriverGetVersion works before cuInit")
{
	int version = 0;

	OK(cuDriverGetVersion, &version);
	HOLDS(version, >=, 11000);
	IS(ERROR_INVALID_VALUE, cuDriverGetVersion, NULL);
}

FACT(error_names, MANUAL, SAME, "errors have the header's names, before cuInit too")
{
	const char *name = NULL;

	OK(cuGetErrorName, CUDA_ERROR_OUT_OF_MEMORY, &name);
	HOLDS(strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY"), ==, 0);
	OK(cuGetErrorName, CUDA_SUCCESS, &name);
	HOLDS(strcmp(name, "CUDA_SUCCESS"), ==, 0);
}

FACT(error_unknown, MANUAL, SAME, "an unknown error number has no name and no text")
{
	const char *name = "", *text = "";

	IS(ERROR_INVALID_VALUE, cuGetErrorName, (CUresult)12345, &name);
	HOLDS((uintptr_t)name, ==, 0);
	IS(ERROR_INVALID_VALUE, cuGetErrorString, (CUresult)12345, &text);
	HOLDS((uintptr_t)text, ==, 0);
}

/* A driver chooses its own texts: those of software GPUs are not NVIDIA's. */
FACT(error_texts, MANUAL, SAME, "every error that has a name has a text")
{
	const char *name, *text;
	unsigned int found = 0;

	for (int error = 0; error < 1000; error++) {
		if (CU(cuGetErrorName)((CUresult)error, &name) != CUDA_SUCCESS)
			continue;
		text = NULL;
		OK(cuGetErrorString, (CUresult)error, &text);
		HOLDS(strlen(text), >, 0);
		found++;
	}
	HOLDS(found, >=, 90);
}

FACT(device_count, MANUAL, SAME,
	"there is a device, and the count's place must not be NULL")
{
	int count = 0;

	OK(cuInit, 0);
	OK(cuDeviceGetCount, &count);
	HOLDS(count, >=, 1);
	IS(ERROR_INVALID_VALUE, cuDeviceGetCount, NULL);
}

FACT(device_range, MANUAL, SAME, "device numbers run from 0 to the count less one")
{
	CUdevice device = -1;
	int count;

	OK(cuInit, 0);
	OK(cuDeviceGetCount, &count);
	OK(cuDeviceGet, &device, 0);
	HOLDS(device, ==, 0);
	IS(ERROR_INVALID_DEVICE, cuDeviceGet, &device, count);
	IS(ERROR_INVALID_DEVICE, cuDeviceGet, &device, -1);
	IS(ERROR_INVALID_VALUE, cuDeviceGet, NULL, 0);
}

FACT(device_name, MANUAL, SAME, "a device has a name, cut to the room there is")
{
	char name[128] = "", cut[5];

	OK(cuInit, 0);
	OK(cuDeviceGetName, name, sizeof(name), 0);
	HOLDS(strlen(name), >, 0);
	memset(cut, 'x', sizeof(cut));
	OK(cuDeviceGetName, cut, sizeof(cut), 0);
	HOLDS(strlen(cut), ==, strlen(name) < 4 ? strlen(name) : 4);
	HOLDS(strncmp(cut, name, 4), ==, 0);
}

FACT(device_uuid, MANUAL, SAME,
	"both versions of the UUID call agree, and it is not zero")
{
	CUuuid first, second, zero = {{0}};

	OK(cuInit, 0);
	OK(cuDeviceGetUuid, &first, 0);
	OK(cuDeviceGetUuid_v2, &second, 0);
	HOLDS(memcmp(&first, &second, sizeof(first)), ==, 0);
	HOLDS(memcmp(&first, &zero, sizeof(first)), !=, 0);
}

FACT(device_total, MANUAL, SAME,
	"cuDeviceTotalMem needs no context and agrees with cuMemGetInfo")
{
	size_t device_total = 0, free_bytes, total;

	OK(cuInit, 0);
	OK(cuDeviceTotalMem_v2, &device_total, 0);
	HOLDS(device_total, >, 0);
	IS(ERROR_INVALID_VALUE, cuDeviceTotalMem_v2, NULL, 0);
	IS(ERROR_INVALID_DEVICE, cuDeviceTotalMem_v2, &total, 1000);
	contract_context();
	OK(cuMemGetInfo_v2, &free_bytes, &total);
	HOLDS(total, ==, device_total);
}

FACT(device_features, "Sluice rests on it", SAME,
	"addresses are unified and VMM is there")
{
	int value = 0;

	OK(cuInit, 0);
	OK(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0);
	HOLDS(value, ==, 1);
	OK(cuDeviceGetAttribute, &value,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
	HOLDS(value, ==, 1);
}

FACT(device_attribute_bad, MANUAL, SAME, "an unknown attribute or device is refused")
{
	int value;

	OK(cuInit, 0);
	IS(ERROR_INVALID_VALUE, cuDeviceGetAttribute, &value, (CUdevice_attribute)100000,
		0);
	IS(ERROR_INVALID_DEVICE, cuDeviceGetAttribute, &value,
		CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000);
	IS(ERROR_INVALID_VALUE, cuDeviceGetAttribute, NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE,
		0);
}

FACT(device_warp, MANUAL, SAME, "a warp has 32 threads, a block at least 512")
{
	int value;

	OK(cuInit, 0);
	OK(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	HOLDS(value, ==, 32);
	OK(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
	HOLDS(value, >=, 512);
}

FACT(device_bus, MANUAL, SAME, "the PCI address leads back to the device")
{
	char bus[32] = "";
	CUdevice device = -1;
	unsigned int domain, slot, unit;
	int value;

	OK(cuInit, 0);
	OK(cuDeviceGetPCIBusId, bus, sizeof(bus), 0);
	HOLDS(sscanf(bus, "%x:%x:%x.0", &domain, &slot, &unit), ==, 3);
	OK(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0);
	HOLDS(value, ==, slot);
	OK(cuDeviceGetByPCIBusId, &device, bus);
	HOLDS(device, ==, 0);
}

FACT(device_capability, MANUAL, SAME, "the compute capability is the same by both calls")
{
	int major = 0, minor = -1, attribute = -1;

	OK(cuInit, 0);
	OK(cuDeviceComputeCapability, &major, &minor, 0);
	HOLDS(major, >=, 5);
	OK(cuDeviceGetAttribute, &attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
		0);
	HOLDS(attribute, ==, major);
	OK(cuDeviceGetAttribute, &attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
		0);
	HOLDS(attribute, ==, minor);
}

FACT(device_peer_self, MANUAL, SAME, "a device is no peer of itself")
{
	int can = 1;

	OK(cuInit, 0);
	OK(cuDeviceCanAccessPeer, &can, 0, 0);
	HOLDS(can, ==, 0);
}

FACT(proc_address, MANUAL, SAME, "cuGetProcAddress finds a function that works")
{
	__typeof__(&cuMemAlloc_v2) alloc = NULL;
	CUdeviceptr at = 0;

	contract_context();
	OK(cuGetProcAddress, "cuMemAlloc", (void **)&alloc, 12000, 0);
	HOLDS((uintptr_t)alloc, !=, 0);
	HOLDS(alloc(&at, 4096), ==, CUDA_SUCCESS);
	OK(cuMemFree_v2, at);
}

FACT(proc_address_early, "the runtime library relies on it", SAME,
	"cuGetProcAddress works before cuInit")
{
	void *found = NULL;

	OK(cuGetProcAddress, "cuInit", &found, 12000, 0);
	HOLDS((uintptr_t)found, !=, 0);
}

FACT(proc_address_unknown, MANUAL, SAME,
	"an unknown name is no error: the pointer is NULL and the status says why")
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *found = (void *)1;

	OK(cuGetProcAddress_v2, "cuNoSuchCall", &found, 12000, 0, &status);
	HOLDS(status, ==, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	HOLDS((uintptr_t)found, ==, 0);
}

FACT(proc_address_version, MANUAL, SAME, "so is a version before the function's own")
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *found = (void *)1;

	/* Stream-ordered allocation came with CUDA 11.2. */
	OK(cuGetProcAddress_v2, "cuMemAllocAsync", &found, 10000, 0, &status);
	HOLDS(status, ==, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	HOLDS((uintptr_t)found, ==, 0);
}

FACT(proc_address_no_status, MANUAL, SAME, "the status may be left out")
{
	void *found = NULL;

	OK(cuGetProcAddress_v2, "cuInit", &found, 12000, 0, NULL);
	HOLDS((uintptr_t)found, !=, 0);
}

FACT(proc_address_streams, MANUAL, SAME, "the per-thread flag finds another function")
{
	void *legacy = NULL, *own = NULL;

	OK(cuGetProcAddress, "cuMemcpyHtoDAsync", &legacy, 12000,
		CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	OK(cuGetProcAddress, "cuMemcpyHtoDAsync", &own, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	HOLDS((uintptr_t)legacy, !=, (uintptr_t)own);
	HOLDS((uintptr_t)own, !=, 0);
}

FACT(proc_address_self, "the runtime library relies on it", SAME,
	"cuGetProcAddress finds itself, in the version of the caller")
{
	CUdriverProcAddressQueryResult status;
	__typeof__(&cuGetProcAddress_v2) again = NULL;
	void *found = NULL;

	OK(cuGetProcAddress, "cuGetProcAddress", (void **)&again, 12000, 0);
	HOLDS(again("cuInit", &found, 12000, 0, &status), ==, CUDA_SUCCESS);
	HOLDS((uintptr_t)found, !=, 0);
}

FACT(proc_address_bad, MANUAL, SAME, "NULL for the name or the place is refused")
{
	void *found;

	IS(ERROR_INVALID_VALUE, cuGetProcAddress, NULL, &found, 12000, 0);
	IS(ERROR_INVALID_VALUE, cuGetProcAddress, "cuInit", NULL, 12000, 0);
}

FACT(names_exported, "dlsym users rely on it", SAME,
	"the driver exports each name that its version of CUDA has")
{
	static const struct {
		const char *name;
		int since;
	} names[] = {
#define SL_CUDA_NAME(name, since) {#name, since},
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
	};
	int version = 0;

	OK(cuDriverGetVersion, &version);
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
		if (names[i].since <= version && !dlsym(RTLD_DEFAULT, names[i].name)) {
			printf("no %s\n", names[i].name);
			HOLDS(names[i].since, >, version);
		}
}

/* The status of a look-up, and its result. */
static int find_proc(const char *name, int version, void **found)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

	*found = NULL;
	OK(cuGetProcAddress_v2, name, found, version, 0, &status);
	return status;
}

FACT(proc_address_chosen, MANUAL, SAME,
	"the version asked for chooses the variant of a function")
{
	void *found;

	HOLDS(find_proc("cuMemAdvise", 12000, &found), ==, CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuMemAdvise"));
	HOLDS(find_proc("cuMemAdvise", 12020, &found), ==, CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuMemAdvise_v2"));
	HOLDS(find_proc("cuCtxCreate", 4000, &found), ==, CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuCtxCreate_v2"));
}

FACT(proc_address_13, MANUAL, SAME,
	"in CUDA 13 plain cuCtxCreate and cuGraphAddNode mean the newest variant")
{
	int version = 0;
	void *found;

	OK(cuDriverGetVersion, &version);
	if (version < 13000)
		contract_skip("the driver is older than CUDA 13");
	HOLDS(find_proc("cuCtxCreate", 13000, &found), ==, CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuCtxCreate_v4"));
	HOLDS(find_proc("cuGraphAddNode", 13000, &found), ==,
		CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuGraphAddNode_v2"));
	HOLDS(find_proc("cuGraphAddNode", 12020, &found), ==,
		CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuGraphAddNode"));
}

FACT(proc_address_renamed, "the toolkit's typed pointers", SAME,
	"since CUDA 12 cuGraphInstantiate is cuGraphInstantiateWithFlags")
{
	void *found;

	HOLDS(find_proc("cuGraphInstantiate", 12000, &found), ==,
		CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==,
		(uintptr_t)contract_find("cuGraphInstantiateWithFlags"));
}

FACT(proc_address_future, MANUAL, SAME,
	"a version the driver has not reached finds its newest variant")
{
	void *found;

	HOLDS(find_proc("cuMemAlloc", 99000, &found), ==, CU_GET_PROC_ADDRESS_SUCCESS);
	HOLDS((uintptr_t)found, ==, (uintptr_t)contract_find("cuMemAlloc_v2"));
}
