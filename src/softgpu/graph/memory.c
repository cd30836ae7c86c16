/*
 * memory - memory that graphs allocate and free
 *
 * A piece gets its address when its node is made. The first launch (or an upload) backs it with a
 * handle of the server, which stays until a trim finds the piece free. A piece without users leaves
 * its handle to the next one of its size. The real driver shares one handle between graphs by
 * mapping it at many addresses; here each piece has its own.
 *
 * "Allocated" has two views: `held` in the order of calls, for errors; `live` in the order of the
 * stream, for the trim, which also spares memory that a stream is yet to use. The reported used
 * bytes follow neither view. NVIDIA's tests of cuda-core find them above zero until a trim, and
 * those of cuda-bindings find them equal to the reserved bytes. So we report the reserved bytes.
 */
#include "softgpu/graph/internal.h"
#include "softgpu/memory/space.h"

#include <stdlib.h>

struct sl_graph_mem {
	struct sl_link link;
	unsigned refs;      /* both under the lock */
	unsigned under_way; /* changes that their streams have not reached */
	bool held, live, backed;
	uint64_t address, room; /* room: bytes rounded up to whole pages */
	CUmemGenericAllocationHandle handle;
	CUdevice device;
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUmemAccessDesc access[SL_SOFTGPU_GPUS_MAX];
};

/* Backing that no piece uses. */
struct spare {
	struct sl_link link;
	CUmemGenericAllocationHandle handle;
	CUdevice device;
	uint64_t bytes;
};

struct figures {
	uint64_t reserved, used_high, reserved_high;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link pieces = SL_LIST_INIT(pieces);
static struct sl_link spares = SL_LIST_INIT(spares);
static struct figures figures[SL_SOFTGPU_GPUS_MAX];

/* Under the lock, like all functions up to the next line. */
static struct sl_graph_mem *find(uint64_t at, uint64_t bytes)
{
	sl_list_foreach (link, &pieces) {
		struct sl_graph_mem *m = SL_LIST_ENTRY(link, struct sl_graph_mem, link);

		if (at >= m->address && at - m->address < m->room &&
			bytes <= m->room - (at - m->address))
			return m;
	}
	return NULL;
}

static void give_back(
	CUmemGenericAllocationHandle handle, CUdevice device, uint64_t bytes)
{
	(void)!sl_space_release(handle);
	figures[device].reserved -= bytes;
}

/* keep: for the next piece of its size. */
static void unback(struct sl_graph_mem *m, bool keep)
{
	struct spare *s;

	if (!m->backed)
		return;
	(void)!sl_space_unmap(m->address, m->room);
	m->backed = false;
	s = keep ? malloc(sizeof(*s)) : NULL;
	if (!s) {
		give_back(m->handle, m->device, m->room);
		return;
	}
	*s = (struct spare){SL_LIST_INIT(s->link), m->handle, m->device, m->room};
	sl_list_push_tail(&spares, &s->link);
}

/* bytes 0: of any size. */
static struct spare *find_spare(CUdevice device, uint64_t bytes)
{
	sl_list_foreach (link, &spares) {
		struct spare *s = SL_LIST_ENTRY(link, struct spare, link);

		if (s->device == device && (!bytes || s->bytes == bytes))
			return s;
	}
	return NULL;
}

static void drop_spares(CUdevice device)
{
	struct spare *s;

	while ((s = find_spare(device, 0))) {
		give_back(s->handle, device, s->bytes);
		sl_list_unlink(&s->link);
		free(s);
	}
}

static void set_live(struct sl_graph_mem *m, bool live)
{
	if (m->live == live)
		return;
	m->live = live;
	m->refs += live ? 1u : -1u;
}

static void unref(struct sl_graph_mem *m)
{
	if (--m->refs)
		return;
	unback(m, true);
	(void)!sl_space_unreserve(m->address, m->room);
	sl_list_unlink(&m->link);
	free(m);
}

/* --------------------------------------------------------------------------------------------- */

void sl_graph_mem_ref(struct sl_graph_mem *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&lock);
	m->refs++;
	pthread_mutex_unlock(&lock);
}

void sl_graph_mem_unref(struct sl_graph_mem *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&lock);
	unref(m);
	pthread_mutex_unlock(&lock);
}

struct sl_graph_mem *sl_graph_mem_find(CUdeviceptr at)
{
	struct sl_graph_mem *m;

	pthread_mutex_lock(&lock);
	m = find(at, 0);
	if (m && m->address != at)
		m = NULL;
	if (m)
		m->refs++;
	pthread_mutex_unlock(&lock);
	return m;
}

bool sl_graph_mem_covers(CUdeviceptr at, uint64_t bytes, CUdevice *device)
{
	struct sl_graph_mem *m;

	pthread_mutex_lock(&lock);
	m = find(at, bytes);
	if (m && device)
		*device = m->device;
	pthread_mutex_unlock(&lock);
	return m;
}

CUresult sl_graph_mem_new(const CUDA_MEM_ALLOC_NODE_PARAMS *p, struct sl_graph_mem **out)
{
	struct sl_graph_mem *m;
	CUdeviceptr at = 0;
	CUresult r;

	/* From the graph's own pool: pinned, on a device, for this process alone. */
	if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		p->poolProps.handleTypes || !p->bytesize ||
		p->accessDescCount > SL_SOFTGPU_GPUS_MAX ||
		(p->accessDescCount && !p->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_drv_device_ok(p->poolProps.location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->refs = 1;
	m->device = p->poolProps.location.id;
	m->params = *p;
	for (size_t i = 0; i < p->accessDescCount; i++)
		m->access[i] = p->accessDescs[i];
	m->params.accessDescs = p->accessDescCount ? m->access : NULL;
	m->room = sl_round_up(p->bytesize, SL_SG_PAGE);
	r = sl_space_reserve(m->room, 0, 0, &at);
	if (r != CUDA_SUCCESS) {
		free(m);
		return r;
	}
	m->address = m->params.dptr = at;
	pthread_mutex_lock(&lock);
	sl_list_push_tail(&pieces, &m->link);
	pthread_mutex_unlock(&lock);
	*out = m;
	return CUDA_SUCCESS;
}

void sl_graph_mem_params(const struct sl_graph_mem *m, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	*out = m->params;
}

/* Under the lock: backing for a piece, spare or new. */
static CUresult obtain(struct sl_graph_mem *m)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, m->device}};
	struct figures *f = &figures[m->device];
	struct spare *s = find_spare(m->device, m->room);
	CUresult r;

	if (s) {
		m->handle = s->handle;
		sl_list_unlink(&s->link);
		free(s);
		return CUDA_SUCCESS;
	}
	r = sl_space_create(m->room, &prop, &m->handle);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && find_spare(m->device, 0)) {
		drop_spares(m->device); /* together they may suffice */
		r = sl_space_create(m->room, &prop, &m->handle);
	}
	if (r != CUDA_SUCCESS)
		return r;
	f->reserved += m->room;
	f->reserved_high = sl_max_u64(f->reserved_high, f->reserved);
	f->used_high = sl_max_u64(f->used_high, f->reserved);
	return r;
}

/* Under lock. */
static CUresult back(struct sl_graph_mem *m)
{
	CUresult r = obtain(m);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_space_map(m->address, m->room, m->handle);
	if (r != CUDA_SUCCESS) {
		give_back(m->handle, m->device, m->room);
		return r;
	}
	m->backed = true;
	r = sl_space_access(
		m->address, m->room, m->device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	for (size_t i = 0; i < m->params.accessDescCount && r == CUDA_SUCCESS; i++)
		r = sl_space_access(m->address, m->room, m->access[i].location.id,
			m->access[i].flags);
	if (r != CUDA_SUCCESS)
		unback(m, false);
	return r;
}

CUresult sl_graph_mem_back(struct sl_graph_mem *m)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!m->backed)
		r = back(m);
	pthread_mutex_unlock(&lock);
	return r;
}

bool sl_graph_mem_is_held(const struct sl_graph_mem *m)
{
	bool held;

	pthread_mutex_lock(&lock);
	held = m->held;
	pthread_mutex_unlock(&lock);
	return held;
}

/* In a stream's order ------------------------------------------------------------------------- */

struct change {
	struct sl_call call;
	struct sl_graph_mem *memory; /* a reference */
	bool allocate;
};

/* Under the lock; called once, whether it ran or not. */
static void change_ended(struct change *c)
{
	if (!c->memory)
		return;
	c->memory->under_way--;
	unref(c->memory);
	c->memory = NULL;
}

static void change_run(CUstream stream, struct sl_call *call)
{
	struct change *c = (struct change *)call;

	(void)stream;
	pthread_mutex_lock(&lock);
	/* A trim may have come between the launch's check and its submission. */
	if (c->allocate && !c->memory->backed)
		(void)!back(c->memory);
	set_live(c->memory, c->allocate);
	/* Not later, when the call is dropped: a trim may follow as soon as the stream is idle. */
	change_ended(c);
	pthread_mutex_unlock(&lock);
}

static void change_drop(struct sl_call *call)
{
	pthread_mutex_lock(&lock);
	change_ended((struct change *)call);
	pthread_mutex_unlock(&lock);
	free(call);
}

CUresult sl_graph_mem_submit(struct sl_graph_mem *m, CUstream s, bool allocate)
{
	struct change *c = malloc(sizeof(*c));
	struct sl_op *op = sl_op_new(SL_OP_CALL);
	CUresult r = CUDA_SUCCESS;

	if (!c || !op) {
		free(c);
		sl_op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*c = (struct change){{1, change_run, change_drop}, m, allocate};
	op->call = &c->call;
	pthread_mutex_lock(&lock);
	m->refs++;
	m->under_way++;
	if (m->held == allocate)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		m->held = allocate;
	pthread_mutex_unlock(&lock);
	if (r == CUDA_SUCCESS)
		return sl_stream_submit(s, op, NULL);
	sl_op_free(op);
	return r;
}

bool sl_graph_mem_free_now(CUdeviceptr at, CUresult *result)
{
	struct sl_graph_mem *m = sl_graph_mem_find(at);

	if (!m)
		return false;
	*result = sl_ctx_sync(sl_ctx_current());
	pthread_mutex_lock(&lock);
	if (*result == CUDA_SUCCESS && !m->held)
		*result = CUDA_ERROR_INVALID_VALUE;
	if (*result == CUDA_SUCCESS) {
		m->held = false;
		set_live(m, false);
	}
	unref(m);
	pthread_mutex_unlock(&lock);
	return true;
}

void sl_graph_mem_drop_device(CUdevice device)
{
	pthread_mutex_lock(&lock);
	drop_spares(device);
	pthread_mutex_unlock(&lock);
}

/* Entry points --------------------------------------------------------------------------------- */

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	SL_ENTER(cuDeviceGraphMemTrim);
	CHECK_DEVICE(dev);
	pthread_mutex_lock(&lock);
	sl_list_foreach (link, &pieces) {
		struct sl_graph_mem *m = SL_LIST_ENTRY(link, struct sl_graph_mem, link);

		if (m->device == dev && !m->live && !m->held && !m->under_way)
			unback(m, false);
	}
	drop_spares(dev);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(
	CUdevice dev, CUgraphMem_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuDeviceGetGraphMemAttribute);
	CHECK_DEVICE(dev);
	CHECK_OUT(value);
	pthread_mutex_lock(&lock);
	const struct figures *f = &figures[dev];
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = f->used_high; break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = f->reserved;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = f->reserved_high;
		break;
	default: r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuDeviceSetGraphMemAttribute(
	CUdevice dev, CUgraphMem_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuDeviceSetGraphMemAttribute);
	CHECK_DEVICE(dev);
	/* High-water marks can only be reset. */
	if (!value || *(const cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct figures *f = &figures[dev];
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		f->used_high = f->reserved;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		f->reserved_high = f->reserved;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return r;
}
