/* The child asks NVML and writes the whole report into a pipe; a short read means that the child
 * died. */
#include "cli/conn/nvml.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/nvml_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY     "libnvidia-ml.so.1"
#define DEADLINE_NS (5 * SL_S)

/* The calls used; each is looked up, since old drivers lack some. */
#define CALLS(X)                         \
	X(nvmlInit_v2)                   \
	X(nvmlSystemGetDriverVersion)    \
	X(nvmlDeviceGetCount_v2)         \
	X(nvmlDeviceGetHandleByIndex_v2) \
	X(nvmlDeviceGetName)             \
	X(nvmlDeviceGetUUID)             \
	X(nvmlDeviceGetMemoryInfo)       \
	X(nvmlDeviceGetComputeMode)      \
	X(nvmlDeviceGetMigMode)

struct calls {
#define CALL(name) __typeof__(&name) name;
	CALLS(CALL)
#undef CALL
};

static const char *result_text(nvmlReturn_t result)
{
	switch (result) {
#define TEXT(name, number, text) \
	case NVML_##name: return text;
		SL_NVML_RESULTS(TEXT)
#undef TEXT
	default: return "an unknown error";
	}
}

static void set_error(
	struct sl_nvml_report *report, const char *call, nvmlReturn_t result)
{
	report->outcome = SL_NVML_ERROR;
	snprintf(report->text, sizeof(report->text), "%s: %s (%d)", call,
		result_text(result), (int)result);
}

static bool load(struct calls *calls, struct sl_nvml_report *report)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		report->outcome = SL_NVML_NO_LIBRARY;
		snprintf(report->text, sizeof(report->text), "%s", dlerror());
		return false;
	}
#define CALL(name) calls->name = (__typeof__(&name))dlsym(library, #name);
	CALLS(CALL)
#undef CALL
	if (calls->nvmlInit_v2 && calls->nvmlSystemGetDriverVersion &&
		calls->nvmlDeviceGetCount_v2 && calls->nvmlDeviceGetHandleByIndex_v2)
		return true;
	report->outcome = SL_NVML_ERROR;
	snprintf(report->text, sizeof(report->text), "%s lacks the calls of NVML",
		LIBRARY);
	return false;
}

static void ask_gpu(
	const struct calls *calls, unsigned int index, struct sl_nvml_gpu *gpu)
{
	unsigned int mig = 0, pending = 0;
	nvmlMemory_t memory = {0};
	nvmlComputeMode_t mode;
	nvmlDevice_t device;

	*gpu = (struct sl_nvml_gpu){.compute_mode = -1, .mig = -1};
	if (calls->nvmlDeviceGetHandleByIndex_v2(index, &device))
		return;
	if (calls->nvmlDeviceGetName)
		(void)calls->nvmlDeviceGetName(device, gpu->name, sizeof(gpu->name));
	if (calls->nvmlDeviceGetUUID)
		(void)calls->nvmlDeviceGetUUID(device, gpu->uuid, sizeof(gpu->uuid));
	if (calls->nvmlDeviceGetMemoryInfo &&
		!calls->nvmlDeviceGetMemoryInfo(device, &memory))
		gpu->memory_bytes = memory.total;
	if (calls->nvmlDeviceGetComputeMode &&
		!calls->nvmlDeviceGetComputeMode(device, &mode))
		gpu->compute_mode = (int)mode;
	if (calls->nvmlDeviceGetMigMode &&
		!calls->nvmlDeviceGetMigMode(device, &mig, &pending))
		gpu->mig = mig == NVML_DEVICE_MIG_ENABLE;
}

static void ask(struct sl_nvml_report *report)
{
	struct calls calls = {0};
	nvmlReturn_t result;

	if (!load(&calls, report))
		return;
	result = calls.nvmlInit_v2();
	if (result) {
		set_error(report, "nvmlInit_v2", result);
		return;
	}
	(void)calls.nvmlSystemGetDriverVersion(report->driver, sizeof(report->driver));
	result = calls.nvmlDeviceGetCount_v2(&report->count);
	if (result) {
		set_error(report, "nvmlDeviceGetCount_v2", result);
		return;
	}
	if (report->count > SL_NVML_GPUS_MAX)
		report->count = SL_NVML_GPUS_MAX;
	for (unsigned int i = 0; i < report->count; i++)
		ask_gpu(&calls, i, &report->gpus[i]);
}

/* Reads the report within the deadline. False if it is incomplete. */
static bool collect(int fd, struct sl_nvml_report *report, bool *in_time)
{
	sl_ns until = sl_clock_now() + DEADLINE_NS;
	size_t have = 0;

	*in_time = true;
	while (have < sizeof(*report)) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		sl_ns now = sl_clock_now();
		ssize_t n;

		if (now >= until ||
			poll(&wait, 1, (int)((until - now) / SL_MS) + 1) == 0) {
			*in_time = false;
			return false;
		}
		n = read(fd, (char *)report + have, sizeof(*report) - have);
		if (n <= 0 && errno != EINTR)
			return false;
		have += n > 0 ? (size_t)n : 0;
	}
	return true;
}

void sl_nvml_ask(struct sl_nvml_report *report)
{
	sl_cleanup(sl_closep) int reading = -1;
	bool whole, in_time;
	int ends[2];
	pid_t child;

	*report = (struct sl_nvml_report){.outcome = SL_NVML_ERROR};
	if (pipe(ends) < 0) {
		snprintf(report->text, sizeof(report->text), "no pipe: %s",
			strerror(errno));
		return;
	}
	reading = ends[0];
	child = fork();
	if (!child) {
		report->outcome = SL_NVML_OK;
		ask(report);
		_exit(sl_file_write_all(ends[1], report, sizeof(*report)) ? 1 : 0);
	}
	close(ends[1]);
	if (child < 0) {
		snprintf(report->text, sizeof(report->text), "no process: %s",
			strerror(errno));
		return;
	}
	whole = collect(reading, report, &in_time);
	if (!whole) {
		*report = (struct sl_nvml_report){.outcome = SL_NVML_ERROR};
		if (!in_time)
			report->outcome = SL_NVML_HANGS;
		snprintf(report->text, sizeof(report->text), "%s",
			in_time ? "the process that asked it died"
				: "no answer within 5 s");
		kill(child, SIGKILL);
	}
	/* A child that hangs in the kernel does not die at once; init reaps it. */
	(void)waitpid(child, NULL, in_time ? 0 : WNOHANG);
}
