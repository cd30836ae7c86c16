#include "stub.h"

#include "runtime/real/real.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASE       0x7f0000000000ull
#define RANGES_MAX 4096

struct CUctx_st {
	int dev;
	bool alive;
};

struct range {
	CUdeviceptr base;
	uint64_t bytes;
	bool used;
};

struct handle {
	uint64_t bytes;
	CUdeviceptr at; /* 0: not mapped */
	bool used;
	bool exportable;
	bool imported; /* of another process: its bytes are not ours */
	bool released; /* an imported one lives on while it is mapped */
};

struct stub stub;
int stub_hold_launches;
CUcontext stub_busy;
void (*stub_on_destroy)(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[RANGES_MAX];
static struct handle handles[RANGES_MAX];
static CUdeviceptr next_base = BASE;
static struct CUctx_st contexts[64];
static __thread CUcontext stack[16];
static __thread int depth;
static int primary_count[STUB_DEVICES];

void stub_sync_with(CUresult r)
{
	stub_lock();
	stub.sync_result = r;
	stub_unlock();
}

void stub_lock(void)
{
	pthread_mutex_lock(&lock);
}

void stub_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void stub_uuid(int dev, uint8_t uuid[16])
{
	memset(uuid, 0x40 + dev, 16);
}

/* True: this call is to fail. Under the lock. */
static bool faulty(void)
{
	return ++stub.calls == stub.fault_at;
}

#define ENTER()                    \
	CUresult r = CUDA_SUCCESS; \
	pthread_mutex_lock(&lock); \
	if (faulty()) {            \
		r = stub.fault;    \
		goto out;          \
	}
#define LEAVE()                      \
	out:                         \
	pthread_mutex_unlock(&lock); \
	return r;

static CUresult reserve(CUdeviceptr *ptr, size_t bytes, size_t alignment,
	CUdeviceptr hint, unsigned long long flags)
{
	int i = 0;

	ENTER();
	/* Addresses that were freed come again at once, as the driver's do. */
	while (i < RANGES_MAX &&
		(ranges[i].used || (ranges[i].bytes && ranges[i].bytes != bytes)))
		i++;
	if (i == RANGES_MAX)
		abort();
	if (!ranges[i].bytes) {
		ranges[i].base = next_base;
		ranges[i].bytes = bytes;
		next_base += bytes;
	}
	ranges[i].used = true;
	stub.reserved_bytes += bytes;
	*ptr = ranges[i].base;
	LEAVE();
}

static CUresult address_free(CUdeviceptr ptr, size_t bytes)
{
	ENTER();
	for (int i = 0; i < RANGES_MAX; i++) {
		if (ranges[i].used && ranges[i].base == ptr && ranges[i].bytes == bytes) {
			ranges[i].used = false;
			stub.reserved_bytes -= bytes;
			goto out;
		}
	}
	r = CUDA_ERROR_INVALID_VALUE;
	LEAVE();
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	int i = 1;

	ENTER();
	while (handles[i].used)
		i++;
	if (bytes % (2 * SL_MIB) != 0 ||
		prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
		r = CUDA_ERROR_INVALID_VALUE;
		goto out;
	}
	if (stub.created_bytes + bytes > stub.capacity_bytes) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	handles[i] = (struct handle){.bytes = bytes,
		.used = true,
		.exportable = prop->requestedHandleTypes ==
			      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	stub.created_bytes += bytes;
	stub.creates++;
	*handle = (CUmemGenericAllocationHandle)i;
	LEAVE();
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	ENTER();
	if (handles[handle].imported && handles[handle].at) {
		handles[handle].released = true;
		goto out;
	}
	if (!handles[handle].used || handles[handle].at)
		abort(); /* released twice, or while mapped */
	if (!handles[handle].imported)
		stub.created_bytes -= handles[handle].bytes;
	handles[handle].used = false;
	LEAVE();
}

static CUresult map(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	ENTER();
	if (!handles[handle].used || handles[handle].at ||
		handles[handle].bytes != bytes || offset != 0)
		abort();
	handles[handle].at = ptr;
	stub.mapped_bytes += bytes;
	LEAVE();
}

static CUresult unmap(CUdeviceptr ptr, size_t bytes)
{
	ENTER();
	for (int i = 1; i < RANGES_MAX; i++) {
		if (handles[i].used && handles[i].at == ptr &&
			handles[i].bytes == bytes) {
			handles[i].at = 0;
			handles[i].used = !handles[i].released;
			stub.mapped_bytes -= bytes;
			goto out;
		}
	}
	abort();
	LEAVE();
}

static CUresult set_access(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	ENTER();
	LEAVE();
}

/* A descriptor is a file that says how large the handle is. */
static CUresult export_handle(void *out, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	char name[] = "/tmp/sluice-stub-XXXXXX";
	int fd;

	ENTER();
	if (!handles[handle].used || !handles[handle].exportable) {
		r = CUDA_ERROR_INVALID_VALUE;
		goto out;
	}
	fd = mkstemp(name);
	if (fd < 0 || unlink(name) != 0 ||
		write(fd, &handles[handle].bytes, sizeof(handles[0].bytes)) !=
			sizeof(handles[0].bytes))
		abort();
	*(int *)out = fd;
	stub.exports++;
	LEAVE();
}

static CUresult import_handle(CUmemGenericAllocationHandle *handle, void *os_handle,
	CUmemAllocationHandleType type)
{
	uint64_t bytes = 0;
	int i = 1;

	ENTER();
	if (pread((int)(intptr_t)os_handle, &bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		r = CUDA_ERROR_INVALID_VALUE;
		goto out;
	}
	while (handles[i].used)
		i++;
	handles[i] = (struct handle){.bytes = bytes, .used = true, .imported = true};
	stub.imports++;
	*handle = (CUmemGenericAllocationHandle)i;
	LEAVE();
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	*value =
		attribute ==
			CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED &&
		!STUB(no_exports);
	return CUDA_SUCCESS;
}

/* What the driver says to memory that it has no handle for. */
static CUresult ipc_get(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult ipc_open(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult ipc_close(CUdeviceptr ptr)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	*bytes = 2 * SL_MIB;
	return CUDA_SUCCESS;
}

static CUresult init(unsigned int flags)
{
	return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *ctx)
{
	*ctx = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static bool is_alive(CUcontext ctx)
{
	return __atomic_load_n(&ctx->alive, __ATOMIC_ACQUIRE);
}

static void set_alive(CUcontext ctx, bool alive)
{
	__atomic_store_n(&ctx->alive, alive, __ATOMIC_RELEASE);
}

static CUresult push(CUcontext ctx)
{
	if (!is_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ctx)
{
	*ctx = stack[--depth];
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *dev)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = stack[depth - 1]->dev;
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	bool is_held = false;
	CUresult r;

	while (depth && STUB(sync_result) == CUDA_SUCCESS &&
		__atomic_load_n(&stub_busy, __ATOMIC_ACQUIRE) == stack[depth - 1]) {
		stub_lock();
		stub.sync_waits += !is_held;
		is_held = true;
		stub_unlock();
		usleep(100);
	}
	pthread_mutex_lock(&lock);
	stub.syncs++;
	if (stub.capturing)
		stub.syncs_while_capturing++;
	r = depth && !is_alive(stack[depth - 1]) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
						 : stub.sync_result;
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult stream_query(CUstream stream)
{
	return STUB(sync_result);
}

static CUresult get_uuid(CUuuid *uuid, CUdevice dev)
{
	if (dev >= STUB_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	stub_uuid(dev, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

static CUresult get_info(size_t *free_bytes, size_t *total_bytes)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (free_bytes)
		*free_bytes = 1;
	if (total_bytes)
		*total_bytes = 2;
	return CUDA_SUCCESS;
}

static CUresult total_mem(size_t *bytes, CUdevice dev)
{
	*bytes = 3;
	return CUDA_SUCCESS;
}

static CUresult native_alloc(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = 0x1234;
	return CUDA_SUCCESS;
}

static CUresult native_free(CUdeviceptr ptr)
{
	__atomic_fetch_add(&stub.frees, 1, __ATOMIC_RELAXED);
	return ptr == 0 || ptr == 0x1234 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Tells that it was called. */
static CUresult native_free_async(CUdeviceptr ptr, CUstream stream)
{
	return ptr == 0x1234 ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_VALUE;
}

/* The driver's own memory has run out. */
static bool is_full(void)
{
	bool full;

	pthread_mutex_lock(&lock);
	full = stub.no_room > 0;
	stub.no_room -= full;
	pthread_mutex_unlock(&lock);
	return full;
}

static CUresult ctx_create(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	if (is_full())
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SL_ARRAY_LEN(contexts); i++) {
		if (!contexts[i].alive) {
			contexts[i] = (struct CUctx_st){.dev = dev, .alive = true};
			*ctx = &contexts[i];
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	stack[depth++] = *ctx;
	return CUDA_SUCCESS;
}

static CUresult ctx_destroy(CUcontext ctx)
{
	if (ctx >= &contexts[60])
		return CUDA_ERROR_INVALID_VALUE; /* a primary one */
	if (stub_on_destroy)
		stub_on_destroy();
	set_alive(ctx, false);
	if (depth && stack[depth - 1] == ctx)
		depth--;
	return CUDA_SUCCESS;
}

static CUresult primary_retain(CUcontext *ctx, CUdevice dev)
{
	primary_count[dev]++;
	contexts[60 + dev].dev = dev;
	set_alive(&contexts[60 + dev], true);
	*ctx = &contexts[60 + dev];
	return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice dev)
{
	set_alive(&contexts[60 + dev], --primary_count[dev] > 0);
	return CUDA_SUCCESS;
}

static CUresult primary_state(CUdevice dev, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = primary_count[dev] > 0;
	return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
	pthread_mutex_lock(&lock);
	stub.capturing = true;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *graph)
{
	pthread_mutex_lock(&lock);
	stub.capturing = false;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	pthread_mutex_lock(&lock);
	stub.capture_questions++;
	*status = stub.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
				 : CU_STREAM_CAPTURE_STATUS_NONE;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
	void **extra)
{
	if (is_full())
		return CUDA_ERROR_OUT_OF_MEMORY;
	__atomic_fetch_add(&stub.launches, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&stub_hold_launches, __ATOMIC_ACQUIRE))
		usleep(100);
	return CUDA_SUCCESS;
}

static CUresult range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult attribute(void *data, CUpointer_attribute which, CUdeviceptr ptr)
{
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	*(unsigned int *)data = 77;
	return CUDA_SUCCESS;
}

static CUresult attributes(
	unsigned int count, CUpointer_attribute *which, void **data, CUdeviceptr ptr)
{
	stub.last_attributes = ptr;
	return CUDA_SUCCESS;
}

static CUresult retain_handle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return CUDA_SUCCESS;
}

CUcontext stub_make_current(int dev)
{
	CUcontext ctx;

	(void)ctx_create(&ctx, 0, dev);
	return ctx;
}

void stub_install(void)
{
	memset(&stub, 0, sizeof(stub));
	stub.capacity_bytes = 1024 * SL_GIB;
	sl_real.cuInit = init;
	sl_real.cuMemAddressReserve = reserve;
	sl_real.cuMemAddressFree = address_free;
	sl_real.cuMemCreate = create;
	sl_real.cuMemRelease = release;
	sl_real.cuMemMap = map;
	sl_real.cuMemUnmap = unmap;
	sl_real.cuMemSetAccess = set_access;
	sl_real.cuMemGetAllocationGranularity = granularity;
	sl_real.cuMemExportToShareableHandle = export_handle;
	sl_real.cuMemImportFromShareableHandle = import_handle;
	sl_real.cuDeviceGetAttribute = device_attribute;
	sl_real.cuIpcGetMemHandle = ipc_get;
	sl_real.cuIpcOpenMemHandle_v2 = ipc_open;
	sl_real.cuIpcCloseMemHandle = ipc_close;
	sl_real.cuCtxGetCurrent = get_current;
	sl_real.cuCtxPushCurrent_v2 = push;
	sl_real.cuCtxPopCurrent_v2 = pop;
	sl_real.cuCtxGetDevice = get_device;
	sl_real.cuCtxSynchronize = synchronize;
	sl_real.cuStreamQuery = stream_query;
	sl_real.cuCtxCreate_v2 = ctx_create;
	sl_real.cuCtxDestroy_v2 = ctx_destroy;
	sl_real.cuDevicePrimaryCtxRetain = primary_retain;
	sl_real.cuDevicePrimaryCtxRelease_v2 = primary_release;
	sl_real.cuDevicePrimaryCtxGetState = primary_state;
	sl_real.cuDeviceGetUuid = get_uuid;
	sl_real.cuMemGetInfo_v2 = get_info;
	sl_real.cuDeviceTotalMem_v2 = total_mem;
	sl_real.cuMemAlloc_v2 = native_alloc;
	sl_real.cuMemFree_v2 = native_free;
	sl_real.cuMemFreeAsync = native_free_async;
	sl_real.cuStreamBeginCapture_v2 = begin_capture;
	sl_real.cuStreamBeginCapture_v2_ptsz = begin_capture;
	sl_real.cuStreamEndCapture = end_capture;
	sl_real.cuStreamIsCapturing = is_capturing;
	sl_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	sl_real.cuLaunchKernel = launch;
	sl_real.cuMemGetAddressRange_v2 = range;
	sl_real.cuPointerGetAttribute = attribute;
	sl_real.cuPointerGetAttributes = attributes;
	sl_real.cuMemRetainAllocationHandle = retain_handle;
}
