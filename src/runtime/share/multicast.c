/*
 * multicast - one address for the memory of several GPUs
 *
 * A multicast object is one of the program's handles (handle.h), without memory of its own to
 * charge. Memory bound to it is used by other GPUs, so it is held until it is unbound or the object
 * is gone; the object lives while memory is bound, even if released. Bindings are recorded per
 * object, under a separate lock that is held for table work only. An unbind names a device and an
 * offset in the object, as the bind did.
 */
#include "runtime/share/multicast.h"
#include "runtime/gate/door.h"
#include "runtime/driver/handle.h"
#include "runtime/gate/control.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/anchor.h"
#include "runtime/memory/oom.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

#include <pthread.h>
#include <stdlib.h>

/* Bound without a device: any unbind matches. */
#define DEV_ANY (-1)

struct binding {
	struct sl_link link; /* handle->bindings of the object */
	CUdevice dev;
	uint64_t offset;       /* in the object */
	struct sl_handle *mem; /* bound and held; or NULL, with: */
	CUdeviceptr ptr;       /* a range of regions */
	uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sl_multicast_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
}

static void drop_binding(struct binding *binding)
{
	if (binding->mem)
		sl_handle_unbind(binding->mem);
	else
		sl_anchor_drop(binding->ptr, binding->bytes);
	free(binding);
}

static void drop_bindings(struct sl_link *list)
{
	sl_list_foreach_safe (link, list) {
		sl_list_unlink(link);
		drop_binding(SL_LIST_ENTRY(link, struct binding, link));
	}
}

static void on_end(struct sl_handle *object)
{
	drop_bindings(&object->bindings);
}

SL_EXPORT CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real = 0;
	struct sl_handle *object;
	CUresult r;

	if (!out || !prop || !sl_mode_is_active())
		return sl_real.cuMulticastCreate(out, prop);
	object = sl_handle_new(SL_HANDLE_MULTICAST, prop->size);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->on_end = on_end;
	r = sl_real.cuMulticastCreate(&real, prop);
	SL_OOM_RETRY(r, SL_OOM_CURRENT, sl_real.cuMulticastCreate(&real, prop));
	if (r == CUDA_SUCCESS)
		*out = sl_handle_add(object, real);
	else
		sl_handle_discard(object);
	return sl_measure_after(r);
}

SL_EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle value, CUdevice dev)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real;
	struct sl_handle *object = sl_handle_use(value, &real);
	CUresult r = sl_real.cuMulticastAddDevice(real, dev);

	sl_handle_leave(object);
	return sl_measure_after(r);
}

/* --- binding ---------------------------------------------------------------------------------- */

/* The bindings of one call: held before the driver is called, listed if it agrees. */
struct bind {
	struct sl_handle *object, *mem;
	CUmemGenericAllocationHandle real_object, real_mem;
	struct sl_link list;
};

static struct binding *new_binding(struct bind *bind, CUdevice dev, uint64_t offset)
{
	struct binding *binding = calloc(1, sizeof(*binding));

	if (binding) {
		binding->dev = dev;
		binding->offset = offset;
		sl_list_push_tail(&bind->list, &binding->link);
	}
	return binding;
}

/* The device that an unbind will name: that of the memory's location. */
static CUdevice device_of(const struct sl_handle *mem, CUdevice dev)
{
	if (dev != DEV_ANY || mem->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return dev;
	return mem->prop.location.id;
}

static bool bind_handle(
	struct bind *bind, struct sl_handle *mem, CUdevice dev, uint64_t offset)
{
	struct binding *binding = new_binding(bind, device_of(mem, dev), offset);

	if (!binding)
		return false;
	if (!sl_handle_hold(mem, SL_WHY_BOUND)) {
		sl_list_unlink(&binding->link);
		free(binding);
		return false;
	}
	binding->mem = mem;
	return true;
}

static bool bind_regions(
	struct bind *bind, CUdeviceptr ptr, uint64_t bytes, CUdevice dev, uint64_t offset)
{
	struct binding *binding = new_binding(bind, dev, offset);

	if (!binding)
		return false;
	if (!sl_anchor_range(ptr, bytes)) {
		sl_list_unlink(&binding->link);
		free(binding);
		return false;
	}
	binding->ptr = ptr;
	binding->bytes = bytes;
	return true;
}

/* Binds regions, or the program's own mappings. */
static bool bind_range(
	struct bind *bind, CUdeviceptr ptr, uint64_t bytes, CUdevice dev, uint64_t offset)
{
	uint64_t end = ptr + bytes, at = ptr, size = 0;
	bool bound = bind_regions(bind, ptr, bytes, dev, offset);

	for (; bound && sl_mappings_next(end, &at, &size); at += size) {
		struct sl_handle *mem = sl_handle_at(at);

		bound = !mem || bind_handle(bind, mem, dev, offset);
		sl_handle_leave(mem);
	}
	return bound;
}

/* All memory is on the GPU from here to bind_fini. */
static void bind_init(struct bind *bind, CUmemGenericAllocationHandle object,
	CUmemGenericAllocationHandle mem)
{
	sl_residency_keep();
	bind->object = sl_handle_use(object, &bind->real_object);
	bind->mem = sl_handle_use(mem, &bind->real_mem);
	sl_list_init(&bind->list);
}

/* The end of an object that is not ours cannot be seen: memory bound to it stays held for good. */
static void keep_bindings(struct bind *bind)
{
	(void)pthread_mutex_lock(&lock);
	sl_list_foreach_safe (link, &bind->list) {
		sl_list_unlink(link);
		if (bind->object)
			sl_list_push_tail(&bind->object->bindings, link);
		else
			free(SL_LIST_ENTRY(link, struct binding, link));
	}
	(void)pthread_mutex_unlock(&lock);
}

/* After the driver's answer. */
static CUresult bind_fini(struct bind *bind, CUresult result)
{
	if (result != CUDA_SUCCESS)
		drop_bindings(&bind->list);
	else
		keep_bindings(bind);
	sl_handle_leave(bind->mem);
	sl_handle_leave(bind->object);
	sl_residency_keep_end();
	return sl_measure_after(result);
}

SL_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
	CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags)
{
	SL_DOOR;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct bind bind;

	bind_init(&bind, object, mem);
	if (!bind.mem || bind_handle(&bind, bind.mem, DEV_ANY, offset))
		r = sl_real.cuMulticastBindMem(bind.real_object, offset, bind.real_mem,
			mem_offset, bytes, flags);
	return bind_fini(&bind, r);
}

SL_EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object,
	CUdevice dev, size_t offset, CUmemGenericAllocationHandle mem, size_t mem_offset,
	size_t bytes, unsigned long long flags)
{
	SL_DOOR;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct bind bind;

	bind_init(&bind, object, mem);
	if (!bind.mem || bind_handle(&bind, bind.mem, dev, offset))
		r = sl_real.cuMulticastBindMem_v2(bind.real_object, dev, offset,
			bind.real_mem, mem_offset, bytes, flags);
	return bind_fini(&bind, r);
}

SL_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset,
	CUdeviceptr ptr, size_t bytes, unsigned long long flags)
{
	SL_DOOR;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct bind bind;

	bind_init(&bind, object, 0);
	if (!sl_mode_is_active() || bind_range(&bind, ptr, bytes, DEV_ANY, offset))
		r = sl_real.cuMulticastBindAddr(
			bind.real_object, offset, ptr, bytes, flags);
	return bind_fini(&bind, r);
}

SL_EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object,
	CUdevice dev, size_t offset, CUdeviceptr ptr, size_t bytes,
	unsigned long long flags)
{
	SL_DOOR;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct bind bind;

	bind_init(&bind, object, 0);
	if (!sl_mode_is_active() || bind_range(&bind, ptr, bytes, dev, offset))
		r = sl_real.cuMulticastBindAddr_v2(
			bind.real_object, dev, offset, ptr, bytes, flags);
	return bind_fini(&bind, r);
}

static void take_bindings(struct sl_handle *object, CUdevice dev, uint64_t offset,
	uint64_t bytes, struct sl_link *taken)
{
	(void)pthread_mutex_lock(&lock);
	sl_list_foreach_safe (link, &object->bindings) {
		const struct binding *binding = SL_LIST_ENTRY(link, struct binding, link);

		if ((binding->dev == dev || binding->dev == DEV_ANY) &&
			binding->offset >= offset && binding->offset - offset < bytes) {
			sl_list_unlink(link);
			sl_list_push_tail(taken, link);
		}
	}
	(void)pthread_mutex_unlock(&lock);
}

SL_EXPORT CUresult cuMulticastUnbind(
	CUmemGenericAllocationHandle value, CUdevice dev, size_t offset, size_t bytes)
{
	SL_DOOR;
	struct bind bind;
	CUresult r;

	bind.object = sl_handle_use(value, &bind.real_object);
	sl_list_init(&bind.list);
	sl_control_enter();
	if (bind.object)
		take_bindings(bind.object, dev, offset, bytes, &bind.list);
	r = sl_real.cuMulticastUnbind(bind.real_object, dev, offset, bytes);
	if (r == CUDA_SUCCESS)
		drop_bindings(&bind.list);
	sl_control_leave();
	/* Bindings left on the list stay, since the driver refused. */
	keep_bindings(&bind);
	sl_handle_leave(bind.object);
	(void)sl_measure_after(r);
	return r;
}

/* --- logical endpoints: multicast across machines
 * ---------------------------------------------- */

/* The end of an endpoint's use of the memory cannot be seen, so the memory stays held. */
SL_EXPORT CUresult cuLogicalEndpointBindMem(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, CUmemGenericAllocationHandle value, cuuint64_t mem_offset,
	cuuint64_t bytes, unsigned long long flags)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct sl_handle *mem;

	sl_residency_keep();
	mem = sl_handle_use(value, &real);
	if (!mem || sl_handle_hold(mem, SL_WHY_FABRIC))
		r = sl_real.cuLogicalEndpointBindMem(
			endpoint, dev, offset, real, mem_offset, bytes, flags);
	sl_handle_leave(mem);
	sl_residency_keep_end();
	return r;
}

SL_EXPORT CUresult cuLogicalEndpointBindAddr(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, void *ptr, cuuint64_t bytes, unsigned long long flags)
{
	SL_DOOR;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)ptr;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	sl_residency_keep();
	if (!sl_mode_is_active() || (sl_handle_hold_range(at, bytes, SL_WHY_FABRIC) &&
					    sl_anchor_range(at, bytes)))
		r = sl_real.cuLogicalEndpointBindAddr(
			endpoint, dev, offset, ptr, bytes, flags);
	sl_residency_keep_end();
	return r;
}
