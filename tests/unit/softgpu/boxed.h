/*
 * boxed - what the tests of whole software GPUs share
 *
 * Every client is a process of its own that loads the driver by name, so that no state of one test
 * reaches another. main() sets folder (of the libraries) and module_path (a host module).
 */
#ifndef SL_TEST_SOFTGPU_BOXED_H
#define SL_TEST_SOFTGPU_BOXED_H

#include "../base/test.h"

#include "base/cuda_abi.h"
#include "base/nvml_abi.h"
#include "softgpu/link/box.h"
#include "softgpu/link/proto.h"

#include <dirent.h>
#include <dlfcn.h>
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

static const char *folder, *module_path __attribute__((unused));
static struct sl_softgpu_box box;

/* One of the driver's functions, typed as in the header. */
#define CU(name) ((__typeof__(&name))cu(#name))

/* And of NVML's. */
#define ML(name) ((__typeof__(&name))cu(#name))

static inline void *open_library(const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static inline void *cu(const char *name)
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

static inline void nap_ms(unsigned ms)
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

static inline CUcontext client_start(void)
{
	CUcontext ctx;

	MUST(CU(cuInit)(0), CUDA_SUCCESS);
	MUST(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), CUDA_SUCCESS);
	MUST(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	return ctx;
}

/* Runs a client; *ready becomes readable when it says so, and is closed by the caller. */
static inline pid_t client(void (*body)(int say), int *ready)
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

static inline void client_must_succeed(const char *name, void (*body)(int say))
{
	int ready, status = -1;
	pid_t pid = client(body, &ready);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready);
	assert_row_u64(name, (uint64_t)status, 0);
}

static inline int box_start(void **state)
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

static inline int box_stop(void **state)
{
	(void)state;
	sl_softgpu_stop(&box);
	return 0;
}

static inline unsigned server_fds(void)
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

static inline int raw_connect(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", box.socket);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void raw_send(int fd, enum sl_sg_op op, uint32_t device, uint64_t value)
{
	struct sl_sg_request q = {.op = op, .device = device, .value = value};

	(void)!send(fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline struct sl_sg_reply raw_call(
	int fd, enum sl_sg_op op, uint64_t id, uint64_t value)
{
	struct sl_sg_request q = {.op = op, .id = id, .value = value};
	char in[65536];
	struct sl_sg_reply reply = {.result = -1};

	assert_int_equal(send(fd, &q, sizeof(q), MSG_NOSIGNAL), sizeof(q));
	if (recv(fd, in, sizeof(in), 0) >= (ssize_t)sizeof(reply))
		memcpy(&reply, in, sizeof(reply));
	return reply;
}

static inline uint64_t free_bytes(void)
{
	int fd = raw_connect();
	struct sl_sg_reply reply = raw_call(fd, SL_SG_INFO, 0, 0);

	close(fd);
	assert_int_equal(reply.result, 0);
	return reply.free_bytes;
}

/* What the server holds when no client is connected. */
struct level {
	unsigned fds;
	uint64_t free_bytes;
};

/* Closing is the server's next turn, not ours: asks until two answers agree. */
static inline struct level level(void)
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

static inline void settle(const char *name, struct level before)
{
	struct level now = level();

	for (int i = 0;
		i < 50 && (now.fds != before.fds || now.free_bytes != before.free_bytes);
		i++)
		now = level();
	assert_row_u64(name, now.fds, before.fds);
	assert_row_u64(name, now.free_bytes, before.free_bytes);
}

#endif
