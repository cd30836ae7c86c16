/*
 * cuda_abi_more - functions for graphs, parts of GPUs, and memory of other interfaces
 *
 * The second half of base/cuda_abi.h, which includes it; the rules stand there.
 */
#ifndef SL_BASE_CUDA_ABI_MORE_H
#define SL_BASE_CUDA_ABI_MORE_H

#include "base/cuda_abi.h"
#include "base/cuda_types_more.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices, and the profiler. */
CUresult cuDeviceGetExecAffinitySupport(
	int *value, CUexecAffinityType type, CUdevice dev);
CUresult cuDeviceGetNvSciSyncAttributes(void *list, CUdevice dev, int flags);
CUresult cuDeviceGetTexture1DLinearMaxWidth(
	size_t *elements, CUarray_format format, unsigned int channels, CUdevice dev);
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice dev);
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice src,
	CUdevice dst);
CUresult cuFlushGPUDirectRDMAWrites(
	CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope);

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

/* Parts of GPUs, green contexts. */
CUresult cuDeviceGetDevResource(
	CUdevice dev, CUdevResource *resource, CUdevResourceType type);
CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
	const CUdevResource *input, CUdevResource *rest, unsigned int flags,
	unsigned int min_count);
CUresult cuDevResourceGenerateDesc(
	CUdevResourceDesc *desc, CUdevResource *resources, unsigned int count);
CUresult cuGreenCtxGetDevResource(
	CUgreenCtx ctx, CUdevResource *resource, CUdevResourceType type);
CUresult cuGreenCtxRecordEvent(CUgreenCtx ctx, CUevent event);
CUresult cuGreenCtxWaitEvent(CUgreenCtx ctx, CUevent event);
CUresult cuGreenCtxGetId(CUgreenCtx ctx, unsigned long long *id);
CUresult cuCtxGetDevResource(
	CUcontext ctx, CUdevResource *resource, CUdevResourceType type);
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type);
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *ctx);
CUresult cuStreamGetDevResource(
	CUstream stream, CUdevResource *resource, CUdevResourceType type);
SL_CU_SAME(cuStreamGetDevResource, _ptsz);

/* External semaphores. */
CUresult cuImportExternalSemaphore(
	CUexternalSemaphore *semaphore, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc);
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore);

/* Functions and modules. */
CUresult cuFuncGetParamCount(CUfunction function, size_t *count);
CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count);
CUresult cuLibraryGetUnifiedFunction(
	void **function, CUlibrary library, const char *name);
CUresult cuOccupancyMaxActiveClusters(
	int *clusters, CUfunction function, const CUlaunchConfig *config);
CUresult cuOccupancyMaxPotentialClusterSize(
	int *size, CUfunction function, const CUlaunchConfig *config);
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes);
CUresult cuParamSetSize(CUfunction function, unsigned int bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void *data, unsigned int bytes);

/* Capture. */
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
	const CUgraphEdgeData *edges, size_t count, unsigned int flags);
SL_CU_SAME(cuStreamUpdateCaptureDependencies_v2, _ptsz);

/* Graphs: nodes by kind. Each is added behind `count` dependencies. */
#define SL_CU_ADD(kind, ...)                                              \
	CUresult cuGraphAdd##kind##Node(CUgraphNode *node, CUgraph graph, \
		const CUgraphNode *dependencies, size_t count, __VA_ARGS__)
SL_CU_ADD(Kernel, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count,
	const CUDA_KERNEL_NODE_PARAMS *params);
SL_CU_ADD(Memcpy, const CUDA_MEMCPY3D *copy, CUcontext ctx);
SL_CU_ADD(Memset, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx);
SL_CU_ADD(Host, const CUDA_HOST_NODE_PARAMS *params);
SL_CU_ADD(ChildGraph, CUgraph child);
SL_CU_ADD(EventRecord, CUevent event);
SL_CU_ADD(EventWait, CUevent event);
SL_CU_ADD(BatchMemOp, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
SL_CU_ADD(ExternalSemaphoresSignal, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
SL_CU_ADD(ExternalSemaphoresWait, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params);
CUresult cuGraphKernelNodeSetParams(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphKernelNodeSetParams_v2(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src);
CUresult cuGraphKernelNodeGetAttribute(
	CUgraphNode node, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value);
CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode node, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params);
CUresult cuGraphMemsetNodeSetParams(
	CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event);
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event);
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event);
CUresult cuGraphBatchMemOpNodeGetParams(
	CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
CUresult cuGraphBatchMemOpNodeSetParams(
	CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
CUresult cuGraphExternalSemaphoresSignalNodeGetParams(
	CUgraphNode node, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
CUresult cuGraphExternalSemaphoresSignalNodeSetParams(
	CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
CUresult cuGraphExternalSemaphoresWaitNodeGetParams(
	CUgraphNode node, CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
CUresult cuGraphExternalSemaphoresWaitNodeSetParams(
	CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph,
	CUcontext ctx, unsigned int preset, unsigned int flags);

/* Graphs: their shape. */
CUresult cuGraphAddDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count);
CUresult cuGraphRemoveDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count);
CUresult cuGraphGetEdges(
	CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edges, size_t *count);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count);
CUresult cuGraphNodeGetDependencies_v2(
	CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges, size_t *count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *count);
CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges, size_t *count);
CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone);
CUresult cuGraphDestroyNode(CUgraphNode node);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);
CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
	unsigned int references, unsigned int flags);
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count);
CUresult cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags);
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count);

/* Graphs: what was instantiated. */
CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags);
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled);
CUresult cuGraphExecNodeSetParams(
	CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);
CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
	const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx);
CUresult cuGraphExecHostNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphExecChildGraphNodeSetParams(
	CUgraphExec exec, CUgraphNode node, CUgraph child);
CUresult cuGraphExecEventRecordNodeSetEvent(
	CUgraphExec exec, CUgraphNode node, CUevent event);
CUresult cuGraphExecEventWaitNodeSetEvent(
	CUgraphExec exec, CUgraphNode node, CUevent event);
CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec exec,
	CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);

#ifdef __cplusplus
}
#endif

#endif
