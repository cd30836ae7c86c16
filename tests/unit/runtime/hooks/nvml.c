/*
 * nvml - NVML's answers inside a workload, with an NVML and a daemon that say what the test wants
 */
#include "../child.h"
#include "../fake.h"
#include "stub-nvml.h"
#include "../stub.h"

#include "runtime/hooks/nvml.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const char *folder;
static struct stub_nvml *nvml;

/* A field of the fake daemon, written under its lock. */
#define SET(field, ...)                   \
	do {                              \
		fake_lock();              \
		fake.field = __VA_ARGS__; \
		fake_unlock();            \
	} while (0)

static nvmlDevice_t device(unsigned int index)
{
	return (nvmlDevice_t)(uintptr_t)(index + 1);
}

static void open_nvml(void)
{
	char path[512];
	void *library;

	(void)snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", folder);
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	nvml = dlsym(library, "stub_nvml");
	CHECK(nvml);
	nvml->processes = 2;
	nvml->pid[0] = 7;
	nvml->pid[1] = 8;
}

static void start(void)
{
	stub_install();
	fake_start(false);
	open_nvml();
}

static unsigned int pids(unsigned int index, nvmlProcessInfo_t *rows, unsigned int room)
{
	unsigned int count = room;

	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(index), &count, rows),
		NVML_SUCCESS);
	return count;
}

/* Memory is the daemon's, in both versions; errno is the program's. */
static void body_memory(void)
{
	nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
	nvmlMemory_t first;

	start();
	SET(limit_bytes, 4096 * SL_MIB);
	SET(others_bytes, 96 * SL_MIB);
	errno = 4711;
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &first), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device(0), &second), NVML_SUCCESS);
	CHECK_EQ(errno, 4711);
	CHECK_EQ(first.total, 4096 * SL_MIB);
	CHECK_EQ(first.used, 96 * SL_MIB);
	CHECK_EQ(first.free, 4000 * SL_MIB);
	CHECK_EQ(second.total, first.total);
	CHECK_EQ(second.used, first.used);
	CHECK_EQ(second.reserved, 0);
	/* A GPU of others: NVML's own. */
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(2), &first), NVML_SUCCESS);
	CHECK_EQ(first.total, 80ull << 30);
	fake_stop();
}

/* peer-failures rows 10 and 11: more used than the limit is no error, and free is never
 * negative. */
static void body_over_limit(void)
{
	nvmlMemory_t memory;

	start();
	SET(limit_bytes, 64 * SL_MIB);
	SET(others_bytes, 96 * SL_MIB);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &memory), NVML_SUCCESS);
	CHECK_EQ(memory.total, 64 * SL_MIB);
	CHECK_EQ(memory.free, 0);
	CHECK_EQ(memory.used, 64 * SL_MIB);
	fake_stop();
}

/* peer-failures row 1: NVML's own refusals are passed on unchanged. */
static void body_errors(void)
{
	nvmlMemory_v2_t old = {.version = 3};
	nvmlProcessInfo_t rows[4];
	unsigned int count = 4;
	nvmlMemory_t memory;

	start();
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), NULL), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(NULL, &memory), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device(0), &old),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(0), NULL, rows),
		NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, NULL),
		NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(NULL, &count, rows),
		NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(NULL, NULL), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetCount_v2(NULL), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlDeviceGetAccountingStats(device(0), 7, NULL),
		NVML_ERROR_INVALID_ARGUMENT);
	nvml->result = NVML_ERROR_GPU_IS_LOST;
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &memory), NVML_ERROR_GPU_IS_LOST);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, rows),
		NVML_ERROR_GPU_IS_LOST);
	/* A driver that lacks the function. */
	CHECK_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(device(0), &count, rows),
		NVML_ERROR_FUNCTION_NOT_FOUND);
	fake_stop();
}

/* peer-failures row 18: NVML's pids are ignored; the daemon's are told. */
static void body_processes(void)
{
	nvmlProcessInfo_t rows[4];
	unsigned int count = 1;

	start();
	SET(pids, 2);
	SET(pid_rows[0], (struct sl_wire_pid){.pid = 21, .used_bytes = 5 * SL_MIB});
	SET(pid_rows[1], (struct sl_wire_pid){.pid = 22, .used_bytes = 6 * SL_MIB});
	CHECK_EQ(pids(0, rows, 4), 2);
	CHECK_EQ(rows[0].pid, 21);
	CHECK_EQ(rows[1].pid, 22);
	CHECK_EQ(rows[1].usedGpuMemory, 6 * SL_MIB);
	CHECK_EQ(rows[1].gpuInstanceId, ~0u);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, rows),
		NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(count, 2);
	/* GPUs of others, before and after the workload's. */
	CHECK_EQ(pids(2, rows, 4), 0);
	CHECK_EQ(FAKE(protocol_error), 0);
	fake_stop();
}

/* More than one message holds. */
static void body_many_processes(void)
{
	static nvmlProcessInfo_t rows[SL_PIDS_ROWS_MAX * 3];

	start();
	SET(pids, 150);
	for (unsigned int i = 0; i < 150; i++)
		SET(pid_rows[i].pid, 1000 + i);
	CHECK_EQ(pids(0, rows, SL_ARRAY_LEN(rows)), 150);
	for (unsigned int i = 0; i < 150; i++)
		CHECK_EQ(rows[i].pid, 1000 + i);
	fake_stop();
}

/* Utilisation goes by NVML's pids: only where these are ours, and only of our own. */
static void body_by_number(void)
{
	nvmlProcessUtilizationSample_t samples[4];
	nvmlAccountingStats_v2_t second = {.pid = 8};
	unsigned int count = 4, kept[4];
	nvmlAccountingStats_t stats;

	start();
	SET(pids, 1);
	SET(pid_rows[0], (struct sl_wire_pid){.pid = 8, .used_bytes = SL_MIB});
	SET(pids_flags, SL_PIDS_SAME);
	CHECK_EQ(nvmlDeviceGetProcessUtilization(device(0), samples, &count, 0),
		NVML_SUCCESS);
	CHECK_EQ(count, 1);
	CHECK_EQ(samples[0].pid, 8);
	CHECK_EQ(samples[0].smUtil, 11);
	CHECK_EQ(nvmlDeviceGetAccountingStats(device(0), 8, &stats), NVML_SUCCESS);
	CHECK_EQ(
		nvmlDeviceGetAccountingStats(device(0), 7, &stats), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(nvmlDeviceGetAccountingStats_v2(device(0), &second), NVML_SUCCESS);
	CHECK_EQ(second.maxMemoryUsage, 8);
	second.pid = 7;
	CHECK_EQ(nvmlDeviceGetAccountingStats_v2(device(0), &second),
		NVML_ERROR_NOT_FOUND);
	CHECK_EQ(second.maxMemoryUsage, 8);
	count = 4;
	CHECK_EQ(nvmlDeviceGetAccountingPids(device(0), &count, kept), NVML_SUCCESS);
	CHECK_EQ(count, 1);
	CHECK_EQ(kept[0], 8);
	SET(pids_flags, 0);
	count = 4;
	CHECK_EQ(nvmlDeviceGetProcessUtilization(device(0), samples, &count, 0),
		NVML_ERROR_NOT_FOUND);
	CHECK_EQ(
		nvmlDeviceGetAccountingStats(device(0), 8, &stats), NVML_ERROR_NOT_FOUND);
	fake_stop();
}

/* A daemon that does not answer, or does not know the question: the process knows itself. */
static void alone(void)
{
	nvmlProcessInfo_t rows[4];
	CUdeviceptr a;

	CHECK_EQ(pids(0, rows, 4), 0);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(pids(0, rows, 4), 1);
	CHECK_EQ(rows[0].pid, getpid());
	CHECK_EQ(rows[0].usedGpuMemory, 64 * SL_MIB);
	fake_stop();
}

static void body_no_answer(void)
{
	start();
	SET(pids_silent, true);
	alone();
}

/* The stub daemon's workload has the first two of three: the machine ends there. */
static void body_devices(void)
{
	nvmlDevice_t found = NULL;
	char uuid[64];
	unsigned int count = 0;

	start();
	CHECK_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
	CHECK_EQ(count, FAKE(gpus));
	CHECK(FAKE(gpus) < STUB_NVML_GPUS);
	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(0, &found), NVML_SUCCESS);
	CHECK(found == device(0));
	found = NULL;
	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(FAKE(gpus), &found),
		NVML_ERROR_INVALID_ARGUMENT);
	CHECK(!found);
	__typeof__(&nvmlDeviceGetUUID) uuid_of;

	*(void **)&uuid_of = sl_nvml_address("nvmlDeviceGetUUID");
	CHECK_EQ(uuid_of(device(0), uuid, sizeof(uuid)), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &found), NVML_SUCCESS);
	CHECK(found == device(0));
	CHECK_EQ(uuid_of(device(2), uuid, sizeof(uuid)), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &found), NVML_ERROR_NOT_FOUND);
	CHECK(found == device(0));
	fake_stop();
}

/* Returns once the last of its GPUs is known to have moved. */
static void move_by(unsigned int moved_by)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];

	SET(moved_by, moved_by);
	stub_uuid((int)(FAKE(gpus) - 1 + moved_by), uuid);
	fake_send_gpu();
	for (int i = 0; !sl_session_gpu(uuid); i++) {
		CHECK(i < 20000);
		usleep(100);
	}
}

static nvmlDevice_t by_bus(const char *bus)
{
	nvmlDevice_t found = NULL;

	CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2(bus, &found), NVML_SUCCESS);
	return found;
}

static nvmlDevice_t by_uuid(unsigned int index)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	nvmlDevice_t found = NULL;
	char text[41];

	stub_uuid((int)index, uuid);
	sl_wire_uuid_format(uuid, text);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS);
	return found;
}

/* The workload's only GPU is this one now: it is found as number 0, and the list ends there. */
static void sees_as_first(unsigned int index)
{
	unsigned int count = 0, number = 7;
	nvmlDevice_t found = NULL;

	CHECK_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
	CHECK_EQ(count, 1);
	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(0, &found), NVML_SUCCESS);
	CHECK(found == device(index));
	CHECK_EQ(nvmlDeviceGetIndex(found, &number), NVML_SUCCESS);
	CHECK_EQ(number, 0);
	for (unsigned int i = 1; i < STUB_NVML_GPUS; i++)
		CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(i, &found),
			NVML_ERROR_INVALID_ARGUMENT);
}

/* Names from before a move lead to the GPU of today, and old handles show the workload. */
static void body_moved(void)
{
	unsigned int number = 7;
	nvmlMemory_t memory;

	start();
	SET(limit_bytes, 4096 * SL_MIB);
	sees_as_first(0);
	move_by(1);
	sees_as_first(1);
	CHECK(by_uuid(0) == device(1));
	CHECK(by_uuid(1) == device(1));
	CHECK(by_bus("0000:00:00.0") == device(1));
	CHECK(by_bus("0000:01:00.0") == device(1));
	for (unsigned int i = 0; i < 2; i++) {
		CHECK_EQ(nvmlDeviceGetMemoryInfo(device(i), &memory), NVML_SUCCESS);
		CHECK_EQ(memory.total, 4096 * SL_MIB);
	}
	CHECK_EQ(nvmlDeviceGetIndex(device(0), &number), NVML_SUCCESS);
	CHECK_EQ(number, 0);
	/* A GPU of others stays one. */
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(2), &memory), NVML_SUCCESS);
	CHECK_EQ(memory.total, 80ull << 30);
	fake_stop();
}

/* A process that joined between two moves: the driver tells it the bus id from then. */
static void body_moved_again(void)
{
	start();
	SET(moved_by, 1);
	sees_as_first(1);
	move_by(2);
	sees_as_first(2);
	CHECK(by_bus("0000:01:00.0") == device(2));
	CHECK(by_bus("0000:00:00.0") == device(2));
	CHECK(by_uuid(1) == device(2));
	/* And home. */
	move_by(0);
	sees_as_first(0);
	CHECK(by_bus("0000:01:00.0") == device(0));
	fake_stop();
}

/* Two GPUs, after moves that brought the first to where the second began: a bus id that the
 * driver tells is the second's. */
static void body_moved_across(void)
{
	start();
	SET(gpus, 2);
	CHECK(by_bus("0000:01:00.0") == device(1));
	move_by(1);
	CHECK(by_bus("0000:01:00.0") == device(2));
	CHECK(by_bus("0000:00:00.0") == device(1));
	CHECK(by_uuid(1) == device(1));
	CHECK(by_uuid(0) == device(1));
	fake_stop();
}

/* peer-failures row 20: in bypass NVML is NVML, and the daemon is not asked. */
static void body_bypass(void)
{
	nvmlProcessInfo_t rows[4];
	unsigned int count = 0;
	nvmlMemory_t memory;

	setenv("SLUICE_BYPASS", "1", 1);
	start();
	setenv("SLUICE_BYPASS", "1", 1);
	CHECK_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
	CHECK_EQ(count, STUB_NVML_GPUS);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &memory), NVML_SUCCESS);
	CHECK_EQ(memory.total, 80ull << 30);
	CHECK_EQ(pids(0, rows, 4), 2);
	CHECK_EQ(rows[0].pid, 7);
	CHECK_EQ(FAKE(connections), 0);
	fake_stop();
}

/* A process that the daemon rejects sees NVML's own answers. */
static void body_rejected(void)
{
	nvmlProcessInfo_t rows[4];
	nvmlMemory_t memory;

	start();
	SET(reject, SL_REJECT_WORKLOAD);
	SET(reject_count, 1000);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &memory), NVML_SUCCESS);
	CHECK_EQ(memory.total, 80ull << 30);
	CHECK_EQ(pids(0, rows, 4), 2);
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)          \
	X(memory)         \
	X(over_limit)     \
	X(errors)         \
	X(processes)      \
	X(many_processes) \
	X(by_number)      \
	X(no_answer)      \
	X(devices)        \
	X(moved)          \
	X(moved_again)    \
	X(moved_across)   \
	X(bypass)         \
	X(rejected)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	folder = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
