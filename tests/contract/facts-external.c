/*
 * facts-external - memory and semaphores that come from other interfaces
 *
 * The tests have no second graphics interface. On the software GPU a memfd stands for such an
 * interface's memory, and an eventfd for its semaphore. A real driver accepts neither, so these
 * facts are only about the software GPU.
 */
#include "contract.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANUAL "driver API manual"
#define MODEL  "the software GPU's model"
#define BYTES  (4u << 20)

static void need_model(void)
{
	if (!contract_software())
		contract_skip("needs another interface to import from");
}

/* Another interface's memory, and the mapping by which it is looked at. */
static int foreign(uint32_t **words)
{
	int fd = memfd_create("foreign", 0);

	if (fd < 0 || ftruncate(fd, BYTES) < 0)
		contract_skip("no memfd");
	*words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return fd;
}

static CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory_desc(int fd)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = BYTES};

	desc.handle.fd = fd;
	return desc;
}

FACT(external_memory, MODEL, SAME, "imported memory is read and written by both sides")
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.offset = 4096, .size = 4096};
	CUexternalMemory memory;
	CUdeviceptr at = 0;
	uint32_t *words;

	need_model();
	contract_context();
	desc = memory_desc(foreign(&words));
	OK(cuImportExternalMemory, &memory, &desc);
	OK(cuExternalMemoryGetMappedBuffer, &at, memory, &part);
	words[1024] = 5;
	contract_step(NULL, at, 10, 1);
	OK(cuCtxSynchronize);
	HOLDS(words[1024], ==, 51);
	OK(cuMemsetD32_v2, at + 4, 7, 1);
	OK(cuCtxSynchronize);
	HOLDS(words[1025], ==, 7);
	OK(cuMemFree_v2, at);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
	OK(cuDestroyExternalMemory, memory);
	FAILS(cuDestroyExternalMemory, memory);
}

FACT(external_memory_range, MODEL, SAME, "a buffer lies within what was imported")
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.offset = BYTES - 4096, .size = 8192};
	CUexternalMemory memory;
	CUdeviceptr at;
	uint32_t *words;

	need_model();
	contract_context();
	desc = memory_desc(foreign(&words));
	OK(cuImportExternalMemory, &memory, &desc);
	IS(ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer, &at, memory, &part);
	desc = memory_desc(foreign(&words));
	desc.size = 2ull * BYTES;
	IS(ERROR_INVALID_VALUE, cuImportExternalMemory, &memory, &desc);
}

FACT(external_memory_owned, MANUAL, SAME,
	"a successful import takes the descriptor over, a failed one does not")
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUexternalMemory memory;
	uint32_t *words;
	int fd;

	need_model();
	contract_context();
	fd = foreign(&words);
	desc = memory_desc(fd);
	desc.flags = 0x100;
	FAILS(cuImportExternalMemory, &memory, &desc);
	desc.flags = 0;
	OK(cuImportExternalMemory, &memory, &desc);
	HOLDS(close(fd), ==, -1);
}

FACT(external_memory_lasts, MODEL, SAME, "a mapped buffer outlives the import")
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = BYTES};
	CUexternalMemory memory;
	CUdeviceptr at = 0;
	uint32_t *words;

	need_model();
	contract_context();
	desc = memory_desc(foreign(&words));
	OK(cuImportExternalMemory, &memory, &desc);
	OK(cuExternalMemoryGetMappedBuffer, &at, memory, &whole);
	OK(cuDestroyExternalMemory, memory);
	OK(cuMemsetD32_v2, at, 3, BYTES / 4);
	OK(cuCtxSynchronize);
	HOLDS(words[BYTES / 4 - 1], ==, 3);
	OK(cuMemFree_v2, at);
}

FACT(external_memory_exported, MODEL, SAME,
	"a handle's own descriptor can be imported as external memory")
{
	CUmemAllocationProp prop = contract_prop();
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = BYTES};
	CUmemGenericAllocationHandle handle;
	CUexternalMemory memory;
	CUdeviceptr at = 0, own;
	int fd;

	need_model();
	contract_context();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(cuMemCreate, &handle, BYTES, &prop, 0);
	own = contract_reserve(BYTES);
	OK(cuMemMap, own, BYTES, 0, handle, 0);
	contract_allow(own, BYTES);
	OK(cuMemsetD32_v2, own, 21, 1);
	OK(cuMemExportToShareableHandle, &fd, handle,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	desc = memory_desc(fd);
	OK(cuImportExternalMemory, &memory, &desc);
	OK(cuExternalMemoryGetMappedBuffer, &at, memory, &whole);
	HOLDS(at, !=, own);
	HOLDS(contract_read(at), ==, 21);
}

FACT(external_array, MODEL, SAME, "imported memory can be a mipmapped array")
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC shape = {.numLevels = 2};
	CUmipmappedArray array;
	CUexternalMemory memory;
	CUarray level;
	uint32_t *words, seen[4] = {0};

	need_model();
	contract_context();
	shape.arrayDesc.Width = shape.arrayDesc.Height = 64;
	shape.arrayDesc.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	shape.arrayDesc.NumChannels = 1;
	desc = memory_desc(foreign(&words));
	words[0] = 11;
	words[3] = 14;
	OK(cuImportExternalMemory, &memory, &desc);
	OK(cuExternalMemoryGetMappedMipmappedArray, &array, memory, &shape);
	OK(cuMipmappedArrayGetLevel, &level, array, 0);
	OK(cuMemcpyAtoH_v2, seen, level, 0, sizeof(seen));
	HOLDS(seen[0], ==, 11);
	HOLDS(seen[3], ==, 14);
	OK(cuMipmappedArrayDestroy, array);
	OK(cuDestroyExternalMemory, memory);
}

static CUexternalSemaphore import_semaphore(CUexternalSemaphoreHandleType type, int fd)
{
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {.type = type};
	CUexternalSemaphore semaphore;

	desc.handle.fd = fd;
	OK(cuImportExternalSemaphore, &semaphore, &desc);
	return semaphore;
}

FACT(external_semaphore, MODEL, SAME,
	"a stream waits for a binary semaphore, and signals it")
{
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {0};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = {0};
	int fd = eventfd(0, 0), other = dup(fd);
	CUexternalSemaphore semaphore;
	uint64_t one = 1, seen = 0;
	CUdeviceptr word;
	CUstream stream;

	need_model();
	contract_context();
	word = contract_alloc(4);
	semaphore = import_semaphore(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, fd);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuWaitExternalSemaphoresAsync, &semaphore, &wait, 1, stream);
	OK(cuMemsetD32Async, word, 9, 1, stream);
	contract_sleep_ms(50);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	HOLDS(write(other, &one, sizeof(one)), ==, sizeof(one));
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 9);
	OK(cuSignalExternalSemaphoresAsync, &semaphore, &signal, 1, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(read(other, &seen, sizeof(seen)), ==, sizeof(seen));
	HOLDS(seen, ==, 1);
	OK(cuDestroyExternalSemaphore, semaphore);
}

FACT(external_timeline, MODEL, SAME, "a timeline's value is waited for and set")
{
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {0};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = {0};
	CUexternalSemaphore semaphore;
	uint64_t *value;
	uint32_t *words;
	CUstream stream;
	int fd;

	need_model();
	contract_context();
	fd = foreign(&words);
	value = (uint64_t *)words;
	semaphore = import_semaphore(
		CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, fd);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	wait.params.fence.value = 10;
	signal.params.fence.value = 20;
	OK(cuWaitExternalSemaphoresAsync, &semaphore, &wait, 1, stream);
	OK(cuSignalExternalSemaphoresAsync, &semaphore, &signal, 1, stream);
	__atomic_store_n(value, 9, __ATOMIC_RELEASE);
	contract_sleep_ms(50);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	__atomic_store_n(value, 10, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize, stream);
	HOLDS(__atomic_load_n(value, __ATOMIC_ACQUIRE), ==, 20);
}

FACT(external_captured, MODEL, SAME, "signals and waits are captured as nodes")
{
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {0};
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS seen;
	CUexternalSemaphore semaphore;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraphNode node;
	CUstream stream;
	CUgraph graph;
	uint32_t *words;
	size_t count = 1;
	int fd;

	need_model();
	contract_context();
	fd = foreign(&words);
	semaphore = import_semaphore(
		CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, fd);
	signal.params.fence.value = 6;
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuSignalExternalSemaphoresAsync, &semaphore, &signal, 1, stream);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphGetNodes, graph, &node, &count);
	OK(cuGraphNodeGetType, node, &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
	OK(cuGraphExternalSemaphoresSignalNodeGetParams, node, &seen);
	HOLDS(seen.numExtSems, ==, 1);
	HOLDS(seen.paramsArray[0].params.fence.value, ==, 6);
	HOLDS(words[0], ==, 0);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(words[0], ==, 6);
}

FACT(external_rubbish, MANUAL, SAME, "what is no semaphore is refused")
{
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {
		.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD};
	CUexternalSemaphore semaphore;

	contract_context();
	desc.handle.fd = -1;
	FAILS(cuImportExternalSemaphore, &semaphore, &desc);
	IS(ERROR_INVALID_VALUE, cuImportExternalSemaphore, NULL, &desc);
}
