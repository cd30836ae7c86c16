/*
 * nvml - the software GPU's libnvidia-ml.so.1
 *
 * Figures come from the server over a separate connection, and are as old as the lag that the box
 * is set to. The library shares no state with libcuda, and a process that only queries does not
 * count as a user of a GPU. After a fork the connection stays the parent's; the child starts again
 * with nvmlInit.
 */
#include "softgpu/nvml/nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The driver version for the box's CUDA version; NVML puts the major number in front. */
#define DRIVER_OF_13 "580.65.99"
#define DRIVER_OF_12 "550.54.99"
#define BRANCH_OF_13 "r580_00"
#define BRANCH_OF_12 "r550_00"
#define IS_CUDA_13   (sl_softgpu_cuda_version() >= 13000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int server = -1;
static pid_t owner; /* process that made the connection */
static unsigned users;
struct sl_sg_hello sl_nvml_hello;
/* The board of that server; kept when the connection changes. */
const struct sl_sg_board *sl_nvml_board;
__thread struct sl_sg_figures sl_nvml_figures;

/* The connection ------------------------------------------------------------------------------ */

/* The greeting brings descriptors of the GPUs' memory; only the board behind it is needed. */
static void take_board(const int *memfds, unsigned count)
{
	sl_nvml_board = count ? sl_sg_board_map(memfds[0], false) : NULL;
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
		sl_sg_receive(fd, &sl_nvml_hello, sizeof(sl_nvml_hello), memfds,
			&count) != (ssize_t)sizeof(sl_nvml_hello)) {
		close(fd);
		return -EIO;
	}
	take_board(memfds, count);
	if (!sl_nvml_board) {
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

bool sl_nvml_is_ready(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = users && owner == getpid();
	pthread_mutex_unlock(&lock);
	return ready;
}

bool sl_nvml_device(nvmlDevice_t device, uint32_t *index)
{
	uintptr_t n = (uintptr_t)device;

	if (!n || n > sl_nvml_hello.gpus)
		return false;
	*index = (uint32_t)n - 1;
	return true;
}

bool sl_nvml_is_lost(uint32_t index)
{
	return __atomic_load_n(&sl_nvml_board->generation[index], __ATOMIC_ACQUIRE) & 1;
}

/* Into sl_nvml_figures. */
nvmlReturn_t sl_nvml_ask(uint32_t index)
{
	struct sl_sg_figures *out = &sl_nvml_figures;
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

nvmlReturn_t sl_nvml_put_text(char *out, unsigned length, const char *text)
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
	return sl_nvml_put_text(
		version, length, IS_CUDA_13 ? DRIVER_OF_13 : DRIVER_OF_12);
}

nvmlReturn_t nvmlSystemGetDriverBranch(
	nvmlSystemDriverBranchInfo_t *info, unsigned int length)
{
	NEED_READY;
	NEED(info);
	if (info->version != nvmlSystemDriverBranchInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return sl_nvml_put_text(info->branch,
		(unsigned int)sl_min_u64(length, sizeof(info->branch)),
		IS_CUDA_13 ? BRANCH_OF_13 : BRANCH_OF_12);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return sl_nvml_put_text(
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
	*count = (unsigned)sl_nvml_hello.gpus;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	NEED_READY;
	NEED(device && index < sl_nvml_hello.gpus);
	if (sl_nvml_is_lost(index))
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
	const unsigned char *u = sl_nvml_hello.device[index].uuid;

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
	for (uint32_t i = 0; i < sl_nvml_hello.gpus; i++) {
		uuid_text(i, text, sizeof(text));
		if (!strcmp(text, uuid))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	char text[sizeof(uuid->value.str) + 1] = "";

	NEED_READY;
	NEED(uuid && device);
	if (uuid->version != nvmlUUID_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	NEED(uuid->type == NVML_UUID_TYPE_ASCII || uuid->type == NVML_UUID_TYPE_BINARY);
	if (uuid->type == NVML_UUID_TYPE_ASCII) {
		memcpy(text, uuid->value.str, sizeof(uuid->value.str));
		return nvmlDeviceGetHandleByUUID(text, device);
	}
	for (uint32_t i = 0; i < sl_nvml_hello.gpus; i++)
		if (!memcmp(sl_nvml_hello.device[i].uuid, uuid->value.bytes,
			    sizeof(uuid->value.bytes)))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return NVML_ERROR_NOT_FOUND;
}

/* No GPU here has a serial number. */
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	NEED_READY;
	NEED(serial && device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
	unsigned domain, bus, slot;

	NEED_READY;
	NEED(bus_id && device && sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) == 3);
	for (uint32_t i = 0; i < sl_nvml_hello.gpus; i++)
		if (sl_nvml_hello.device[i].bus == bus && !domain && !slot)
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
	return sl_nvml_put_text(name, length, sl_nvml_hello.device[i].name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[48];
	uint32_t i;

	NEED_DEVICE(device, &i);
	uuid_text(i, text, sizeof(text));
	return sl_nvml_put_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(pci);
	memset(pci, 0, sizeof(*pci));
	pci->bus = sl_nvml_hello.device[i].bus;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}
