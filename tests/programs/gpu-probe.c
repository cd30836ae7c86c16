/*
 * gpu-probe - measures what the design of Sluice rests on, on the GPU at hand
 *
 * Costs of handles by size, copies one way and both ways, pinning, how a dead process's memory
 * comes back, ways to prove a context idle. One line of JSON per figure: what, its parameter, unit,
 * median and worst of the repetitions. On a software GPU it runs as well, which tests the probe;
 * its figures then say nothing about any GPU.
 */
#include "prog.h"
#include "base/nvml_abi.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 64 };

static uint64_t copy_bytes = 1ull << 30, rounds = 20;

/* --- figures --------------------------------------------------------------------------- */

struct series {
	double values[ROUNDS_MAX];
	unsigned int count;
};

static void add(struct series *series, double value)
{
	if (series->count < ROUNDS_MAX)
		series->values[series->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void say(
	const char *what, uint64_t parameter, const char *unit, struct series *series)
{
	if (!series->count)
		return;
	qsort(series->values, series->count, sizeof(double), compare);
	prog_say("{\"figure\":\"%s\",\"parameter\":%llu,\"unit\":\"%s\",\"median\":%.3f,"
		 "\"least\":%.3f,\"most\":%.3f,\"rounds\":%u}",
		what, (unsigned long long)parameter, unit,
		series->values[series->count / 2], series->values[0],
		series->values[series->count - 1], series->count);
}

static double us_since(uint64_t start_ns)
{
	return (double)(prog_now_ns() - start_ns) / 1000;
}

/* --- handles --------------------------------------------------------------------------- */

static void probe_handles(uint64_t bytes)
{
	struct series create = {0}, map = {0}, access = {0}, touch = {0}, unmap = {0},
		      release = {0};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	uint64_t start;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location = prop.location;
	PROG_MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	for (uint64_t i = 0; i < rounds; i++) {
		start = prog_now_ns();
		PROG_MUST(cuMemCreate(&handle, bytes, &prop, 0));
		add(&create, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
		add(&map, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemSetAccess(at, bytes, &desc, 1));
		add(&access, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemsetD8_v2(at, 0, bytes));
		PROG_MUST(cuCtxSynchronize());
		add(&touch, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemUnmap(at, bytes));
		add(&unmap, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemRelease(handle));
		add(&release, us_since(start));
	}
	PROG_MUST(cuMemAddressFree(at, bytes));
	say("cuMemCreate", bytes >> 20, "us", &create);
	say("cuMemMap", bytes >> 20, "us", &map);
	say("cuMemSetAccess", bytes >> 20, "us", &access);
	say("first memset", bytes >> 20, "us", &touch);
	say("cuMemUnmap", bytes >> 20, "us", &unmap);
	say("cuMemRelease", bytes >> 20, "us", &release);
}

static void probe_alloc(uint64_t bytes)
{
	struct series alloc = {0}, release = {0};
	CUdeviceptr at;
	uint64_t start;

	for (uint64_t i = 0; i < rounds; i++) {
		start = prog_now_ns();
		PROG_MUST(cuMemAlloc_v2(&at, bytes));
		add(&alloc, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuMemFree_v2(at));
		add(&release, us_since(start));
	}
	say("cuMemAlloc", bytes >> 10, "us", &alloc);
	say("cuMemFree", bytes >> 10, "us", &release);
}

/* --- copies ---------------------------------------------------------------------------- */

static double gb_per_s(uint64_t bytes, uint64_t start_ns)
{
	return (double)bytes / (double)(prog_now_ns() - start_ns);
}

static void probe_copies(void)
{
	struct series in = {0}, out = {0}, both = {0}, pageable = {0};
	void *first, *second, *plain = malloc(copy_bytes);
	CUstream streams[2];
	CUdeviceptr at;
	uint64_t start;

	if (!plain)
		prog_must(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	memset(plain, 1, copy_bytes);
	PROG_MUST(cuMemAlloc_v2(&at, 2 * copy_bytes));
	PROG_MUST(cuMemAllocHost_v2(&first, copy_bytes));
	PROG_MUST(cuMemAllocHost_v2(&second, copy_bytes));
	memset(first, 1, copy_bytes);
	memset(second, 2, copy_bytes);
	for (int i = 0; i < 2; i++)
		PROG_MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (uint64_t i = 0; i < (rounds < 6 ? rounds : 6); i++) {
		start = prog_now_ns();
		PROG_MUST(cuMemcpyHtoDAsync_v2(at, first, copy_bytes, streams[0]));
		PROG_MUST(cuStreamSynchronize(streams[0]));
		add(&in, gb_per_s(copy_bytes, start));
		start = prog_now_ns();
		PROG_MUST(cuMemcpyDtoHAsync_v2(
			second, at + copy_bytes, copy_bytes, streams[1]));
		PROG_MUST(cuStreamSynchronize(streams[1]));
		add(&out, gb_per_s(copy_bytes, start));
		start = prog_now_ns();
		PROG_MUST(cuMemcpyHtoDAsync_v2(at, first, copy_bytes, streams[0]));
		PROG_MUST(cuMemcpyDtoHAsync_v2(
			second, at + copy_bytes, copy_bytes, streams[1]));
		PROG_MUST(cuStreamSynchronize(streams[0]));
		PROG_MUST(cuStreamSynchronize(streams[1]));
		add(&both, gb_per_s(2 * copy_bytes, start));
		start = prog_now_ns();
		PROG_MUST(cuMemcpyHtoD_v2(at, plain, copy_bytes));
		add(&pageable, gb_per_s(copy_bytes, start));
	}
	say("pinned copy in", copy_bytes >> 20, "GB/s", &in);
	say("pinned copy out", copy_bytes >> 20, "GB/s", &out);
	say("pinned copies both ways, sum", copy_bytes >> 20, "GB/s", &both);
	say("pageable copy in", copy_bytes >> 20, "GB/s", &pageable);
	PROG_MUST(cuMemFreeHost(first));
	PROG_MUST(cuMemFreeHost(second));
	PROG_MUST(cuMemFree_v2(at));
	free(plain);
}

/* Registration of touched memory, in ms per GiB. */
static void probe_pinning(bool huge)
{
	struct series pin = {0}, unpin = {0};
	uint64_t start, grain = 2 << 20;
	uint8_t *raw = mmap(NULL, copy_bytes + grain, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = (uint8_t *)(((uintptr_t)raw + grain - 1) & ~(uintptr_t)(grain - 1));
	double scale = (double)(1ull << 30) / (double)copy_bytes / 1000;

	if (raw == MAP_FAILED)
		prog_must(CUDA_ERROR_OUT_OF_MEMORY, "mmap");
	madvise(at, copy_bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 1, copy_bytes);
	for (int i = 0; i < 5; i++) {
		start = prog_now_ns();
		PROG_MUST(cuMemHostRegister_v2(at, copy_bytes, 0));
		add(&pin, us_since(start) * scale);
		start = prog_now_ns();
		PROG_MUST(cuMemHostUnregister(at));
		add(&unpin, us_since(start) * scale);
	}
	munmap(raw, copy_bytes + grain);
	say(huge ? "register, huge pages" : "register, 4 KiB pages", copy_bytes >> 20,
		"ms/GiB", &pin);
	say(huge ? "unregister, huge pages" : "unregister, 4 KiB pages", copy_bytes >> 20,
		"ms/GiB", &unpin);
}

/* --- idleness -------------------------------------------------------------------------- */

/* What each proof costs when the context is idle, with a few streams around. */
static void probe_idle(CUcontext context)
{
	struct series synchronise = {0}, record = {0}, query = {0}, whole = {0};
	CUresult (*record_context)(CUcontext, CUevent) =
		(CUresult(*)(CUcontext, CUevent))dlsym(RTLD_DEFAULT, "cuCtxRecordEvent");
	CUstream streams[8];
	CUevent event;
	uint64_t start;

	for (int i = 0; i < 8; i++)
		PROG_MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (uint64_t i = 0; i < rounds; i++) {
		start = prog_now_ns();
		PROG_MUST(cuCtxSynchronize());
		add(&synchronise, us_since(start));
		start = prog_now_ns();
		PROG_MUST(cuEventRecord(event, NULL));
		add(&record, us_since(start));
		while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
			;
		start = prog_now_ns();
		PROG_MUST(cuEventQuery(event));
		add(&query, us_since(start));
		if (record_context) {
			CUresult result;

			start = prog_now_ns();
			result = record_context(context, event);
			while (result == CUDA_SUCCESS &&
				cuEventQuery(event) == CUDA_ERROR_NOT_READY)
				;
			if (result == CUDA_SUCCESS)
				add(&whole, us_since(start));
		}
	}
	say("cuCtxSynchronize, idle", 8, "us", &synchronise);
	say("cuEventRecord, idle", 8, "us", &record);
	say("cuEventQuery, done", 8, "us", &query);
	say("cuCtxRecordEvent to done", 8, "us", &whole);
	for (int i = 0; i < 8; i++)
		PROG_MUST(cuStreamDestroy_v2(streams[i]));
	PROG_MUST(cuEventDestroy_v2(event));
}

static void probe_launch(CUmodule module)
{
	CUfunction empty = prog_kernel(module, "prog_empty");
	struct series launch = {0}, through = {0};

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t start = prog_now_ns();

		for (int n = 0; n < 100; n++)
			PROG_MUST(prog_launch(empty, 1, NULL, NULL));
		add(&launch, us_since(start) / 100);
		PROG_MUST(cuCtxSynchronize());
		start = prog_now_ns();
		PROG_MUST(prog_launch(empty, 1, NULL, NULL));
		PROG_MUST(cuCtxSynchronize());
		add(&through, us_since(start));
	}
	say("launch of an empty kernel", 1, "us", &launch);
	say("launch and wait", 1, "us", &through);
}

/* --- death ----------------------------------------------------------------------------- */

static struct {
	nvmlDevice_t device;
	__typeof__(&nvmlDeviceGetMemoryInfo) memory;
} nvml;

static bool nvml_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(&nvmlInit_v2) init;
	__typeof__(&nvmlDeviceGetHandleByPciBusId_v2) by_bus;
	char bus[32];

	if (!library)
		return false;
	init = (__typeof__(init))dlsym(library, "nvmlInit_v2");
	by_bus = (__typeof__(by_bus))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	nvml.memory = (__typeof__(nvml.memory))dlsym(library, "nvmlDeviceGetMemoryInfo");
	PROG_MUST(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	return init && by_bus && nvml.memory && init() == NVML_SUCCESS &&
	       by_bus(bus, &nvml.device) == NVML_SUCCESS;
}

static uint64_t nvml_used(void)
{
	nvmlMemory_t memory = {0};

	nvml.memory(nvml.device, &memory);
	return memory.used;
}

/* The child: holds bytes, says so, runs a kernel for ever if asked, waits for its end. */
static void be_victim(uint64_t bytes, bool busy) __attribute__((noreturn));
static void be_victim(uint64_t bytes, bool busy)
{
	CUdeviceptr at;
	uint32_t never = 1;

	prog_context(0);
	PROG_MUST(cuMemAlloc_v2(&at, bytes));
	PROG_MUST(cuMemsetD8_v2(at, 0, bytes));
	PROG_MUST(cuCtxSynchronize());
	if (busy) {
		void *args[] = {&at, &never};

		PROG_MUST(prog_launch(
			prog_kernel(prog_kernels(), "prog_wait"), 1, NULL, args));
	}
	prog_say("holding");
	for (;;)
		pause();
}

/* From SIGKILL to the end of the process, and from there to NVML seeing the memory back. */
static void probe_death(const char *self, uint64_t bytes, bool busy)
{
	struct series gone = {0}, back = {0};
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	for (int i = 0; i < 5; i++) {
		uint64_t before = nvml_used(), start, limit_ms;
		char line[16];
		int ends[2];
		pid_t pid;

		if (pipe(ends) < 0 || (pid = fork()) < 0)
			return;
		if (pid == 0) {
			dup2(ends[1], STDOUT_FILENO);
			close(ends[0]);
			execl("/proc/self/exe", self, "--victim", text,
				busy ? "--busy" : (char *)NULL, (char *)NULL);
			_exit(127);
		}
		close(ends[1]);
		if (read(ends[0], line, sizeof(line)) <= 0) {
			prog_say("{\"error\":\"the victim did not start\"}");
			return;
		}
		start = prog_now_ns();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		add(&gone, us_since(start) / 1000);
		limit_ms = prog_now_ms() + 20000;
		while (nvml_used() > before + (16 << 20) && prog_now_ms() < limit_ms)
			prog_sleep_ms(1);
		add(&back, us_since(start) / 1000);
		close(ends[0]);
	}
	say(busy ? "SIGKILL to reaped, endless kernel" : "SIGKILL to reaped", bytes >> 20,
		"ms", &gone);
	say(busy ? "SIGKILL to memory back, endless kernel" : "SIGKILL to memory back",
		bytes >> 20, "ms", &back);
}

int main(int argc, char **argv)
{
	static const uint64_t sizes_mib[] = {2, 8, 32, 64, 256};
	uint64_t victim_bytes = 0, death_bytes = 4ull << 30;
	bool busy = false;
	const struct prog_option options[] = {
		{"copy", PROG_SIZE, &copy_bytes, "bytes per copy and registration"},
		{"death", PROG_SIZE, &death_bytes,
			"bytes held by processes to be killed"},
		{"rounds", PROG_NUMBER, &rounds, "repetitions, 64 at most"},
		{"victim", PROG_SIZE, &victim_bytes, "be a process to be killed"},
		{"busy", PROG_FLAG, &busy, "as the victim: run a kernel for ever"},
	};
	char name[128] = "?";
	CUcontext context;
	CUmodule module;
	int version = 0;

	prog_options(argc, argv, "Measures the GPU at hand.", options,
		sizeof(options) / sizeof(options[0]));
	if (victim_bytes)
		be_victim(victim_bytes, busy);
	context = prog_context(0);
	module = prog_kernels();
	PROG_MUST(cuDeviceGetName(name, sizeof(name), 0));
	PROG_MUST(cuDriverGetVersion(&version));
	prog_say("{\"gpu\":\"%s\",\"cuda\":%d,\"software\":%d}", name, version,
		getenv("SLUICE_SOFTGPU") != NULL);
	for (size_t i = 0; i < sizeof(sizes_mib) / sizeof(sizes_mib[0]); i++)
		probe_handles(sizes_mib[i] << 20);
	probe_alloc(4096);
	probe_alloc(64 << 20);
	probe_launch(module);
	probe_idle(context);
	probe_copies();
	probe_pinning(false);
	probe_pinning(true);
	if (nvml_open()) {
		probe_death(argv[0], death_bytes, false);
		probe_death(argv[0], death_bytes, true);
	}
	prog_say("{\"event\":\"end\"}");
	return PROG_OK;
}
