/*
 * device - the visible GPUs, and their properties
 *
 * Like the real driver, this file evaluates CUDA_VISIBLE_DEVICES: indices or UUIDs, separated by
 * commas, up to the first invalid one. A CUdevice is a position in that list. All tables are put
 * into its order at the start, and only link.c knows the server's numbers.
 */
#include "softgpu/driver/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void uuid_text(const unsigned char *u, char *out, size_t size)
{
	snprintf(out, size,
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%"
		"02x",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
		u[12], u[13], u[14], u[15]);
}

static int find_visible(const char *word)
{
	char uuid[48], *end;
	long n;

	if (!strncmp(word, "GPU-", 4)) {
		for (int i = 0; i < (int)sl_drv.hello.gpus; i++) {
			uuid_text(sl_drv.hello.device[i].uuid, uuid, sizeof(uuid));
			if (!strncmp(uuid, word, strlen(word)))
				return i;
		}
		return -1;
	}
	n = strtol(word, &end, 10);
	return end != word && n >= 0 && n < (long)sl_drv.hello.gpus ? (int)n : -1;
}

/* Fills list with what the mask names; returns how many. */
static int read_mask(const char *mask, int *list)
{
	char *copy = strdup(mask), *rest = copy, *word;
	int count = 0;

	while (copy && (word = strsep(&rest, ",")) && count < SL_SOFTGPU_GPUS_MAX) {
		int i = find_visible(word + strspn(word, " "));

		if (i < 0)
			break;
		for (int n = 0; n < count; n++)
			if (list[n] == i) {
				free(copy);
				return 0; /* named twice: no device at all, as in the real driver */
			}
		list[count++] = i;
	}
	free(copy);
	return count;
}

void sl_visible_init(void)
{
	const char *mask = getenv("CUDA_VISIBLE_DEVICES");
	struct sl_sg_device device[SL_SOFTGPU_GPUS_MAX];
	int memfd[SL_SOFTGPU_GPUS_MAX], list[SL_SOFTGPU_GPUS_MAX];
	int count = (int)sl_drv.hello.gpus;

	memcpy(device, sl_drv.hello.device, sizeof(device));
	memcpy(memfd, sl_drv.memfd, sizeof(memfd));
	for (int i = 0; i < count; i++)
		list[i] = i;
	if (mask)
		count = read_mask(mask, list);
	for (int i = 0; i < SL_SOFTGPU_GPUS_MAX; i++)
		sl_drv.memfd[i] = -1;
	for (int i = 0; i < count; i++) {
		sl_drv.hello.device[i] = device[list[i]];
		sl_drv.memfd[i] = memfd[list[i]];
		memfd[list[i]] = -1;
	}
	for (int i = 0; i < (int)sl_drv.hello.gpus; i++)
		if (memfd[i] >= 0)
			close(memfd[i]);
	sl_drv.hello.gpus = (uint64_t)count;
	sl_link_order(list, count);
}

/* Entry points -------------------------------------------------------------------------------- */

#define CHECK_DEVICE(dev)                                 \
	do {                                              \
		if (!sl_drv_device_ok(dev))               \
			return CUDA_ERROR_INVALID_DEVICE; \
	} while (0)
#define CHECK_OUT(ptr)                                   \
	do {                                             \
		if (!(ptr))                              \
			return CUDA_ERROR_INVALID_VALUE; \
	} while (0)

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	SL_ENTER(cuDeviceGet);
	CHECK_OUT(dev);
	CHECK_DEVICE(ordinal);
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	SL_ENTER(cuDeviceGetCount);
	CHECK_OUT(count);
	*count = (int)sl_drv.hello.gpus;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	SL_ENTER(cuDeviceGetName);
	CHECK_DEVICE(dev);
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", sl_drv.hello.device[dev].name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	SL_ENTER(cuDeviceGetUuid);
	CHECK_DEVICE(dev);
	CHECK_OUT(uuid);
	memcpy(uuid->bytes, sl_drv.hello.device[dev].uuid, sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	SL_ENTER(cuDeviceGetUuid_v2);
	return cuDeviceGetUuid(uuid, dev);
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *node_mask, CUdevice dev)
{
	(void)luid;
	(void)node_mask;
	(void)dev;
	SL_ENTER(cuDeviceGetLuid);
	return CUDA_ERROR_NOT_SUPPORTED; /* of Windows only */
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	SL_ENTER(cuDeviceTotalMem_v2);
	CHECK_DEVICE(dev);
	CHECK_OUT(bytes);
	*bytes = sl_drv.hello.memory_bytes - sl_drv.hello.reserve_bytes;
	return CUDA_SUCCESS;
}

/* Answers that do not depend on the device; other attributes are 0. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} fixed[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 160 * 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 * 1024},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 * 1024},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 * 1024 * 1024},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
	{CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
	{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, SL_DRV_SMS},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
	{CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
	{CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
	{CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 1},
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev)
{
	SL_ENTER(cuDeviceGetAttribute);
	CHECK_OUT(value);
	CHECK_DEVICE(dev);
	if ((int)attrib < 1 || (int)attrib > 150)
		return CUDA_ERROR_INVALID_VALUE;
	*value = 0;
	if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = (int)sl_drv.hello.device[dev].bus;
	for (size_t i = 0; i < SL_ARRAY_LEN(fixed); i++)
		if (fixed[i].attribute == attrib)
			*value = fixed[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	SL_ENTER(cuDeviceGetProperties);
	CHECK_OUT(prop);
	CHECK_DEVICE(dev);
	*prop = (CUdevprop){.maxThreadsPerBlock = 1024,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {0x7fffffff, 65535, 65535},
		.sharedMemPerBlock = 48 * 1024,
		.totalConstantMemory = 64 * 1024,
		.SIMDWidth = 32,
		.memPitch = 0x7fffffff,
		.regsPerBlock = 65536,
		.clockRate = 1000000,
		.textureAlign = 512};
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	SL_ENTER(cuDeviceComputeCapability);
	CHECK_OUT(major && minor);
	CHECK_DEVICE(dev);
	*major = 8;
	*minor = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *bus_id, int len, CUdevice dev)
{
	SL_ENTER(cuDeviceGetPCIBusId);
	CHECK_DEVICE(dev);
	if (!bus_id || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(bus_id, (size_t)len, "0000:%02X:00.0", sl_drv.hello.device[dev].bus);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *bus_id)
{
	unsigned a, b, c = 0, d;

	SL_ENTER(cuDeviceGetByPCIBusId);
	CHECK_OUT(dev && bus_id);
	/* domain:bus:device.function, domain:bus:device, or bus:device.function */
	if (sscanf(bus_id, "%x:%x:%x.%x", &a, &b, &c, &d) < 3 &&
		(b = 0, sscanf(bus_id, "%x:%x.%x", &b, &c, &d) < 2))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < (int)sl_drv.hello.gpus; i++)
		if (sl_drv.hello.device[i].bus == b && c == 0) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	SL_ENTER(cuDeviceCanAccessPeer);
	CHECK_OUT(can);
	CHECK_DEVICE(dev);
	CHECK_DEVICE(peer);
	*can = dev != peer;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice src, CUdevice dst)
{
	SL_ENTER(cuDeviceGetP2PAttribute);
	CHECK_OUT(value);
	CHECK_DEVICE(src);
	CHECK_DEVICE(dst);
	if (src == dst)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *value, CUexecAffinityType type, CUdevice dev)
{
	SL_ENTER(cuDeviceGetExecAffinitySupport);
	CHECK_OUT(value);
	CHECK_DEVICE(dev);
	(void)type;
	*value = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetNvSciSyncAttributes(void *list, CUdevice dev, int flags)
{
	SL_ENTER(cuDeviceGetNvSciSyncAttributes);
	CHECK_OUT(list);
	CHECK_DEVICE(dev);
	(void)flags;
	return CUDA_ERROR_NOT_SUPPORTED; /* of vehicles only */
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(
	size_t *elements, CUarray_format format, unsigned int channels, CUdevice dev)
{
	SL_ENTER(cuDeviceGetTexture1DLinearMaxWidth);
	CHECK_OUT(elements);
	CHECK_DEVICE(dev);
	if (!format || !channels || channels > 4)
		return CUDA_ERROR_INVALID_VALUE;
	*elements = (size_t)1 << 28;
	return CUDA_SUCCESS;
}

/* No atomic operation works across the link. */
static CUresult no_capabilities(
	unsigned int *capabilities, const CUatomicOperation *operations, unsigned count)
{
	CHECK_OUT(capabilities && operations && count);
	for (unsigned i = 0; i < count; i++) {
		if ((unsigned)operations[i] > CU_ATOMIC_OPERATION_FLOAT_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		capabilities[i] = 0;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice dev)
{
	SL_ENTER(cuDeviceGetHostAtomicCapabilities);
	CHECK_DEVICE(dev);
	return no_capabilities(capabilities, operations, count);
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice src,
	CUdevice dst)
{
	SL_ENTER(cuDeviceGetP2PAtomicCapabilities);
	CHECK_DEVICE(src);
	CHECK_DEVICE(dst);
	if (src == dst)
		return CUDA_ERROR_INVALID_DEVICE;
	return no_capabilities(capabilities, operations, count);
}
