/*
 * entry-points - reaches the driver by every road programs take, and compares the results
 *
 * The roads: linked; dlopen with dlsym; dlsym(RTLD_DEFAULT); dlvsym; both versions of
 * cuGetProcAddress, linked and found by dlsym. A limit must hold on every road (peer-failures row
 * 14): cuMemGetInfo and cuDeviceTotalMem must say the same everywhere, and an allocation above
 * --limit, if given, must fail on each with out-of-memory.
 */
#include "prog.h"

#include <dlfcn.h>
#include <string.h>

struct road {
	const char *name;
	__typeof__(&cuMemGetInfo_v2) info;
	__typeof__(&cuDeviceTotalMem_v2) total;
	__typeof__(&cuMemAlloc_v2) alloc;
	__typeof__(&cuMemFree_v2) release;
};

typedef void *(*finder)(const char *symbol);

static void *library;
static __typeof__(&cuGetProcAddress) get_v1;
static __typeof__(&cuGetProcAddress_v2) get_v2;

static void *by_dlopen(const char *symbol)
{
	return dlsym(library, symbol);
}

static void *by_default(const char *symbol)
{
	return dlsym(RTLD_DEFAULT, symbol);
}

/* cuGetProcAddress takes the name without its version. */
static void *by_proc_v1(const char *symbol)
{
	void *found = NULL;
	char base[64];

	snprintf(base, sizeof(base), "%.*s", (int)strcspn(symbol, "_"), symbol);
	return get_v1(base, &found, 12000, 0) == CUDA_SUCCESS ? found : NULL;
}

static void *by_proc_v2(const char *symbol)
{
	CUdriverProcAddressQueryResult status;
	void *found = NULL;
	char base[64];

	snprintf(base, sizeof(base), "%.*s", (int)strcspn(symbol, "_"), symbol);
	return get_v2(base, &found, 12000, 0, &status) == CUDA_SUCCESS ? found : NULL;
}

static struct road take(const char *name, finder find)
{
	return (struct road){
		name,
		(__typeof__(&cuMemGetInfo_v2))find("cuMemGetInfo_v2"),
		(__typeof__(&cuDeviceTotalMem_v2))find("cuDeviceTotalMem_v2"),
		(__typeof__(&cuMemAlloc_v2))find("cuMemAlloc_v2"),
		(__typeof__(&cuMemFree_v2))find("cuMemFree_v2"),
	};
}

/* True if this road leads where the first one does. */
static bool walk(const struct road *road, uint64_t expected_total, uint64_t over_bytes)
{
	size_t free_bytes = 0, total = 0, device_total = 0;
	CUdeviceptr at = 0;
	CUresult over = CUDA_SUCCESS;
	bool good;

	if (!road->info || !road->total || !road->alloc || !road->release) {
		prog_say("{\"road\":\"%s\",\"error\":\"a function is missing\"}",
			road->name);
		return false;
	}
	PROG_MUST(road->info(&free_bytes, &total));
	PROG_MUST(road->total(&device_total, 0));
	PROG_MUST(road->alloc(&at, 1 << 20));
	PROG_MUST(road->release(at));
	if (over_bytes)
		over = road->alloc(&at, over_bytes);
	good = total == expected_total && device_total == expected_total &&
	       free_bytes <= total && (!over_bytes || over == CUDA_ERROR_OUT_OF_MEMORY);
	prog_say("{\"road\":\"%s\",\"total_bytes\":%zu,\"device_total_bytes\":%zu,"
		 "\"free_bytes\":%zu,\"over\":\"%s\",\"good\":%d}",
		road->name, total, device_total, free_bytes, prog_error_name(over), good);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t over_bytes = 0;
	const struct prog_option options[] = {
		{"over", PROG_SIZE, &over_bytes, "an allocation that must fail"},
	};
	struct road linked = {"linked", cuMemGetInfo_v2, cuDeviceTotalMem_v2,
		cuMemAlloc_v2, cuMemFree_v2};
	size_t free_bytes, total;
	bool good = true;

	prog_options(argc, argv, "Reaches the driver by every road.", options,
		sizeof(options) / sizeof(options[0]));
	prog_context(0);
	PROG_MUST(cuMemGetInfo_v2(&free_bytes, &total));
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		prog_say("{\"error\":\"dlopen\"}");
		return PROG_DRIVER;
	}
	good &= walk(&linked, total, over_bytes);
	struct road opened = take("dlopen", by_dlopen);
	good &= walk(&opened, total, over_bytes);
	struct road preset = take("default", by_default);
	good &= walk(&preset, total, over_bytes);
	get_v1 = cuGetProcAddress;
	get_v2 = cuGetProcAddress_v2;
	struct road v1 = take("proc-v1", by_proc_v1), v2 = take("proc-v2", by_proc_v2);
	good &= walk(&v1, total, over_bytes);
	good &= walk(&v2, total, over_bytes);
	get_v1 = (__typeof__(get_v1))dlsym(library, "cuGetProcAddress");
	get_v2 = (__typeof__(get_v2))dlsym(library, "cuGetProcAddress_v2");
	v1 = take("dlsym-proc-v1", by_proc_v1);
	v2 = take("dlsym-proc-v2", by_proc_v2);
	good &= walk(&v1, total, over_bytes);
	good &= walk(&v2, total, over_bytes);
	/* The pointer that cuGetProcAddress gives for itself must be no way out. */
	get_v2 = (__typeof__(get_v2))by_proc_v2("cuGetProcAddress");
	v2 = take("proc-proc", by_proc_v2);
	good &= walk(&v2, total, over_bytes);
	prog_say("{\"event\":\"end\",\"total_bytes\":%zu,\"good\":%d}", total, good);
	return good ? PROG_OK : PROG_WRONG;
}
