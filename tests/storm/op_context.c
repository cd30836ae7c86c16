/*
 * op_context - contexts, devices, modules
 */
#include "ops.h"

#include "prog.h"

#include <stdlib.h>
#include <string.h>

static CUcontext context_handle(struct storm_lane *l, uint32_t context)
{
	return context ? l->ctx[context - 1].handle : l->primary;
}

/* Makes another context the current one; what the lane has under way is done before. */
static bool change(struct storm_lane *l, uint32_t context)
{
	storm_quiesce(l);
	if (CALL(l, cuCtxSetCurrent, context_handle(l, context)) != CUDA_SUCCESS)
		return false;
	l->context = context;
	return true;
}

void storm_op_context_create(struct storm_lane *l, const uint32_t *a)
{
	struct storm_context *c = &l->ctx[a[0] % STORM_CONTEXT_SLOTS];
	CUcontext current = NULL;

	if (c->live || l->captures || l->broken)
		return;
	storm_quiesce(l);
	if (CALL(l, cuCtxCreate_v2, &c->handle, a[1] & 1 ? 0 : a[1] & 4, l->device) !=
		CUDA_SUCCESS)
		return;
	c->live = true;
	CALL(l, cuCtxGetCurrent, &current);
	storm_note(l, "is current", current == c->handle);
	l->context = a[0] % STORM_CONTEXT_SLOTS + 1;
}

/* Its memory, streams and pinned pages go with it; the program's own handles do not. */
void storm_op_context_destroy(struct storm_lane *l, const uint32_t *a)
{
	uint32_t slot = a[0] % STORM_CONTEXT_SLOTS;
	struct storm_context *c = &l->ctx[slot];

	if (!c->live || l->captures)
		return;
	storm_quiesce(l);
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		struct storm_buffer *b = &l->buffer[i];

		if (!b->live || b->context != slot + 1)
			continue;
		if (b->from == FROM_VMM || b->from == FROM_REGISTERED ||
			l->step->dice & 1)
			storm_give_back(l, b);
		if (b->live)
			storm_forget(l, b);
	}
	for (unsigned i = 2; i < STORM_STREAM_SLOTS; i++)
		if (l->stream[i].live && l->stream[i].context == slot + 1)
			l->stream[i].live = false;
	if (l->context == slot + 1)
		change(l, 0);
	if (CALL(l, cuCtxDestroy_v2, c->handle) == CUDA_SUCCESS)
		c->live = false;
}

void storm_op_context_switch(struct storm_lane *l, const uint32_t *a)
{
	uint32_t slot = a[0] % STORM_CONTEXT_SLOTS;
	CUcontext popped = NULL;

	if (!l->ctx[slot].live || l->captures)
		return;
	if (l->context) {
		change(l, 0);
		return;
	}
	if (a[1] & 1) {
		change(l, slot + 1);
		return;
	}
	storm_quiesce(l);
	if (CALL(l, cuCtxPushCurrent_v2, l->ctx[slot].handle) != CUDA_SUCCESS)
		return;
	CALL_0(l, cuCtxSynchronize);
	if (CALL(l, cuCtxPopCurrent_v2, &popped) == CUDA_SUCCESS)
		storm_note(l, "popped it", popped == l->ctx[slot].handle);
}

void storm_op_context_ask(struct storm_lane *l, const uint32_t *a)
{
	CUcontext current = NULL;
	unsigned flags = 0;
	CUdevice device = -1;
	size_t limit = 0;
	int least = 0, greatest = 0, active = 0;

	switch (a[0] % 6) {
	case 0:
		CALL(l, cuCtxGetCurrent, &current);
		storm_note(l, "right one", current == context_handle(l, l->context));
		break;
	case 1:
		CALL(l, cuCtxGetDevice, &device);
		storm_note(l, "device", (uint64_t)device);
		break;
	case 2: CALL(l, cuCtxGetFlags, a[0] & 64 ? &flags : NULL); break;
	case 3:
		if (CALL(l, cuCtxGetLimit, &limit, (CUlimit)(a[0] >> 8 & 7)) ==
			CUDA_SUCCESS)
			storm_note(l, "limit", limit);
		break;
	case 4:
		CALL(l, cuCtxGetStreamPriorityRange, &least, &greatest);
		storm_note(l, "least", (uint64_t)least);
		storm_note(l, "greatest", (uint64_t)greatest);
		break;
	case 5:
		CALL(l, cuDevicePrimaryCtxGetState, l->device, &flags, &active);
		storm_note(l, "active", (uint64_t)active);
		break;
	}
}

void storm_op_context_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUcontext bad = (CUcontext)(uintptr_t)0x70, ctx;

	switch (a[0] % 8) {
	case 0: CALL(l, cuCtxSetCurrent, bad); break;
	case 1: CALL(l, cuCtxPushCurrent_v2, bad); break;
	case 2: CALL(l, cuCtxDestroy_v2, bad); break;
	case 3: CALL(l, cuCtxCreate_v2, &ctx, 0, 50); break;
	case 4: CALL(l, cuCtxCreate_v2, NULL, 0, 0); break;
	case 5: CALL(l, cuDevicePrimaryCtxRetain, &ctx, 50); break;
	case 6: CALL(l, cuDevicePrimaryCtxRelease_v2, 50); break;
	case 7: /* one more, and one less */
		if (CALL(l, cuDevicePrimaryCtxRetain, &ctx, l->device) == CUDA_SUCCESS)
			CALL(l, cuDevicePrimaryCtxRelease_v2, l->device);
		break;
	}
}

void storm_op_device_ask(struct storm_lane *l, const uint32_t *a)
{
	CUdevice device = 0;
	int value = 0;
	char text[64] = "";
	CUuuid uuid;

	switch (a[0] % 7) {
	case 0:
		if (CALL(l, cuDeviceGetAttribute, &value,
			    (CUdevice_attribute)(1 + (a[0] >> 8) % 140),
			    l->device) == CUDA_SUCCESS)
			storm_note(l, "value", (uint64_t)value);
		break;
	case 1:
		CALL(l, cuDeviceGetName, text, 40, l->device);
		storm_note_bytes(l, text, sizeof(text));
		break;
	case 2:
		CALL(l, cuDeviceGetCount, &value);
		storm_note(l, "count", (uint64_t)value);
		break;
	case 3: CALL(l, cuDeviceGet, &device, (int)(a[0] >> 8 & 3)); break;
	case 4: CALL(l, cuDeviceGetUuid_v2, &uuid, a[0] & 512 ? 0 : 20); break;
	case 5: CALL(l, cuDeviceGetPCIBusId, text, 20, l->device); break;
	case 6: CALL(l, cuDeviceCanAccessPeer, &value, 0, a[0] & 512 ? 0 : 9); break;
	}
}

void storm_op_module_load(struct storm_lane *l, const uint32_t *a)
{
	struct storm_module *m = &l->module[a[0] % STORM_MODULE_SLOTS];
	bool boxed = getenv("SLUICE_SOFTGPU");
	static const char rubbish[64] = "not a module";

	if (m->live)
		return;
	if (a[1] % 8 == 0) {
		CALL(l, cuModuleLoadData, &m->handle, rubbish);
		return;
	}
	m->live = CALL(l, cuModuleLoadData, &m->handle,
			  boxed ? prog_host_image : prog_ptx_image) == CUDA_SUCCESS;
}

void storm_op_module_use(struct storm_lane *l, const uint32_t *a)
{
	struct storm_module *m = &l->module[a[0] % STORM_MODULE_SLOTS];
	uint32_t value = l->step->dice, got[4] = {0};
	void *args[] = {&value};
	CUdeviceptr at = 0;
	CUfunction f = NULL;
	size_t bytes = 0;

	if (!m->live || l->captures || l->context)
		return;
	if (a[1] & 1) {
		CALL(l, cuModuleGetFunction, &f, m->handle, "no_such_kernel");
		CALL(l, cuModuleGetGlobal_v2, &at, &bytes, m->handle, "no_such_global");
		return;
	}
	if (CALL(l, cuModuleGetFunction, &f, m->handle, "prog_set_global") !=
			CUDA_SUCCESS ||
		CALL(l, cuModuleGetGlobal_v2, &at, &bytes, m->handle, "prog_global") !=
			CUDA_SUCCESS)
		return;
	storm_note(l, "bytes", bytes);
	CALL(l, cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, args, NULL);
	CALL(l, cuMemcpyDtoH_v2, got, at, sizeof(got[0]));
	storm_note(l, "global", got[0]);
	CALL(l, cuMemGetAddressRange_v2, &at, &bytes, at);
}

void storm_op_module_unload(struct storm_lane *l, const uint32_t *a)
{
	struct storm_module *m = &l->module[a[0] % STORM_MODULE_SLOTS];

	if (!m->live || l->captures)
		return;
	CALL_0(l, cuCtxSynchronize);
	CALL(l, cuModuleUnload, m->handle);
	m->live = false;
}

/* Loaded, one kernel of it launched, and unloaded. */
void storm_op_library(struct storm_lane *l, const uint32_t *a)
{
	const void *image =
		getenv("SLUICE_SOFTGPU") ? (const void *)prog_host_image : prog_ptx_image;
	CUlibrary library;
	CUkernel kernel;
	CUfunction f = NULL;
	unsigned count = 0;

	if (l->captures || l->context ||
		CALL(l, cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL,
			0) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuLibraryGetKernelCount, &count, library) == CUDA_SUCCESS)
		storm_note(l, "kernels", count);
	if (CALL(l, cuLibraryGetKernel, &kernel, library,
		    a[0] & 7 ? "prog_empty" : "no_such") == CUDA_SUCCESS &&
		CALL(l, cuKernelGetFunction, &f, kernel) == CUDA_SUCCESS)
		CALL(l, cuLaunchKernel, a[0] & 64 ? f : (CUfunction)kernel, 1, 1, 1, 1, 1,
			1, 0, CU_STREAM_LEGACY, NULL, NULL);
	CALL_0(l, cuCtxSynchronize);
	CALL(l, cuLibraryUnload, library);
}
