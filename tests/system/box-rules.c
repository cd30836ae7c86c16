/*
 * box-rules - rules of the software GPU that depend on a setting of its box
 *
 *   box-rules RULE
 *
 * Prints its results as JSON, one number a key; softgpu.sh starts it in boxes with and without the
 * setting and compares. Durations are only compared with a lowest value: the model waits at least
 * that long, however slow the machine is.
 */
#include "prog.h"

#include "base/cuda_abi.h"
#include "base/nvml_abi.h"
#include "base/sl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

static void *find(const char *file, const char *name)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "box-rules: no %s in %s\n", name, file);
		exit(2);
	}
	return found;
}
#define CU(name) ((__typeof__(&name))find("libcuda.so.1", #name))
#define ML(name) ((__typeof__(&name))find("libnvidia-ml.so.1", #name))

static void check(int result, const char *call)
{
	if (!result)
		return;
	fprintf(stderr, "box-rules: %s: %d\n", call, result);
	exit(1);
}
#define OK(name, ...) check((int)CU(name)(__VA_ARGS__), #name)

static void start(void)
{
	CUcontext context;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuCtxSetCurrent, context);
}

static unsigned long long free_mib(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2, &free_bytes, &total);
	return free_bytes / MIB;
}

static void say(const char *key, unsigned long long value)
{
	printf("{\"%s\":%llu}\n", key, value);
}

/* Launch queues --------------------------------------------------------------------------- */

static atomic_bool gate_open;
static atomic_uint submitted;

static void hold(void *data)
{
	(void)data;
	while (!atomic_load(&gate_open))
		usleep(1000);
}

static void *submit(void *stream)
{
	CUcontext context;

	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuCtxSetCurrent, context);
	for (unsigned int i = 0; i < 20; i++) {
		OK(cuMemsetD8Async, *(CUdeviceptr *)stream, 1, 1,
			*(CUstream *)((char *)stream + sizeof(CUdeviceptr)));
		atomic_fetch_add(&submitted, 1);
	}
	return NULL;
}

/* How many of twenty calls return while the stream is held. */
static void rule_queue(void)
{
	struct {
		CUdeviceptr at;
		CUstream stream;
	} where;
	pthread_t thread;

	start();
	OK(cuMemAlloc_v2, &where.at, 4096);
	OK(cuStreamCreate, &where.stream, CU_STREAM_NON_BLOCKING);
	OK(cuLaunchHostFunc, where.stream, hold, NULL);
	pthread_create(&thread, NULL, submit, &where);
	for (unsigned int i = 0; i < 200 && atomic_load(&submitted) < 20; i++)
		usleep(10000);
	say("while_held", atomic_load(&submitted));
	atomic_store(&gate_open, true);
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize, where.stream);
	say("at_the_end", atomic_load(&submitted));
}

/* The link ---------------------------------------------------------------------------------- */

/* Once, and whether the other copy was under way all the while. */
static unsigned long long try_copy_ms(CUdeviceptr at, void *host, size_t bytes, bool in,
	CUstream stream, CUdeviceptr other, void *other_host, size_t other_bytes,
	bool *beside)
{
	CUstream second;
	uint64_t from;

	OK(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	if (other_bytes) {
		OK(cuMemcpyDtoHAsync_v2, other_host, other, other_bytes, second);
		usleep(50000); /* the way out is busy by now, and stays so for longer */
	}
	from = prog_now_ms();
	if (in)
		OK(cuMemcpyHtoDAsync_v2, at, host, bytes, stream);
	else
		OK(cuMemcpyDtoHAsync_v2, host, at, bytes, stream);
	OK(cuStreamSynchronize, stream);
	from = prog_now_ms() - from;
	*beside = CU(cuStreamQuery)(second) == CUDA_ERROR_NOT_READY;
	OK(cuStreamSynchronize, second);
	OK(cuStreamDestroy_v2, second);
	return from;
}

/* With other_bytes: the slowest of three copies beside another copy. On a busy machine the other
 * copy pauses or ends too early. That only makes the measured copy faster. */
static unsigned long long copy_ms(CUdeviceptr at, void *host, size_t bytes, bool in,
	CUstream stream, CUdeviceptr other, void *other_host, size_t other_bytes)
{
	unsigned int counted = 0, wanted = other_bytes ? 3 : 1;
	unsigned long long ms = 0, one_ms;
	bool beside;

	for (unsigned int tries = 0; tries < 10 && counted < wanted; tries++) {
		one_ms = try_copy_ms(at, host, bytes, in, stream, other, other_host,
			other_bytes, &beside);
		if (beside || !other_bytes) {
			ms = one_ms > ms ? one_ms : ms;
			counted++;
		}
	}
	return ms;
}

/* Sixteen MiB in, out, and in while as much goes out twelve times over. */
static void rule_link(void)
{
	size_t bytes = 16 * MIB;
	CUdeviceptr at, other;
	void *host, *other_host;
	CUstream stream;

	start();
	OK(cuMemAlloc_v2, &at, bytes);
	OK(cuMemAlloc_v2, &other, 12 * bytes);
	OK(cuMemAllocHost_v2, &host, bytes);
	OK(cuMemAllocHost_v2, &other_host, 12 * bytes);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	say("in_ms", copy_ms(at, host, bytes, true, stream, 0, NULL, 0));
	say("out_ms", copy_ms(at, host, bytes, false, stream, 0, NULL, 0));
	say("in_beside_out_ms",
		copy_ms(at, host, bytes, true, stream, other, other_host, 12 * bytes));
}

/* Two processes copy at once, and one copies memory that is not pinned. */
static void rule_share(void)
{
	size_t bytes = 16 * MIB;
	void *pinned, *plain = malloc(bytes);
	int go[2], made = pipe(go);
	pid_t child = fork();
	CUdeviceptr at;
	uint64_t from;
	char word;

	if (!plain || made < 0 || child < 0)
		exit(2);
	start();
	OK(cuMemAlloc_v2, &at, bytes);
	from = prog_now_ms();
	OK(cuMemAllocHost_v2, &pinned, bytes);
	if (!child) {
		if (read(go[0], &word, 1) != 1)
			_exit(1);
		OK(cuMemcpyHtoD_v2, at, pinned, bytes);
		_exit(0);
	}
	say("pin_ms", prog_now_ms() - from);
	from = prog_now_ms();
	if (write(go[1], "", 1) != 1)
		exit(2);
	OK(cuMemcpyHtoD_v2, at, pinned, bytes);
	while (waitpid(child, NULL, 0) < 0)
		;
	say("both_ms", prog_now_ms() - from);
	from = prog_now_ms();
	OK(cuMemcpyHtoD_v2, at, plain, bytes);
	say("plain_ms", prog_now_ms() - from);
	free(plain);
}

/* Handles ------------------------------------------------------------------------------------ */

static CUmemAllocationProp prop(void)
{
	CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return p;
}

static void rule_handles(void)
{
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle[10];
	CUmemAllocationProp p = prop();
	CUdeviceptr at;
	uint64_t from;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	start();
	OK(cuMemAddressReserve, &at, 20 * MIB, 0, 0, 0);
	from = prog_now_ms();
	for (unsigned int i = 0; i < 10; i++)
		OK(cuMemCreate, &handle[i], 2 * MIB, &p, 0);
	say("create_ms", prog_now_ms() - from);
	for (unsigned int i = 0; i < 10; i++)
		OK(cuMemMap, at + i * 2 * MIB, 2 * MIB, 0, handle[i], 0);
	from = prog_now_ms();
	for (unsigned int i = 0; i < 10; i++)
		OK(cuMemSetAccess, at + i * 2 * MIB, 2 * MIB, &access, 1);
	say("access_ms", prog_now_ms() - from);
	from = prog_now_ms();
	for (unsigned int i = 0; i < 10; i++)
		OK(cuMemRelease, handle[i]);
	say("release_ms", prog_now_ms() - from);
}

/* Is fresh memory zero? Another process may have had it. */
static void rule_stale(void)
{
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp p = prop();
	uint32_t seen[1024];
	unsigned int others = 0;
	CUdeviceptr at;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	start();
	OK(cuMemAddressReserve, &at, 2 * MIB, 0, 0, 0);
	OK(cuMemCreate, &handle, 2 * MIB, &p, 0);
	OK(cuMemMap, at, 2 * MIB, 0, handle, 0);
	OK(cuMemSetAccess, at, 2 * MIB, &access, 1);
	OK(cuMemcpyDtoH_v2, seen, at, sizeof(seen));
	for (unsigned int i = 0; i < 1024; i++)
		others += seen[i] != 0;
	say("not_zero", others != 0);
}

/* Memory ------------------------------------------------------------------------------------- */

static void rule_deny(void)
{
	CUdeviceptr at;

	start();
	say("free_mib", free_mib());
	say("result", (unsigned long long)CU(cuMemAlloc_v2)(
			      &at, (size_t)(free_mib() - 64) * MIB));
}

/* Memory that a context, a module and a first launch take by themselves. */
static void rule_hidden(void)
{
	unsigned long long before;
	CUfunction step;
	CUmodule module;
	CUdeviceptr word;
	uint32_t factor = 1, add = 1;
	void *args[] = {&word, &factor, &add};

	start();
	OK(cuMemAlloc_v2, &word, 4);
	before = free_mib();
	OK(cuModuleLoadData, &module, prog_host_image);
	say("module_mib", before - free_mib());
	OK(cuModuleGetFunction, &step, module, "prog_step");
	before = free_mib();
	for (unsigned int i = 0; i < 2; i++) {
		OK(cuLaunchKernel, step, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
		OK(cuCtxSynchronize);
		say(i ? "second_mib" : "launch_mib", before - free_mib());
		before = free_mib();
	}
}

static pid_t child_with(size_t bytes)
{
	int ends[2];
	pid_t pid;
	char byte;

	if (pipe(ends) < 0 || (pid = fork()) < 0)
		exit(2);
	if (pid == 0) {
		CUdeviceptr at;

		start();
		OK(cuMemAlloc_v2, &at, bytes);
		if (write(ends[1], "r", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		exit(2);
	close(ends[0]);
	return pid;
}

/* The memory of a killed process, as soon as it is gone, and later. */
static void rule_teardown(void)
{
	pid_t child = child_with(256 * MIB);
	unsigned long long with, after;

	start();
	with = free_mib();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	after = free_mib();
	say("back_at_once_mib", after > with ? after - with : 0);
	for (unsigned int i = 0; i < 2000 && free_mib() < with + 256; i++)
		usleep(10000);
	after = free_mib();
	say("back_later_mib", after > with ? after - with : 0);
}

static unsigned long long nvml_used_mib(nvmlDevice_t device)
{
	nvmlMemory_t memory;

	check(ML(nvmlDeviceGetMemoryInfo)(device, &memory), "nvmlDeviceGetMemoryInfo");
	return memory.used / MIB;
}

/* Counts how often of five times NVML did not know yet. A figure that is renewed at that very
 * moment is no fault. */
static void rule_lag(void)
{
	unsigned int unaware = 0;
	unsigned long long used;
	nvmlDevice_t device;
	CUdeviceptr at;

	start();
	check(ML(nvmlInit_v2)(), "nvmlInit_v2");
	check(ML(nvmlDeviceGetHandleByIndex_v2)(0, &device),
		"nvmlDeviceGetHandleByIndex");
	for (unsigned int i = 0; i < 5; i++) {
		used = nvml_used_mib(device);
		OK(cuMemAlloc_v2, &at, 32 * MIB);
		unaware += nvml_used_mib(device) < used + 32;
	}
	say("unaware", unaware);
	for (unsigned int i = 0; i < 2000 && nvml_used_mib(device) < 160; i++)
		usleep(10000);
	say("told_later", nvml_used_mib(device) >= 160);
}

/* Ends and names ------------------------------------------------------------------------------ */

static void at_end(void)
{
	int count;

	say("at_exit", (unsigned long long)CU(cuDeviceGetCount)(&count));
	fflush(stdout);
}

static void rule_end(void)
{
	atexit(at_end); /* before the driver's own, so it runs behind it */
	start();
}

static void rule_absent(void)
{
	start();
	for (unsigned int i = 0; i < 3; i++)
		say("result", (unsigned long long)((int (*)(void *))find(
				      "libcuda.so.1", "cuCoredumpGetAttribute"))(NULL));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} rules[] = {{"queue", rule_queue}, {"link", rule_link}, {"share", rule_share},
		{"handles", rule_handles}, {"stale", rule_stale}, {"deny", rule_deny},
		{"hidden", rule_hidden}, {"teardown", rule_teardown}, {"lag", rule_lag},
		{"end", rule_end}, {"absent", rule_absent}};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 2 && i < SL_ARRAY_LEN(rules); i++)
		if (!strcmp(rules[i].name, argv[1])) {
			rules[i].run();
			return 0;
		}
	fprintf(stderr, "usage: box-rules RULE\n");
	return 2;
}
