/*
 * box - whole software GPUs under careless, hostile and killed programs
 *
 * argv[1] is the folder of the libraries, argv[2] a host module.
 */
#include "boxed.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

/* Processes and their descriptors ------------------------------------------------------------- */

/* 0: it is no process, or one that is dead and whose entry is still there. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "", state = 'X';
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
		sscanf(strrchr(text, ')') + 1, " %c %d", &state, &parent);
	if (f)
		fclose(f);
	return state == 'Z' || state == 'X' ? 0 : parent;
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

/* Memory that a dead client left in a descriptor that no process has any more. */
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

/* Takes the dead client's memory as soon as possible. */
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
	/* Now the pages belong to another client: no kernel of the dead one may write there. */
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
		cmocka_unit_test(test_sizes_that_cannot_be),
		cmocka_unit_test(test_long_fault_plan),
	};

	if (argc != 3)
		return 2;
	folder = argv[1];
	module_path = argv[2];
	return cmocka_run_group_tests(tests, box_start, box_stop);
}
