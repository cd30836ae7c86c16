/*
 * session - joining, being refused, and outliving the daemon
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/gate/gate.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
}

static void body_join(void)
{
	start();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.reporteds, 1));
	CHECK_EQ(FAKE(hellos), 1);
	CHECK_EQ(FAKE(reports), 0);
	CHECK_EQ(FAKE(hello_flags), 0);
	CHECK_EQ(FAKE(last_epoch_seen), 0);
	fake_stop();
}

static CUresult init_once_joined(unsigned int flags)
{
	CHECK(fake_wait(&fake.reporteds, 1));
	return CUDA_SUCCESS;
}

static CUresult init_joined(unsigned int flags)
{
	CHECK(sl_session_is_joined());
	return CUDA_SUCCESS;
}

static CUresult init_none(unsigned int flags)
{
	return CUDA_ERROR_NO_DEVICE;
}

/* The driver's start and the daemon's answer take their time beside each other, unless the start
 * reads what depends on the answer. */
static void body_join_beside(void)
{
	stub_install();
	fake_start(true);
	sl_real.cuInit = init_none;
	CHECK_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
	CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
	CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0);
	CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
	fake_listen();
	sl_real.cuInit = init_once_joined;
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(hellos), 1);
	fake_stop();
}

static void body_join_first(void)
{
	stub_install();
	fake_start(false);
	sl_real.cuInit = init_joined;
	CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", "0", 1), 0);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(hellos), 1);
	fake_stop();
}

/* peer-failures row 20: in bypass the daemon is not asked and nothing is ours. */
static void body_bypass(void)
{
	CUdeviceptr a;

	stub_install();
	fake_start(false);
	setenv("SLUICE_BYPASS", "1", 1);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(a, 0x1234);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(FAKE(connections), 0);
	CHECK(!sl_gate_self);
	fake_stop();
}

static void reject(int reason, CUresult want)
{
	CUdeviceptr a;

	stub_install();
	fake_start(true);
	fake.reject = reason;
	fake.reject_count = 1000;
	fake_listen();
	CHECK_EQ(cuInit(0), want);
	CHECK_EQ(cuInit(0), want);
	stub_make_current(0);
	CHECK_EQ(cuMemAlloc_v2(&a, 4096), want);
	CHECK_EQ(FAKE(hellos), 1);
	fake_stop();
}

static void body_reject_version(void)
{
	reject(SL_REJECT_VERSION, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
}

static void body_reject_workload(void)
{
	reject(SL_REJECT_WORKLOAD, CUDA_ERROR_NOT_PERMITTED);
}

static void body_reject_user(void)
{
	reject(SL_REJECT_USER, CUDA_ERROR_NOT_PERMITTED);
}

static void body_reject_full(void)
{
	stub_install();
	fake_start(true);
	fake.reject = SL_REJECT_FULL;
	fake.reject_count = 2;
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(hellos), 3);
	fake_stop();
}

static void *listen_later(void *arg)
{
	usleep(150000);
	fake_listen();
	return NULL;
}

static void body_daemon_later(void)
{
	pthread_t thread;

	stub_install();
	fake_start(true);
	CHECK_EQ(pthread_create(&thread, NULL, listen_later, NULL), 0);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	CHECK_EQ(FAKE(connections), 1);
	fake_stop();
}

struct asker {
	pthread_t thread;
	CUcontext ctx;
	CUdeviceptr ptr;
	CUresult result;
	uint64_t bytes;
	int done;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(asker->ctx), CUDA_SUCCESS);
	asker->result = cuMemAlloc_v2(&asker->ptr, asker->bytes);
	__atomic_store_n(&asker->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start_asking(struct asker *asker, uint64_t bytes)
{
	memset(asker, 0, sizeof(*asker));
	CHECK_EQ(sl_real.cuCtxGetCurrent(&asker->ctx), CUDA_SUCCESS);
	asker->bytes = bytes;
	CHECK_EQ(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void set_silent(bool silent)
{
	fake_lock();
	fake.silent = silent;
	fake_unlock();
}

/* peer-failures row 35: the daemon dies while a thread waits; it asks the next one again. */
static void body_dies_while_asking(void)
{
	struct asker asker;
	CUdeviceptr held;
	uint64_t number;

	start();
	CHECK_EQ(cuMemAlloc_v2(&held, 32 * SL_MIB), CUDA_SUCCESS);
	set_silent(true);
	start_asking(&asker, 64 * SL_MIB);
	CHECK(fake_wait(&fake.asks, 2));
	number = FAKE(last_ask);
	fake_die();
	/* Held memory can be used and freed meanwhile. */
	CHECK_EQ(cuMemFree_v2(held), CUDA_SUCCESS);
	CHECK_EQ(__atomic_load_n(&asker.done, __ATOMIC_ACQUIRE), 0);
	fake.silent = false;
	fake_listen();
	pthread_join(asker.thread, NULL);
	CHECK_EQ(asker.result, CUDA_SUCCESS);
	CHECK_EQ(FAKE(last_ask), number);
	CHECK(FAKE(last_epoch_seen) != 0);
	CHECK_EQ(FAKE(reported_bytes), 0);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	CHECK_EQ(FAKE(held_bytes), 64 * SL_MIB);
	CHECK_EQ(STUB(created_bytes), 64 * SL_MIB);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static CUresult (*real_create)(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags);
static int creating, may_create, fail_create;

static CUresult slow_create(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	__atomic_store_n(&creating, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&may_create, __ATOMIC_ACQUIRE))
		usleep(100);
	if (__atomic_exchange_n(&fail_create, 0, __ATOMIC_ACQ_REL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return real_create(handle, bytes, prop, flags);
}

/* The daemon dies between its grant and our commit. */
static void die_while_creating(bool fail)
{
	struct asker asker;

	start();
	real_create = sl_real.cuMemCreate;
	sl_real.cuMemCreate = slow_create;
	fail_create = fail;
	start_asking(&asker, 32 * SL_MIB);
	while (!__atomic_load_n(&creating, __ATOMIC_ACQUIRE))
		usleep(100);
	fake_die();
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	/* It is about to exist, so it is reported. */
	CHECK_EQ(FAKE(reported_bytes), 32 * SL_MIB);
	__atomic_store_n(&may_create, 1, __ATOMIC_RELEASE);
	pthread_join(asker.thread, NULL);
	CHECK_EQ(asker.result, CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	CHECK(fake_wait_u64(&fake.held_bytes, 32 * SL_MIB));
	CHECK_EQ(STUB(created_bytes), 32 * SL_MIB);
	/* Counted from the report alone, or asked again: the old grant's number means nothing. */
	CHECK_EQ(FAKE(grants), fail ? 2 : 1);
	CHECK_EQ(FAKE(fails), 0);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void body_dies_while_creating(void)
{
	die_while_creating(false);
}

static void body_dies_while_creating_fails(void)
{
	die_while_creating(true);
}

/* A daemon that comes back and does not know us. */
static void rejected_later(int reason, CUresult want)
{
	struct asker asker;
	CUdeviceptr held;

	start();
	CHECK_EQ(cuMemAlloc_v2(&held, 32 * SL_MIB), CUDA_SUCCESS);
	set_silent(true);
	start_asking(&asker, 64 * SL_MIB);
	CHECK(fake_wait(&fake.asks, 2));
	fake_die();
	fake.reject = reason;
	fake.reject_count = 1000;
	fake_listen();
	pthread_join(asker.thread, NULL);
	CHECK_EQ(asker.result, want);
	CHECK_EQ(cuMemFree_v2(held), CUDA_SUCCESS);
	CHECK_EQ(STUB(created_bytes), 0);
	fake_stop();
}

static void body_rejected_later(void)
{
	rejected_later(SL_REJECT_WORKLOAD, CUDA_ERROR_NOT_PERMITTED);
}

/* A daemon of another version took over; what the program holds stays its own. */
static void body_version_later(void)
{
	rejected_later(SL_REJECT_VERSION, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
}

static CUresult launch(void)
{
	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* WORK: while one thread waits and others submit, at most every 250 ms. */
static void body_work(void)
{
	struct asker asker;

	start();
	set_silent(true);
	start_asking(&asker, 32 * SL_MIB);
	CHECK(fake_wait(&fake.asks, 1));
	for (int i = 0; i < 60; i++) {
		CHECK_EQ(launch(), CUDA_SUCCESS);
		usleep(10000);
	}
	CHECK(FAKE(works) >= 1);
	CHECK(FAKE(works) <= 4);
	fake_answer_waiting();
	pthread_join(asker.thread, NULL);
	CHECK_EQ(asker.result, CUDA_SUCCESS);
	CHECK(fake_wait(&fake.measures, 0));
	fake_stop();
}

static void *keep_launching(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_RELAXED))
		CHECK_EQ(launch(), CUDA_SUCCESS);
	return NULL;
}

static unsigned int launches(void)
{
	return __atomic_load_n(&stub.launches, __ATOMIC_RELAXED);
}

/* The daemon closes the gate under load, sees it drained, opens it. */
static void body_gate(void)
{
	pthread_t threads[3];
	int stop = 0;

	start();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, keep_launching, &stop), 0);
	for (unsigned int i = 0; i < 40; i++) {
		unsigned int before;

		fake_send_gate(i, 1);
		CHECK(fake_wait(&fake.gate_dones, 2 * i + 1));
		CHECK_EQ(FAKE(last_gate_order), i);
		CHECK_EQ(FAKE(last_gate_closed), 1);
		before = launches();
		usleep(2000);
		CHECK_EQ(launches(), before);
		fake_send_gate(1000 + i, 0);
		CHECK(fake_wait(&fake.gate_dones, 2 * i + 2));
		CHECK_EQ(FAKE(last_gate_order), 1000 + i);
		CHECK_EQ(FAKE(last_gate_closed), 0);
		while (launches() == before)
			usleep(100);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	fake_stop();
}

/* A launch that is inside the driver holds the answer up until it is out. */
static void body_gate_drains(void)
{
	pthread_t thread;
	int stop = 0;

	start();
	__atomic_store_n(&stub_hold_launches, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&thread, NULL, keep_launching, &stop), 0);
	while (launches() == 0)
		usleep(100);
	fake_send_gate(1, 1);
	usleep(30000);
	CHECK_EQ(FAKE(gate_dones), 0);
	__atomic_store_n(&stub_hold_launches, 0, __ATOMIC_RELEASE);
	CHECK(fake_wait(&fake.gate_dones, 1));
	fake_send_gate(2, 0);
	CHECK(fake_wait(&fake.gate_dones, 2));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	fake_stop();
}

/* After a first launch the daemon is asked to measure. */
static void body_measure(void)
{
	CUcontext ctx;
	size_t free_bytes;

	start();
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
	/* The answer has come before the call returned. */
	CHECK_EQ(FAKE(measures), 1);
	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, NULL), CUDA_SUCCESS);
	CHECK_EQ(free_bytes, 8 * SL_GIB - 8 * SL_MIB);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.measures, 2));
	fake_stop();
}

#if defined(__SANITIZE_THREAD__)
#define THREADS_AFTER_FORK 0 /* TSan cannot follow them */
#else
#define THREADS_AFTER_FORK 1
#endif

/* peer-failures row 25: the child joins anew at its first call; the parent notices nothing. */
static void body_fork(void)
{
	CUdeviceptr a, b;
	int status;
	pid_t pid;

	if (!THREADS_AFTER_FORK)
		return;
	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	/* The child has a daemon of its own: the fake can do with one client only. */
	fake_lock();
	pid = fork();
	fake_unlock();
	if (pid == 0) {
		alarm(30);
		fake_start(false);
		CHECK_EQ(sl_session_is_joined(), 0);
		CHECK_EQ(sl_gate_records(), 0);
		CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(FAKE(connections), 0);
		CHECK_EQ(cuMemAlloc_v2(&b, 64 * SL_MIB), CUDA_SUCCESS);
		CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
		CHECK_EQ(FAKE(hello_flags), SL_HELLO_FORKED);
		CHECK_EQ(FAKE(last_epoch_seen), 0);
		CHECK_EQ(FAKE(held_bytes), 64 * SL_MIB);
		CHECK_EQ(launch(), CUDA_SUCCESS);
		fake_stop();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(cuMemAlloc_v2(&b, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 32 * SL_MIB));
	CHECK_EQ(FAKE(connections), 1);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

/* A program that closes every descriptor and opens files under our numbers: we leave them alone,
 * and the session comes back. */
static void body_descriptors(void)
{
	char path[] = "/tmp/sluice-fds-XXXXXX";
	int file = mkstemp(path), ours = 0;
	bool before[1024];
	CUdeviceptr a;
	struct stat info;

	for (int fd = 0; fd < 1024; fd++)
		before[fd] = fstat(fd, &info) == 0;
	start();
	/* The fake daemon's own ends lie low and must live. */
	for (int fd = 200; fd < 1024; fd++) {
		if (before[fd] || fstat(fd, &info) != 0)
			continue;
		ours++;
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CHECK_EQ(dup2(file, fd), fd);
	}
	CHECK_EQ(ours, 3);
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK_EQ(FAKE(connections), 2);
	CHECK_EQ(fstat(file, &info), 0);
	CHECK_EQ(info.st_size, 0);
	unlink(path);
	fake_stop();
}

/* peer-failures row 27: signals, umask and handlers are as they were; ours are blocked. */
static void body_guest(void)
{
	struct sigaction before[64], after;
	sigset_t mask_before, mask_after;
	mode_t mask = umask(027);
	CUdeviceptr a;

	(void)mask;
	for (int i = 1; i < 32; i++)
		(void)sigaction(i, NULL, &before[i]);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask_before);
	start();
	errno = 99;
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK_EQ(errno, 99);
	CHECK_EQ(umask(027), 027);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask_after);
	CHECK_EQ(memcmp(&mask_before, &mask_after, sizeof(mask_before)), 0);
	for (int i = 1; i < 32; i++) {
		if (sigaction(i, NULL, &after) == 0)
			CHECK(after.sa_handler == before[i].sa_handler);
	}
	fake_stop();
}

/* A daemon that reads nothing for long: what could not be kept for it is not lost to the books. */
static void body_daemon_stalls(void)
{
	CUdeviceptr a, b;
	uint8_t uuid[16];

	start();
	stub_uuid(0, uuid);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 96 * SL_MIB));
	fake_lock();
	errno = 4711;
	for (int i = 0; i < 100000; i++)
		sl_session_measure(sl_session_gpu(uuid), 0);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(errno, 4711);
	fake_unlock();
	CHECK(fake_wait(&fake.reporteds, 2));
	if (!fake_wait_u64(&fake.held_bytes, 32 * SL_MIB))
		CHECK_EQ(FAKE(held_bytes), 32 * SL_MIB);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	fake_stop();
}

/* The size of the largest piece that moves as a whole is reported before its bytes count: once
 * for the largest, and anew to each new daemon. */
static void body_chunk(void)
{
	CUdeviceptr a;

	start();
	CHECK_EQ(FAKE(chunks), 0);
	CHECK_EQ(cuMemAlloc_v2(&a, 128 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.commits, 1));
	CHECK_EQ(FAKE(chunk_bytes), 64 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&a, 300 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.commits, 2));
	CHECK_EQ(FAKE(chunk_bytes), 128 * SL_MIB);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.commits, 3));
	CHECK_EQ(FAKE(chunks), 2);
	fake_die();
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(chunks), 3);
	CHECK_EQ(FAKE(chunk_bytes), 128 * SL_MIB);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

/* The daemon's word of the place has arrived. */
static void wait_until_at(int place)
{
	uint8_t uuid[16];

	stub_uuid(place, uuid);
	for (int i = 0; !sl_session_gpu(uuid); i++) {
		CHECK(i < 20000);
		usleep(100);
	}
}

/* An ordinal of the workload moves to another GPU: its record stays the same, and is found by the
 * new UUID alone. What the process knows from before finds it by that name. */
static void body_moves(void)
{
	struct sl_gpu *gpu, *other;
	uint8_t first[16], uuid[16];
	size_t free_bytes = 0;

	stub_install();
	fake_start(true);
	fake.gpus = 2;
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
	stub_uuid(0, first);
	gpu = sl_device_gpu(0);
	other = sl_device_gpu(1);
	CHECK(gpu && other && gpu != other);
	fake_lock();
	fake.moved_by = 2;
	fake.limit_bytes = 4 * SL_GIB;
	fake_unlock();
	fake_send_gpu();
	wait_until_at(3);
	stub_uuid(2, uuid);
	CHECK(sl_session_gpu(uuid) == gpu);
	CHECK(!sl_session_gpu(first));
	CHECK(sl_session_gpu_named(SL_GPU_JOINED, first) == gpu);
	CHECK(sl_session_gpu_named(SL_GPU_FIRST, first) == gpu);
	CHECK(!sl_session_gpu_named(SL_GPU_FIRST, uuid));
	CHECK(sl_device_gpu(0) == gpu);
	CHECK(sl_device_gpu(1) == other);
	CHECK_EQ(gpu->ordinal, 0);
	CHECK_EQ(other->ordinal, 1);
	CHECK_EQ(cuMemGetInfo_v2(NULL, &free_bytes), CUDA_SUCCESS);
	CHECK_EQ(free_bytes, 4 * SL_GIB);
	fake_stop();
}

static CUresult uuid_after_a_move(CUuuid *uuid, CUdevice dev)
{
	stub_uuid(dev + 2, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

/* A process that had started the driver, and had no context, stays behind: it gets none there. */
static void body_left_behind(void)
{
	CUcontext ctx;

	start();
	CHECK(sl_device_gpu(0));
	fake_lock();
	fake.moved_by = 2;
	fake_unlock();
	fake_send_gpu();
	wait_until_at(2);
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* Nor if it never asked for the device before. */
	sl_device_forget();
	CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* One that was taken along. */
	sl_real.cuDeviceGetUuid = uuid_after_a_move;
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
	fake_stop();
}

struct reader {
	struct sl_gpu *gpu;
	unsigned int reads;
	int stop;
};

/* All bytes of a UUID are the same here. */
static void *read_names(void *arg)
{
	struct reader *reader = arg;
	uint8_t uuid[16];

	while (!__atomic_load_n(&reader->stop, __ATOMIC_ACQUIRE)) {
		sl_session_uuid(reader->gpu, SL_GPU_NOW, uuid);
		for (int i = 1; i < 16; i++)
			CHECK_EQ(uuid[i], uuid[0]);
		CHECK(sl_device_gpu(0) == reader->gpu);
		__atomic_fetch_add(&reader->reads, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* A thread that asks meanwhile sees the name from before or from after a move. */
static void body_moves_while_read(void)
{
	struct reader reader = {.stop = 0};
	pthread_t thread;

	start();
	reader.gpu = sl_device_gpu(0);
	CHECK_EQ(pthread_create(&thread, NULL, read_names, &reader), 0);
	for (unsigned int i = 1; i <= 300; i++) {
		fake_lock();
		fake.moved_by = i % 3;
		fake_unlock();
		fake_send_gpu();
		wait_until_at((int)(i % 3));
	}
	while (__atomic_load_n(&reader.reads, __ATOMIC_ACQUIRE) < 100)
		usleep(100);
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	fake_stop();
}

static const char *visible_in_driver;

static CUresult init_and_read(unsigned int flags)
{
	visible_in_driver = getenv("CUDA_VISIBLE_DEVICES");
	return CUDA_SUCCESS;
}

static void start_moved(unsigned int moved_by)
{
	stub_install();
	sl_real.cuInit = init_and_read;
	fake_start(true);
	fake.gpus = 2;
	fake.moved_by = moved_by;
	fake_listen();
}

/* Not even a copy of the same value is set. */
static void body_starts_where_it_began(void)
{
	const char *value;

	start_moved(0);
	CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", "0,1", 1), 0);
	value = getenv("CUDA_VISIBLE_DEVICES");
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK(visible_in_driver == value);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") == value);
	fake_stop();
}

#define UUID_OF(byte)                                                        \
	"GPU-" byte byte byte byte "-" byte byte "-" byte byte "-" byte byte \
	"-" byte byte byte byte byte byte

/* The driver gets the GPUs of today, in the same places; the program keeps the names it knows. */
static void body_starts_after_a_move(void)
{
	static const struct {
		const char *names, *today;
	} rows[] = {
		{"0,1", "2,3"},
		{"1", "3"},
		{"1, 0", "3,2"},
		{"0,7,1", "2,7,3"},
		{"", ""},
		{"-1,0", "-1,0"},
		{"1x,0", "1x,2"},
		{UUID_OF("40"), UUID_OF("42")},
		{"GPU-41414141,0", UUID_OF("43") ",2"},
		{"GPU-,GPU-44", "GPU-,GPU-44"},
	};

	start_moved(2);
	CHECK_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK(!visible_in_driver);
	CHECK(!getenv("CUDA_VISIBLE_DEVICES"));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", rows[i].names, 1), 0);
		errno = 4711;
		CHECK_EQ(cuInit(0), CUDA_SUCCESS);
		CHECK_EQ(errno, 4711);
		CHECK_STR(visible_in_driver, rows[i].today);
		CHECK_STR(getenv("CUDA_VISIBLE_DEVICES"), rows[i].names);
	}
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)                     \
	X(join)                      \
	X(join_beside)               \
	X(join_first)                \
	X(bypass)                    \
	X(reject_version)            \
	X(reject_workload)           \
	X(reject_user)               \
	X(reject_full)               \
	X(daemon_later)              \
	X(dies_while_asking)         \
	X(dies_while_creating)       \
	X(dies_while_creating_fails) \
	X(rejected_later)            \
	X(version_later)             \
	X(work)                      \
	X(gate)                      \
	X(gate_drains)               \
	X(measure)                   \
	X(fork)                      \
	X(descriptors)               \
	X(guest)                     \
	X(daemon_stalls)             \
	X(chunk)                     \
	X(moves)                     \
	X(moves_while_read)          \
	X(left_behind)               \
	X(starts_where_it_began)     \
	X(starts_after_a_move)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
