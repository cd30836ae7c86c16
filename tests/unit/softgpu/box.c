/*
 * box - whole software GPUs under careless, hostile and killed programs
 *
 * Every client is a process of its own that loads the driver by name, so that no state of one test
 * reaches another. argv[1] is the folder of the libraries, argv[2] a host module.
 */
#include "../base/test.h"

#include "base/cuda_abi.h"
#include "base/nvml_abi.h"
#include "softgpu/proto.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GPU_BYTES   (256 * SL_MIB)
#define BIG_BYTES   (160 * SL_MIB) /* two of them do not fit */
#define PATIENCE_MS 20000

static const char *folder, *module_path;
static struct sl_softgpu_box box;

/* One of the driver's functions, typed as in the header. */
#define CU(name) ((__typeof__(&name))cu(#name))

/* And of NVML's. */
#define ML(name) ((__typeof__(&name))cu(#name))

static void *open_library(const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *cu(const char *name)
{
	static void *cuda, *nvml;

	if (!cuda)
		cuda = open_library("libcuda.so.1");
	if (!nvml)
		nvml = open_library("libnvidia-ml.so.1");
	void *library = name[0] == 'n' ? nvml : cuda;
	void *fn = library ? dlsym(library, name) : NULL;
	if (!fn) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		_exit(99);
	}
	return fn;
}

static void nap_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

/* In a client: said on stderr and by the exit status; cmocka belongs to the parent. */
#define MUST(got, want)                                                             \
	do {                                                                        \
		long long got_ = (long long)(got), want_ = (long long)(want);       \
		if (got_ != want_) {                                                \
			fprintf(stderr, "line %d: " #got " is %lld, wanted %lld\n", \
				__LINE__, got_, want_);                             \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

static CUcontext client_start(void)
{
	CUcontext ctx;

	MUST(CU(cuInit)(0), CUDA_SUCCESS);
	MUST(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), CUDA_SUCCESS);
	MUST(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	return ctx;
}

/* Runs a client; *ready becomes readable when it says so, and is closed by the caller. */
static pid_t client(void (*body)(int say), int *ready)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		signal(SIGSEGV, SIG_DFL); /* not cmocka's, which would go on from here */
		body(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

static void client_must_succeed(const char *name, void (*body)(int say))
{
	int ready, status = -1;
	pid_t pid = client(body, &ready);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready);
	assert_row_u64(name, (uint64_t)status, 0);
}

static int box_start(void **state)
{
	struct sl_softgpu_config c;
	char why[200] = "";

	(void)state;
	sl_softgpu_config_init(&c);
	c.memory_bytes = GPU_BYTES;
	c.gpus = 2;
	c.folder = folder;
	if (sl_softgpu_start(&box, &c, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return sl_softgpu_env(&box);
}

static int box_stop(void **state)
{
	(void)state;
	sl_softgpu_stop(&box);
	return 0;
}

/* Processes and their descriptors ------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
		sscanf(strrchr(text, ')') + 1, " %*c %d", &parent);
	if (f)
		fclose(f);
	return parent;
}

/* A child of the server: there is at most one here. 0: none. */
static pid_t companion(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	assert_non_null(proc);
	while (!found && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			parent_of((pid_t)atoi(e->d_name)) == box.pid)
			found = (pid_t)atoi(e->d_name);
	closedir(proc);
	return found;
}

static unsigned server_fds(void)
{
	char path[64];
	unsigned count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)box.pid);
	DIR *fds = opendir(path);
	assert_non_null(fds);
	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

/* Raw clients --------------------------------------------------------------------------------- */

static int raw_connect(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", box.socket);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void raw_send(int fd, enum sl_sg_op op, uint32_t device, uint64_t value)
{
	struct sl_sg_request q = {.op = op, .device = device, .value = value};

	(void)!send(fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static struct sl_sg_reply raw_call(int fd, enum sl_sg_op op, uint64_t id, uint64_t value)
{
	struct sl_sg_request q = {.op = op, .id = id, .value = value};
	char in[65536];
	struct sl_sg_reply reply = {.result = -1};

	assert_int_equal(send(fd, &q, sizeof(q), MSG_NOSIGNAL), sizeof(q));
	if (recv(fd, in, sizeof(in), 0) >= (ssize_t)sizeof(reply))
		memcpy(&reply, in, sizeof(reply));
	return reply;
}

static uint64_t free_bytes(void)
{
	int fd = raw_connect();
	struct sl_sg_reply reply = raw_call(fd, SL_SG_INFO, 0, 0);

	close(fd);
	assert_int_equal(reply.result, 0);
	return reply.free_bytes;
}

/* What the server holds when nobody is connected. */
struct level {
	unsigned fds;
	uint64_t free_bytes;
};

/* Closing is the server's next turn, not ours: asks until two answers agree. */
static struct level level(void)
{
	struct level last = {0}, now = {0};

	for (int i = 0; i < 3 || now.fds != last.fds; i++) {
		last = now;
		now.free_bytes = free_bytes();
		nap_ms(20);
		now.fds = server_fds();
	}
	return now;
}

static void settle(const char *name, struct level before)
{
	struct level now = level();

	for (int i = 0;
		i < 50 && (now.fds != before.fds || now.free_bytes != before.free_bytes);
		i++)
		now = level();
	assert_row_u64(name, now.fds, before.fds);
	assert_row_u64(name, now.free_bytes, before.free_bytes);
}

enum { FRIENDS = 300 };

static void test_hostile_clients(void **state)
{
	struct level before = level();
	static const char rubbish[70000];
	int fd[FRIENDS];

	(void)state;
	for (int i = 0; i < FRIENDS; i++)
		fd[i] = raw_connect(); /* and say nothing */
	for (int i = 0; i < FRIENDS; i++)
		switch (i % 8) {
		case 0: break;
		case 1: (void)!send(fd[i], rubbish, (size_t)i, MSG_NOSIGNAL); break;
		case 2: (void)!send(fd[i], rubbish, sizeof(rubbish), MSG_NOSIGNAL); break;
		case 3: raw_send(fd[i], SL_SG_CREATE, UINT32_MAX, 1); break;
		case 4: raw_send(fd[i], SL_SG_HELLO, 0, 77); break;
		case 5: /* never reads a reply */
			for (int k = 0; k < 2000; k++)
				raw_send(fd[i], SL_SG_HELLO, 0, SL_SG_VERSION);
			break;
		case 6: raw_send(fd[i], SL_SG_HIDE, 0, UINT64_MAX); break;
		case 7: raw_send(fd[i], SL_SG_COMPANION, 0, 0); break;
		}
	assert_row_u64("the server still answers", free_bytes(), before.free_bytes);
	for (int i = 0; i < FRIENDS; i++)
		close(fd[i]);
	settle("after hostile clients", before);
}

/* Memory that a dead client left in a descriptor nobody has any more. */
static void test_exports(void **state)
{
	struct level before = level();

	(void)state;
	for (int i = 0; i < 50; i++) {
		int fd = raw_connect();
		uint64_t id = raw_call(fd, SL_SG_CREATE, 0, SL_SG_PAGE).id;

		raw_call(fd, SL_SG_EXPORT, id, 0); /* its descriptor falls to the floor */
		raw_call(fd, SL_SG_EXPORT, id, 0);
		close(fd);
	}
	settle("after exports", before);
}

/* Killed clients ------------------------------------------------------------------------------ */

static void body_of_writer(int say)
{
	CUmodule module;
	CUfunction f;
	CUdeviceptr data;
	uint64_t words = BIG_BYTES / 4;
	void *params[] = {&data, &words};

	client_start();
	MUST(CU(cuMemAlloc_v2)(&data, BIG_BYTES), CUDA_SUCCESS);
	MUST(CU(cuModuleLoad)(&module, module_path), CUDA_SUCCESS);
	MUST(CU(cuModuleGetFunction)(&f, module, "keep_writing"), CUDA_SUCCESS);
	MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_SUCCESS);
	nap_ms(20); /* let it run */
	MUST(write(say, "r", 1), 1);
	pause();
}

/* Takes the dead one's memory as soon as it can be had. */
static void take_over(const char *name, pid_t dead_companion)
{
	int fd = raw_connect();
	struct sl_sg_reply reply = {0};

	for (int i = 0; i < PATIENCE_MS; i++) {
		reply = raw_call(fd, SL_SG_CREATE, 0, BIG_BYTES);
		if (reply.result == CUDA_SUCCESS)
			break;
		nap_ms(1);
	}
	/* Now the pages are somebody else's: no kernel of the dead may write there. */
	bool alive = parent_of(dead_companion) == box.pid;
	close(fd);
	assert_row_u64(name, (uint64_t)reply.result, CUDA_SUCCESS);
	assert_row_u64(name, alive, false);
}

static void kill_writer(const char *name, bool stop_companion)
{
	struct level before = level();
	int ready;
	char byte;
	pid_t pid = client(body_of_writer, &ready);

	assert_int_equal(read(ready, &byte, 1), 1);
	close(ready);
	pid_t child = companion();
	assert_true(child > 0);
	if (stop_companion)
		assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	take_over(name, child);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	settle(name, before);
}

static void test_kernel_outlives_nobody(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		kill_writer("running", false);
	kill_writer("stopped", true);
}

/* Streams of threads -------------------------------------------------------------------------- */

static pthread_barrier_t turn;

static unsigned long long own_stream_id(void)
{
	unsigned long long id = 0;

	MUST(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &id), CUDA_SUCCESS);
	return id;
}

static void *thread_with_dead_stream(void *arg)
{
	CUcontext other;

	(void)arg;
	MUST(CU(cuCtxCreate_v2)(&other, 0, 0), CUDA_SUCCESS);
	own_stream_id();
	MUST(CU(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn); /* the main thread has a stream of its own now */
	return NULL;
}

static void body_of_threads(int say)
{
	pthread_t thread;

	(void)say;
	client_start();
	pthread_barrier_init(&turn, NULL, 2);
	MUST(pthread_create(&thread, NULL, thread_with_dead_stream, NULL), 0);
	pthread_barrier_wait(&turn);
	unsigned long long id = own_stream_id();
	pthread_barrier_wait(&turn);
	pthread_join(thread, NULL);
	MUST(own_stream_id(), id);
}

static void test_thread_ends_its_own_stream_only(void **state)
{
	(void)state;
	client_must_succeed("threads", body_of_threads);
}

/* Lost GPUs ----------------------------------------------------------------------------------- */

static int happen(enum sl_softgpu_event event, uint32_t gpu, uint32_t xid)
{
	char why[200];

	return sl_softgpu_event(
		getenv(SL_SOFTGPU_ENV), event, gpu, xid, why, sizeof(why));
}

static void must_work(CUcontext ctx)
{
	CUdeviceptr at;
	uint32_t word = 0;

	MUST(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	MUST(CU(cuMemAlloc_v2)(&at, 4096), CUDA_SUCCESS);
	MUST(CU(cuMemsetD32_v2)(at, 0x5eed, 1024), CUDA_SUCCESS);
	MUST(CU(cuMemcpyDtoH_v2)(&word, at, 4), CUDA_SUCCESS);
	MUST(word, 0x5eed);
	MUST(CU(cuMemFree_v2)(at), CUDA_SUCCESS);
}

static void launch_endless(CUcontext ctx)
{
	CUmodule module;
	CUfunction f;
	CUdeviceptr data;
	uint64_t words = 1024;
	void *params[] = {&data, &words};

	MUST(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	MUST(CU(cuMemAlloc_v2)(&data, 4096), CUDA_SUCCESS);
	MUST(CU(cuModuleLoad)(&module, module_path), CUDA_SUCCESS);
	MUST(CU(cuModuleGetFunction)(&f, module, "keep_writing"), CUDA_SUCCESS);
	MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_SUCCESS);
}

/* All of the driver that needs the GPU, for ever. */
static void must_be_lost(CUcontext ctx)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	CUcontext more;
	size_t a, b;

	MUST(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	MUST(CU(cuCtxSynchronize)(), CUDA_ERROR_UNKNOWN);
	MUST(CU(cuMemAlloc_v2)(&at, 4096), CUDA_ERROR_UNKNOWN);
	MUST(CU(cuMemGetInfo_v2)(&a, &b), CUDA_ERROR_UNKNOWN);
	MUST(CU(cuStreamQuery)(NULL), CUDA_ERROR_UNKNOWN);
	MUST(CU(cuMemCreate)(&handle, SL_SG_PAGE, &prop, 0), CUDA_ERROR_UNKNOWN);
	MUST(CU(cuCtxCreate_v2)(&more, 0, 1), CUDA_ERROR_UNKNOWN);
}

static void must_hear(nvmlEventSet_t set, nvmlDevice_t device, unsigned xid)
{
	nvmlEventData_t data;

	MUST(ML(nvmlEventSetWait_v2)(set, &data, PATIENCE_MS), NVML_SUCCESS);
	MUST(data.device == device, true);
	MUST(data.eventType, nvmlEventTypeXidCriticalError);
	MUST(data.eventData, xid);
}

static void watch_both(nvmlEventSet_t *set, nvmlDevice_t device[2])
{
	unsigned long long types;

	MUST(ML(nvmlInit_v2)(), NVML_SUCCESS);
	MUST(ML(nvmlEventSetCreate)(set), NVML_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		MUST(ML(nvmlDeviceGetHandleByIndex_v2)(i, &device[i]), NVML_SUCCESS);
		MUST(ML(nvmlDeviceGetSupportedEventTypes)(device[i], &types),
			NVML_SUCCESS);
		MUST(types & nvmlEventTypeXidCriticalError,
			nvmlEventTypeXidCriticalError);
		MUST(ML(nvmlDeviceRegisterEvents)(device[i], types, *set), NVML_SUCCESS);
	}
}

static void body_of_lost(int say)
{
	CUcontext well = client_start(), ill;
	nvmlDevice_t device[2], again;
	nvmlEventData_t data;
	nvmlMemory_t memory;
	nvmlEventSet_t set;

	(void)say;
	watch_both(&set, device);
	MUST(CU(cuDevicePrimaryCtxRetain)(&ill, 1), CUDA_SUCCESS);
	must_work(ill);
	launch_endless(ill);
	MUST(happen(SL_SOFTGPU_XID, 0, 43), 0);
	must_hear(set, device[0], 43);
	must_work(well);
	MUST(happen(SL_SOFTGPU_LOSE, 1, SL_SOFTGPU_XID_LOST), 0);
	must_hear(set, device[1], SL_SOFTGPU_XID_LOST);
	MUST(ML(nvmlEventSetWait_v2)(set, &data, 1), NVML_ERROR_TIMEOUT);
	must_be_lost(ill);
	must_work(well);
	MUST(ML(nvmlDeviceGetMemoryInfo)(device[1], &memory), NVML_ERROR_GPU_IS_LOST);
	MUST(ML(nvmlDeviceGetHandleByIndex_v2)(1, &again), NVML_ERROR_GPU_IS_LOST);
	MUST(ML(nvmlDeviceGetMemoryInfo)(device[0], &memory), NVML_SUCCESS);
	MUST(happen(SL_SOFTGPU_LOSE, 1, SL_SOFTGPU_XID_LOST), -EINVAL);
	MUST(happen(SL_SOFTGPU_LOSE, 2, SL_SOFTGPU_XID_LOST), -ENXIO);
	MUST(happen(SL_SOFTGPU_REVIVE, 1, 0), 0);
	MUST(happen(SL_SOFTGPU_REVIVE, 1, 0), -EINVAL);
	/* Who was there when it fell has to start anew. */
	must_be_lost(ill);
	MUST(ML(nvmlDeviceGetMemoryInfo)(device[1], &memory), NVML_SUCCESS);
	MUST(ML(nvmlEventSetFree)(set), NVML_SUCCESS);
}

static void body_of_revived(int say)
{
	CUcontext ctx;

	(void)say;
	client_start();
	MUST(CU(cuDevicePrimaryCtxRetain)(&ctx, 1), CUDA_SUCCESS);
	must_work(ctx);
}

static void test_lost_gpu(void **state)
{
	struct level before = level();

	(void)state;
	client_must_succeed("lost", body_of_lost);
	client_must_succeed("revived", body_of_revived);
	settle("after a lost GPU", before);
}

/* Sizes that cannot be ------------------------------------------------------------------------ */

static void body_of_sizes(int say)
{
	CUdeviceptr first, again, device;
	char *pinned;
	void *p;

	(void)say;
	client_start();
	MUST(CU(cuMemAddressReserve)(&first, SL_SG_PAGE, 0, 0, 0), CUDA_SUCCESS);
	MUST(CU(cuMemAddressFree)(first, SL_SG_PAGE), CUDA_SUCCESS);
	MUST(CU(cuMemAllocHost_v2)(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	MUST(CU(cuMemAddressReserve)(&again, 0 - SL_SG_PAGE, 0, 0, 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	MUST(CU(cuMemAddressReserve)(&again, SL_SG_PAGE, 0, 0, 0), CUDA_SUCCESS);
	MUST(again, first);

	MUST(CU(cuMemAllocHost_v2)((void **)&pinned, 8192), CUDA_SUCCESS);
	MUST(CU(cuMemAlloc_v2)(&device, SL_MIB), CUDA_SUCCESS);
	MUST(CU(cuMemsetD8_v2)((CUdeviceptr)(uintptr_t)pinned, 7, 8192), CUDA_SUCCESS);
	MUST(CU(cuMemsetD8_v2)((CUdeviceptr)(uintptr_t)pinned, 7, SL_MIB),
		CUDA_ERROR_INVALID_VALUE);
	MUST(CU(cuMemsetD32_v2)(device, 7, SIZE_MAX / 4 + 1), CUDA_ERROR_INVALID_VALUE);
	MUST(CU(cuMemcpyDtoH_v2)(pinned, device, 0 - (size_t)SL_MIB),
		CUDA_ERROR_INVALID_VALUE);
	MUST(CU(cuMemcpyDtoH_v2)(pinned, device, 8193), CUDA_ERROR_INVALID_VALUE);
	MUST(CU(cuMemHostRegister_v2)(pinned + 8192, SIZE_MAX, 0),
		CUDA_ERROR_INVALID_VALUE);
	MUST(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

static void test_sizes_that_cannot_be(void **state)
{
	(void)state;
	client_must_succeed("sizes", body_of_sizes);
}

static void test_long_fault_plan(void **state)
{
	struct sl_softgpu_config c;
	struct sl_softgpu_box other_box;
	char plan[1100], why[200];

	(void)state;
	sl_softgpu_config_init(&c);
	memset(plan, ',', sizeof(plan) - 1);
	plan[sizeof(plan) - 1] = '\0';
	c.faults = plan;
	c.folder = folder;
	assert_int_equal(sl_softgpu_start(&other_box, &c, why, sizeof(why)), -EINVAL);
	assert_row_contains("why", why, "fault plan is longer than 1023 bytes");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_clients),
		cmocka_unit_test(test_exports),
		cmocka_unit_test(test_kernel_outlives_nobody),
		cmocka_unit_test(test_thread_ends_its_own_stream_only),
		cmocka_unit_test(test_lost_gpu),
		cmocka_unit_test(test_sizes_that_cannot_be),
		cmocka_unit_test(test_long_fault_plan),
	};

	if (argc != 3)
		return 2;
	folder = argv[1];
	module_path = argv[2];
	return cmocka_run_group_tests(tests, box_start, box_stop);
}
