/*
 * health - GPUs that are lost, and a server that runs out of descriptors
 *
 * argv[1] is the folder of the libraries, argv[2] a host module.
 */
#include "boxed.h"

#include <errno.h>
#include <sys/resource.h>

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
	/* A client from before the GPU fell has to start anew. */
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

/* Descriptors --------------------------------------------------------------------------------- */

/* How often the server has gone to sleep. */
static unsigned long naps(void)
{
	char path[64], line[128];
	unsigned long count = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)box.pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lu", &count);
	fclose(f);
	return count;
}

/* It does not answer newcomers then, but it does not spin either; later it does answer. */
static void test_no_descriptors(void **state)
{
	enum { COUNT = 60 };
	struct level before = level();
	struct rlimit was, few = {before.fds + COUNT / 2, before.fds + COUNT / 2};
	struct sl_sg_reply reply;
	unsigned long slept;
	int fd[COUNT];

	(void)state;
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, NULL, &was), 0);
	few.rlim_max = was.rlim_max;
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (int i = 0; i < COUNT; i++)
		fd[i] = raw_connect();
	/* Those it has are served meanwhile, and it sleeps in between. */
	for (int i = 0; i < 5; i++) {
		reply = raw_call(fd[0], SL_SG_INFO, 0, 0);
		assert_int_equal(reply.result, CUDA_SUCCESS);
		slept = naps();
		nap_ms(300);
		assert_true(naps() > slept);
	}
	for (int i = 0; i < COUNT - 1; i++)
		close(fd[i]);
	reply = raw_call(fd[COUNT - 1], SL_SG_INFO, 0, 0);
	assert_int_equal(reply.result, CUDA_SUCCESS);
	close(fd[COUNT - 1]);
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &was, NULL), 0);
	settle("after too many clients", before);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_gpu),
		cmocka_unit_test(test_no_descriptors),
	};

	if (argc != 3)
		return 2;
	folder = argv[1];
	module_path = argv[2];
	return cmocka_run_group_tests(tests, box_start, box_stop);
}
