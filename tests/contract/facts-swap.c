/*
 * facts-swap - what the driver must do so that a program's memory can be moved to the host and back
 *
 * Host memory here is what Sluice uses for it: a sealed file that several processes know, mapped
 * shared.
 */
#include "contract.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANUAL "driver API manual"
#define RESTS  "Sluice rests on it"
#define BYTES  ((size_t)(8 << 20))

/* A file of bytes as a daemon would make it. */
static int store_fd(size_t bytes)
{
	int fd = memfd_create("contract-store", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		contract_skip("no sealed files here");
	return fd;
}

static uint32_t *store_map(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		contract_skip("no shared mappings here");
	return at;
}

static CUdeviceptr mapped(size_t bytes)
{
	CUdeviceptr at = contract_reserve(bytes);

	OK(cuMemMap, at, bytes, 0, contract_handle(bytes), 0);
	contract_allow(at, bytes);
	return at;
}

/* Until a host's flag is not 0. */
static void CUDA_CB wait_for_flag(void *flag)
{
	while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
		usleep(1000);
}

FACT(swap_pin_file, RESTS, SAME,
	"a sealed file mapped shared can be pinned, and copies reach the file")
{
	CUdeviceptr at;
	int fd = store_fd(BYTES);
	uint32_t *store = store_map(fd, BYTES), *other = store_map(fd, BYTES);

	contract_context();
	at = contract_alloc(BYTES);
	OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuMemsetD32_v2, at, 77, BYTES / 4);
	OK(cuMemcpyDtoH_v2, store, at, BYTES);
	HOLDS(other[BYTES / 4 - 1], ==, 77);
	other[3] = 78;
	OK(cuMemcpyHtoD_v2, at, store, BYTES);
	HOLDS(contract_read(at + 12), ==, 78);
	OK(cuMemHostUnregister, store);
	HOLDS(other[3], ==, 78);
}

FACT(swap_pin_asynchronous, MANUAL, SAME,
	"copies with a pinned file are queued, those with one that is not wait")
{
	int flag = 0;
	uint32_t *store = store_map(store_fd(BYTES), BYTES);
	CUdeviceptr at;
	CUstream stream;

	contract_context();
	at = contract_alloc(BYTES);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuLaunchHostFunc, stream, wait_for_flag, &flag);
	/* Would never return if they waited. */
	OK(cuMemcpyDtoHAsync_v2, store, at, BYTES, stream);
	OK(cuMemcpyHtoDAsync_v2, at, store, BYTES, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize, stream);
}

FACT(swap_pin_portable, MANUAL, SAME,
	"what one context pinned is pinned for another one, too")
{
	uint32_t *store = store_map(store_fd(BYTES), BYTES);
	int flag = 0;
	CUcontext second;
	CUdeviceptr at;
	CUstream stream;

	contract_context();
	OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuCtxCreate_v2, &second, 0, 0);
	at = contract_alloc(BYTES);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuLaunchHostFunc, stream, wait_for_flag, &flag);
	OK(cuMemcpyDtoHAsync_v2, store, at, BYTES, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize, stream);
}

FACT(swap_pin_pieces, RESTS, SAME,
	"pieces of one mapping are pinned and let go one by one")
{
	uint32_t *store = store_map(store_fd(2 * BYTES), 2 * BYTES);
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(BYTES);
	OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuMemHostRegister_v2, store + BYTES / 4, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuMemsetD32_v2, at, 5, BYTES / 4);
	OK(cuMemcpyDtoH_v2, store, at, BYTES);
	OK(cuMemHostUnregister, store);
	OK(cuMemcpyDtoH_v2, store + BYTES / 4, at, BYTES);
	HOLDS(store[BYTES / 2 - 1], ==, 5);
	OK(cuMemHostUnregister, store + BYTES / 4);
}

FACT(swap_pin_anew, RESTS, SAME,
	"what a context pinned that is gone can be pinned anew, once it was let go if it "
	"still has to be")
{
	uint32_t *store = store_map(store_fd(BYTES), BYTES);
	CUcontext second;

	contract_context();
	OK(cuCtxCreate_v2, &second, 0, 0);
	OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuCtxDestroy_v2, second);
	OK(cuCtxSetCurrent, contract_context());
	/* Whether the pages outlive the context is nowhere said. */
	if (CU(cuMemHostRegister_v2)(store, BYTES, CU_MEMHOSTREGISTER_PORTABLE) !=
		CUDA_SUCCESS) {
		OK(cuMemHostUnregister, store);
		OK(cuMemHostRegister_v2, store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	}
}

FACT(swap_round_trip, RESTS, SAME,
	"memory copied out, unmapped, released, made anew and copied in is the program's "
	"as before")
{
	uint32_t *store = store_map(store_fd(BYTES), BYTES);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t before;

	contract_context();
	at = contract_reserve(BYTES);
	handle = contract_handle(BYTES);
	OK(cuMemMap, at, BYTES, 0, handle, 0);
	OK(cuMemRelease, handle);
	contract_allow(at, BYTES);
	OK(cuMemsetD32_v2, at, 11, BYTES / 4);
	contract_step(NULL, at + BYTES - 4, 3, 1);
	OK(cuCtxSynchronize);
	before = contract_free_bytes();
	OK(cuMemcpyDtoH_v2, store, at, BYTES);
	OK(cuMemUnmap, at, BYTES);
	HOLDS(contract_free_bytes(), >=, before + BYTES);
	handle = contract_handle(BYTES);
	OK(cuMemMap, at, BYTES, 0, handle, 0);
	OK(cuMemRelease, handle);
	contract_allow(at, BYTES);
	OK(cuMemcpyHtoD_v2, at, store, BYTES);
	/* Kernels find the new memory behind the old address. */
	contract_step(NULL, at + BYTES - 4, 2, 0);
	HOLDS(contract_read(at), ==, 11);
	HOLDS(contract_read(at + BYTES - 4), ==, 68);
}

FACT(swap_absent, MANUAL, SAME,
	"what has been unmapped cannot be copied, and that is told")
{
	CUdeviceptr at;
	uint32_t seen;

	contract_context();
	at = mapped(BYTES);
	OK(cuMemUnmap, at, BYTES);
	IS(ERROR_INVALID_VALUE, cuMemcpyDtoH_v2, &seen, at, 4);
	IS(ERROR_INVALID_VALUE, cuMemsetD32_v2, at, 0, 1);
}

FACT(swap_graph, RESTS, SAME,
	"a graph made before finds memory that was made anew behind its address")
{
	uint32_t *store = store_map(store_fd(BYTES), BYTES);
	CUdeviceptr at;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	contract_context();
	at = mapped(BYTES);
	OK(cuMemsetD32_v2, at, 1, 1);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuCtxSynchronize);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	contract_step(stream, at, 10, 2);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuMemcpyDtoH_v2, store, at, BYTES);
	OK(cuMemUnmap, at, BYTES);
	OK(cuMemMap, at, BYTES, 0, contract_handle(BYTES), 0);
	contract_allow(at, BYTES);
	OK(cuMemcpyHtoD_v2, at, store, BYTES);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(at), ==, 122);
}

struct mover {
	CUcontext ctx;
	CUmodule module;
	uint32_t *store;
};

/* Everything that moving memory and loading the hash's code does, beside a capture of another
 * thread. */
static void *move_beside(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct mover *mover = arg;
	CUdeviceptr at;
	CUstream stream;

	OK(cuThreadExchangeStreamCaptureMode, &mode);
	OK(cuCtxSetCurrent, mover->ctx);
	mover->module = contract_module();
	at = mapped(BYTES);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemHostRegister_v2, mover->store, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuMemcpyHtoDAsync_v2, at, mover->store, BYTES, stream);
	contract_step(stream, at, 2, 2);
	OK(cuMemcpyDtoHAsync_v2, mover->store, at, BYTES, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuMemUnmap, at, BYTES);
	return NULL;
}

FACT(swap_beside_capture, MANUAL, SAME,
	"a relaxed thread loads code, maps, pins and copies without spoiling another's "
	"capture")
{
	struct mover mover = {.store = store_map(store_fd(BYTES), BYTES)};
	CUdeviceptr word;
	pthread_t thread;
	CUstream stream;
	CUgraph graph;

	mover.ctx = contract_context();
	word = contract_alloc(4096);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuCtxSynchronize);
	*mover.store = 20;
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemsetD32Async, word, 1, 1, stream);
	if (pthread_create(&thread, NULL, move_beside, &mover))
		contract_skip("no second thread");
	pthread_join(thread, NULL);
	HOLDS(*mover.store, ==, 42);
	OK(cuStreamEndCapture, stream, &graph);
	HOLDS(graph != NULL, ==, 1);
}

/* A word that no memory has by accident. */
#define MARK 0x5eC3e7edu

/* First process: fills what there is with the mark, as a tenant would with its data, and ends. */
int contract_swap_tenant(void)
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;
	size_t bytes = 32 << 20;

	contract_context();
	for (int i = 0; i < 8; i++) {
		CUdeviceptr at = contract_reserve(bytes);

		if (CU(cuMemCreate)(&handle, bytes, &prop, 0) != CUDA_SUCCESS)
			break;
		OK(cuMemMap, at, bytes, 0, handle, 0);
		contract_allow(at, bytes);
		OK(cuMemsetD32_v2, at, MARK, bytes / 4);
	}
	OK(cuCtxSynchronize);
	return 0;
}

FACT(swap_no_foreign_bytes, RESTS, SAME,
	"memory that another process had is not to be read")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;
	size_t bytes = 32 << 20, found = 0;
	uint32_t *seen = malloc(bytes);

	contract_context();
	HOLDS(contract_again("swap_tenant", -1, NULL, 0), ==, 0);
	for (int i = 0; i < 8; i++) {
		CUdeviceptr at = contract_reserve(bytes);

		if (CU(cuMemCreate)(&handle, bytes, &prop, 0) != CUDA_SUCCESS)
			break;
		OK(cuMemMap, at, bytes, 0, handle, 0);
		contract_allow(at, bytes);
		OK(cuMemcpyDtoH_v2, seen, at, bytes);
		for (size_t w = 0; w < bytes / 4; w++)
			found += seen[w] == MARK;
	}
	HOLDS(found, ==, 0);
	free(seen);
}
