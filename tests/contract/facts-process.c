/*
 * facts-process - fork, sharing between processes, death, and NVML's view of it all
 */
#include "contract.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANUAL "driver API manual"

/* --- helpers run in a second process --------------------------------------------------- */

/* Opens the memory whose handle comes on stdin, checks it and leaves a sign. */
static int helper_ipc(void)
{
	CUipcMemHandle handle;
	CUdeviceptr at = 0;

	if (read(STDIN_FILENO, &handle, sizeof(handle)) != sizeof(handle))
		return 2;
	contract_context();
	OK(cuIpcOpenMemHandle_v2, &at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	HOLDS(contract_read(at + 4096), ==, 616);
	OK(cuMemsetD32_v2, at + 4096, 617, 1);
	OK(cuCtxSynchronize);
	OK(cuIpcCloseMemHandle, at);
	return 0;
}

/* Takes memory and a kernel that never ends, then waits to be killed. */
static int helper_endless(void)
{
	CUdeviceptr flag;
	uint32_t value = 1;
	void *args[] = {&flag, &value};

	contract_context();
	flag = contract_alloc(64 << 20);
	OK(cuMemsetD32_v2, flag, 0, 1);
	contract_is(CUDA_SUCCESS,
		contract_launch(contract_kernel("prog_wait"), NULL, args), "prog_wait",
		__FILE__, __LINE__);
	if (write(STDOUT_FILENO, "running\n", 8) != 8)
		return 2;
	for (;;)
		pause();
}

int contract_helper(const char *name)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} helpers[] = {
		{"pool_import", contract_pool_import},
		{"vmm_import", contract_vmm_import},
		{"swap_tenant", contract_swap_tenant},
		{"work_healthy", contract_work_healthy},
		{"event-wait", contract_event_wait},
		{"event-record", contract_event_record},
		{"event-die", contract_event_die},
		{"ipc", helper_ipc},
		{"endless", helper_endless},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(helpers); i++)
		if (!strcmp(helpers[i].name, name))
			return helpers[i].run();
	return 127;
}

/* --- fork ------------------------------------------------------------------------------ */

/* Exit status of run() in a forked child. */
static int in_child(int (*run)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(run());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int child_initialises(void)
{
	return CU(cuInit)(0) == CUDA_SUCCESS ? contract_work_healthy() : 1;
}

FACT(fork_before, MANUAL, SAME, "a child forked before cuInit may use the driver")
{
	HOLDS(in_child(child_initialises), ==, 0);
}

static int child_inherits(void)
{
	CUdeviceptr at;

	return CU(cuMemAlloc_v2)(&at, 4096) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1;
}

FACT(fork_after, MANUAL, SAME, "a child forked after cuInit gets NOT_INITIALIZED")
{
	contract_context();
	HOLDS(in_child(child_inherits), ==, 0);
}

FACT(fork_parent, MANUAL, SAME, "the parent works on after such a child's end")
{
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(4);
	contract_step(NULL, word, 0, 2);
	HOLDS(in_child(child_inherits), ==, 0);
	contract_step(NULL, word, 3, 1);
	HOLDS(contract_read(word), ==, 7);
}

FACT(fork_exec, MANUAL, SAME, "a child that execs is a new program")
{
	contract_context();
	HOLDS(contract_again("work_healthy", -1, NULL, 0), ==, 0);
}

/* --- sharing --------------------------------------------------------------------------- */

FACT(ipc_memory, MANUAL, SAME,
	"memory can be opened by another process by its IPC handle")
{
	CUipcMemHandle handle;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(4 << 20);
	OK(cuMemsetD32_v2, at + 4096, 616, 1);
	OK(cuCtxSynchronize);
	OK(cuIpcGetMemHandle, &handle, at);
	HOLDS(contract_again("ipc", -1, &handle, sizeof(handle)), ==, 0);
	HOLDS(contract_read(at + 4096), ==, 617);
}

FACT(ipc_foreign, MANUAL, SAME, "other memory has no IPC handle")
{
	CUipcMemHandle handle;
	static int host;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuIpcGetMemHandle, &handle,
		(CUdeviceptr)(uintptr_t)&host);
}

/* --- NVML ------------------------------------------------------------------------------ */

static nvmlDevice_t nvml_device(void)
{
	nvmlDevice_t device;
	char bus[32];

	OK(cuInit, 0);
	OK(cuDeviceGetPCIBusId, bus, sizeof(bus), 0);
	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlDeviceGetHandleByPciBusId_v2, bus, &device);
	return device;
}

static unsigned long long nvml_used(nvmlDevice_t device)
{
	nvmlMemory_t memory;

	NVML_IS(SUCCESS, nvmlDeviceGetMemoryInfo, device, &memory);
	return memory.used;
}

FACT(nvml_first, "NVML manual", SAME, "calls before nvmlInit give UNINITIALIZED")
{
	unsigned int count;

	NVML_IS(ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2, &count);
	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlDeviceGetCount_v2, &count);
	HOLDS(count, >=, 1);
	NVML_IS(SUCCESS, nvmlShutdown);
	NVML_IS(ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2, &count);
}

FACT(nvml_count, "NVML manual", SAME, "nvmlInit counts: as many shutdowns are needed")
{
	unsigned int count;

	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlShutdown);
	NVML_IS(SUCCESS, nvmlDeviceGetCount_v2, &count);
	NVML_IS(SUCCESS, nvmlShutdown);
	NVML_IS(ERROR_UNINITIALIZED, nvmlShutdown);
}

FACT(nvml_uuid, "NVML manual", SAME, "NVML and the driver name a device by the same UUID")
{
	unsigned char bytes[16];
	char text[96], made[96];
	nvmlDevice_t device = nvml_device(), again;
	CUuuid uuid;
	int used;

	OK(cuDeviceGetUuid, &uuid, 0);
	memcpy(bytes, &uuid, sizeof(bytes));
	NVML_IS(SUCCESS, nvmlDeviceGetUUID, device, text, sizeof(text));
	used = snprintf(made, sizeof(made), "GPU-");
	for (int i = 0; i < 16; i++)
		used += snprintf(made + used, sizeof(made) - (size_t)used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
	HOLDS(strcmp(text, made), ==, 0);
	NVML_IS(SUCCESS, nvmlDeviceGetHandleByUUID, text, &again);
	HOLDS((uintptr_t)again, ==, (uintptr_t)device);
}

FACT(nvml_sum, "NVML manual", SAME, "used and free make total")
{
	nvmlMemory_t memory;

	NVML_IS(SUCCESS, nvmlDeviceGetMemoryInfo, nvml_device(), &memory);
	HOLDS(memory.used + memory.free, ==, memory.total);
	HOLDS(memory.total, >, 0);
}

FACT(nvml_total, "measured by others", SAME, "NVML's total is at least the driver's")
{
	nvmlMemory_t memory;
	size_t total;

	NVML_IS(SUCCESS, nvmlDeviceGetMemoryInfo, nvml_device(), &memory);
	OK(cuDeviceTotalMem_v2, &total, 0);
	HOLDS(memory.total, >=, total);
}

FACT(nvml_sees_alloc, "measured by others", SAME, "NVML sees an allocation and its end")
{
	nvmlDevice_t device = nvml_device();
	unsigned long long before, held;
	CUdeviceptr at;

	contract_context();
	before = nvml_used(device);
	at = contract_alloc(128 << 20);
	held = nvml_used(device);
	HOLDS(held, >=, before + (128 << 20));
	OK(cuMemFree_v2, at);
	OK(cuCtxSynchronize);
	HOLDS(nvml_used(device), <, held);
}

/* Whether NVML lists a process, and the bytes it reports for it. */
static bool nvml_process(nvmlDevice_t device, pid_t pid, unsigned long long *bytes)
{
	nvmlProcessInfo_t infos[256];
	unsigned int count = 256;

	NVML_IS(SUCCESS, nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
	for (unsigned int i = 0; i < count; i++)
		if (infos[i].pid == (unsigned int)pid) {
			*bytes = infos[i].usedGpuMemory;
			return true;
		}
	return false;
}

FACT(nvml_processes, "NVML manual", SAME,
	"NVML lists a process with a context, and its bytes")
{
	nvmlDevice_t device = nvml_device();
	unsigned long long bare = 0, held = 0;

	contract_context();
	/* The context itself may be no memory of the program's: Sluice's reserve pays it. */
	HOLDS(nvml_process(device, getpid(), &bare), ==, true);
	contract_alloc(64 << 20);
	HOLDS(nvml_process(device, getpid(), &held), ==, true);
	HOLDS(held, >=, bare + (64 << 20));
}

FACT(nvml_room, "NVML manual", SAME,
	"too little room for the processes gives the number of them")
{
	nvmlDevice_t device = nvml_device();
	unsigned int count = 0;

	contract_context();
	NVML_IS(ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetComputeRunningProcesses_v3, device,
		&count, NULL);
	HOLDS(count, >=, 1);
}

FACT(nvml_driver, "NVML manual", SAME,
	"NVML tells the driver's version, and the same CUDA version")
{
	char version[96] = "";
	int by_nvml = 0, by_driver = 0;

	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(SUCCESS, nvmlSystemGetDriverVersion, version, sizeof(version));
	HOLDS(strlen(version), >, 0);
	NVML_IS(SUCCESS, nvmlSystemGetCudaDriverVersion_v2, &by_nvml);
	OK(cuDriverGetVersion, &by_driver);
	HOLDS(by_nvml, ==, by_driver);
}

FACT(nvml_bad, "NVML manual", SAME, "NULL is refused")
{
	nvmlDevice_t device = nvml_device();

	NVML_IS(ERROR_INVALID_ARGUMENT, nvmlDeviceGetMemoryInfo, device, NULL);
	NVML_IS(ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2, 1000, &device);
}

/* --- death ----------------------------------------------------------------------------- */

FACT(death_frees, "measured by others", SLOW,
	"SIGKILL ends an endless kernel, and its memory comes back")
{
	nvmlDevice_t device = nvml_device();
	unsigned long long before, bytes;
	uint64_t stop_ms;
	char line[16];
	int ends[2];
	pid_t pid;

	contract_context();
	before = nvml_used(device);
	HOLDS(pipe(ends), ==, 0);
	pid = fork();
	if (pid == 0) {
		/* Also when the fact does not hold, and is asked again alone. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "contract", "--helper", "endless", (char *)NULL);
		_exit(126);
	}
	close(ends[1]);
	HOLDS(read(ends[0], line, 8), ==, 8);
	HOLDS(nvml_used(device), >=, before + (64 << 20));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	stop_ms = contract_now_ms() + 30000;
	while (nvml_used(device) > before + (8 << 20) && contract_now_ms() < stop_ms)
		contract_sleep_ms(20);
	HOLDS(nvml_used(device), <=, before + (8 << 20));
	/* The list does not have the dead process any more. */
	while (nvml_process(device, pid, &bytes) && contract_now_ms() < stop_ms)
		contract_sleep_ms(20);
	HOLDS(nvml_process(device, pid, &bytes), ==, false);
}
