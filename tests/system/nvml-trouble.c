/*
 * nvml-trouble - an NVML that hangs, or is slow, when a test wants it to
 *
 * It passes every call on to the NVML whose path is in NVML_TROUBLE_BEHIND, but looks into the
 * folder NVML_TROUBLE first. While a file "hang" is there, calls about GPUs do not return; with a
 * file "hang-events" waiting for events does not return; a file "slow" has the milliseconds that
 * each call takes. A test puts the folder of this library at the front of the loader's path, for
 * the daemon alone.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/nvml_abi.h"

/* X(function, trouble, (parameters), (arguments)): what the daemon calls. */
#define FUNCTIONS(X)                                                                   \
	X(nvmlInit_v2, GPUS, (void), ())                                               \
	X(nvmlShutdown, NONE, (void), ())                                              \
	X(nvmlSystemGetDriverVersion, NONE, (char *text, unsigned int length),         \
		(text, length))                                                        \
	X(nvmlDeviceGetCount_v2, GPUS, (unsigned int *count), (count))                 \
	X(nvmlDeviceGetHandleByIndex_v2, NONE,                                         \
		(unsigned int index, nvmlDevice_t *device), (index, device))           \
	X(nvmlDeviceGetHandleByUUID, NONE, (const char *uuid, nvmlDevice_t *device),   \
		(uuid, device))                                                        \
	X(nvmlDeviceGetUUID, NONE,                                                     \
		(nvmlDevice_t device, char *text, unsigned int length),                \
		(device, text, length))                                                \
	X(nvmlDeviceGetName, NONE,                                                     \
		(nvmlDevice_t device, char *text, unsigned int length),                \
		(device, text, length))                                                \
	X(nvmlDeviceGetPciInfo_v3, NONE, (nvmlDevice_t device, nvmlPciInfo_t * pci),   \
		(device, pci))                                                         \
	X(nvmlDeviceGetMemoryInfo, GPUS, (nvmlDevice_t device, nvmlMemory_t * memory), \
		(device, memory))                                                      \
	X(nvmlDeviceGetMemoryInfo_v2, GPUS,                                            \
		(nvmlDevice_t device, nvmlMemory_v2_t * memory), (device, memory))     \
	X(nvmlDeviceGetComputeRunningProcesses_v3, GPUS,                               \
		(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos),  \
		(device, count, infos))                                                \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, GPUS,                              \
		(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos),  \
		(device, count, infos))                                                \
	X(nvmlEventSetCreate, NONE, (nvmlEventSet_t * set), (set))                     \
	X(nvmlEventSetFree, NONE, (nvmlEventSet_t set), (set))                         \
	X(nvmlDeviceRegisterEvents, NONE,                                              \
		(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set),   \
		(device, types, set))                                                  \
	X(nvmlEventSetWait_v2, EVENTS,                                                 \
		(nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms), \
		(set, data, timeout_ms))

enum trouble { NONE, GPUS, EVENTS };

static void path_of(char *buf, size_t size, const char *name)
{
	const char *folder = getenv("NVML_TROUBLE");

	(void)snprintf(buf, size, "%s/%s", folder ? folder : "", name);
}

static void hang(enum trouble trouble)
{
	char path[512];

	path_of(path, sizeof(path), trouble == EVENTS ? "hang-events" : "hang");
	while (access(path, F_OK) == 0)
		(void)usleep(20000);
}

static void dawdle(void)
{
	unsigned int ms = 0;
	char path[512];
	FILE *file;

	path_of(path, sizeof(path), "slow");
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%u", &ms) == 1)
		(void)usleep(ms * 1000);
	(void)fclose(file);
}

static void *behind(const char *name)
{
	static void *library;
	void *found;

	if (!library)
		library = dlopen(getenv("NVML_TROUBLE_BEHIND"), RTLD_NOW | RTLD_LOCAL);
	found = library ? dlsym(library, name) : NULL;
	if (found)
		return found;
	fprintf(stderr, "nvml-trouble: no %s: %s\n", name, dlerror());
	abort();
}

#define X(name, trouble, parameters, arguments)             \
	nvmlReturn_t name parameters                        \
	{                                                   \
		__typeof__(name) *function = behind(#name); \
                                                            \
		if (trouble != NONE)                        \
			hang(trouble);                      \
		if (trouble == GPUS)                        \
			dawdle();                           \
		return function arguments;                  \
	}
FUNCTIONS(X)
#undef X
