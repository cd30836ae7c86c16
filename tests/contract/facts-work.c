/*
 * facts-work - copies, memsets, modules, launches, and what happens when a kernel goes wrong
 */
#include "contract.h"
#include "prog.h"

#include <stdlib.h>

#define MANUAL "driver API manual"

FACT(copy_round_trip, MANUAL, SAME, "what is copied in comes out, in any size and place")
{
	enum { BYTES = 1 << 20 };
	static unsigned char sent[BYTES], seen[BYTES];
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(BYTES + 64);
	for (int i = 0; i < BYTES; i++)
		sent[i] = (unsigned char)(i * 7 + (i >> 8));
	for (size_t bytes = 1; bytes <= BYTES; bytes = bytes * 5 + 3) {
		OK(cuMemcpyHtoD_v2, at + bytes % 64, sent + 1 % bytes, bytes - 1 % bytes);
		memset(seen, 0, bytes);
		OK(cuMemcpyDtoH_v2, seen, at + bytes % 64, bytes - 1 % bytes);
		HOLDS(memcmp(seen, sent + 1 % bytes, bytes - 1 % bytes), ==, 0);
	}
}

FACT(copy_nothing, MANUAL, SAME, "a copy of no bytes succeeds")
{
	CUdeviceptr at;
	char byte = 0;

	contract_context();
	at = contract_alloc(4096);
	OK(cuMemcpyHtoD_v2, at, &byte, 0);
	OK(cuMemcpyDtoH_v2, &byte, at, 0);
	OK(cuMemcpyDtoD_v2, at, at + 1024, 0);
}

FACT(copy_null, MANUAL, SAME, "a copy from or to nowhere is refused")
{
	CUdeviceptr at;
	char byte = 0;

	contract_context();
	at = contract_alloc(4096);
	IS(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2, at, NULL, 16);
	IS(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2, (CUdeviceptr)0, &byte, 1);
}

FACT(copy_beyond, MANUAL, SAME,
	"a copy past the end of an allocation is refused, and is not sticky")
{
	static char data[8192];
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64 << 20);
	IS(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2, at + (64 << 20) - 4096, data, 8192);
	OK(cuMemcpyHtoD_v2, at, data, 8192);
}

FACT(copy_freed, MANUAL, SAME, "a copy to freed memory is refused, and is not sticky")
{
	static char data[4096];
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64 << 20);
	OK(cuMemFree_v2, at);
	IS(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2, at, data, sizeof(data));
	OK(cuCtxSynchronize);
}

FACT(copy_out_waits, MANUAL, SAME,
	"a copy to the host waits for the legacy stream's work")
{
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(4);
	contract_spin(NULL, 200);
	contract_step(NULL, word, 0, 19);
	HOLDS(contract_read(word), ==, 19);
	OK(cuStreamQuery, NULL);
}

FACT(copy_in_staged, MANUAL, SAME,
	"pageable memory may be changed once an asynchronous copy returned")
{
	static uint32_t source[1024];
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(4096);
	contract_spin(NULL, 200);
	source[0] = 1;
	OK(cuMemcpyHtoDAsync_v2, at, source, 4096, NULL);
	source[0] = 2;
	HOLDS(contract_read(at), ==, 1);
}

FACT(copy_device_async, MANUAL, SAME,
	"a copy within the device does not hold the caller up")
{
	CUdeviceptr at;
	uint64_t start;

	contract_context();
	at = contract_alloc(1 << 20);
	contract_spin(NULL, 1);
	OK(cuCtxSynchronize);
	start = contract_now_ms();
	contract_spin(NULL, 400);
	OK(cuMemcpyDtoD_v2, at, at + 4096, 4096);
	HOLDS(contract_now_ms() - start, <, 300);
	OK(cuCtxSynchronize);
}

FACT(copy_any, MANUAL, SAME, "cuMemcpy finds the direction by itself")
{
	uint32_t sent = 55, seen = 0;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(8);
	OK(cuMemcpy, at, (CUdeviceptr)(uintptr_t)&sent, 4);
	OK(cuMemcpy, at + 4, at, 4);
	OK(cuMemcpy, (CUdeviceptr)(uintptr_t)&seen, at + 4, 4);
	HOLDS(seen, ==, 55);
}

FACT(copy_2d, MANUAL, SAME, "a rectangle is copied row by row")
{
	unsigned char in[8 * 16], out[4 * 4] = {0};
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE};
	CUdeviceptr at;

	contract_context();
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)i;
	at = contract_alloc(64 * 8);
	copy.srcHost = in;
	copy.srcPitch = 16;
	copy.dstDevice = at;
	copy.dstPitch = 64;
	copy.WidthInBytes = 16;
	copy.Height = 8;
	OK(cuMemcpy2D_v2, &copy);
	copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_HOST};
	copy.srcDevice = at;
	copy.srcPitch = 64;
	copy.srcXInBytes = 3;
	copy.srcY = 2;
	copy.dstHost = out;
	copy.dstPitch = 4;
	copy.WidthInBytes = 4;
	copy.Height = 4;
	OK(cuMemcpy2D_v2, &copy);
	for (unsigned int y = 0; y < 4; y++)
		for (unsigned int x = 0; x < 4; x++)
			HOLDS(out[y * 4 + x], ==, (y + 2) * 16 + x + 3);
}

FACT(copy_peer_self, MANUAL, SAME, "a peer copy may stay on one device")
{
	CUcontext context = contract_context();
	CUdeviceptr at = contract_alloc(8);

	OK(cuMemsetD32_v2, at, 3, 1);
	OK(cuMemcpyPeer, at + 4, context, at, context, 4);
	HOLDS(contract_read(at + 4), ==, 3);
}

FACT(memset_widths, MANUAL, SAME, "memory is set by bytes, halves and words")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64);
	OK(cuMemsetD8_v2, at, 0x11, 64);
	OK(cuMemsetD16_v2, at + 16, 0x2222, 8);
	OK(cuMemsetD32_v2, at + 32, 0x33333333, 4);
	HOLDS(contract_read(at + 12), ==, 0x11111111);
	HOLDS(contract_read(at + 16), ==, 0x22222222);
	HOLDS(contract_read(at + 44), ==, 0x33333333);
	HOLDS(contract_read(at + 48), ==, 0x11111111);
}

FACT(memset_align, MANUAL, SAME, "words are set at addresses of words")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64);
	IS(ERROR_INVALID_VALUE, cuMemsetD32_v2, at + 2, 0, 1);
	IS(ERROR_INVALID_VALUE, cuMemsetD16_v2, at + 1, 0, 1);
}

FACT(memset_beyond, MANUAL, SAME, "setting past the end of an allocation is refused")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64 << 20);
	IS(ERROR_INVALID_VALUE, cuMemsetD8_v2, at + (64 << 20) - 4096, 0, 8192);
}

FACT(memset_nothing, MANUAL, SAME, "setting no elements succeeds")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(64);
	OK(cuMemsetD8_v2, at, 1, 0);
}

FACT(memset_async, MANUAL, SAME, "setting device memory does not hold the caller up")
{
	CUdeviceptr at;
	uint64_t start;

	contract_context();
	at = contract_alloc(4096);
	contract_spin(NULL, 1);
	OK(cuCtxSynchronize);
	start = contract_now_ms();
	contract_spin(NULL, 400);
	OK(cuMemsetD8_v2, at, 1, 4096);
	HOLDS(contract_now_ms() - start, <, 300);
	IS(ERROR_NOT_READY, cuStreamQuery, NULL);
}

FACT(module_bad, MANUAL, SAME,
	"what is no image cannot be loaded, and the context lives on")
{
	CUmodule module;

	contract_context();
	FAILS(cuModuleLoadData, &module, "this is no program for a GPU");
	contract_alloc(4096);
}

FACT(module_missing, MANUAL, SAME, "a file that is not there gives FILE_NOT_FOUND")
{
	CUmodule module;

	contract_context();
	IS(ERROR_FILE_NOT_FOUND, cuModuleLoad, &module, "/nonexistent/kernels.ptx");
}

FACT(module_context, MANUAL, SAME, "loading needs a context")
{
	CUmodule module;

	OK(cuInit, 0);
	IS(ERROR_INVALID_CONTEXT, cuModuleLoadData, &module,
		contract_software() ? prog_host_image : prog_ptx_image);
}

FACT(module_names, MANUAL, SAME,
	"functions and variables are found by name, others are not")
{
	CUmodule module;
	CUfunction function;
	CUdeviceptr at = 0;
	size_t bytes = 0;

	contract_context();
	module = contract_module();
	OK(cuModuleGetFunction, &function, module, "prog_fill");
	IS(ERROR_NOT_FOUND, cuModuleGetFunction, &function, module, "no_such_kernel");
	OK(cuModuleGetGlobal_v2, &at, &bytes, module, "prog_global");
	HOLDS(bytes, ==, 16);
	HOLDS(at, !=, 0);
	IS(ERROR_NOT_FOUND, cuModuleGetGlobal_v2, &at, &bytes, module,
		"no_such_variable");
}

FACT(module_global, MANUAL, SAME,
	"a variable starts at zero, and kernels and copies see the same one")
{
	CUmodule module;
	CUfunction function;
	CUdeviceptr at;
	size_t bytes;
	uint32_t value = 88;
	void *args[] = {&value};

	contract_context();
	module = contract_module();
	OK(cuModuleGetGlobal_v2, &at, &bytes, module, "prog_global");
	HOLDS(contract_read(at), ==, 0);
	OK(cuModuleGetFunction, &function, module, "prog_set_global");
	HOLDS(contract_launch(function, NULL, args), ==, CUDA_SUCCESS);
	HOLDS(contract_read(at), ==, 88);
}

FACT(module_twice, MANUAL, SAME, "an image loaded twice has its variables twice")
{
	CUdeviceptr first, second;
	size_t bytes;

	contract_context();
	OK(cuModuleGetGlobal_v2, &first, &bytes, contract_module(), "prog_global");
	OK(cuModuleGetGlobal_v2, &second, &bytes, contract_module(), "prog_global");
	HOLDS(first, !=, second);
	OK(cuMemsetD32_v2, first, 1, 1);
	HOLDS(contract_read(second), ==, 0);
}

FACT(module_unload, MANUAL, SAME, "a module can be unloaded and loaded again")
{
	contract_context();
	for (int i = 0; i < 3; i++)
		OK(cuModuleUnload, contract_module());
	OK(cuModuleUnload, contract_module());
}

FACT(library_load, MANUAL, SAME, "a library's kernels launch like a module's functions")
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr word;
	uint32_t factor = 0, add = 21;
	void *args[] = {&word, &factor, &add};

	contract_context();
	word = contract_alloc(4);
	OK(cuLibraryLoadData, &library,
		contract_software() ? prog_host_image : prog_ptx_image, NULL, NULL, 0,
		NULL, NULL, 0);
	OK(cuLibraryGetKernel, &kernel, library, "prog_step");
	OK(cuKernelGetFunction, &function, kernel);
	HOLDS(contract_launch(function, NULL, args), ==, CUDA_SUCCESS);
	HOLDS(contract_read(word), ==, 21);
	HOLDS(contract_launch((CUfunction)kernel, NULL, args), ==, CUDA_SUCCESS);
	OK(cuLibraryUnload, library);
}

FACT(launch_grid, MANUAL, SAME, "every thread of every block runs once")
{
	enum { WORDS = 10000 };
	uint64_t count = WORDS, stride = 1;
	static uint32_t seen[WORDS];
	uint32_t seed = 9;
	CUdeviceptr at;
	void *args[] = {&at, &count, &stride, &seed};

	contract_context();
	at = contract_alloc(WORDS * 4);
	OK(cuLaunchKernel, contract_kernel("prog_fill"), (WORDS + 127) / 128, 1, 1, 128,
		1, 1, 0, NULL, args, NULL);
	OK(cuMemcpyDtoH_v2, seen, at, WORDS * 4);
	for (uint64_t i = 0; i < WORDS; i++)
		HOLDS(seen[i], ==, prog_mix(seed, i));
}

FACT(launch_extra, MANUAL, SAME, "arguments may come in one buffer")
{
	struct {
		CUdeviceptr word;
		uint32_t factor, add;
	} buffer = {0, 0, 64};
	size_t bytes = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};

	contract_context();
	buffer.word = contract_alloc(4);
	OK(cuLaunchKernel, contract_kernel("prog_step"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
		extra);
	HOLDS(contract_read(buffer.word), ==, 64);
}

FACT(launch_args_copied, MANUAL, SAME, "arguments are read before the launch returns")
{
	uint32_t factor = 0, add = 5;
	CUdeviceptr word;
	void *args[] = {&word, &factor, &add};

	contract_context();
	word = contract_alloc(4);
	contract_spin(NULL, 200);
	HOLDS(contract_launch(contract_kernel("prog_step"), NULL, args), ==,
		CUDA_SUCCESS);
	add = 6;
	HOLDS(contract_read(word), ==, 5);
}

FACT(launch_too_wide, MANUAL, SAME,
	"too many threads for a block are refused, and nothing is broken")
{
	CUfunction empty;

	contract_context();
	empty = contract_kernel("prog_empty");
	IS(ERROR_INVALID_VALUE, cuLaunchKernel, empty, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL,
		NULL);
	IS(ERROR_INVALID_VALUE, cuLaunchKernel, empty, 0, 1, 1, 1, 1, 1, 0, NULL, NULL,
		NULL);
	IS(ERROR_INVALID_VALUE, cuLaunchKernel, empty, 1, 1, 1, 0, 1, 1, 0, NULL, NULL,
		NULL);
	OK(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	OK(cuCtxSynchronize);
}

FACT(launch_ex, MANUAL, SAME, "cuLaunchKernelEx launches as well")
{
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
	uint32_t factor = 0, add = 12;
	CUdeviceptr word;
	void *args[] = {&word, &factor, &add};

	contract_context();
	word = contract_alloc(4);
	OK(cuLaunchKernelEx, &config, contract_kernel("prog_step"), args, NULL);
	HOLDS(contract_read(word), ==, 12);
}

FACT(function_attributes, MANUAL, SAME, "a function tells its limits")
{
	CUmodule module = NULL;
	int value = 0;

	contract_context();
	OK(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
		contract_kernel("prog_fill"));
	HOLDS(value, >=, 32);
	OK(cuFuncGetModule, &module, contract_kernel("prog_fill"));
	HOLDS((uintptr_t)module, !=, 0);
}

/* A kernel that writes where nothing is. */
static void break_context(void)
{
	CUdeviceptr nowhere = 0x10;
	uint32_t value = 1;
	void *args[] = {&nowhere, &value};

	HOLDS(contract_launch(contract_kernel("prog_poke"), NULL, args), ==,
		CUDA_SUCCESS);
}

FACT(fault, MANUAL, SAME,
	"a kernel that writes to a bad address gives ILLEGAL_ADDRESS at the next wait")
{
	contract_context();
	break_context();
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
}

FACT(fault_sticky, MANUAL, SAME, "and every later call of the context gives it too")
{
	CUdeviceptr at, good;
	CUstream stream;
	uint32_t seen;

	contract_context();
	good = contract_alloc(4096);
	break_context();
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	IS(ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2, &at, 4096);
	IS(ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH_v2, &seen, good, 4);
	IS(ERROR_ILLEGAL_ADDRESS, cuStreamCreate, &stream, 0);
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	IS(ERROR_ILLEGAL_ADDRESS, cuMemFree_v2, good);
}

FACT(fault_mapped, MANUAL, SAME, "nor does the driver number mapped memory after a fault")
{
	unsigned long long id = 0;
	CUdeviceptr at;

	contract_context();
	OK(cuMemAddressReserve, &at, contract_grain(), 0, 0, 0);
	OK(cuMemMap, at, contract_grain(), 0, contract_handle(contract_grain()), 0);
	OK(cuPointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	break_context();
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	IS(ERROR_ILLEGAL_ADDRESS, cuPointerGetAttribute, &id,
		CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
}

FACT(fault_freed, MANUAL, SAME,
	"a kernel that writes to freed memory of a large allocation faults")
{
	CUdeviceptr at;
	uint32_t value = 1;
	void *args[] = {&at, &value};
	CUfunction poke;

	contract_context();
	poke = contract_kernel("prog_poke");
	at = contract_alloc(256 << 20);
	OK(cuMemFree_v2, at);
	OK(cuCtxSynchronize);
	HOLDS(contract_launch(poke, NULL, args), ==, CUDA_SUCCESS);
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
}

/* Second process: a healthy program, while the first one's context is broken. */
int contract_work_healthy(void)
{
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(4);
	contract_step(NULL, word, 0, 33);
	HOLDS(contract_read(word), ==, 33);
	return 0;
}

FACT(fault_alone, MANUAL, SAME, "other processes do not notice")
{
	contract_context();
	break_context();
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	HOLDS(contract_again("work_healthy", -1, NULL, 0), ==, 0);
}

FACT(fault_names, MANUAL, SAME, "calls that need no context still work after a fault")
{
	int count = 0;
	size_t total = 0;

	contract_context();
	break_context();
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	OK(cuDeviceGetCount, &count);
	OK(cuDeviceTotalMem_v2, &total, 0);
	OK(cuInit, 0);
}
