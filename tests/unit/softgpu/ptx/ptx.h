/*
 * ptx - what the tests of translated PTX share: text in, kernels run in this very process
 */
#ifndef SL_TEST_SOFTGPU_PTX_H
#define SL_TEST_SOFTGPU_PTX_H

#include "../../base/test.h"

#include "base/hostmodule.h"
#include "softgpu/ptx/ptx.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "//\n.version 7.0\n.target sm_80\n.address_size 64\n"

static inline const struct sl_host_module *ptx_load(const char *text)
{
	struct sl_image_log log;
	char path[64], *c = NULL;
	int fd = -1;

	if (sl_ptx_translate(text, 12040, &c, &log) != CUDA_SUCCESS ||
		sl_hostcc(c, &fd, &log) != CUDA_SUCCESS)
		fail_msg("%s in\n%.2000s", log.text, text);
	free(c);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	return dlsym(
		handle, SL_HOSTMODULE_SYMBOL); /* it stays until the end of the test */
}

static inline const struct sl_kernel_entry *ptx_kernel(
	const struct sl_host_module *m, const char *name)
{
	for (const struct sl_kernel_entry *const *k = m->kernels; k < m->kernels_end; k++)
		if (!strcmp((*k)->name, name))
			return *k;
	fail_msg("there is no kernel %s", name);
	return NULL;
}

/* One block after another, as the companion does it. */
static inline void ptx_run(const struct sl_kernel_entry *k, uint32_t blocks, uint32_t x,
	uint32_t y, uint32_t dynamic, void **params)
{
	struct sl_kernel_ctx ctx = {.block_dim = {x, y, 1},
		.grid_dim = {blocks, 1, 1},
		.shared_bytes = dynamic};
	char *shared = aligned_alloc(64, (k->shared_bytes + dynamic + 64) / 64 * 64);

	ctx.shared = shared + k->shared_bytes;
	ctx.scratch = malloc(k->block_bytes + (uint64_t)x * y * k->thread_bytes + 1);
	for (ctx.block[0] = 0; ctx.block[0] < blocks; ctx.block[0]++)
		k->run(&ctx, params);
	free(shared);
	free(ctx.scratch);
}

#endif
