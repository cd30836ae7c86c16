/*
 * graph - see graph.h
 *
 * A graph takes the union of the address ranges of its allocation nodes: nodes that share memory
 * have overlapping ranges. The union is computed at instantiation from the driver's own list of
 * nodes, so their origin does not matter. Until the program has made an allocation node, no graph
 * is inspected. Different graphs share the pool's memory. If a launch asked for more than it
 * needed, the rest goes back once the driver has reported its reserve.
 */
#include "runtime/driver/graph.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/sticky.h"
#include "runtime/driver/objects.h"
#include "runtime/driver/pool.h"
#include "runtime/gate/door.h"
#include "runtime/gate/gate.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/oom.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Handles are aligned, so the addresses after an executable graph's handle serve as keys for
 * further devices. */
#define DEVICES_MAX 8
/* Depth of nested graphs that are inspected. */
#define DEPTH_MAX 16

uint32_t sl_graph_pending;

static int memory_seen;
/* Guards what follows and the objects of kind EXEC, whose `extra` has the device and the epoch of
 * the last launch. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t epoch = 1; /* counts trims */
static uint32_t exec_count;

void sl_graph_has_memory(void)
{
	__atomic_store_n(&memory_seen, 1, __ATOMIC_RELAXED);
}

/* --- what a graph takes ----------------------------------------------------------------------- */

struct range {
	CUdevice dev;
	uint64_t begin, end;
};

struct ranges {
	struct range *list;
	size_t count, room;
};

struct footprint {
	unsigned int count;
	struct {
		CUdevice dev;
		uint64_t bytes;
	} on[DEVICES_MAX];
};

/* False: no host memory, or the driver returns no answer. */
static bool add_range(struct ranges *ranges, CUgraphNode node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
	CUdevice dev;

	if (sl_real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS)
		return false;
	/* Host memory is not charged to a GPU. */
	if (!sl_device_of_place(&params.poolProps.location, &dev))
		return true;
	if (ranges->count == ranges->room) {
		size_t room = ranges->room ? 2 * ranges->room : 32;
		struct range *more = realloc(ranges->list, room * sizeof(*ranges->list));

		if (!more)
			return false;
		ranges->list = more;
		ranges->room = room;
	}
	ranges->list[ranges->count++] =
		(struct range){dev, params.dptr, params.dptr + params.bytesize};
	return true;
}

static bool collect(struct ranges *ranges, CUgraph graph, int depth);

static bool look_at_node(struct ranges *ranges, CUgraphNode node, int depth)
{
	CUgraphNodeType type;
	CUgraph child;

	if (sl_real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
		return false;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return add_range(ranges, node);
	if (type != CU_GRAPH_NODE_TYPE_GRAPH || depth == DEPTH_MAX)
		return true;
	return sl_real.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
	       collect(ranges, child, depth + 1);
}

static bool collect(struct ranges *ranges, CUgraph graph, int depth)
{
	CUgraphNode *nodes;
	size_t count = 0;
	bool ok = true;

	if (sl_real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS)
		return false;
	if (!count)
		return true;
	nodes = calloc(count, sizeof(CUgraphNode));
	if (!nodes)
		return false;
	ok = sl_real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS;
	for (size_t i = 0; ok && i < count; i++)
		ok = look_at_node(ranges, nodes[i], depth);
	free(nodes);
	return ok;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void add_bytes(struct footprint *footprint, CUdevice dev, uint64_t bytes)
{
	unsigned int i = 0;

	while (i < footprint->count && footprint->on[i].dev != dev)
		i++;
	if (i == DEVICES_MAX)
		return;
	if (i == footprint->count) {
		footprint->on[i].dev = dev;
		footprint->on[i].bytes = 0;
		footprint->count++;
	}
	footprint->on[i].bytes += bytes;
}

/* If the size cannot be found, the bytes are measured once they exist. */
static void measure_graph(CUgraph graph, struct footprint *out)
{
	struct ranges ranges = {0};
	uint64_t end = 0;
	CUdevice dev = -1;

	out->count = 0;
	if (collect(&ranges, graph, 0) && ranges.count > 1)
		qsort(ranges.list, ranges.count, sizeof(*ranges.list), compare_ranges);
	for (size_t i = 0; i < ranges.count; i++) {
		const struct range *range = &ranges.list[i];

		if (range->dev != dev)
			end = 0;
		dev = range->dev;
		add_bytes(
			out, dev, sl_sub_sat(range->end, sl_max_u64(range->begin, end)));
		end = sl_max_u64(end, range->end);
	}
	free(ranges.list);
}

/* --- executable graphs ------------------------------------------------------------------------ */

static uint64_t extra_of(CUdevice dev, uint32_t launched)
{
	return (uint64_t)(uint32_t)dev << 32 | launched;
}

static CUdevice dev_of(const struct sl_object *object)
{
	return (CUdevice)(object->extra >> 32);
}

/* Under the lock. */
static bool is_pending(const struct sl_object *object)
{
	return (uint32_t)object->extra != epoch;
}

static void count_pending(int change)
{
	__atomic_fetch_add(&sl_graph_pending, (uint32_t)change, __ATOMIC_RELAXED);
}

/* Under the lock. */
static void put(const struct sl_object *object)
{
	if (!sl_objects_put(object))
		return;
	exec_count++;
	count_pending(is_pending(object));
}

/* Takes all records of exec off the table. */
static unsigned int take(CUgraphExec exec, struct sl_object out[DEVICES_MAX])
{
	unsigned int count = 0;

	(void)pthread_mutex_lock(&lock);
	while (count < DEVICES_MAX &&
		sl_objects_take(SL_OBJECT_EXEC, (uintptr_t)exec + count, &out[count])) {
		exec_count--;
		count_pending(-(int)is_pending(&out[count]));
		count++;
	}
	(void)pthread_mutex_unlock(&lock);
	return count;
}

static void remember(CUgraphExec exec, const struct footprint *footprint, bool launched)
{
	struct sl_object old[DEVICES_MAX];

	/* An executable graph with this handle ended without a call that we saw. */
	(void)take(exec, old);
	(void)pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < footprint->count; i++)
		put(&(struct sl_object){.kind = SL_OBJECT_EXEC,
			.key = (uintptr_t)exec + i,
			.bytes = footprint->on[i].bytes,
			.extra = extra_of(footprint->on[i].dev, launched ? epoch : 0)});
	(void)pthread_mutex_unlock(&lock);
}

/* The bytes that the next launch of exec may take; 0 if it has what it needs. */
static void find(CUgraphExec exec, struct footprint *out)
{
	struct sl_object object;

	out->count = 0;
	(void)pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < DEVICES_MAX && sl_objects_get(SL_OBJECT_EXEC,
							    (uintptr_t)exec + i, &object);
		i++) {
		if (is_pending(&object))
			add_bytes(out, dev_of(&object), object.bytes);
	}
	(void)pthread_mutex_unlock(&lock);
}

static void note_launched(CUgraphExec exec)
{
	struct sl_object object;

	(void)pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < DEVICES_MAX && sl_objects_take(SL_OBJECT_EXEC,
							    (uintptr_t)exec + i, &object);
		i++) {
		exec_count--;
		count_pending(-(int)is_pending(&object));
		object.extra = extra_of(dev_of(&object), epoch);
		put(&object);
	}
	(void)pthread_mutex_unlock(&lock);
}

/* --- asking ----------------------------------------------------------------------------------- */

struct launch {
	unsigned int count;
	struct sl_pool_growth growths[DEVICES_MAX];
};

static void done(struct launch *launch)
{
	for (unsigned int i = 0; i < launch->count; i++)
		sl_pool_done(&launch->growths[i]);
}

static bool ask(
	struct launch *launch, const struct footprint *footprint, CUresult *result)
{
	launch->count = 0;
	for (unsigned int i = 0; i < footprint->count; i++) {
		struct sl_pool *pool = sl_pool_of_graphs(footprint->on[i].dev);

		if (!sl_pool_ask(
			    &launch->growths[i], pool, footprint->on[i].bytes, result)) {
			done(launch);
			return false;
		}
		launch->count++;
	}
	return true;
}

static bool again(struct launch *launch, CUresult *result)
{
	for (unsigned int i = 0; i < launch->count; i++) {
		if (sl_pool_again(&launch->growths[i], result))
			return true;
	}
	return false;
}

/* The launch in a capturing stream runs nothing, and what will be launched later is unknown
 * here. */
static bool may_ask(void)
{
	return sl_mode_is_active() && !sl_capture_is_open();
}

static CUresult call_gated(CUresult (*real)(CUgraphExec exec, CUstream stream),
	struct sl_gate_thread *self, CUgraphExec exec, CUstream stream)
{
	CUresult result;

	sl_gate_enter(self);
	result = real(exec, stream);
	sl_gate_leave(self);
	return result;
}

CUresult sl_graph_launch(CUresult (*real)(CUgraphExec exec, CUstream stream),
	struct sl_gate_thread *self, CUgraphExec exec, CUstream stream)
{
	SL_DOOR;
	struct footprint footprint = {0};
	CUresult result = CUDA_SUCCESS;
	struct launch launch;

	if (may_ask())
		find(exec, &footprint);
	if (!ask(&launch, &footprint, &result))
		return result;
	do
		result = call_gated(real, self, exec, stream);
	while (again(&launch, &result));
	done(&launch);
	if (result == CUDA_SUCCESS && footprint.count)
		note_launched(exec);
	if (!footprint.count)
		SL_OOM_RETRY(
			result, SL_OOM_CURRENT, call_gated(real, self, exec, stream));
	return sl_sticky_note(result);
}

/* --- hooks ------------------------------------------------------------------------------------ */

/* False: the graph exceeds the limit on a GPU, so it is out of memory whatever other graphs use. */
static bool fits(const struct footprint *footprint)
{
	uint64_t free_bytes, total_bytes;

	for (unsigned int i = 0; i < footprint->count; i++) {
		struct sl_gpu *gpu = sl_device_gpu(footprint->on[i].dev);

		if (!gpu)
			continue;
		sl_session_view(gpu, &free_bytes, &total_bytes);
		if (footprint->on[i].bytes > total_bytes)
			return false;
	}
	return true;
}

static bool is_looked_at(CUgraphExec *exec, CUgraph graph)
{
	return __atomic_load_n(&memory_seen, __ATOMIC_RELAXED) && exec && graph &&
	       sl_mode_is_active() && sl_session_is_joined();
}

/* The driver accesses memory named by copy nodes. */
#define NEEDED(call)                  \
	({                            \
		CUresult needed_;     \
                                      \
		sl_residency_enter(); \
		needed_ = (call);     \
		sl_residency_leave(); \
		needed_;              \
	})
/* `call` makes *exec from graph; uploads: it also gives exec its memory at once. */
#define INSTANTIATE(uploads, on_refusal, call)                   \
	do {                                                     \
		struct footprint footprint_ = {0}, asked_ = {0}; \
		CUresult result_ = CUDA_SUCCESS;                 \
		struct launch launch_;                           \
                                                                 \
		if (is_looked_at(exec, graph))                   \
			measure_graph(graph, &footprint_);       \
		if (uploads)                                     \
			asked_ = footprint_;                     \
		if (!fits(&footprint_)) {                        \
			on_refusal;                              \
			return CUDA_ERROR_OUT_OF_MEMORY;         \
		}                                                \
		if (!ask(&launch_, &asked_, &result_)) {         \
			on_refusal;                              \
			return result_;                          \
		}                                                \
		do                                               \
			result_ = (call);                        \
		while (again(&launch_, &result_));               \
		done(&launch_);                                  \
		SL_OOM_RETRY(result_, SL_OOM_CURRENT, call);     \
		if (result_ == CUDA_SUCCESS && footprint_.count) \
			remember(*exec, &footprint_, uploads);   \
		return sl_measure_after(result_);                \
	} while (0)

SL_EXPORT CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph,
	CUgraphNode *error_node, char *log, size_t log_bytes)
{
	SL_DOOR;
	INSTANTIATE(false, (void)0,
		NEEDED(sl_real.cuGraphInstantiate(
			exec, graph, error_node, log, log_bytes)));
}

SL_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph,
	CUgraphNode *error_node, char *log, size_t log_bytes)
{
	SL_DOOR;
	INSTANTIATE(false, (void)0,
		NEEDED(sl_real.cuGraphInstantiate_v2(
			exec, graph, error_node, log, log_bytes)));
}

SL_EXPORT CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	SL_DOOR;
	INSTANTIATE(false, (void)0,
		NEEDED(sl_real.cuGraphInstantiateWithFlags(exec, graph, flags)));
}

static bool uploads(const CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return params && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
}

static void refuse(CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (params)
		params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
}

SL_EXPORT CUresult cuGraphInstantiateWithParams(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	SL_DOOR;
	INSTANTIATE(uploads(params), refuse(params),
		NEEDED(sl_real.cuGraphInstantiateWithParams(exec, graph, params)));
}

SL_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	SL_DOOR;
	INSTANTIATE(uploads(params), refuse(params),
		NEEDED(sl_real.cuGraphInstantiateWithParams_ptsz(exec, graph, params)));
}

static void look_at_device(CUdevice dev)
{
	struct sl_pool *pool = sl_pool_of_graphs(dev);

	if (!pool)
		return;
	sl_pool_look(pool);
	sl_pool_leave(pool);
}

SL_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SL_DOOR;
	struct sl_object objects[DEVICES_MAX];
	unsigned int count = take(exec, objects);
	CUresult result = sl_real.cuGraphExecDestroy(exec);

	for (unsigned int i = 0; i < count; i++) {
		if (result == CUDA_SUCCESS) {
			look_at_device(dev_of(&objects[i]));
			continue;
		}
		(void)pthread_mutex_lock(&lock);
		put(&objects[i]);
		(void)pthread_mutex_unlock(&lock);
	}
	return sl_measure_after(result);
}

void sl_graph_trimmed(void)
{
	(void)pthread_mutex_lock(&lock);
	/* Never 0, which means that the graph was not launched. */
	epoch = epoch == UINT32_MAX ? 1 : epoch + 1;
	__atomic_store_n(&sl_graph_pending, exec_count, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&lock);
}

SL_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	SL_DOOR;
	CUresult result = sl_real.cuDeviceGraphMemTrim(dev);

	if (result == CUDA_SUCCESS) {
		sl_graph_trimmed();
		look_at_device(dev);
	}
	return sl_measure_after(result);
}

static CUresult added(const CUgraphNodeParams *params, CUresult result)
{
	if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		sl_graph_has_memory();
	return result;
}

SL_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	SL_DOOR;
	sl_graph_has_memory();
	return sl_real.cuGraphAddMemAllocNode(node, graph, dependencies, count, params);
}

SL_EXPORT CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params)
{
	SL_DOOR;
	return added(params,
		NEEDED(sl_real.cuGraphAddNode(node, graph, dependencies, count, params)));
}

SL_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params)
{
	SL_DOOR;
	return added(params, NEEDED(sl_real.cuGraphAddNode_v2(
				     node, graph, dependencies, edges, count, params)));
}

SL_EXPORT CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params)
{
	SL_DOOR;
	return added(params, NEEDED(sl_real.cuGraphAddNode_v3(
				     node, graph, dependencies, edges, count, params)));
}

void sl_graph_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_graph_pending = 0;
	exec_count = 0;
	epoch = 1;
	memory_seen = 0;
}
