/*
 * stub - see stub.h
 */
#include "stub.h"

#include "ask.h"
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Puts the stub's folder in front of whatever driver there is, and names the daemon's GPU. */
static void set_environment(void)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	const char *old = getenv("LD_LIBRARY_PATH");
	sl_cleanup(sl_freep) char *stub = bench_path("tests/bench/libcuda.so.1");
	sl_cleanup(sl_freep) char *folders = NULL;
	struct sl_msg_gpu_row gpu;
	char uuid[41];
	int fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);

	bench_gpu(fd, &gpu);
	(void)close(fd);
	sl_wire_uuid_format(gpu.uuid, uuid);
	*strrchr(stub, '/') = '\0';
	bench_require(
		asprintf(&folders, "%s%s%s", stub, old ? ":" : "", old ? old : "") > 0,
		"out of memory");
	bench_require(setenv("LD_LIBRARY_PATH", folders, 1) == 0, "out of memory");
	bench_require(setenv("BENCH_GPU_UUID", uuid, 1) == 0, "out of memory");
}

void bench_stub_start(const char *part, const char *name)
{
	sl_cleanup(sl_freep) char *sluice = bench_path("sluice");
	sl_cleanup(sl_freep) char *self = bench_path("tests/bench/bench");

	set_environment();
	(void)execl(sluice, sluice, "run", "--name", name, "--", self, part, "inside",
		(char *)NULL);
	bench_die("%s: %s", sluice, strerror(errno));
}

void bench_stub_join(const char *name)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct sl_msg_use_row use;
	size_t free_bytes = 0, total_bytes = 0;
	int fd, r = bench_driver_context();

	bench_require(r == 0, "the stub driver refused: %d", r);
	r = (int)bench_cu.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	bench_require(r == 0, "cuMemGetInfo: %d", r);
	fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	bench_require(bench_use(fd, name, &use) && use.clients == 1,
		"the library did not join the daemon");
	(void)close(fd);
}

void bench_stub_find(const char *symbol, void **hook, void **bare)
{
	char bare_symbol[96];

	(void)snprintf(bare_symbol, sizeof(bare_symbol), "bench_bare_%s", symbol);
	*hook = dlsym(bench_cu.library, symbol);
	*bare = dlsym(bench_cu.library, bare_symbol);
	bench_require(*hook && *bare, "%s: not in the stub driver", symbol);
	bench_require(*hook != *bare, "%s is not hooked", symbol);
}
