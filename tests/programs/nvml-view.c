/*
 * nvml-view - all that NVML says about memory, processes and GPUs, in every version of the calls
 *
 * It knows no CUDA, as a monitor does. The versions of a call must agree, or the status is 1; what
 * they say is printed, and the tests compare it with the workload's share.
 */
#include "base/nvml_abi.h"
#include "prog.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 600

static void *library;
static int status = PROG_OK;

static void *find(const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		prog_say("{\"error\":\"no function\",\"call\":\"%s\"}", name);
		exit(PROG_DRIVER);
	}
	return found;
}
#define CALL(name) ((__typeof__(&name))find(#name))

static void expect(bool right, const char *what)
{
	if (!right)
		prog_say("{\"what\":\"wrong\",\"about\":\"%s\"}", what);
	status = right ? status : PROG_WRONG;
}

static void say_memory(nvmlDevice_t device, unsigned int index)
{
	nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
	nvmlMemory_t first = {0};
	nvmlBAR1Memory_t bar = {0};
	nvmlUtilization_t busy = {0};

	expect(CALL(nvmlDeviceGetMemoryInfo)(device, &first) == NVML_SUCCESS, "memory 1");
	expect(CALL(nvmlDeviceGetMemoryInfo_v2)(device, &second) == NVML_SUCCESS,
		"memory 2");
	expect(CALL(nvmlDeviceGetBAR1MemoryInfo)(device, &bar) == NVML_SUCCESS, "BAR1");
	expect(CALL(nvmlDeviceGetUtilizationRates)(device, &busy) == NVML_SUCCESS,
		"utilisation");
	expect(first.used + first.free == first.total, "memory 1 adds up");
	expect(second.used + second.free + second.reserved == second.total,
		"memory 2 adds up");
	prog_say("{\"what\":\"memory\",\"index\":%u,\"total\":%llu,\"free\":%llu,"
		 "\"used\":%llu,\"total2\":%llu,\"free2\":%llu,\"used2\":%llu,"
		 "\"reserved2\":%llu,\"bar\":%llu}",
		index, first.total, first.free, first.used, second.total, second.free,
		second.used, second.reserved, bar.bar1Total);
	/* Bad questions get NVML's own answers. */
	expect(CALL(nvmlDeviceGetMemoryInfo)(device, NULL) == NVML_ERROR_INVALID_ARGUMENT,
		"memory into NULL");
	second.version = 7;
	expect(CALL(nvmlDeviceGetMemoryInfo_v2)(device, &second) ==
			NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
		"memory of an unknown version");
}

static void say_processes(nvmlDevice_t device, unsigned int index)
{
	static nvmlProcessInfo_v1_t one[ROOM];
	static nvmlProcessInfo_v2_t two[ROOM];
	static nvmlProcessInfo_t three[ROOM];
	unsigned int n1 = ROOM, n2 = ROOM, n3 = ROOM, none = 0, drawing = ROOM;

	expect(CALL(nvmlDeviceGetComputeRunningProcesses)(device, &n1, one) ==
			NVML_SUCCESS,
		"processes 1");
	expect(CALL(nvmlDeviceGetComputeRunningProcesses_v2)(device, &n2, two) ==
			NVML_SUCCESS,
		"processes 2");
	expect(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n3, three) ==
			NVML_SUCCESS,
		"processes 3");
	expect(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &none, NULL) ==
			(n3 ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS),
		"processes without room");
	expect(n1 == n2 && n2 == n3 && none == n3, "as many in each version");
	for (unsigned int i = 0; i < n3 && i < n1 && i < n2; i++) {
		expect(one[i].pid == three[i].pid && two[i].pid == three[i].pid &&
				one[i].usedGpuMemory == three[i].usedGpuMemory &&
				two[i].usedGpuMemory == three[i].usedGpuMemory &&
				three[i].gpuInstanceId == ~0u,
			"the same in each version");
		prog_say("{\"what\":\"process\",\"index\":%u,\"pid\":%u,\"bytes\":%llu}",
			index, three[i].pid, three[i].usedGpuMemory);
	}
	expect(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)(device, &drawing, three) ==
			NVML_SUCCESS,
		"graphics");
	prog_say("{\"what\":\"processes\",\"index\":%u,\"count\":%u,\"graphics\":%u}",
		index, n3, drawing);
	expect(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device, NULL, three) ==
			NVML_ERROR_INVALID_ARGUMENT,
		"processes without a count");
	n3 = 1;
	expect(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n3, NULL) ==
			NVML_ERROR_INVALID_ARGUMENT,
		"processes into NULL");
}

/* A look-up by name must give the same as the number. */
static void say_device(nvmlDevice_t device, unsigned int index)
{
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t again;
	unsigned int number = ~0u;

	expect(CALL(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid)) == NVML_SUCCESS,
		"UUID");
	expect(CALL(nvmlDeviceGetPciInfo_v3)(device, &pci) == NVML_SUCCESS, "bus");
	expect(CALL(nvmlDeviceGetIndex)(device, &number) == NVML_SUCCESS &&
			number == index,
		"index");
	expect(CALL(nvmlDeviceGetHandleByUUID)(uuid, &again) == NVML_SUCCESS &&
			again == device,
		"by UUID");
	expect(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &again) ==
				NVML_SUCCESS &&
			again == device,
		"by bus");
	expect(CALL(nvmlDeviceGetHandleByUUID)(uuid, NULL) == NVML_ERROR_INVALID_ARGUMENT,
		"by UUID into NULL");
	prog_say("{\"what\":\"device\",\"index\":%u,\"uuid\":\"%s\",\"bus\":\"%s\"}",
		index, uuid, pci.busId);
}

int main(int argc, char **argv)
{
	const char *uuid = NULL, *bus = NULL;
	const struct prog_option options[] = {
		{"uuid", PROG_TEXT, &uuid, "look this one up as well"},
		{"bus", PROG_TEXT, &bus, "look this one up as well"},
	};
	unsigned int count = 0;
	nvmlDevice_t device;

	prog_options(argc, argv, "Prints what NVML says.", options,
		sizeof(options) / sizeof(options[0]));
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library || CALL(nvmlInit_v2)() != NVML_SUCCESS) {
		prog_say("{\"error\":\"no NVML\"}");
		return PROG_DRIVER;
	}
	expect(CALL(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS, "count");
	expect(CALL(nvmlDeviceGetCount_v2)(NULL) == NVML_ERROR_INVALID_ARGUMENT,
		"count into NULL");
	prog_say("{\"what\":\"count\",\"count\":%u,\"pid\":%d}", count, (int)getpid());
	for (unsigned int i = 0; i < count; i++) {
		expect(CALL(nvmlDeviceGetHandleByIndex_v2)(i, &device) == NVML_SUCCESS,
			"by index");
		say_device(device, i);
		say_memory(device, i);
		say_processes(device, i);
	}
	expect(CALL(nvmlDeviceGetHandleByIndex_v2)(count, &device) ==
			NVML_ERROR_INVALID_ARGUMENT,
		"the one behind the last");
	if (uuid)
		prog_say("{\"what\":\"uuid\",\"result\":%d}",
			CALL(nvmlDeviceGetHandleByUUID)(uuid, &device));
	if (bus)
		prog_say("{\"what\":\"bus\",\"result\":%d}",
			CALL(nvmlDeviceGetHandleByPciBusId_v2)(bus, &device));
	return status;
}
