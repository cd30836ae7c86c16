/*
 * cuda_abi - functions of the CUDA driver, under the names it exports
 *
 * For example cuMemAlloc_v2, which NVIDIA's header reaches by a macro named cuMemAlloc. Two
 * suffixes repeat everywhere: `_ptds` (synchronous calls) and `_ptsz` (stream-ordered ones) are the
 * same call with the per-thread default stream in place of the legacy one; they take their type
 * from the plain function. If a function exists with `_v2` and without, the one without keeps the
 * 32-bit sizes of CUDA before 3.2; these are in the last section. Nothing here is linked; callers
 * look the names up.
 *
 * CUDA 13 gave some base names another shape (cuCtxCreate, cuMemAdvise, cuMemPrefetchAsync): always
 * bind by exported name. Types: base/cuda_types.h. tools/check-abi compares both with a real
 * header.
 */
#ifndef SL_BASE_CUDA_ABI_H
#define SL_BASE_CUDA_ABI_H

#include "base/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declares name##suffix with the type of name. */
#define SL_CU_SAME(name, suffix) extern __typeof__(name) name##suffix

/* Driver and errors. */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **text);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetProcAddress(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status);
CUresult cuGetExportTable(const void **table, const CUuuid *id);

/* Devices. */
CUresult cuDeviceGet(CUdevice *dev, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetLuid(char *luid, unsigned int *node_mask, CUdevice dev);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev);
CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev);
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *bus_id);
CUresult cuDeviceGetPCIBusId(char *bus_id, int len, CUdevice dev);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice src, CUdevice dst);

/* Contexts. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev);
CUresult cuDevicePrimaryCtxRelease(CUdevice dev);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxReset(CUdevice dev);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active);
CUresult cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int count,
	unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v4(
	CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev);
CUresult cuCtxDestroy(CUcontext ctx);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxAttach(CUcontext *ctx, unsigned int flags);
CUresult cuCtxDetach(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *ctx);
CUresult cuCtxGetDevice(CUdevice *dev);
CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx);
CUresult cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxSetFlags(unsigned int flags);
CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxGetCacheConfig(CUfunc_cache *config);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config);
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config);
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxResetPersistingL2Cache(void);
CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event);
CUresult cuCtxWaitEvent(CUcontext ctx, CUevent event);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuGreenCtxCreate(
	CUgreenCtx *ctx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags);
CUresult cuGreenCtxDestroy(CUgreenCtx ctx);
CUresult cuGreenCtxStreamCreate(
	CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority);
CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green);

/* Memory. */
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes,
	size_t height, unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t bytes,
	CUmemRangeHandleType type, unsigned long long flags);
CUresult cuMemAllocHost_v2(void **ptr, size_t bytes);
CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *ptr);
CUresult cuMemHostGetDevicePointer_v2(
	CUdeviceptr *dev_ptr, void *ptr, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr);
CUresult cuPointerGetAttribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
	void **data, CUdeviceptr ptr);
CUresult cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev);
CUresult cuMemAdvise_v2(
	CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t bytes, CUdevice dst, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t bytes, CUmemLocation where,
	unsigned int flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *ptrs, size_t *sizes, size_t count,
	CUmemLocation *where, size_t *where_indices, size_t where_count,
	unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *ptrs, size_t *sizes, size_t count,
	unsigned long long flags, CUstream stream);
CUresult cuMemRangeGetAttribute(void *data, size_t data_bytes,
	CUmem_range_attribute attribute, CUdeviceptr ptr, size_t bytes);
CUresult cuMemRangeGetAttributes(void **data, size_t *data_bytes,
	CUmem_range_attribute *attributes, size_t count, CUdeviceptr ptr, size_t bytes);
CUresult cuStreamAttachMemAsync(
	CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags);
SL_CU_SAME(cuMemPrefetchAsync, _ptsz);
SL_CU_SAME(cuMemPrefetchAsync_v2, _ptsz);
SL_CU_SAME(cuMemPrefetchBatchAsync, _ptsz);
SL_CU_SAME(cuMemDiscardBatchAsync, _ptsz);
SL_CU_SAME(cuStreamAttachMemAsync, _ptsz);
extern __typeof__(cuMemPrefetchBatchAsync) cuMemDiscardAndPrefetchBatchAsync;
SL_CU_SAME(cuMemDiscardAndPrefetchBatchAsync, _ptsz);

/* Virtual memory management. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment,
	CUdeviceptr hint, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes);
CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr);
CUresult cuMemExportToShareableHandle(void *os_handle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *os_handle, CUmemAllocationHandleType type);
CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream);
SL_CU_SAME(cuMemMapArrayAsync, _ptsz);
CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
	CUdeviceptr ptr, size_t bytes, unsigned long long flags);
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags);
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUdeviceptr ptr, size_t bytes, unsigned long long flags);
CUresult cuMulticastUnbind(
	CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t bytes);
CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *prop,
	CUmulticastGranularity_flags option);
CUresult cuLogicalEndpointBindMem(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, CUmemGenericAllocationHandle mem, cuuint64_t mem_offset,
	cuuint64_t bytes, unsigned long long flags);
CUresult cuLogicalEndpointBindAddr(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, void *ptr, cuuint64_t bytes, unsigned long long flags);

/* Pools and stream-ordered allocation. */
CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
SL_CU_SAME(cuMemAllocAsync, _ptsz);
SL_CU_SAME(cuMemAllocFromPoolAsync, _ptsz);
SL_CU_SAME(cuMemFreeAsync, _ptsz);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count);
CUresult cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where);
CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
	CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
	CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(
	CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev);
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool);
CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type);
CUresult cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type);
CUresult cuMemSetMemPool(
	CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool);
CUresult cuDeviceGraphMemTrim(CUdevice dev);
CUresult cuDeviceGetGraphMemAttribute(
	CUdevice dev, CUgraphMem_attribute attr, void *value);
CUresult cuDeviceSetGraphMemAttribute(
	CUdevice dev, CUgraphMem_attribute attr, void *value);

/* Arrays. */
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult cuArrayDestroy(CUarray array);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array);
CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array, CUdevice dev);
CUresult cuArrayGetPlane(CUarray *plane, CUarray array, unsigned int index);
CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
	const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuMipmappedArrayGetLevel(
	CUarray *level_array, CUmipmappedArray array, unsigned int level);
CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUmipmappedArray array);
CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUmipmappedArray array,
	CUdevice dev);

/* Textures and surfaces. */
CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *desc, const CUDA_RESOURCE_VIEW_DESC *view);
CUresult cuTexObjectDestroy(CUtexObject texture);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject texture);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *desc, CUtexObject texture);
CUresult cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *view, CUtexObject texture);
CUresult cuSurfObjectCreate(CUsurfObject *surface, const CUDA_RESOURCE_DESC *resource);
CUresult cuSurfObjectDestroy(CUsurfObject surface);
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject surface);

/* Sharing between processes and with other interfaces. */
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcOpenMemHandle_v2(
	CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuImportExternalMemory(
	CUexternalMemory *mem, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory mem,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc);
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array,
	CUexternalMemory mem, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc);
CUresult cuDestroyExternalMemory(CUexternalMemory mem);
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
	const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count,
	CUstream stream);
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
	const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count,
	CUstream stream);
CUresult cuGraphicsMapResources(
	unsigned int count, CUgraphicsResource *resources, CUstream stream);
CUresult cuGraphicsUnmapResources(
	unsigned int count, CUgraphicsResource *resources, CUstream stream);
CUresult cuGraphicsResourceGetMappedPointer_v2(
	CUdeviceptr *ptr, size_t *bytes, CUgraphicsResource resource);
CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource);
SL_CU_SAME(cuSignalExternalSemaphoresAsync, _ptsz);
SL_CU_SAME(cuWaitExternalSemaphoresAsync, _ptsz);
SL_CU_SAME(cuGraphicsMapResources, _ptsz);
SL_CU_SAME(cuGraphicsUnmapResources, _ptsz);

/* Copies. */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	CUcontext src_ctx, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoA_v2(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes);
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t dst_offset, const void *src, size_t bytes);
CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t src_offset, size_t bytes);
CUresult cuMemcpyAtoA_v2(
	CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	CUcontext src_ctx, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoAAsync_v2(
	CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream);
CUresult cuMemcpyAtoHAsync_v2(
	void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
	size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
	CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
	unsigned long long flags, CUstream stream);
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
	CUmemcpyAttributes *attrs, CUstream stream);
CUresult cuMemcpy3DWithAttributesAsync(
	CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream stream);
CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *params, size_t count,
	unsigned int flags, size_t *error_index, CUstream stream);
SL_CU_SAME(cuMemcpy, _ptds);
SL_CU_SAME(cuMemcpyPeer, _ptds);
SL_CU_SAME(cuMemcpyHtoD_v2, _ptds);
SL_CU_SAME(cuMemcpyDtoH_v2, _ptds);
SL_CU_SAME(cuMemcpyDtoD_v2, _ptds);
SL_CU_SAME(cuMemcpyDtoA_v2, _ptds);
SL_CU_SAME(cuMemcpyAtoD_v2, _ptds);
SL_CU_SAME(cuMemcpyHtoA_v2, _ptds);
SL_CU_SAME(cuMemcpyAtoH_v2, _ptds);
SL_CU_SAME(cuMemcpyAtoA_v2, _ptds);
SL_CU_SAME(cuMemcpy2D_v2, _ptds);
SL_CU_SAME(cuMemcpy2DUnaligned_v2, _ptds);
SL_CU_SAME(cuMemcpy3D_v2, _ptds);
SL_CU_SAME(cuMemcpy3DPeer, _ptds);
SL_CU_SAME(cuMemcpyAsync, _ptsz);
SL_CU_SAME(cuMemcpyPeerAsync, _ptsz);
SL_CU_SAME(cuMemcpyHtoDAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpyDtoHAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpyDtoDAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpyHtoAAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpyAtoHAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpy2DAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpy3DAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpy3DPeerAsync, _ptsz);
SL_CU_SAME(cuMemcpyBatchAsync, _ptsz);
SL_CU_SAME(cuMemcpyBatchAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpy3DBatchAsync, _ptsz);
SL_CU_SAME(cuMemcpy3DBatchAsync_v2, _ptsz);
SL_CU_SAME(cuMemcpyWithAttributesAsync, _ptsz);
SL_CU_SAME(cuMemcpy3DWithAttributesAsync, _ptsz);
SL_CU_SAME(cuMemBatchDecompressAsync, _ptsz);

/* Memsets; counts and widths are elements, pitches bytes. */
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count);
CUresult cuMemsetD2D8_v2(
	CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height);
CUresult cuMemsetD2D16_v2(
	CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height);
CUresult cuMemsetD2D32_v2(
	CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height);
CUresult cuMemsetD8Async(
	CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD16Async(
	CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(
	CUdeviceptr dst, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value,
	size_t width, size_t height, CUstream stream);
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value,
	size_t width, size_t height, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value,
	size_t width, size_t height, CUstream stream);
SL_CU_SAME(cuMemsetD8_v2, _ptds);
SL_CU_SAME(cuMemsetD16_v2, _ptds);
SL_CU_SAME(cuMemsetD32_v2, _ptds);
SL_CU_SAME(cuMemsetD2D8_v2, _ptds);
SL_CU_SAME(cuMemsetD2D16_v2, _ptds);
SL_CU_SAME(cuMemsetD2D32_v2, _ptds);
SL_CU_SAME(cuMemsetD8Async, _ptsz);
SL_CU_SAME(cuMemsetD16Async, _ptsz);
SL_CU_SAME(cuMemsetD32Async, _ptsz);
SL_CU_SAME(cuMemsetD2D8Async, _ptsz);
SL_CU_SAME(cuMemsetD2D16Async, _ptsz);
SL_CU_SAME(cuMemsetD2D32Async, _ptsz);

/* Modules, libraries, functions. */
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
	unsigned int option_count, CUjit_option *options, void **values);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module);
CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int count, CUmodule module);
CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
	CUjit_option *jit_options, void **jit_values, unsigned int jit_count,
	CUlibraryOption *options, void **values, unsigned int count);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path,
	CUjit_option *jit_options, void **jit_values, unsigned int jit_count,
	CUlibraryOption *options, void **values, unsigned int count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library);
CUresult cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int count, CUlibrary library);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuLibraryGetGlobal(
	CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name);
CUresult cuLibraryGetManaged(
	CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel);
CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUresult cuKernelGetAttribute(
	int *value, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev);
CUresult cuKernelSetAttribute(
	CUfunction_attribute attrib, int value, CUkernel kernel, CUdevice dev);
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev);
CUresult cuKernelGetParamInfo(
	CUkernel kernel, size_t index, size_t *offset, size_t *bytes);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attrib, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attrib, int value);
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config);
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config);
CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuFuncGetParamInfo(
	CUfunction function, size_t index, size_t *offset, size_t *bytes);
CUresult cuFuncLoad(CUfunction function);
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction function, int block_size, size_t shared_bytes);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
	CUfunction function, int block_size, size_t shared_bytes, unsigned int flags);
CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block_size,
	CUfunction function, CUoccupancyB2DSize shared_of_block, size_t shared_bytes,
	int limit);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block_size,
	CUfunction function, CUoccupancyB2DSize shared_of_block, size_t shared_bytes,
	int limit, unsigned int flags);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *bytes, CUfunction function, int blocks, int block_size);

/* Launches. */
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
	void **extra);
CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
	unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	CUstream stream, void **params);
CUresult cuLaunchCooperativeKernelMultiDevice(
	CUDA_LAUNCH_PARAMS *list, unsigned int devices, unsigned int flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user_data);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);
CUresult cuStreamAddCallback(
	CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags);
CUresult cuStreamWriteValue32(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWriteValue64(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *list, unsigned int flags);
extern __typeof__(cuStreamWriteValue32) cuStreamWaitValue32;
extern __typeof__(cuStreamWriteValue64) cuStreamWaitValue64;
SL_CU_SAME(cuLaunchKernel, _ptsz);
SL_CU_SAME(cuLaunchKernelEx, _ptsz);
SL_CU_SAME(cuLaunchCooperativeKernel, _ptsz);
SL_CU_SAME(cuLaunchHostFunc, _ptsz);
SL_CU_SAME(cuStreamAddCallback, _ptsz);
/* The value calls: plain names need a module parameter of the kernel driver, _v2 do not. */
SL_CU_SAME(cuStreamWriteValue32, _ptsz);
SL_CU_SAME(cuStreamWriteValue32, _v2);
SL_CU_SAME(cuStreamWriteValue32, _v2_ptsz);
SL_CU_SAME(cuStreamWriteValue64, _ptsz);
SL_CU_SAME(cuStreamWriteValue64, _v2);
SL_CU_SAME(cuStreamWriteValue64, _v2_ptsz);
SL_CU_SAME(cuStreamWaitValue32, _ptsz);
SL_CU_SAME(cuStreamWaitValue32, _v2);
SL_CU_SAME(cuStreamWaitValue32, _v2_ptsz);
SL_CU_SAME(cuStreamWaitValue64, _ptsz);
SL_CU_SAME(cuStreamWaitValue64, _v2);
SL_CU_SAME(cuStreamWaitValue64, _v2_ptsz);
SL_CU_SAME(cuStreamBatchMemOp, _ptsz);
SL_CU_SAME(cuStreamBatchMemOp, _v2);
SL_CU_SAME(cuStreamBatchMemOp, _v2_ptsz);

/* Streams. */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *dev);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green);
CUresult cuStreamCopyAttributes(CUstream dst, CUstream src);
CUresult cuStreamGetAttribute(
	CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value);
CUresult cuStreamSetAttribute(
	CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value);
SL_CU_SAME(cuStreamSynchronize, _ptsz);
SL_CU_SAME(cuStreamQuery, _ptsz);
SL_CU_SAME(cuStreamWaitEvent, _ptsz);
SL_CU_SAME(cuStreamGetFlags, _ptsz);
SL_CU_SAME(cuStreamGetPriority, _ptsz);
SL_CU_SAME(cuStreamGetId, _ptsz);
SL_CU_SAME(cuStreamGetDevice, _ptsz);
SL_CU_SAME(cuStreamGetCtx, _ptsz);
SL_CU_SAME(cuStreamGetCtx_v2, _ptsz);
SL_CU_SAME(cuStreamCopyAttributes, _ptsz);
SL_CU_SAME(cuStreamGetAttribute, _ptsz);
SL_CU_SAME(cuStreamSetAttribute, _ptsz);

/* Events. */
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
SL_CU_SAME(cuEventRecord, _ptsz);
SL_CU_SAME(cuEventRecordWithFlags, _ptsz);

/* Capture and graphs. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuStreamGetCaptureInfo(
	CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
	const CUgraphEdgeData **edges, size_t *count);
CUresult cuStreamUpdateCaptureDependencies(
	CUstream stream, CUgraphNode *dependencies, size_t count, unsigned int flags);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type);
CUresult cuGraphAddEmptyNode(
	CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count,
	CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUdeviceptr ptr);
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	size_t count, CUgraphNodeParams *params);
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params);
CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params);
CUresult cuGraphMemAllocNodeGetParams(
	CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ptr);
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes);
CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithParams(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
	CUgraphExecUpdateResult *result);
CUresult cuGraphExecUpdate_v2(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
SL_CU_SAME(cuStreamBeginCapture, _ptsz);
SL_CU_SAME(cuStreamBeginCapture_v2, _ptsz);
SL_CU_SAME(cuStreamBeginCaptureToGraph, _ptsz);
SL_CU_SAME(cuStreamEndCapture, _ptsz);
SL_CU_SAME(cuStreamIsCapturing, _ptsz);
SL_CU_SAME(cuStreamGetCaptureInfo, _ptsz);
SL_CU_SAME(cuStreamGetCaptureInfo_v2, _ptsz);
SL_CU_SAME(cuStreamGetCaptureInfo_v3, _ptsz);
SL_CU_SAME(cuStreamUpdateCaptureDependencies, _ptsz);
SL_CU_SAME(cuGraphInstantiateWithParams, _ptsz);
SL_CU_SAME(cuGraphUpload, _ptsz);
SL_CU_SAME(cuGraphLaunch, _ptsz);

/* Checkpointing. */
CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state);
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args);
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid);

/* From before CUDA 3.2: 32-bit addresses and sizes. Still exported, but useless on 64 bits. */
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev);
CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes);
CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int bytes);
CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch,
	unsigned int width_bytes, unsigned int height, unsigned int element);
CUresult cuMemFree(CUdeviceptr_v1 ptr);
CUresult cuMemGetAddressRange(
	CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 ptr);
CUresult cuMemAllocHost(void **ptr, unsigned int bytes);
CUresult cuMemHostGetDevicePointer(
	CUdeviceptr_v1 *dev_ptr, void *ptr, unsigned int flags);
CUresult cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags);
CUresult cuModuleGetGlobal(
	CUdeviceptr_v1 *ptr, unsigned int *bytes, CUmodule module, const char *name);
CUresult cuCtxPushCurrent(CUcontext ctx);
CUresult cuCtxPopCurrent(CUcontext *ctx);
CUresult cuMemcpyHtoD(CUdeviceptr_v1 dst, const void *src, unsigned int bytes);
CUresult cuMemcpyDtoH(void *dst, CUdeviceptr_v1 src, unsigned int bytes);
CUresult cuMemcpyDtoD(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes);
CUresult cuMemcpyHtoDAsync(
	CUdeviceptr_v1 dst, const void *src, unsigned int bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync(
	void *dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync(
	CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream);
CUresult cuMemsetD8(CUdeviceptr_v1 dst, unsigned char value, unsigned int count);
CUresult cuMemsetD16(CUdeviceptr_v1 dst, unsigned short value, unsigned int count);
CUresult cuMemsetD32(CUdeviceptr_v1 dst, unsigned int value, unsigned int count);
CUresult cuMemsetD2D8(CUdeviceptr_v1 dst, unsigned int pitch, unsigned char value,
	unsigned int width, unsigned int height);
CUresult cuMemsetD2D16(CUdeviceptr_v1 dst, unsigned int pitch, unsigned short value,
	unsigned int width, unsigned int height);
CUresult cuMemsetD2D32(CUdeviceptr_v1 dst, unsigned int pitch, unsigned int value,
	unsigned int width, unsigned int height);

#ifdef __cplusplus
}
#endif

#include "base/cuda_abi_more.h"

#endif
