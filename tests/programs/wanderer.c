/*
 * wanderer - has things of every kind on each of its GPUs, and tells on demand where they are
 *
 * For tests that take it to other GPUs meanwhile. For each line on stdin it uses everything:
 * memory, an array, a pool's memory, a stream, a captured graph, a kernel, and memory that it asks
 * for anew. It writes a line for each device: "right", and under which names the driver and NVML
 * have the device. Work is under way in its streams when it waits for the next line. At the line
 * "child" a child of it, started with the same environment, does the same once; at the end of stdin
 * it ends.
 */
#include "base/nvml_abi.h"
#include "prog.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICES_MAX = 8, ROUNDS = 20, ARRAY_WORDS = 4096, UUID_MAX = 96 };

static struct device {
	CUcontext ctx;
	CUmodule module;
	CUdeviceptr data, word, pooled, bad;
	CUarray array;
	CUstream stream;
	CUgraphExec step;
	uint32_t expected;
} devices[DEVICES_MAX];
static int count;
static uint64_t bytes = 16 << 20;
static uint32_t pattern[ARRAY_WORDS];

/* --- what it has ------------------------------------------------------------------------------ */

static void capture_step(struct device *d)
{
	uint32_t factor = 3, add = 1;
	void *args[] = {&d->word, &factor, &add};
	CUgraph graph;

	PROG_MUST(cuStreamBeginCapture_v2(d->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	PROG_MUST(prog_launch(prog_kernel(d->module, "prog_step"), 1, d->stream, args));
	PROG_MUST(cuStreamEndCapture(d->stream, &graph));
	PROG_MUST(cuGraphInstantiateWithFlags(&d->step, graph, 0));
}

static void step(struct device *d, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		PROG_MUST(cuGraphLaunch(d->step, d->stream));
		d->expected = d->expected * 3 + 1;
	}
}

static void make(struct device *d, CUdevice device)
{
	CUDA_ARRAY_DESCRIPTOR shape = {.Width = ARRAY_WORDS,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1};

	d->ctx = prog_context(device);
	d->module = prog_kernels();
	PROG_MUST(cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuMemAlloc_v2(&d->data, bytes));
	PROG_MUST(cuMemAlloc_v2(&d->word, sizeof(uint32_t)));
	PROG_MUST(cuMemAlloc_v2(&d->bad, sizeof(uint32_t)));
	PROG_MUST(cuArrayCreate_v2(&d->array, &shape));
	PROG_MUST(cuMemcpyHtoA_v2(d->array, 0, pattern, sizeof(pattern)));
	PROG_MUST(cuMemAllocAsync(&d->pooled, sizeof(pattern), d->stream));
	PROG_MUST(cuStreamSynchronize(d->stream));
	PROG_MUST(cuMemcpyHtoD_v2(d->pooled, pattern, sizeof(pattern)));
	PROG_MUST(cuMemsetD32_v2(d->word, 0, 1));
	PROG_MUST(prog_fill(prog_kernel(d->module, "prog_fill"), d->data, bytes, 7));
	/* The stream does not wait for these by itself. */
	PROG_MUST(cuCtxSynchronize());
	capture_step(d);
}

/* Memory asked for now works, too. */
static bool try_anew(const struct device *d)
{
	uint32_t wrong = 1;
	CUdeviceptr fresh;

	PROG_MUST(cuMemAlloc_v2(&fresh, bytes));
	PROG_MUST(prog_fill(prog_kernel(d->module, "prog_fill"), fresh, bytes, 9));
	PROG_MUST(prog_check(
		prog_kernel(d->module, "prog_check"), fresh, bytes, 9, d->bad, &wrong));
	PROG_MUST(cuMemFree_v2(fresh));
	return !wrong;
}

static bool is_right(struct device *d)
{
	static uint32_t got[ARRAY_WORDS];
	uint32_t wrong = 1, word = 0;
	bool right;

	step(d, 1);
	PROG_MUST(cuStreamSynchronize(d->stream));
	PROG_MUST(cuMemcpyDtoH_v2(&word, d->word, sizeof(word)));
	PROG_MUST(prog_check(
		prog_kernel(d->module, "prog_check"), d->data, bytes, 7, d->bad, &wrong));
	right = word == d->expected && !wrong;
	PROG_MUST(cuMemcpyAtoH_v2(got, d->array, 0, sizeof(got)));
	right &= memcmp(got, pattern, sizeof(got)) == 0;
	memset(got, 0, sizeof(got));
	PROG_MUST(cuMemcpyDtoH_v2(got, d->pooled, sizeof(got)));
	right &= memcmp(got, pattern, sizeof(got)) == 0;
	return try_anew(d) && right;
}

/* --- where it is ------------------------------------------------------------------------------ */

static void *nvml;
#define NVML(name) ((__typeof__(&name))dlsym(nvml, #name))

static void uuid_text(const CUuuid *uuid, char text[UUID_MAX])
{
	const unsigned char *u = (const unsigned char *)uuid->bytes;
	char *at = text + sprintf(text, "GPU");

	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x",
			i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

/* "none": NVML does not find it. */
static void say_found(const char *by, CUdevice device, nvmlReturn_t r, nvmlDevice_t found)
{
	char uuid[UUID_MAX] = "none";
	nvmlMemory_t memory = {0};
	unsigned int index = ~0u;

	if (r == NVML_SUCCESS) {
		(void)NVML(nvmlDeviceGetUUID)(found, uuid, sizeof(uuid));
		(void)NVML(nvmlDeviceGetMemoryInfo)(found, &memory);
		(void)NVML(nvmlDeviceGetIndex)(found, &index);
	}
	prog_say("{\"event\":\"nvml\",\"by\":\"%s\",\"device\":%d,\"uuid\":\"%s\","
		 "\"index\":%u,\"total\":%llu}",
		by, device, uuid, index, memory.total);
}

/* The entry of that place in CUDA_VISIBLE_DEVICES, which frameworks look up in NVML. */
static unsigned int number_of(CUdevice device)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");

	if (!list)
		return (unsigned int)device;
	for (; device > 0 && (list = strchr(list, ',')); device--)
		list++;
	return list ? (unsigned int)strtoul(list, NULL, 10) : ~0u;
}

static void look(CUdevice device, const char *event)
{
	char uuid[UUID_MAX], bus[32] = "";
	nvmlDevice_t found = NULL;
	nvmlReturn_t r;
	bool right;
	CUuuid id;

	PROG_MUST(cuCtxSetCurrent(devices[device].ctx));
	right = is_right(&devices[device]);
	PROG_MUST(cuDeviceGetUuid(&id, device));
	PROG_MUST(cuDeviceGetPCIBusId(bus, sizeof(bus), device));
	uuid_text(&id, uuid);
	prog_say("{\"event\":\"%s\",\"device\":%d,\"uuid\":\"%s\",\"bus\":\"%s\","
		 "\"right\":%s}",
		event, device, uuid, bus, right ? "true" : "false");
	if (nvml) {
		r = NVML(nvmlDeviceGetHandleByPciBusId_v2)(bus, &found);
		say_found("bus", device, r, found);
		r = NVML(nvmlDeviceGetHandleByUUID)(uuid, &found);
		say_found("uuid", device, r, found);
		r = NVML(nvmlDeviceGetHandleByIndex_v2)(number_of(device), &found);
		say_found("number", device, r, found);
	}
	step(&devices[device], ROUNDS);
}

static void start_child(char **argv, char **environ_now)
{
	char *args[] = {argv[0], (char *)(uintptr_t) "--once", NULL};
	int status = 0;
	pid_t pid;

	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ_now) != 0 ||
		waitpid(pid, &status, 0) != pid || status != 0)
		prog_say("{\"event\":\"child-failed\",\"status\":%d}", status);
}

int main(int argc, char **argv)
{
	bool once = false;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "of memory on each GPU"},
		{"once", PROG_FLAG, &once, "look once, and end"},
	};
	char line[64];

	prog_options(argc, argv, "Tells where it is.", options,
		sizeof(options) / sizeof(options[0]));
	for (uint32_t i = 0; i < ARRAY_WORDS; i++)
		pattern[i] = prog_mix(5, i);
	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (nvml && NVML(nvmlInit_v2)() != NVML_SUCCESS)
		nvml = NULL;
	PROG_MUST(cuInit(0));
	PROG_MUST(cuDeviceGetCount(&count));
	count = count > DEVICES_MAX ? DEVICES_MAX : count;
	for (int i = 0; i < count; i++)
		make(&devices[i], i);
	if (!once)
		prog_say("{\"event\":\"start\",\"pid\":%d,\"devices\":%d}", (int)getpid(),
			count);
	while (once || fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < count; i++)
			look(i, once ? "child" : "look");
		if (once)
			break;
		if (strcmp(line, "child\n") == 0)
			start_child(argv, environ);
		prog_say("{\"event\":\"looked\"}");
	}
	return PROG_OK;
}
