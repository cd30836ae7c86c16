/*
 * cuda_types_more - structures of the driver's interface for graphs, parts of GPUs, and externals
 *
 * The second half of base/cuda_types.h, which includes it: as there, facts of the interface that
 * tools/check-abi compares with a real cuda.h. Parameters of nodes are those of CUDA 12; what a
 * later version appended to a node's parameters lies inside CUgraphNodeParams' padding.
 */
#ifndef SL_BASE_CUDA_TYPES_MORE_H
#define SL_BASE_CUDA_TYPES_MORE_H

#include "base/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUuserObject_st *CUuserObject;
typedef struct CUlinkState_st *CUlinkState;
typedef cuuint64_t CUgraphConditionalHandle;

/* Contexts made with parameters. */
typedef enum CUexecAffinityType_enum {
	CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0, /* only under MPS */
} CUexecAffinityType;
typedef struct CUexecAffinitySmCount_st {
	unsigned int val;
} CUexecAffinitySmCount;
typedef struct CUexecAffinityParam_st {
	CUexecAffinityType type;
	union {
		CUexecAffinitySmCount smCount;
	} param;
} CUexecAffinityParam;
typedef struct CUctxCigParam_st CUctxCigParam;
typedef struct CUctxCreateParams_st {
	CUexecAffinityParam *execAffinityParams;
	int numExecAffinityParams;
	CUctxCigParam *cigParams;
} CUctxCreateParams;

/* Parts of a GPU, for green contexts. */
typedef enum CUdevResourceType_enum {
	CU_DEV_RESOURCE_TYPE_INVALID = 0,
	CU_DEV_RESOURCE_TYPE_SM = 1,
} CUdevResourceType;
typedef struct CUdevResource_st {
	CUdevResourceType type;
	unsigned char _internal_padding[92];
	union {
		struct {
			unsigned int smCount;
			unsigned int minSmPartitionSize, smCoscheduledAlignment; /* 13 */
		} sm;
		unsigned char _oversize[48];
	};
} CUdevResource;
typedef enum CUgreenCtxCreate_flags_enum {
	CU_GREEN_CTX_DEFAULT_STREAM = 1, /* needed by a context made of it */
} CUgreenCtxCreate_flags;
typedef enum CUatomicOperation_enum {
	CU_ATOMIC_OPERATION_INTEGER_ADD = 0,
	CU_ATOMIC_OPERATION_CAS = 9,
	CU_ATOMIC_OPERATION_FLOAT_MAX = 12,
} CUatomicOperation;
typedef enum CUflushGPUDirectRDMAWritesTarget_enum {
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0,
} CUflushGPUDirectRDMAWritesTarget;
typedef enum CUflushGPUDirectRDMAWritesScope_enum {
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100,
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES = 200,
} CUflushGPUDirectRDMAWritesScope;

/* Memory and semaphores of other interfaces. */
typedef enum CUexternalMemoryHandleType_enum {
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2,
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
} CUexternalMemoryHandleType;
#define CUDA_EXTERNAL_MEMORY_DEDICATED 1
typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st {
	CUexternalMemoryHandleType type;
	union {
		int fd; /* the driver's from a successful import on */
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st {
	unsigned long long offset, size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st {
	unsigned long long offset;
	CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
	unsigned int numLevels;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
typedef enum CUexternalSemaphoreHandleType_enum {
	CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
	CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9,
} CUexternalSemaphoreHandleType;
typedef struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st {
	CUexternalSemaphoreHandleType type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciSyncObj;
	} handle;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st {
	struct {
		struct {
			unsigned long long value;
		} fence;
		union {
			void *fence;
			unsigned long long reserved;
		} nvSciSync;
		struct {
			unsigned long long key;
		} keyedMutex;
		unsigned int reserved[12];
	} params;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st {
	struct {
		struct {
			unsigned long long value;
		} fence;
		union {
			void *fence;
			unsigned long long reserved;
		} nvSciSync;
		struct {
			unsigned long long key;
			unsigned int timeoutMs;
		} keyedMutex;
		unsigned int reserved[10];
	} params;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;

/* Nodes of graphs. */
typedef struct CUDA_KERNEL_NODE_PARAMS_v1_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct CUDA_MEMCPY_NODE_PARAMS_st {
	int flags;
	int reserved;
	CUcontext copyCtx;
	CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;
typedef struct CUDA_MEMSET_NODE_PARAMS_v1_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height; /* width in elements */
} CUDA_MEMSET_NODE_PARAMS;
typedef struct CUDA_MEMSET_NODE_PARAMS_v2_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
	CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;
typedef struct CUDA_HOST_NODE_PARAMS_v1_st {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;
typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st {
	CUcontext ctx;
	unsigned int count;
	CUstreamBatchMemOpParams *paramArray;
	unsigned int flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;
typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr; /* out */
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1_st {
	CUexternalSemaphore *extSemArray;
	const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray;
	unsigned int numExtSems;
} CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1_st {
	CUexternalSemaphore *extSemArray;
	const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray;
	unsigned int numExtSems;
} CUDA_EXT_SEM_WAIT_NODE_PARAMS;
typedef struct CUgraphNodeParams_st {
	CUgraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS kernel;
		CUDA_MEMCPY_NODE_PARAMS memcpy;
		CUDA_MEMSET_NODE_PARAMS_v2 memset;
		CUDA_HOST_NODE_PARAMS host;
		struct {
			CUgraph graph;
			int ownership; /* 0: cloned, 1: taken over (CUDA 13) */
		} graph;
		struct {
			CUevent event;
		} eventWait;
		struct {
			CUevent event;
		} eventRecord;
		CUDA_EXT_SEM_SIGNAL_NODE_PARAMS extSemSignal;
		CUDA_EXT_SEM_WAIT_NODE_PARAMS extSemWait;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		struct {
			CUdeviceptr dptr;
		} free;
		CUDA_BATCH_MEM_OP_NODE_PARAMS memOp;
	};
	long long reserved2;
} CUgraphNodeParams;
typedef CUlaunchAttributeID CUkernelNodeAttrID;
typedef CUlaunchAttributeValue CUkernelNodeAttrValue;

typedef enum CUstreamUpdateCaptureDependencies_flags_enum {
	CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0,
	CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
} CUstreamUpdateCaptureDependencies_flags;
typedef enum CUuserObject_flags_enum {
	CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, /* must be given */
} CUuserObject_flags;
typedef enum CUuserObjectRetain_flags_enum {
	CU_GRAPH_USER_OBJECT_MOVE = 1, /* takes references over instead of adding some */
} CUuserObjectRetain_flags;
typedef enum CUgraphDebugDot_flags_enum {
	CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE = 1,
	CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES = 1 << 10,
} CUgraphDebugDot_flags;

/* Results of updating an executable graph. */
typedef enum CUgraphExecUpdateResult_enum {
	CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
	CU_GRAPH_EXEC_UPDATE_ERROR = 1,
	CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
	CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
	CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
	CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
	CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
} CUgraphExecUpdateResult;
typedef struct CUgraphExecUpdateResultInfo_st {
	CUgraphExecUpdateResult result;
	CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

/* Checkpointing (driver 570 and later). */
typedef enum CUprocessState_enum {
	CU_PROCESS_STATE_RUNNING = 0,
	CU_PROCESS_STATE_LOCKED = 1,
	CU_PROCESS_STATE_CHECKPOINTED = 2,
	CU_PROCESS_STATE_FAILED = 3,
} CUprocessState;
typedef struct CUcheckpointLockArgs_st {
	unsigned int timeoutMs;
	unsigned int reserved0;
	cuuint64_t reserved1[7];
} CUcheckpointLockArgs;
typedef struct CUcheckpointCheckpointArgs_st {
	cuuint64_t reserved[8];
} CUcheckpointCheckpointArgs;
typedef struct CUcheckpointGpuPair_st {
	CUuuid oldUuid, newUuid;
} CUcheckpointGpuPair;
/* Driver 580 and later; reserved before. */
typedef struct CUcheckpointRestoreArgs_st {
	CUcheckpointGpuPair *gpuPairs;
	unsigned int gpuPairsCount;
	char reserved[52];
} CUcheckpointRestoreArgs;
typedef struct CUcheckpointUnlockArgs_st {
	cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

#ifdef __cplusplus
}
#endif

#endif
