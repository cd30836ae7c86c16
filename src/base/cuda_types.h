/*
 * cuda_types - values and structures of the CUDA driver's binary interface
 *
 * Written from the published facts of the interface (names, numbers, layouts), so that neither the
 * build nor the runtime needs NVIDIA's toolkit. tools/check-abi compares every number, size and
 * offset here with a real cuda.h. Only x86-64 and aarch64 Linux; sizes are bytes unless named.
 * Names end as in a program built against CUDA 12: CUDA_MEMCPY2D is the second version.
 *
 * Do not include together with NVIDIA's cuda.h. Functions: base/cuda_abi.h.
 */
#ifndef SL_BASE_CUDA_TYPES_H
#define SL_BASE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDAAPI
#define CUDA_CB

/*
 * Results: X(name without prefix, number, text). The texts are Sluice's own; programs print them.
 */
#define SL_CU_RESULTS(X)                                                                 \
	X(SUCCESS, 0, "no error")                                                        \
	X(ERROR_INVALID_VALUE, 1, "an argument is out of range")                         \
	X(ERROR_OUT_OF_MEMORY, 2, "not enough memory")                                   \
	X(ERROR_NOT_INITIALIZED, 3, "cuInit was not called in this process")             \
	X(ERROR_DEINITIALIZED, 4, "the driver is shutting down")                         \
	X(ERROR_PROFILER_DISABLED, 5, "profiling is off")                                \
	X(ERROR_PROFILER_NOT_INITIALIZED, 6, "the profiler was not set up")              \
	X(ERROR_PROFILER_ALREADY_STARTED, 7, "profiling is on already")                  \
	X(ERROR_PROFILER_ALREADY_STOPPED, 8, "profiling is off already")                 \
	X(ERROR_STUB_LIBRARY, 34, "a stub library stands in for the driver")             \
	X(ERROR_CALL_REQUIRES_NEWER_DRIVER, 36, "the call needs a newer driver")         \
	X(ERROR_DEVICE_UNAVAILABLE, 46, "the device is busy or unavailable")             \
	X(ERROR_MULTICAST_RESOURCE_FULL, 47,                                             \
		"the GPUs can hold no more multicast objects")                           \
	X(ERROR_NO_DEVICE, 100, "no GPU was found")                                      \
	X(ERROR_INVALID_DEVICE, 101, "no GPU has this number")                           \
	X(ERROR_DEVICE_NOT_LICENSED, 102, "the GPU has no licence")                      \
	X(ERROR_INVALID_IMAGE, 200, "the image is no module for this GPU")               \
	X(ERROR_INVALID_CONTEXT, 201, "no usable context is current")                    \
	X(ERROR_CONTEXT_ALREADY_CURRENT, 202, "the context is current already")          \
	X(ERROR_MAP_FAILED, 205, "the mapping failed")                                   \
	X(ERROR_UNMAP_FAILED, 206, "the mapping could not be undone")                    \
	X(ERROR_ARRAY_IS_MAPPED, 207, "the array is mapped")                             \
	X(ERROR_ALREADY_MAPPED, 208, "something is mapped there already")                \
	X(ERROR_NO_BINARY_FOR_GPU, 209, "the image holds no code for this GPU")          \
	X(ERROR_ALREADY_ACQUIRED, 210, "the resource is taken")                          \
	X(ERROR_NOT_MAPPED, 211, "nothing is mapped there")                              \
	X(ERROR_NOT_MAPPED_AS_ARRAY, 212, "the resource is not mapped as an array")      \
	X(ERROR_NOT_MAPPED_AS_POINTER, 213, "the resource is not mapped as a pointer")   \
	X(ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable memory error")                    \
	X(ERROR_UNSUPPORTED_LIMIT, 215, "the GPU does not know this limit")              \
	X(ERROR_CONTEXT_ALREADY_IN_USE, 216, "the context is in use by another thread")  \
	X(ERROR_PEER_ACCESS_UNSUPPORTED, 217, "these GPUs cannot reach each other")      \
	X(ERROR_INVALID_PTX, 218, "the PTX does not compile")                            \
	X(ERROR_INVALID_GRAPHICS_CONTEXT, 219, "the graphics context is of no use here") \
	X(ERROR_NVLINK_UNCORRECTABLE, 220, "NVLink met an error that it cannot mend")    \
	X(ERROR_JIT_COMPILER_NOT_FOUND, 221, "the PTX compiler is missing")              \
	X(ERROR_UNSUPPORTED_PTX_VERSION, 222, "the PTX is newer than the driver")        \
	X(ERROR_JIT_COMPILATION_DISABLED, 223, "compiling at load time is turned off")   \
	X(ERROR_UNSUPPORTED_EXEC_AFFINITY, 224, "the GPU has no such affinity")          \
	X(ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225,                                           \
		"the code waits for kernels on the GPU, which it cannot")                \
	X(ERROR_CONTAINED, 226, "an error was contained to this process")                \
	X(ERROR_INSUFFICIENT_LOADER_VERSION, 227,                                        \
		"the image was made for a newer driver")                                 \
	X(ERROR_INVALID_SOURCE, 300, "the source is not valid")                          \
	X(ERROR_FILE_NOT_FOUND, 301, "the file was not found")                           \
	X(ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302, "a shared object lacks a symbol")   \
	X(ERROR_SHARED_OBJECT_INIT_FAILED, 303, "a shared object could not be loaded")   \
	X(ERROR_OPERATING_SYSTEM, 304, "a call of the operating system failed")          \
	X(ERROR_INVALID_HANDLE, 400, "the handle names nothing")                         \
	X(ERROR_ILLEGAL_STATE, 401, "the object is in the wrong state for this")         \
	X(ERROR_LOSSY_QUERY, 402, "the answer does not fit the question's form")         \
	X(ERROR_NOT_FOUND, 500, "the name was not found")                                \
	X(ERROR_NOT_READY, 600, "work is still running")                                 \
	X(ERROR_ILLEGAL_ADDRESS, 700, "a kernel or copy touched an illegal address")     \
	X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "the launch asks for too many resources")  \
	X(ERROR_LAUNCH_TIMEOUT, 702, "the kernel ran for too long")                      \
	X(ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703,                                      \
		"the launch mixes two ways of texturing")                                \
	X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is on already")           \
	X(ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access is off")                      \
	X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "the primary context is active")            \
	X(ERROR_CONTEXT_IS_DESTROYED, 709, "the current context was destroyed")          \
	X(ERROR_ASSERT, 710, "an assertion failed in a kernel")                          \
	X(ERROR_TOO_MANY_PEERS, 711, "the GPU has no room for more peers")               \
	X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "the memory is registered already") \
	X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "the memory is not registered")         \
	X(ERROR_HARDWARE_STACK_ERROR, 714, "stack error in a kernel")                    \
	X(ERROR_ILLEGAL_INSTRUCTION, 715, "illegal instruction in a kernel")             \
	X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address in a kernel")               \
	X(ERROR_INVALID_ADDRESS_SPACE, 717, "a kernel used an address of another space") \
	X(ERROR_INVALID_PC, 718, "a kernel jumped to where no code is")                  \
	X(ERROR_LAUNCH_FAILED, 719, "the kernel failed")                                 \
	X(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, "the blocks do not fit at once")      \
	X(ERROR_TENSOR_MEMORY_LEAK, 721, "a kernel left tensor memory allocated")        \
	X(ERROR_NOT_PERMITTED, 800, "not permitted")                                     \
	X(ERROR_NOT_SUPPORTED, 801, "not supported")                                     \
	X(ERROR_SYSTEM_NOT_READY, 802, "the system is not ready for this")               \
	X(ERROR_SYSTEM_DRIVER_MISMATCH, 803, "driver versions do not match")             \
	X(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804,                                     \
		"this GPU takes no compatibility package")                               \
	X(ERROR_MPS_CONNECTION_FAILED, 805, "no connection to the MPS server")           \
	X(ERROR_MPS_RPC_FAILURE, 806, "no word from the MPS server")                     \
	X(ERROR_MPS_SERVER_NOT_READY, 807, "the MPS server is not ready yet")            \
	X(ERROR_MPS_MAX_CLIENTS_REACHED, 808, "the MPS server takes no more clients")    \
	X(ERROR_MPS_MAX_CONNECTIONS_REACHED, 809,                                        \
		"the MPS server takes no more connections")                              \
	X(ERROR_MPS_CLIENT_TERMINATED, 810, "the MPS client was terminated")             \
	X(ERROR_CDP_NOT_SUPPORTED, 811, "kernels cannot start kernels here")             \
	X(ERROR_CDP_VERSION_MISMATCH, 812,                                               \
		"code that starts kernels is of another version")                        \
	X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "not allowed while capturing")          \
	X(ERROR_STREAM_CAPTURE_INVALIDATED, 901, "an earlier error spoiled the capture") \
	X(ERROR_STREAM_CAPTURE_MERGE, 902, "two captures would be joined")               \
	X(ERROR_STREAM_CAPTURE_UNMATCHED, 903, "the stream did not begin this capture")  \
	X(ERROR_STREAM_CAPTURE_UNJOINED, 904, "a forked stream was not joined")          \
	X(ERROR_STREAM_CAPTURE_ISOLATION, 905, "a dependency crosses the capture")       \
	X(ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                            \
		"the legacy stream would join the capture")                              \
	X(ERROR_CAPTURED_EVENT, 907, "the event was recorded in a capture")              \
	X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "another thread began the capture")    \
	X(ERROR_TIMEOUT, 909, "the time ran out")                                        \
	X(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graphs differ too much")            \
	X(ERROR_EXTERNAL_DEVICE, 911, "a device outside this process failed")            \
	X(ERROR_INVALID_CLUSTER_SIZE, 912, "the cluster is too large")                   \
	X(ERROR_FUNCTION_NOT_LOADED, 913, "the function is not loaded")                  \
	X(ERROR_INVALID_RESOURCE_TYPE, 914, "the resource is of another kind")           \
	X(ERROR_INVALID_RESOURCE_CONFIGURATION, 915, "the resources do not go together") \
	X(ERROR_KEY_ROTATION, 916, "the keys of confidential computing must be renewed") \
	X(ERROR_STREAM_DETACHED, 917, "the stream was taken from its context")           \
	X(ERROR_GRAPH_RECAPTURE_FAILURE, 918, "the graph could not be captured anew")    \
	X(ERROR_FABRIC_NOT_READY, 919, "the fabric is not ready yet")                    \
	X(ERROR_UNKNOWN, 999, "unknown error")

typedef enum cudaError_enum {
#define SL_CU_RESULT_ENUM(name, number, text) CUDA_##name = number,
	SL_CU_RESULTS(SL_CU_RESULT_ENUM)
#undef SL_CU_RESULT_ENUM
} CUresult;

/* Handles. Only the driver knows what is behind them. */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1; /* before CUDA 3.2 */
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphDeviceUpdatableNode_st *CUgraphDeviceNode;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef void(CUDA_CB *CUhostFn)(void *user_data);
typedef void(CUDA_CB *CUstreamCallback)(
	CUstream stream, CUresult status, void *user_data);
typedef size_t(CUDA_CB *CUoccupancyB2DSize)(int block_size);

#define CU_STREAM_LEGACY ((CUstream)0x1) /* orders itself with all blocking streams */
#define CU_STREAM_PER_THREAD \
	((CUstream)0x2) /* an ordinary blocking stream of this thread */
#define CU_DEVICE_CPU      ((CUdevice)-1)
#define CU_DEVICE_INVALID  ((CUdevice)-2)
#define CU_IPC_HANDLE_SIZE 64

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;
typedef struct CUmemFabricHandle_st {
	unsigned char data[CU_IPC_HANDLE_SIZE];
} CUmemFabricHandle;
typedef struct CUipcEventHandle_st {
	char reserved[CU_IPC_HANDLE_SIZE];
} CUipcEventHandle;
typedef struct CUipcMemHandle_st {
	char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;
typedef struct CUdevprop_st {
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
	int sharedMemPerBlock, totalConstantMemory;
	int SIMDWidth, memPitch, regsPerBlock, clockRate, textureAlign;
} CUdevprop;

/* Device attributes: X(name without prefix, number). */
#define SL_CU_DEVICE_ATTRIBUTES(X)                            \
	X(MAX_THREADS_PER_BLOCK, 1)                           \
	X(MAX_BLOCK_DIM_X, 2)                                 \
	X(MAX_BLOCK_DIM_Y, 3)                                 \
	X(MAX_BLOCK_DIM_Z, 4)                                 \
	X(MAX_GRID_DIM_X, 5)                                  \
	X(MAX_GRID_DIM_Y, 6)                                  \
	X(MAX_GRID_DIM_Z, 7)                                  \
	X(MAX_SHARED_MEMORY_PER_BLOCK, 8)                     \
	X(TOTAL_CONSTANT_MEMORY, 9)                           \
	X(WARP_SIZE, 10)                                      \
	X(MAX_PITCH, 11)                                      \
	X(MAX_REGISTERS_PER_BLOCK, 12)                        \
	X(CLOCK_RATE, 13)                                     \
	X(TEXTURE_ALIGNMENT, 14)                              \
	X(GPU_OVERLAP, 15)                                    \
	X(MULTIPROCESSOR_COUNT, 16)                           \
	X(KERNEL_EXEC_TIMEOUT, 17)                            \
	X(INTEGRATED, 18)                                     \
	X(CAN_MAP_HOST_MEMORY, 19)                            \
	X(COMPUTE_MODE, 20)                                   \
	X(SURFACE_ALIGNMENT, 30)                              \
	X(CONCURRENT_KERNELS, 31)                             \
	X(ECC_ENABLED, 32)                                    \
	X(PCI_BUS_ID, 33)                                     \
	X(PCI_DEVICE_ID, 34)                                  \
	X(TCC_DRIVER, 35)                                     \
	X(MEMORY_CLOCK_RATE, 36)                              \
	X(GLOBAL_MEMORY_BUS_WIDTH, 37)                        \
	X(L2_CACHE_SIZE, 38)                                  \
	X(MAX_THREADS_PER_MULTIPROCESSOR, 39)                 \
	X(ASYNC_ENGINE_COUNT, 40)                             \
	X(UNIFIED_ADDRESSING, 41)                             \
	X(PCI_DOMAIN_ID, 50)                                  \
	X(TEXTURE_PITCH_ALIGNMENT, 51)                        \
	X(COMPUTE_CAPABILITY_MAJOR, 75)                       \
	X(COMPUTE_CAPABILITY_MINOR, 76)                       \
	X(STREAM_PRIORITIES_SUPPORTED, 78)                    \
	X(GLOBAL_L1_CACHE_SUPPORTED, 79)                      \
	X(LOCAL_L1_CACHE_SUPPORTED, 80)                       \
	X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)           \
	X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82)               \
	X(MANAGED_MEMORY, 83)                                 \
	X(MULTI_GPU_BOARD, 84)                                \
	X(MULTI_GPU_BOARD_GROUP_ID, 85)                       \
	X(HOST_NATIVE_ATOMIC_SUPPORTED, 86)                   \
	X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87)          \
	X(PAGEABLE_MEMORY_ACCESS, 88)                         \
	X(CONCURRENT_MANAGED_ACCESS, 89)                      \
	X(COMPUTE_PREEMPTION_SUPPORTED, 90)                   \
	X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)        \
	X(COOPERATIVE_LAUNCH, 95)                             \
	X(COOPERATIVE_MULTI_DEVICE_LAUNCH, 96)                \
	X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)              \
	X(CAN_FLUSH_REMOTE_WRITES, 98)                        \
	X(HOST_REGISTER_SUPPORTED, 99)                        \
	X(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100)  \
	X(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 101)           \
	X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)           \
	X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)   \
	X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                 \
	X(GENERIC_COMPRESSION_SUPPORTED, 107)                 \
	X(MAX_PERSISTING_L2_CACHE_SIZE, 108)                  \
	X(MAX_ACCESS_POLICY_WINDOW_SIZE, 109)                 \
	X(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)       \
	X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111)              \
	X(SPARSE_CUDA_ARRAY_SUPPORTED, 112)                   \
	X(READ_ONLY_HOST_REGISTER_SUPPORTED, 113)             \
	X(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 114)          \
	X(MEMORY_POOLS_SUPPORTED, 115)                        \
	X(GPU_DIRECT_RDMA_SUPPORTED, 116)                     \
	X(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117)          \
	X(GPU_DIRECT_RDMA_WRITES_ORDERING, 118)               \
	X(MEMPOOL_SUPPORTED_HANDLE_TYPES, 119)                \
	X(CLUSTER_LAUNCH, 120)                                \
	X(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 121)         \
	X(CAN_USE_64_BIT_STREAM_MEM_OPS, 122)                 \
	X(CAN_USE_STREAM_WAIT_VALUE_NOR, 123)                 \
	X(DMA_BUF_SUPPORTED, 124)                             \
	X(IPC_EVENT_SUPPORTED, 125)                           \
	X(MEM_SYNC_DOMAIN_COUNT, 126)                         \
	X(TENSOR_MAP_ACCESS_SUPPORTED, 127)                   \
	X(HANDLE_TYPE_FABRIC_SUPPORTED, 128)                  \
	X(UNIFIED_FUNCTION_POINTERS, 129)                     \
	X(NUMA_CONFIG, 130)                                   \
	X(NUMA_ID, 131)                                       \
	X(MULTICAST_SUPPORTED, 132)                           \
	X(MPS_ENABLED, 133)                                   \
	X(HOST_NUMA_ID, 134)                                  \
	X(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 141) \
	X(HOST_NUMA_MEMORY_POOLS_SUPPORTED, 142)

typedef enum CUdevice_attribute_enum {
#define SL_CU_ATTRIBUTE_ENUM(name, number) CU_DEVICE_ATTRIBUTE_##name = number,
	SL_CU_DEVICE_ATTRIBUTES(SL_CU_ATTRIBUTE_ENUM)
#undef SL_CU_ATTRIBUTE_ENUM
} CUdevice_attribute;

typedef enum CUcomputemode_enum {
	CU_COMPUTEMODE_DEFAULT = 0,
	CU_COMPUTEMODE_PROHIBITED = 2,
	CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
} CUcomputemode;
typedef enum CUdevice_P2PAttribute_enum {
	CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
	CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
	CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
	CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
} CUdevice_P2PAttribute;

/* Attributes of a pointer, with the type of each answer. */
typedef enum CUpointer_attribute_enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,        /* CUcontext */
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,    /* unsigned, CUmemorytype */
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3, /* CUdeviceptr */
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,   /* void * */
	CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,     /* two tokens */
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,    /* unsigned, also settable */
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,      /* unsigned long long */
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,     /* unsigned */
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, /* int */
	CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10, /* unsigned */
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,           /* CUdeviceptr */
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,                 /* size_t */
	CU_POINTER_ATTRIBUTE_MAPPED = 13,                     /* unsigned */
	CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,       /* unsigned, bit mask */
	CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15, /* unsigned */
	CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,               /* unsigned */
	CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,             /* CUmemoryPool */
	CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,               /* size_t */
	CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,          /* CUdeviceptr */
	CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,            /* unsigned long long */
} CUpointer_attribute;

typedef enum CUmemorytype_enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_ARRAY = 3,
	CU_MEMORYTYPE_UNIFIED = 4, /* the driver finds out from the address */
} CUmemorytype;

/* Flags. */
typedef enum CUctx_flags_enum {
	CU_CTX_SCHED_AUTO = 0x00,
	CU_CTX_SCHED_SPIN = 0x01,
	CU_CTX_SCHED_YIELD = 0x02,
	CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
	CU_CTX_SCHED_MASK = 0x07,
	CU_CTX_MAP_HOST = 0x08,
	CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
	CU_CTX_COREDUMP_ENABLE = 0x20,
	CU_CTX_USER_COREDUMP_ENABLE = 0x40,
	CU_CTX_SYNC_MEMOPS = 0x80,
	CU_CTX_FLAGS_MASK = 0xff,
} CUctx_flags;
typedef enum CUstream_flags_enum {
	CU_STREAM_DEFAULT = 0x0,
	CU_STREAM_NON_BLOCKING = 0x1, /* no implicit order with the legacy stream */
} CUstream_flags;
typedef enum CUevent_flags_enum {
	CU_EVENT_DEFAULT = 0x0,
	CU_EVENT_BLOCKING_SYNC = 0x1,
	CU_EVENT_DISABLE_TIMING = 0x2,
	CU_EVENT_INTERPROCESS = 0x4,
} CUevent_flags;
typedef enum CUevent_record_flags_enum {
	CU_EVENT_RECORD_DEFAULT = 0x0,
	CU_EVENT_RECORD_EXTERNAL = 0x1, /* becomes a node of the graph when captured */
} CUevent_record_flags;
typedef enum CUevent_wait_flags_enum {
	CU_EVENT_WAIT_DEFAULT = 0x0,
	CU_EVENT_WAIT_EXTERNAL = 0x1,
} CUevent_wait_flags;
typedef enum CUmemAttach_flags_enum {
	CU_MEM_ATTACH_GLOBAL = 0x1,
	CU_MEM_ATTACH_HOST = 0x2,
	CU_MEM_ATTACH_SINGLE = 0x4,
} CUmemAttach_flags;
typedef enum CUipcMem_flags_enum {
	CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 0x1,
} CUipcMem_flags;
typedef enum CUoccupancy_flags_enum {
	CU_OCCUPANCY_DEFAULT = 0x0,
	CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 0x1,
} CUoccupancy_flags;
#define CU_MEMHOSTALLOC_PORTABLE       0x01
#define CU_MEMHOSTALLOC_DEVICEMAP      0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED  0x04
#define CU_MEMHOSTREGISTER_PORTABLE    0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP   0x02
#define CU_MEMHOSTREGISTER_IOMEMORY    0x04
#define CU_MEMHOSTREGISTER_READ_ONLY   0x08
#define CU_LAUNCH_PARAM_END            ((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)0x02)

typedef enum CUlimit_enum {
	CU_LIMIT_STACK_SIZE = 0,
	CU_LIMIT_PRINTF_FIFO_SIZE = 1,
	CU_LIMIT_MALLOC_HEAP_SIZE = 2,
	CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
	CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
	CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
	CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
} CUlimit;
typedef enum CUfunc_cache_enum {
	CU_FUNC_CACHE_PREFER_NONE = 0,
	CU_FUNC_CACHE_PREFER_SHARED = 1,
	CU_FUNC_CACHE_PREFER_L1 = 2,
	CU_FUNC_CACHE_PREFER_EQUAL = 3,
} CUfunc_cache;
typedef enum CUsharedconfig_enum {
	CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0,
	CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1,
	CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2,
} CUsharedconfig;
typedef enum CUfunction_attribute_enum {
	CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
	CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
	CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
	CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
	CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
	CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
	CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
	CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
	CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
	CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
	CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
} CUfunction_attribute;
typedef enum CUfunctionLoadingState_enum {
	CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
	CU_FUNCTION_LOADING_STATE_LOADED = 1,
} CUfunctionLoadingState;
typedef enum CUmoduleLoadingMode_enum {
	CU_MODULE_EAGER_LOADING = 1,
	CU_MODULE_LAZY_LOADING = 2,
} CUmoduleLoadingMode;
/* Options of the PTX compiler: only those that Sluice passes. */
typedef enum CUjit_option_enum {
	CU_JIT_MAX_REGISTERS = 0,
	CU_JIT_WALL_TIME = 2,
	CU_JIT_INFO_LOG_BUFFER = 3,
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_JIT_OPTIMIZATION_LEVEL = 7,
	CU_JIT_TARGET_FROM_CUCONTEXT = 8,
} CUjit_option;
typedef enum CUlibraryOption_enum {
	CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
	CU_LIBRARY_BINARY_IS_PRESERVED = 1,
} CUlibraryOption;

/* cuGetProcAddress: which default stream, and how the look-up went. */
typedef enum CUdriverProcAddress_flags_enum {
	CU_GET_PROC_ADDRESS_DEFAULT = 0,
	CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
} CUdriverProcAddress_flags;
typedef enum CUdriverProcAddressQueryResult_enum {
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

/* Virtual memory management. */
typedef enum CUmemAllocationHandleType_enum {
	CU_MEM_HANDLE_TYPE_NONE = 0x0,
	CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 0x1,
	CU_MEM_HANDLE_TYPE_WIN32 = 0x2,
	CU_MEM_HANDLE_TYPE_WIN32_KMT = 0x4,
	CU_MEM_HANDLE_TYPE_FABRIC = 0x8,
	CU_MEM_HANDLE_TYPE_MAX = 0x7fffffff,
} CUmemAllocationHandleType;
typedef enum CUmemAccess_flags_enum {
	CU_MEM_ACCESS_FLAGS_PROT_NONE = 0x0,
	CU_MEM_ACCESS_FLAGS_PROT_READ = 0x1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 0x3,
	CU_MEM_ACCESS_FLAGS_PROT_MAX = 0x7fffffff,
} CUmemAccess_flags;
typedef enum CUmemLocationType_enum {
	CU_MEM_LOCATION_TYPE_INVALID = 0x0,
	CU_MEM_LOCATION_TYPE_DEVICE = 0x1,
	CU_MEM_LOCATION_TYPE_HOST = 0x2,
	CU_MEM_LOCATION_TYPE_HOST_NUMA = 0x3,
	CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 0x4,
	CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 0x6, /* part of a device's memory */
	CU_MEM_LOCATION_TYPE_MAX = 0x7fffffff,
} CUmemLocationType;
typedef enum CUmemAllocationType_enum {
	CU_MEM_ALLOCATION_TYPE_INVALID = 0x0,
	CU_MEM_ALLOCATION_TYPE_PINNED = 0x1,
	CU_MEM_ALLOCATION_TYPE_MANAGED = 0x2, /* of pools, since CUDA 13 */
	CU_MEM_ALLOCATION_TYPE_MAX = 0x7fffffff,
} CUmemAllocationType;
typedef enum CUmemAllocationGranularity_flags_enum {
	CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
} CUmemAllocationGranularity_flags;
typedef enum CUmemRangeHandleType_enum {
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 0x1,
	CU_MEM_RANGE_HANDLE_TYPE_MAX = 0x7fffffff,
} CUmemRangeHandleType;

typedef struct CUmemLocation_st {
	CUmemLocationType type;
	int id; /* device ordinal or NUMA node; of no meaning for a plain host location */
} CUmemLocation;
typedef struct CUmemAllocationProp_st {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType; /* 1: generic */
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;
typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	CUmemAccess_flags flags;
} CUmemAccessDesc;
typedef enum CUmulticastGranularity_flags_enum {
	CU_MULTICAST_GRANULARITY_MINIMUM = 0,
	CU_MULTICAST_GRANULARITY_RECOMMENDED = 1,
} CUmulticastGranularity_flags;
typedef struct CUmulticastObjectProp_st {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes;
	unsigned long long flags;
} CUmulticastObjectProp;
typedef cuuint32_t CUlogicalEndpointId;

/* The memory behind parts of sparse arrays. */
typedef enum CUresourcetype_enum {
	CU_RESOURCE_TYPE_ARRAY = 0,
	CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
	CU_RESOURCE_TYPE_LINEAR = 2,
	CU_RESOURCE_TYPE_PITCH2D = 3,
} CUresourcetype;
typedef enum CUarraySparseSubresourceType_enum {
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
} CUarraySparseSubresourceType;
typedef enum CUmemOperationType_enum {
	CU_MEM_OPERATION_TYPE_MAP = 1,
	CU_MEM_OPERATION_TYPE_UNMAP = 2,
} CUmemOperationType;
typedef enum CUmemHandleType_enum {
	CU_MEM_HANDLE_TYPE_GENERIC = 0,
} CUmemHandleType;
typedef struct CUarrayMapInfo_st {
	CUresourcetype resourceType;
	union {
		CUmipmappedArray mipmap;
		CUarray array;
	} resource;
	CUarraySparseSubresourceType subresourceType;
	union {
		struct {
			unsigned int level, layer;
			unsigned int offsetX, offsetY, offsetZ; /* elements */
			unsigned int extentWidth, extentHeight, extentDepth;
		} sparseLevel;
		struct {
			unsigned int layer;
			unsigned long long offset, size; /* bytes of the tail */
		} miptail;
	} subresource;
	CUmemOperationType memOperationType;
	CUmemHandleType memHandleType;
	union {
		CUmemGenericAllocationHandle memHandle;
	} memHandle;
	unsigned long long offset; /* bytes into the handle */
	unsigned int deviceBitMask;
	unsigned int flags;
	unsigned int reserved[2];
} CUarrayMapInfo;

/* Pools. */
typedef enum CUmemPool_attribute_enum {
	CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,   /* int */
	CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,         /* int */
	CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3, /* int */
	CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,    /* uint64: kept at a sync */
	CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5, /* uint64: behind the pool */
	CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
	CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7, /* uint64: handed out */
	CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
	/* From CUDA 13 on. */
	CU_MEMPOOL_ATTR_ALLOCATION_TYPE = 9,        /* CUmemAllocationType */
	CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES = 10,   /* CUmemAllocationHandleType */
	CU_MEMPOOL_ATTR_LOCATION_ID = 11,           /* int */
	CU_MEMPOOL_ATTR_LOCATION_TYPE = 12,         /* CUmemLocationType */
	CU_MEMPOOL_ATTR_MAX_POOL_SIZE = 13,         /* uint64 */
	CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED = 14, /* int */
} CUmemPool_attribute;
typedef struct CUmemPoolProps_st {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;
typedef struct CUmemPoolPtrExportData_st {
	unsigned char reserved[64];
} CUmemPoolPtrExportData;
typedef enum CUgraphMem_attribute_enum {
	CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
	CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
} CUgraphMem_attribute;

/* Managed memory's hints. */
typedef enum CUmem_advise_enum {
	CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
	CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
	CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
	CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
	CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
	CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
} CUmem_advise;
typedef enum CUmem_range_attribute_enum {
	CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
	CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5,
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8,
} CUmem_range_attribute;

/* Arrays. */
typedef enum CUarray_format_enum {
	CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
	CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
	CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
	CU_AD_FORMAT_SIGNED_INT8 = 0x08,
	CU_AD_FORMAT_SIGNED_INT16 = 0x09,
	CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
	CU_AD_FORMAT_HALF = 0x10,
	CU_AD_FORMAT_FLOAT = 0x20,
} CUarray_format;
typedef struct CUDA_ARRAY_DESCRIPTOR_st {
	size_t Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_st {
	size_t Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels;
	unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
#define CUDA_ARRAY3D_LAYERED                      0x01 /* Depth counts layers */
#define CUDA_ARRAY3D_SURFACE_LDST                 0x02
#define CUDA_ARRAY3D_CUBEMAP                      0x04 /* Depth is 6; with layers a multiple */
#define CUDA_ARRAY3D_TEXTURE_GATHER               0x08
#define CUDA_ARRAY3D_DEPTH_TEXTURE                0x10
#define CUDA_ARRAY3D_COLOR_ATTACHMENT             0x20
#define CUDA_ARRAY3D_SPARSE                       0x40
#define CUDA_ARRAY3D_DEFERRED_MAPPING             0x80
#define CUDA_ARRAY3D_VIDEO_ENCODE_DECODE          0x100
#define CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL 0x1
typedef struct CUDA_ARRAY_SPARSE_PROPERTIES_st {
	struct {
		unsigned int width, height, depth; /* elements of a tile */
	} tileExtent;
	unsigned int miptailFirstLevel;
	unsigned long long miptailSize;
	unsigned int flags;
	unsigned int reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;
typedef struct CUDA_ARRAY_MEMORY_REQUIREMENTS_st {
	size_t size;
	size_t alignment;
	unsigned int reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

/* Sources of textures and surfaces; CUresourcetype selects the valid part of res. */
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef enum CUaddress_mode_enum {
	CU_TR_ADDRESS_MODE_WRAP = 0,
	CU_TR_ADDRESS_MODE_CLAMP = 1,
	CU_TR_ADDRESS_MODE_MIRROR = 2,
	CU_TR_ADDRESS_MODE_BORDER = 3,
} CUaddress_mode;
typedef enum CUfilter_mode_enum {
	CU_TR_FILTER_MODE_POINT = 0,
	CU_TR_FILTER_MODE_LINEAR = 1,
} CUfilter_mode;
typedef enum CUresourceViewFormat_enum {
	CU_RES_VIEW_FORMAT_NONE = 0,
	CU_RES_VIEW_FORMAT_UINT_1X8 = 1, /* and many more, which Sluice does not name */
} CUresourceViewFormat;
typedef struct CUDA_RESOURCE_DESC_st {
	CUresourcetype resType;
	union {
		struct {
			CUarray hArray;
		} array;
		struct {
			CUmipmappedArray hMipmappedArray;
		} mipmap;
		struct {
			CUdeviceptr devPtr;
			CUarray_format format;
			unsigned int numChannels;
			size_t sizeInBytes;
		} linear;
		struct {
			CUdeviceptr devPtr;
			CUarray_format format;
			unsigned int numChannels;
			size_t width, height; /* elements */
			size_t pitchInBytes;
		} pitch2D;
		int reserved[32];
	} res;
	unsigned int flags;
} CUDA_RESOURCE_DESC;
typedef struct CUDA_TEXTURE_DESC_st {
	CUaddress_mode addressMode[3];
	CUfilter_mode filterMode;
	unsigned int flags, maxAnisotropy;
	CUfilter_mode mipmapFilterMode;
	float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
	float borderColor[4];
	int reserved[12];
} CUDA_TEXTURE_DESC;
typedef struct CUDA_RESOURCE_VIEW_DESC_st {
	CUresourceViewFormat format;
	size_t width, height, depth;
	unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
	unsigned int reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

/* Copies of two and three dimensions; pitches, widths and x offsets are bytes, y and z are rows. */
typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;
typedef struct CUDA_MEMCPY3D_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
/* As above, with a context at each end. */
typedef struct CUDA_MEMCPY3D_PEER_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	CUcontext srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

/* Batches of copies (CUDA 12.8 and later). */
typedef enum CUmemcpySrcAccessOrder_enum {
	CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
	CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7fffffff,
} CUmemcpySrcAccessOrder;
typedef struct CUmemcpyAttributes_st {
	CUmemcpySrcAccessOrder srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;
typedef enum CUmemcpy3DOperandType_enum {
	CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
	CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
	CU_MEMCPY_OPERAND_TYPE_MAX = 0x7fffffff,
} CUmemcpy3DOperandType;
typedef struct CUoffset3D_st {
	size_t x, y, z;
} CUoffset3D;
typedef struct CUextent3D_st {
	size_t width, height, depth;
} CUextent3D;
typedef struct CUmemcpy3DOperand_st {
	CUmemcpy3DOperandType type;
	union {
		struct {
			CUdeviceptr ptr;
			size_t rowLength, layerHeight;
			CUmemLocation locHint;
		} ptr;
		struct {
			CUarray array;
			CUoffset3D offset;
		} array;
	} op;
} CUmemcpy3DOperand;
typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
	CUmemcpy3DOperand src, dst;
	CUextent3D extent;
	CUmemcpySrcAccessOrder srcAccessOrder;
	unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUmemDecompressParams_st CUmemDecompressParams;

/* Streams that wait for or write single words. */
typedef enum CUstreamWaitValue_flags_enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0, /* signed difference, wraps */
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_STREAM_WAIT_VALUE_AND = 2,
	CU_STREAM_WAIT_VALUE_NOR = 3,
	CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
} CUstreamWaitValue_flags;
typedef enum CUstreamWriteValue_flags_enum {
	CU_STREAM_WRITE_VALUE_DEFAULT = 0,
	CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,
} CUstreamWriteValue_flags;
typedef enum CUstreamBatchMemOpType_enum {
	CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
	CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	CU_STREAM_MEM_OP_BARRIER = 6,
} CUstreamBatchMemOpType;
struct CUstreamMemOpWaitValueParams_st {
	CUstreamBatchMemOpType operation;
	CUdeviceptr address;
	union {
		cuuint32_t value;
		cuuint64_t value64;
	};
	unsigned int flags;
	CUdeviceptr alias;
};
struct CUstreamMemOpWriteValueParams_st {
	CUstreamBatchMemOpType operation;
	CUdeviceptr address;
	union {
		cuuint32_t value;
		cuuint64_t value64;
	};
	unsigned int flags;
	CUdeviceptr alias;
};
typedef union CUstreamBatchMemOpParams_union {
	CUstreamBatchMemOpType operation;
	struct CUstreamMemOpWaitValueParams_st waitValue;
	struct CUstreamMemOpWriteValueParams_st writeValue;
	struct {
		CUstreamBatchMemOpType operation;
		unsigned int flags;
	} flushRemoteWrites, memoryBarrier;
	cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

/* Launches with attributes. */
typedef enum CUaccessProperty_enum {
	CU_ACCESS_PROPERTY_NORMAL = 0,
	CU_ACCESS_PROPERTY_STREAMING = 1,
	CU_ACCESS_PROPERTY_PERSISTING = 2,
} CUaccessProperty;
typedef struct CUaccessPolicyWindow_st {
	void *base_ptr;
	size_t num_bytes;
	float hitRatio;
	CUaccessProperty hitProp, missProp;
} CUaccessPolicyWindow;
typedef enum CUlaunchAttributeID_enum {
	CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
	CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
	CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
	CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
	CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
	CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
	CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
} CUlaunchAttributeID;
typedef union CUlaunchAttributeValue_union {
	char pad[64];
	CUaccessPolicyWindow accessPolicyWindow;
	int cooperative;
	struct {
		unsigned int x, y, z;
	} clusterDim;
	int programmaticStreamSerializationAllowed;
	struct {
		CUevent event;
		int flags;
		int triggerAtBlockStart;
	} programmaticEvent;
	struct {
		CUevent event;
		int flags;
	} launchCompletionEvent;
	int priority;
	unsigned int sharedMemCarveout;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	char pad[4];
	CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef CUlaunchAttributeID CUstreamAttrID;
typedef CUlaunchAttributeValue CUstreamAttrValue;
typedef struct CUlaunchConfig_st {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;
typedef struct CUDA_LAUNCH_PARAMS_st {
	CUfunction function;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	void **kernelParams;
} CUDA_LAUNCH_PARAMS;

/* Capture and graphs. */
typedef enum CUstreamCaptureStatus_enum {
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2, /* must still be ended */
} CUstreamCaptureStatus;
typedef enum CUstreamCaptureMode_enum {
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,       /* unsafe calls of any thread fail */
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, /* only those of the capturing thread */
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,      /* none */
} CUstreamCaptureMode;
typedef enum CUgraphNodeType_enum {
	CU_GRAPH_NODE_TYPE_KERNEL = 0,
	CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	CU_GRAPH_NODE_TYPE_MEMSET = 2,
	CU_GRAPH_NODE_TYPE_HOST = 3,
	CU_GRAPH_NODE_TYPE_GRAPH = 4,
	CU_GRAPH_NODE_TYPE_EMPTY = 5,
	CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
	CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
	CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
} CUgraphNodeType;
typedef struct CUgraphEdgeData_st {
	unsigned char from_port, to_port, type;
	unsigned char reserved[5];
} CUgraphEdgeData;
typedef enum CUgraphInstantiate_flags_enum {
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
} CUgraphInstantiate_flags;
typedef enum CUgraphInstantiateResult_enum {
	CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
	CUDA_GRAPH_INSTANTIATE_ERROR = 1,
	CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
} CUgraphInstantiateResult;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

#ifdef __cplusplus
}
#endif

#include "base/cuda_types_more.h"

#endif
