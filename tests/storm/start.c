/*
 * start - what a lane needs before its first step, and how a step runs
 */
#include "ops.h"

#include "prog.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Every function by its exported name; false names the first that is missing. */
static bool look_up(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "storm: %s\n", dlerror());
		return false;
	}
#define SL_STORM_CALL(name)                                                     \
	*(void **)&storm_cu.name = dlsym(library, #name);                       \
	if (!storm_cu.name) {                                                   \
		fprintf(stderr, "storm: this libcuda.so.1 has no %s\n", #name); \
		return false;                                                   \
	}
#include "calls.def"
#undef SL_STORM_CALL
	return true;
}

static bool kernels(struct storm_lane *l)
{
	const void *image =
		getenv("SLUICE_SOFTGPU") ? (const void *)prog_host_image : prog_ptx_image;
	CUmodule module;

	return storm_cu.cuModuleLoadData(&module, image) == CUDA_SUCCESS &&
	       storm_cu.cuModuleGetFunction(&l->fill, module, "prog_fill") ==
		       CUDA_SUCCESS &&
	       storm_cu.cuModuleGetFunction(&l->step_kernel, module, "prog_step") ==
		       CUDA_SUCCESS &&
	       storm_cu.cuModuleGetFunction(&l->poke, module, "prog_poke") ==
		       CUDA_SUCCESS &&
	       storm_cu.cuModuleGetFunction(&l->empty, module, "prog_empty") ==
		       CUDA_SUCCESS;
}

static bool first_calls(struct storm_lane *l)
{
	CUresult r = storm_cu.cuInit(0);

	if (r == CUDA_SUCCESS)
		r = storm_cu.cuDeviceGetCount(&l->devices);
	/* Lanes that share memory are on one GPU; the others on any. */
	if (r == CUDA_SUCCESS && l->shape != STORM_SHAPE_LINKED)
		l->device = (CUdevice)l->worker % l->devices;
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuDevicePrimaryCtxRetain(&l->primary, l->device);
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuCtxSetCurrent(l->primary);
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuEventCreate(&l->order, CU_EVENT_DISABLE_TIMING);
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuDeviceGetDefaultMemPool(&l->pool[0].handle, l->device);
	if (r == CUDA_SUCCESS && !kernels(l))
		r = CUDA_ERROR_INVALID_IMAGE;
	/* The first launch: its allocations are not the storm's. */
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuLaunchKernel(
			l->empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	if (r == CUDA_SUCCESS)
		r = storm_cu.cuCtxSynchronize();
	if (r != CUDA_SUCCESS)
		fprintf(stderr, "storm: worker %u.%u cannot start: %s\n", l->worker,
			l->number, prog_error_name(r));
	return r == CUDA_SUCCESS;
}

bool storm_lane_start(struct storm_lane *l)
{
	static bool found;

	if (!found)
		found = look_up();
	l->scratch = malloc(SCRATCH_BYTES);
	l->readback = malloc(SCRATCH_BYTES);
	l->stream[0].live = l->stream[1].live = l->pool[0].live = true;
	return found && l->scratch && l->readback && first_calls(l);
}

typedef void op_fn(struct storm_lane *l, const uint32_t *a);
static op_fn *const ops[] = {
#define SL_STORM_OP(name, weight, flags, spec) storm_op_##name,
#include "ops.def"
#undef SL_STORM_OP
};

void storm_lane_step(struct storm_lane *l, const struct storm_step *s,
	struct storm_result *result, char *text)
{
	l->step = s;
	l->result = result;
	l->text = text;
	l->twin = (s->dice >> 16 & 7) == 0;
	l->settle = false;
	ops[s->op](l, s->arg);
	if (l->settle)
		storm_quiesce(l);
	__atomic_store_n(&result->done, 1, __ATOMIC_RELEASE);
}
