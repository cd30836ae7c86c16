/*
 * help - looking functions up, comparing, and the few things most facts need
 *
 * Every comparison that fails prints both values and ends the fact's process: what comes after a
 * wrong answer tells nothing.
 */
#include "contract.h"
#include "prog.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *find_in(void **library, const char *file, const char *name)
{
	static char why[160];
	void *found;

	if (!*library)
		*library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
	if (!*library) {
		snprintf(why, sizeof(why), "no %s", file);
		contract_skip(why);
	}
	found = dlsym(*library, name);
	if (!found) {
		snprintf(why, sizeof(why), "%s lacks %s", file, name);
		contract_skip(why);
	}
	return found;
}

void *contract_find(const char *name)
{
	static void *library;

	return find_in(&library, "libcuda.so.1", name);
}

void *contract_find_nvml(const char *name)
{
	static void *library;

	return find_in(&library, "libnvidia-ml.so.1", name);
}

/* exit() would run the driver's own clean-up, which a hung kernel can hold for ever. */
static void leave(int status) __attribute__((noreturn));
static void leave(int status)
{
	fflush(stdout);
	_exit(status);
}

void contract_skip(const char *why)
{
	printf("%s\n", why);
	leave(77);
}

void contract_is(
	CUresult want, CUresult got, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	if (got == CUDA_ERROR_NOT_SUPPORTED) {
		char why[160];

		snprintf(why, sizeof(why), "not supported here: %.100s", call);
		contract_skip(why);
	}
	printf("%s:%d: %s: expected %s, got ", file, line, call, prog_error_name(want));
	printf("%s\n", prog_error_name(got));
	leave(1);
}

void contract_fails(CUresult got, const char *call, const char *file, int line)
{
	if (got != CUDA_SUCCESS)
		return;
	printf("%s:%d: %s: expected an error, got none\n", file, line, call);
	leave(1);
}

void contract_nvml_is(
	nvmlReturn_t want, nvmlReturn_t got, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	printf("%s:%d: %s: expected %d, got %d\n", file, line, call, want, got);
	leave(1);
}

void contract_differ(unsigned long long a, unsigned long long b, const char *text,
	const char *file, int line)
{
	printf("%s:%d: not %s: %llu and %llu\n", file, line, text, a, b);
	leave(1);
}

bool contract_software(void)
{
	return getenv("SLUICE_SOFTGPU");
}

CUcontext contract_context(void)
{
	CUcontext context;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuCtxSetCurrent, context);
	return context;
}

CUmodule contract_module(void)
{
	CUmodule module;

	OK(cuModuleLoadData, &module,
		contract_software() ? prog_host_image : prog_ptx_image);
	return module;
}

CUfunction contract_kernel(const char *name)
{
	static CUmodule module;
	CUfunction function;

	if (!module)
		module = contract_module();
	OK(cuModuleGetFunction, &function, module, name);
	return function;
}

CUresult contract_launch(CUfunction function, CUstream stream, void **args)
{
	return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

void contract_spin(CUstream stream, unsigned int ms)
{
	uint64_t ns = ms * 1000000ull;
	void *args[] = {&ns};

	contract_is(CUDA_SUCCESS,
		contract_launch(contract_kernel("prog_spin"), stream, args), "spin",
		__FILE__, __LINE__);
}

void contract_step(CUstream stream, CUdeviceptr word, uint32_t factor, uint32_t add)
{
	void *args[] = {&word, &factor, &add};

	contract_is(CUDA_SUCCESS,
		contract_launch(contract_kernel("prog_step"), stream, args), "step",
		__FILE__, __LINE__);
}

CUdeviceptr contract_alloc(size_t bytes)
{
	CUdeviceptr at = 0;

	OK(cuMemAlloc_v2, &at, bytes);
	return at;
}

uint32_t contract_read(CUdeviceptr word)
{
	uint32_t value = 0;

	OK(cuMemcpyDtoH_v2, &value, word, sizeof(value));
	return value;
}

size_t contract_free_bytes(void)
{
	size_t free_bytes = 0, total = 0;

	OK(cuMemGetInfo_v2, &free_bytes, &total);
	return free_bytes;
}

uint64_t contract_now_ms(void)
{
	return prog_now_ms();
}

void contract_sleep_ms(unsigned int ms)
{
	prog_sleep_ms(ms);
}

CUmemAllocationProp contract_prop(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

size_t contract_grain(void)
{
	CUmemAllocationProp prop = contract_prop();
	size_t bytes = 0;

	OK(cuMemGetAllocationGranularity, &bytes, &prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	return bytes;
}

CUmemGenericAllocationHandle contract_handle(size_t bytes)
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle = 0;

	OK(cuMemCreate, &handle, bytes, &prop, 0);
	return handle;
}

CUdeviceptr contract_reserve(size_t bytes)
{
	CUdeviceptr at = 0;

	OK(cuMemAddressReserve, &at, bytes, 0, 0, 0);
	return at;
}

void contract_allow(CUdeviceptr at, size_t bytes)
{
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cuMemSetAccess, at, bytes, &access, 1);
}

int contract_again(const char *helper, int fd3, const void *data, size_t bytes)
{
	int ends[2], status;
	pid_t pid;

	if (pipe(ends) < 0 || (pid = fork()) < 0)
		contract_skip("no second process");
	if (pid == 0) {
		dup2(ends[0], STDIN_FILENO);
		/* A copy loses the flag that closes it in the new program; the same one must,
		 * too. */
		if (fd3 == 3)
			(void)fcntl(3, F_SETFD, 0);
		else if (fd3 >= 0)
			dup2(fd3, 3);
		execl("/proc/self/exe", "contract", "--helper", helper, (char *)NULL);
		_exit(126);
	}
	close(ends[0]);
	if (bytes && write(ends[1], data, bytes) != (ssize_t)bytes)
		contract_skip("no pipe to the second process");
	close(ends[1]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
