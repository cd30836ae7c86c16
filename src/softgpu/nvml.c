/*
 * nvml - our libnvidia-ml.so.1
 *
 * Figures come from the server over a connection of its own, as old as the box's lag makes them;
 * nothing of the driver's state is shared with our libcuda, and a process that only asks is no user
 * of a GPU. After a fork the connection is the parent's: the child starts anew with nvmlInit.
 */
#include "softgpu/proto.h"

#include "base/cuda_types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "base/nvml_abi.h"
#pragma GCC visibility pop

/* The driver that goes with the box's version of CUDA; NVML puts the major one before. */
#define DRIVER_OF_13 "580.65.99"
#define DRIVER_OF_12 "550.54.99"
#define IS_CUDA_13   (sl_softgpu_cuda_version() >= 13000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int server = -1;
static pid_t owner; /* process that made the connection */
static unsigned users;
static struct sl_sg_hello hello;
static const struct sl_sg_board
	*board; /* of that server; kept when it is another's turn */
static __thread struct sl_sg_figures f; /* the last ones this thread asked for */

/* The connection ------------------------------------------------------------------------------ */

/* Descriptors of the GPUs' memory come with the greeting; only the board behind them is wanted. */
static void take_board(const int *memfds, unsigned count)
{
	board = count ? sl_sg_board_map(memfds[0], false) : NULL;
	for (unsigned i = 0; i < count; i++)
		close(memfds[i]);
}

static int connect_server(void)
{
	int memfds[SL_SG_FDS_MAX];
	unsigned count = SL_SG_FDS_MAX;
	const char *path = getenv(SL_SOFTGPU_ENV);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct sl_sg_request q = {.op = SL_SG_HELLO, .value = SL_SG_VERSION};
	int fd;

	if (!path || !*path || strlen(path) >= sizeof(a.sun_path))
		return -ENOENT;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		sl_sg_send(fd, &q, sizeof(q), NULL, 0, NULL, 0) < 0 ||
		sl_sg_receive(fd, &hello, sizeof(hello), memfds, &count) !=
			(ssize_t)sizeof(hello)) {
		close(fd);
		return -EIO;
	}
	take_board(memfds, count);
	if (!board) {
		close(fd);
		return -EIO;
	}
	return fd;
}

nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (users && owner != getpid()) { /* a fork's copy */
		close(server);
		users = 0;
	}
	if (!users) {
		server = connect_server();
		owner = getpid();
		r = server < 0 ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
	}
	if (r == NVML_SUCCESS)
		users++;
	pthread_mutex_unlock(&lock);
	return r;
}

nvmlReturn_t nvmlInit(void)
{
	return nvmlInit_v2();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!users)
		r = NVML_ERROR_UNINITIALIZED;
	else if (--users == 0)
		close(sl_steal_fd(&server));
	pthread_mutex_unlock(&lock);
	return r;
}

static bool is_ready(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = users && owner == getpid();
	pthread_mutex_unlock(&lock);
	return ready;
}

#define NEED_READY                                       \
	do {                                             \
		if (!is_ready())                         \
			return NVML_ERROR_UNINITIALIZED; \
	} while (0)
#define NEED(condition)                                     \
	do {                                                \
		if (!(condition))                           \
			return NVML_ERROR_INVALID_ARGUMENT; \
	} while (0)

/* A device handle is its number and one, as a pointer. */
static bool device_ok(nvmlDevice_t device, uint32_t *index)
{
	uintptr_t n = (uintptr_t)device;

	if (!n || n > hello.gpus)
		return false;
	*index = (uint32_t)n - 1;
	return true;
}

static bool is_lost(uint32_t index)
{
	return __atomic_load_n(&board->generation[index], __ATOMIC_ACQUIRE) & 1;
}

#define NEED_DEVICE(device, index)                          \
	do {                                                \
		NEED_READY;                                 \
		if (!device_ok(device, index))              \
			return NVML_ERROR_INVALID_ARGUMENT; \
		if (is_lost(*(index)))                      \
			return NVML_ERROR_GPU_IS_LOST;      \
	} while (0)

/* Into f. */
static nvmlReturn_t figures(uint32_t index)
{
	struct sl_sg_figures *out = &f;
	struct sl_sg_request q = {.op = SL_SG_FIGURES, .device = index};
	nvmlReturn_t r = NVML_ERROR_UNKNOWN;

	pthread_mutex_lock(&lock);
	if (server >= 0 && sl_sg_send(server, &q, sizeof(q), NULL, 0, NULL, 0) == 0) {
		ssize_t n = sl_sg_receive(server, out, sizeof(*out), NULL, NULL);
		size_t head = offsetof(struct sl_sg_figures, process);

		if (n >= (ssize_t)head &&
			(size_t)n >= head + out->process_count * sizeof(out->process[0]))
			r = NVML_SUCCESS;
		else if (n <= 0)
			r = NVML_ERROR_GPU_IS_LOST;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static nvmlReturn_t put_text(char *out, unsigned length, const char *text)
{
	NEED(out);
	if (strlen(text) + 1 > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

/* The system ---------------------------------------------------------------------------------- */

const char *nvmlErrorString(nvmlReturn_t result)
{
	static const struct {
		nvmlReturn_t result;
		const char *text;
	} texts[] = {
#define TEXT(name, number, text) {NVML_##name, text},
		SL_NVML_RESULTS(TEXT)
#undef TEXT
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++)
		if (texts[i].result == result)
			return texts[i].text;
	return "unknown result";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	NEED_READY;
	return put_text(version, length, IS_CUDA_13 ? DRIVER_OF_13 : DRIVER_OF_12);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return put_text(
		version, length, IS_CUDA_13 ? "13." DRIVER_OF_13 : "12." DRIVER_OF_12);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	NEED(version);
	*version = sl_softgpu_cuda_version();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	NEED_READY;
	NEED(name && length);
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

/* Devices ------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	NEED_READY;
	NEED(count);
	*count = (unsigned)hello.gpus;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	NEED_READY;
	NEED(device && index < hello.gpus);
	if (is_lost(index))
		return NVML_ERROR_GPU_IS_LOST;
	*device = (nvmlDevice_t)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void uuid_text(uint32_t index, char *out, size_t size)
{
	const unsigned char *u = hello.device[index].uuid;

	snprintf(out, size,
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%"
		"02x",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
		u[12], u[13], u[14], u[15]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char text[48];

	NEED_READY;
	NEED(uuid && device);
	for (uint32_t i = 0; i < hello.gpus; i++) {
		uuid_text(i, text, sizeof(text));
		if (!strcmp(text, uuid))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
	unsigned domain, bus, slot;

	NEED_READY;
	NEED(bus_id && device && sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) == 3);
	for (uint32_t i = 0; i < hello.gpus; i++)
		if (hello.device[i].bus == bus && !domain && !slot)
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(index);
	*index = i;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	return put_text(name, length, hello.device[i].name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[48];
	uint32_t i;

	NEED_DEVICE(device, &i);
	uuid_text(i, text, sizeof(text));
	return put_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(pci);
	memset(pci, 0, sizeof(*pci));
	pci->bus = hello.device[i].bus;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

/* One value each. */
#define FIXED(name, type, value)                          \
	nvmlReturn_t name(nvmlDevice_t device, type *out) \
	{                                                 \
		uint32_t i;                               \
		NEED_DEVICE(device, &i);                  \
		NEED(out);                                \
		*out = value;                             \
		return NVML_SUCCESS;                      \
	}
FIXED(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
FIXED(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
FIXED(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 4)
FIXED(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
FIXED(nvmlDeviceGetPowerUsage, unsigned int, 0)

nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
	uint32_t i;

	(void)sensor;
	NEED_DEVICE(device, &i);
	NEED(celsius);
	*celsius = 30;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(
	nvmlDevice_t device, int *major, int *minor)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(major && minor);
	*major = 8;
	*minor = 0;
	return NVML_SUCCESS;
}

/* As a GPU answers that cannot be partitioned. */
nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	uint32_t i;

	(void)current;
	(void)pending;
	NEED_DEVICE(device, &i);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Memory and processes ------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	r = figures(i);
	if (r != NVML_SUCCESS)
		return r;
	memory->total = f.total_bytes;
	memory->used = f.used_bytes + f.reserved_bytes;
	memory->free = sl_sub_sat(memory->total, memory->used);
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = figures(i);
	if (r != NVML_SUCCESS)
		return r;
	memory->total = f.total_bytes;
	memory->reserved = f.reserved_bytes;
	memory->used = f.used_bytes;
	memory->free = sl_sub_sat(f.total_bytes, f.used_bytes + f.reserved_bytes);
	return r;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(memory);
	*memory = (nvmlBAR1Memory_t){256 * SL_MIB, 255 * SL_MIB, SL_MIB};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(
	nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t r;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(utilization);
	r = figures(i);
	if (r == NVML_SUCCESS)
		*utilization = (nvmlUtilization_t){f.busy_pct, f.busy_pct};
	return r;
}

/* Rows of `stride` bytes; the longer form has the instance ids behind the short one's members. */
static nvmlReturn_t processes(
	nvmlDevice_t device, unsigned *count, char *rows, size_t stride)
{
	nvmlReturn_t r;
	unsigned room;
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count);
	NEED(rows || !*count);
	r = figures(i);
	if (r != NVML_SUCCESS)
		return r;
	room = *count;
	*count = f.process_count;
	if (room < f.process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned n = 0; n < f.process_count; n++) {
		nvmlProcessInfo_v2_t row = {
			f.process[n].pid, f.process[n].used_bytes, ~0u, ~0u};

		memcpy(rows + n * stride, &row, stride);
	}
	return r;
}

/* No process of ours draws, and none uses MPS. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *count)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

#define LISTS(suffix, type)                                                     \
	nvmlReturn_t nvmlDeviceGetComputeRunningProcesses##suffix(              \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		return processes(device, count, (char *)infos, sizeof(*infos)); \
	}                                                                       \
	nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses##suffix(             \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		(void)infos;                                                    \
		return no_processes(device, count);                             \
	}                                                                       \
	nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses##suffix(           \
		nvmlDevice_t device, unsigned int *count, type *infos)          \
	{                                                                       \
		(void)infos;                                                    \
		return no_processes(device, count);                             \
	}
LISTS(, nvmlProcessInfo_v1_t)
LISTS(_v2, nvmlProcessInfo_v2_t)
LISTS(_v3, nvmlProcessInfo_t)

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *count,
	unsigned long long since_us)
{
	(void)samples;
	(void)since_us;
	return no_processes(device, count) == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND
							   : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
	uint32_t i;

	(void)pid;
	(void)stats;
	NEED_DEVICE(device, &i);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Events -------------------------------------------------------------------------------------- */

/* What a set waits for; events before the registration of a GPU are not for it. */
struct nvmlEventSet_st {
	uint32_t magic, seen; /* events of the board */
	bool wanted[SL_SOFTGPU_GPUS_MAX];
};
#define SET_MAGIC   0x534c4556u
#define EVENT_TYPES ((unsigned long long)nvmlEventTypeXidCriticalError)

static uint32_t event_count(void)
{
	return __atomic_load_n(&board->event_count, __ATOMIC_ACQUIRE);
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	struct nvmlEventSet_st *new;

	NEED_READY;
	NEED(set);
	new = calloc(1, sizeof(*new));
	if (!new)
		return NVML_ERROR_MEMORY;
	new->magic = SET_MAGIC;
	new->seen = event_count();
	*set = new;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	NEED_READY;
	NEED(set && set->magic == SET_MAGIC);
	set->magic = 0;
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(
	nvmlDevice_t device, unsigned long long *types)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(types);
	*types = EVENT_TYPES;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(set && set->magic == SET_MAGIC && types);
	if (types & ~EVENT_TYPES)
		return NVML_ERROR_NOT_SUPPORTED;
	set->wanted[i] = true;
	return NVML_SUCCESS;
}

/* The next event the set waits for, if there is one. */
static bool take_event(struct nvmlEventSet_st *set, struct sl_sg_event *out)
{
	uint32_t now = event_count();

	/* Whoever slept too long misses the oldest, as with any queue of a kernel's. */
	if (now - set->seen > SL_SG_EVENTS_MAX / 2)
		set->seen = now - SL_SG_EVENTS_MAX / 2;
	while (set->seen != now) {
		*out = board->event[set->seen++ % SL_SG_EVENTS_MAX];
		if (out->device < hello.gpus && set->wanted[out->device])
			return true;
	}
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	uint64_t deadline_ns = now_ns() + timeout_ms * UINT64_C(1000000), now;
	struct sl_sg_event event;
	struct timespec left;

	NEED_READY;
	NEED(set && set->magic == SET_MAGIC && data);
	while (!take_event(set, &event)) {
		now = now_ns();
		if (now >= deadline_ns)
			return NVML_ERROR_TIMEOUT;
		left.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
		left.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
		syscall(SYS_futex, &board->event_count, FUTEX_WAIT, set->seen, &left,
			NULL, 0);
	}
	*data = (nvmlEventData_t){(nvmlDevice_t)(uintptr_t)(event.device + 1),
		nvmlEventTypeXidCriticalError, event.xid, ~0u, ~0u};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	nvmlEventData_t whole;
	nvmlReturn_t r;

	NEED(data);
	r = nvmlEventSetWait_v2(set, &whole, timeout_ms);
	/* The older call knows no instances: its structure ends before them. */
	if (r == NVML_SUCCESS)
		memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
	return r;
}
