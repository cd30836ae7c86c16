/*
 * nvml - one table of functions, each looked up by its exported name
 *
 * The daemon must start on a machine without a driver, and functions have had several versions over
 * the years. So NVML is not linked, and if an optional function is missing, less is known, but
 * nothing fails. UUIDs are the only key: indices change when a GPU falls off the bus.
 */
#include "daemon/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/nvml_abi.h"
#include "daemon/gpu/nvml_samples.h"

#define LIBRARY "libnvidia-ml.so.1"

/* X(function, needed) */
#define FUNCTIONS(X)                                       \
	X(nvmlInit_v2, true)                               \
	X(nvmlShutdown, true)                              \
	X(nvmlSystemGetDriverVersion, false)               \
	X(nvmlDeviceGetCount_v2, true)                     \
	X(nvmlDeviceGetHandleByIndex_v2, true)             \
	X(nvmlDeviceGetHandleByUUID, true)                 \
	X(nvmlDeviceGetUUID, true)                         \
	X(nvmlDeviceGetName, true)                         \
	X(nvmlDeviceGetPciInfo_v3, true)                   \
	X(nvmlDeviceGetMemoryInfo, true)                   \
	X(nvmlDeviceGetMemoryInfo_v2, false)               \
	X(nvmlDeviceGetMigMode, false)                     \
	X(nvmlDeviceGetComputeMode, false)                 \
	X(nvmlDeviceGetUtilizationRates, false)            \
	X(nvmlDeviceGetProcessUtilization, false)          \
	X(nvmlDeviceGetComputeRunningProcesses, false)     \
	X(nvmlDeviceGetComputeRunningProcesses_v2, false)  \
	X(nvmlDeviceGetComputeRunningProcesses_v3, false)  \
	X(nvmlDeviceGetGraphicsRunningProcesses, false)    \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2, false) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, false) \
	X(nvmlEventSetCreate, false)                       \
	X(nvmlEventSetFree, false)                         \
	X(nvmlDeviceRegisterEvents, false)                 \
	X(nvmlEventSetWait_v2, false)

struct calls {
#define X(function, needed) __typeof__(function) *function;
	FUNCTIONS(X)
#undef X
};

struct sl_nvml {
	void *library;
	bool initialised;
	struct calls call;
	/* Samples of GPUs asked about, by UUID, because indices change. */
	struct {
		char uuid[41];
		struct sl_nvml_samples samples;
	} asked[SL_NVML_DEVICES_MAX];
	uint32_t asked_count;
};

static const struct {
	const char *name;
	size_t offset;
	bool needed;
} lookups[] = {
#define X(function, needed) {#function, offsetof(struct calls, function), needed},
	FUNCTIONS(X)
#undef X
};

static const char *result_text(nvmlReturn_t result)
{
	switch (result) {
#define X(name, number, text) \
	case NVML_##name: return text;
		SL_NVML_RESULTS(X)
#undef X
	}
	return "an error this version does not know";
}

static int failed(struct sl_error *err, const char *what, nvmlReturn_t result)
{
	if (result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_RESET_REQUIRED) {
		sl_error_set(err, "%s failed: %s (NVML error %d)", what,
			result_text(result), (int)result);
		return SL_NVML_LOST;
	}
	sl_error_set(err, "%s failed: %s (NVML error %d); does nvidia-smi work?", what,
		result_text(result), (int)result);
	return SL_NVML_FAILED;
}

static int look_up(struct sl_nvml *nvml, struct sl_error *err)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(lookups); i++) {
		void *symbol = dlsym(nvml->library, lookups[i].name);

		if (!symbol && lookups[i].needed) {
			sl_error_set(err,
				LIBRARY " lacks %s; the driver must be R525 or newer",
				lookups[i].name);
			return SL_NVML_FAILED;
		}
		memcpy((char *)&nvml->call + lookups[i].offset, &symbol, sizeof(symbol));
	}
	return SL_NVML_OK;
}

struct sl_nvml *sl_nvml_close(struct sl_nvml *nvml)
{
	if (!nvml)
		return NULL;
	if (nvml->initialised)
		(void)nvml->call.nvmlShutdown();
	for (uint32_t i = 0; i < nvml->asked_count; i++)
		sl_nvml_samples_fini(&nvml->asked[i].samples);
	if (nvml->library)
		(void)dlclose(nvml->library);
	free(nvml);
	return NULL;
}

static void nvml_closep(struct sl_nvml **nvml)
{
	*nvml = sl_nvml_close(*nvml);
}

/* dlopen does not say why it failed. */
static bool can_open_files(void)
{
	sl_cleanup(sl_closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

int sl_nvml_open(struct sl_nvml **out, struct sl_error *err)
{
	sl_cleanup(nvml_closep) struct sl_nvml *nvml = calloc(1, sizeof(*nvml));
	nvmlReturn_t result;

	if (!nvml) {
		sl_error_set(err, "no memory for NVML");
		return SL_NVML_FAILED;
	}
	nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library && !can_open_files()) {
		sl_error_set(err, "sluiced has no descriptors left to load " LIBRARY
				  "; raise the limit (ulimit -n, or LimitNOFILE=)");
		return SL_NVML_FAILED;
	}
	if (!nvml->library) {
		sl_error_set(err, "no NVIDIA driver: " LIBRARY
				  " cannot be loaded; install the driver, or "
				  "start everything under `sluice softgpu`");
		return SL_NVML_FAILED;
	}
	if (look_up(nvml, err) != SL_NVML_OK)
		return SL_NVML_FAILED;
	result = nvml->call.nvmlInit_v2();
	if (result != NVML_SUCCESS)
		return failed(err, "starting NVML", result);
	nvml->initialised = true;
	*out = sl_steal(&nvml);
	return SL_NVML_OK;
}

static int describe(struct sl_nvml *nvml, nvmlDevice_t handle, struct sl_nvml_device *out,
	struct sl_error *err)
{
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "",
	     name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
	nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
	unsigned int mig_now = 0, mig_later = 0;
	nvmlMemory_t memory = {0};
	nvmlPciInfo_t pci = {0};
	nvmlReturn_t result;

	result = nvml->call.nvmlDeviceGetUUID(handle, uuid, sizeof(uuid));
	if (result == NVML_SUCCESS)
		result = nvml->call.nvmlDeviceGetName(handle, name, sizeof(name));
	if (result == NVML_SUCCESS)
		result = nvml->call.nvmlDeviceGetPciInfo_v3(handle, &pci);
	if (result == NVML_SUCCESS)
		result = nvml->call.nvmlDeviceGetMemoryInfo(handle, &memory);
	if (result != NVML_SUCCESS)
		return failed(err, "describing a GPU", result);
	if (!sl_wire_uuid_parse(uuid, out->uuid)) {
		sl_error_set(err, "a GPU calls itself '%.48s', which is no UUID", uuid);
		return SL_NVML_FAILED;
	}
	sl_wire_uuid_format(out->uuid, out->uuid_text);
	sl_wire_str(out->name, sizeof(out->name), name);
	pci.busId[sizeof(pci.busId) - 1] = '\0';
	sl_wire_str(out->pci, sizeof(out->pci), pci.busId);
	out->pci_key = (uint64_t)pci.domain << 32 | (uint64_t)(pci.bus & 0xff) << 8 |
		       (pci.device & 0xff);
	out->capacity_bytes = memory.total;
	if (nvml->call.nvmlDeviceGetMigMode &&
		nvml->call.nvmlDeviceGetMigMode(handle, &mig_now, &mig_later) ==
			NVML_SUCCESS)
		out->mig = mig_now == NVML_DEVICE_MIG_ENABLE;
	if (nvml->call.nvmlDeviceGetComputeMode &&
		nvml->call.nvmlDeviceGetComputeMode(handle, &mode) == NVML_SUCCESS)
		out->exclusive = mode != NVML_COMPUTEMODE_DEFAULT;
	return SL_NVML_OK;
}

static int by_pci(const void *a, const void *b)
{
	uint64_t x = ((const struct sl_nvml_device *)a)->pci_key;
	uint64_t y = ((const struct sl_nvml_device *)b)->pci_key;

	return x < y ? -1 : x > y;
}

int sl_nvml_list(
	struct sl_nvml *nvml, struct sl_nvml_inventory *out, struct sl_error *err)
{
	char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
	unsigned int count = 0;
	nvmlReturn_t result = nvml->call.nvmlDeviceGetCount_v2(&count);

	memset(out, 0, sizeof(*out));
	if (result != NVML_SUCCESS)
		return failed(err, "counting the GPUs", result);
	if (nvml->call.nvmlSystemGetDriverVersion)
		(void)nvml->call.nvmlSystemGetDriverVersion(driver, sizeof(driver));
	sl_wire_str(out->driver, sizeof(out->driver), driver);
	for (unsigned int i = 0; i < count && out->count < SL_NVML_DEVICES_MAX; i++) {
		struct sl_nvml_device *device = &out->devices[out->count];
		nvmlDevice_t handle = NULL;
		int r;

		/* A GPU that fell off the bus must not make the whole list fail. */
		memset(device, 0, sizeof(*device));
		result = nvml->call.nvmlDeviceGetHandleByIndex_v2(i, &handle);
		r = result == NVML_SUCCESS ? describe(nvml, handle, device, err)
					   : failed(err, "finding a GPU", result);
		if (r == SL_NVML_OK)
			out->count++;
		else if (r == SL_NVML_LOST)
			out->unnamed++;
	}
	qsort(out->devices, out->count, sizeof(out->devices[0]), by_pci);
	return SL_NVML_OK;
}

/* --- usage -------------------------------------------------------------------------------- */

struct rows {
	struct sl_nvml_process *list;
	uint32_t count, room;
};

static int rows_add(struct rows *rows, uint32_t pid, unsigned long long used)
{
	if (rows->count == rows->room) {
		uint32_t room = rows->room ? rows->room * 2 : 32;
		void *grown = realloc(rows->list, room * sizeof(*rows->list));

		if (!grown)
			return sl_err_origin(-ENOMEM);
		rows->list = grown;
		rows->room = room;
	}
	rows->list[rows->count++] = (struct sl_nvml_process){.pid = pid,
		.used_bytes =
			used == (unsigned long long)NVML_VALUE_NOT_AVAILABLE ? 0 : used};
	return 0;
}

typedef __typeof__(&nvmlDeviceGetComputeRunningProcesses) list_v1_fn;
typedef __typeof__(&nvmlDeviceGetComputeRunningProcesses_v2) list_v2_fn;

/* Asks with growing room until all rows fit; processes may start meanwhile. */
static nvmlReturn_t list_some(
	nvmlDevice_t handle, list_v1_fn v1, list_v2_fn v2, struct rows *rows)
{
	nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;
	void *buffer = NULL;
	size_t row_bytes =
		v2 ? sizeof(nvmlProcessInfo_v2_t) : sizeof(nvmlProcessInfo_v1_t);

	for (unsigned int room = 64; (v1 || v2) && room <= 65536; room *= 4) {
		unsigned int count = room;

		free(buffer);
		buffer = calloc(room, row_bytes);
		if (!buffer)
			return NVML_ERROR_MEMORY;
		result = v2 ? v2(handle, &count, buffer) : v1(handle, &count, buffer);
		if (result == NVML_ERROR_INSUFFICIENT_SIZE)
			continue;
		for (unsigned int i = 0; result == NVML_SUCCESS && i < count && i < room;
			i++) {
			/* Both versions begin with pid and bytes. */
			const nvmlProcessInfo_v1_t *row =
				(const void *)((const char *)buffer + i * row_bytes);

			if (rows_add(rows, row->pid, row->usedGpuMemory) < 0)
				result = NVML_ERROR_MEMORY;
		}
		break;
	}
	free(buffer);
	return result;
}

static int by_pid(const void *a, const void *b)
{
	uint32_t x = ((const struct sl_nvml_process *)a)->pid;
	uint32_t y = ((const struct sl_nvml_process *)b)->pid;

	return x < y ? -1 : x > y;
}

/* A process with graphics and compute contexts is in both lists with the same sum. */
static void merge(struct rows *rows)
{
	uint32_t kept = 0;

	if (rows->count == 0)
		return;
	qsort(rows->list, rows->count, sizeof(rows->list[0]), by_pid);
	for (uint32_t i = 1; i < rows->count; i++) {
		if (rows->list[i].pid != rows->list[kept].pid)
			rows->list[++kept] = rows->list[i];
		else
			rows->list[kept].used_bytes = sl_max_u64(
				rows->list[kept].used_bytes, rows->list[i].used_bytes);
	}
	rows->count = kept + 1;
}

static nvmlReturn_t device_used(
	struct sl_nvml *nvml, nvmlDevice_t handle, struct sl_nvml_usage *out)
{
	nvmlMemory_v2_t split = {.version = nvmlMemory_v2};
	nvmlMemory_t memory = {0};
	nvmlReturn_t result;

	if (nvml->call.nvmlDeviceGetMemoryInfo_v2 &&
		nvml->call.nvmlDeviceGetMemoryInfo_v2(handle, &split) == NVML_SUCCESS) {
		out->used_bytes = split.used;
		out->driver_bytes = split.reserved;
		return NVML_SUCCESS;
	}
	result = nvml->call.nvmlDeviceGetMemoryInfo(handle, &memory);
	out->used_bytes = memory.used;
	return result;
}

static struct sl_nvml_samples *samples_of(struct sl_nvml *nvml, const char *uuid)
{
	uint32_t i = 0;

	while (i < nvml->asked_count && strcmp(nvml->asked[i].uuid, uuid) != 0)
		i++;
	if (i == SL_ARRAY_LEN(nvml->asked))
		return NULL;
	if (i == nvml->asked_count) {
		sl_wire_str(nvml->asked[i].uuid, sizeof(nvml->asked[i].uuid), uuid);
		nvml->asked_count++;
	}
	return &nvml->asked[i].samples;
}

/* Adds the use of the GPU per process. If the GPU worked but no process seems to have, the samples
 * lag or are incomplete, and are not used. */
static void by_process(struct sl_nvml *nvml, nvmlDevice_t handle, const char *uuid,
	struct sl_nvml_usage *out)
{
	struct sl_nvml_samples *samples = samples_of(nvml, uuid);

	if (!samples)
		return;
	sl_nvml_samples_ask(samples, nvml->call.nvmlDeviceGetProcessUtilization, handle,
		out->utilisation_pct > 0, sl_clock_now());
	out->busy_sum_pct = sl_nvml_samples_sum(samples);
	out->by_process =
		samples->known && (out->busy_sum_pct > 0 || out->utilisation_pct == 0);
	for (uint32_t i = 0; i < out->count; i++)
		out->processes[i].busy_pct =
			sl_nvml_samples_of(samples, out->processes[i].pid);
}

int sl_nvml_usage(struct sl_nvml *nvml, const char *uuid_text, struct sl_nvml_usage *out,
	struct sl_error *err)
{
	const struct calls *call = &nvml->call;
	nvmlUtilization_t busy = {0};
	nvmlDevice_t handle = NULL;
	struct rows rows = {0};
	nvmlReturn_t result;

	memset(out, 0, sizeof(*out));
	result = call->nvmlDeviceGetHandleByUUID(uuid_text, &handle);
	if (result == NVML_ERROR_NOT_FOUND) {
		sl_error_set(err, "NVML knows no GPU of this UUID any more");
		return SL_NVML_ABSENT;
	}
	/* The GPU's sum is read first, the rows of its processes after it. Memory allocated in
	 * between is then in a row but not in the sum, which the reconciler ignores. The other way
	 * round, it would look unmanaged. */
	if (result == NVML_SUCCESS)
		result = device_used(nvml, handle, out);
	if (result == NVML_SUCCESS)
		result = list_some(handle, call->nvmlDeviceGetComputeRunningProcesses,
			call->nvmlDeviceGetComputeRunningProcesses_v3
				? call->nvmlDeviceGetComputeRunningProcesses_v3
				: call->nvmlDeviceGetComputeRunningProcesses_v2,
			&rows);
	if (result != NVML_SUCCESS) {
		free(rows.list);
		return failed(err, "measuring a GPU", result);
	}
	/* Data-centre GPUs refuse the graphics list and have no such processes. */
	(void)list_some(handle, call->nvmlDeviceGetGraphicsRunningProcesses,
		call->nvmlDeviceGetGraphicsRunningProcesses_v3
			? call->nvmlDeviceGetGraphicsRunningProcesses_v3
			: call->nvmlDeviceGetGraphicsRunningProcesses_v2,
		&rows);
	if (call->nvmlDeviceGetUtilizationRates &&
		call->nvmlDeviceGetUtilizationRates(handle, &busy) == NVML_SUCCESS)
		out->utilisation_pct = busy.gpu;
	merge(&rows);
	out->processes = rows.list;
	out->count = rows.count;
	by_process(nvml, handle, uuid_text, out);
	return SL_NVML_OK;
}

/* --- Xids --------------------------------------------------------------------------------- */

struct sl_nvml_watch {
	struct sl_nvml *nvml;
	nvmlEventSet_t set;
	uint32_t count;
	/* A lost GPU no longer tells its UUID, so UUIDs are read beforehand. */
	struct {
		nvmlDevice_t handle;
		char uuid_text[41];
	} devices[SL_NVML_DEVICES_MAX];
};

struct sl_nvml_watch *sl_nvml_watch_close(struct sl_nvml_watch *watch)
{
	if (!watch)
		return NULL;
	if (watch->set)
		(void)watch->nvml->call.nvmlEventSetFree(watch->set);
	watch->nvml = sl_nvml_close(watch->nvml);
	free(watch);
	return NULL;
}

static void watch_closep(struct sl_nvml_watch **watch)
{
	*watch = sl_nvml_watch_close(*watch);
}

static void register_all(struct sl_nvml_watch *watch)
{
	const struct calls *call = &watch->nvml->call;
	unsigned int count = 0;

	if (call->nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count && watch->count < SL_NVML_DEVICES_MAX; i++) {
		char *uuid = watch->devices[watch->count].uuid_text;
		nvmlDevice_t *handle = &watch->devices[watch->count].handle;
		char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";

		if (call->nvmlDeviceGetHandleByIndex_v2(i, handle) != NVML_SUCCESS ||
			call->nvmlDeviceGetUUID(*handle, text, sizeof(text)) !=
				NVML_SUCCESS ||
			call->nvmlDeviceRegisterEvents(*handle,
				nvmlEventTypeXidCriticalError,
				watch->set) != NVML_SUCCESS)
			continue;
		sl_wire_str(uuid, sizeof(watch->devices[0].uuid_text), text);
		watch->count++;
	}
}

int sl_nvml_watch_open(struct sl_nvml_watch **out, struct sl_error *err)
{
	sl_cleanup(watch_closep) struct sl_nvml_watch *watch = calloc(1, sizeof(*watch));
	nvmlReturn_t result;
	int r = SL_NVML_FAILED;

	if (!watch)
		sl_error_set(err, "no memory to watch the GPUs");
	else
		r = sl_nvml_open(&watch->nvml, err);
	if (r != SL_NVML_OK)
		return r;
	if (!watch->nvml->call.nvmlEventSetCreate ||
		!watch->nvml->call.nvmlEventSetFree ||
		!watch->nvml->call.nvmlDeviceRegisterEvents ||
		!watch->nvml->call.nvmlEventSetWait_v2) {
		sl_error_set(err, "this NVML tells no events");
		return SL_NVML_FAILED;
	}
	result = watch->nvml->call.nvmlEventSetCreate(&watch->set);
	if (result != NVML_SUCCESS)
		return failed(err, "making a set of events", result);
	register_all(watch);
	if (watch->count == 0) {
		sl_error_set(err, "no GPU tells events");
		return SL_NVML_FAILED;
	}
	*out = sl_steal(&watch);
	return SL_NVML_OK;
}

int sl_nvml_watch_wait(struct sl_nvml_watch *watch, unsigned int ms, char uuid_text[41],
	uint64_t *xid, struct sl_error *err)
{
	nvmlEventData_t data = {0};
	nvmlReturn_t result =
		watch->nvml->call.nvmlEventSetWait_v2(watch->set, &data, ms);

	if (result == NVML_ERROR_TIMEOUT)
		return SL_NVML_NONE;
	if (result != NVML_SUCCESS)
		return failed(err, "waiting for events", result);
	if (data.eventType != nvmlEventTypeXidCriticalError)
		return SL_NVML_NONE;
	for (uint32_t i = 0; i < watch->count; i++) {
		if (watch->devices[i].handle != data.device)
			continue;
		memcpy(uuid_text, watch->devices[i].uuid_text, 41);
		*xid = data.eventData;
		return SL_NVML_OK;
	}
	return SL_NVML_NONE; /* of an unknown GPU */
}
