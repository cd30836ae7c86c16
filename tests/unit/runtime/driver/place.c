/*
 * place - which device's memory pools and graphs take: the device that is asked and charged
 *
 * Two devices, a driver of one pool that tells what was taken of it, and a fake daemon. Managed
 * memory is charged to the current device, memory of a locality domain to the domain's device, and
 * a stream's allocation to the stream's device. Every call that can put an allocation into a graph
 * has a hook.
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/driver/graph.h"
#include "runtime/driver/pool.h"
#include "runtime/real/real.h"
#include "runtime/session/held.h"
#include "runtime/session/session.h"

#include <string.h>

#define POOL  ((CUmemoryPool)0x6000)
#define GRAPH ((CUgraph)0x8000)

static struct sl_gpu *gpus[STUB_DEVICES];
static uint64_t pool_bytes;
static CUcontext contexts[STUB_DEVICES];

static CUresult alloc(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	pool_bytes += bytes;
	*ptr = 0x100000000;
	return CUDA_SUCCESS;
}

static CUresult alloc_current(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return alloc(ptr, bytes, POOL, stream);
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	*(cuuint64_t *)value = pool_bytes;
	return CUDA_SUCCESS;
}

static CUresult make(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	*pool = POOL;
	return CUDA_SUCCESS;
}

static CUresult get_pool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	*pool = POOL;
	return CUDA_SUCCESS;
}

static CUresult get_pool_of_device(CUmemoryPool *pool, CUdevice dev)
{
	*pool = (CUmemoryPool)(0x7000 + (uintptr_t)dev);
	return CUDA_SUCCESS;
}

/* The current pools are others, since the memory of default ones is ours. */
static CUresult get_default_of_device(CUmemoryPool *pool, CUdevice dev)
{
	*pool = (CUmemoryPool)(0x8000 + (uintptr_t)dev);
	return CUDA_SUCCESS;
}

static CUresult count_devices(int *count)
{
	*count = STUB_DEVICES;
	return CUDA_SUCCESS;
}

/* A stream is known by the context that it is of. */
static CUresult stream_context(CUstream stream, CUcontext *ctx)
{
	*ctx = (CUcontext)stream;
	return CUDA_SUCCESS;
}

static unsigned int searches;

static CUresult no_such_function(CUstream stream, CUdevice *dev)
{
	searches++;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void start(void)
{
	uint8_t uuid[16];

	stub_install();
	sl_real.cuMemAllocAsync = alloc_current;
	sl_real.cuMemAllocFromPoolAsync = alloc;
	sl_real.cuMemPoolGetAttribute = get_attribute;
	sl_real.cuMemPoolCreate = make;
	sl_real.cuMemGetDefaultMemPool = get_pool;
	sl_real.cuMemGetMemPool = get_pool;
	sl_real.cuDeviceGetDefaultMemPool = get_default_of_device;
	sl_real.cuDeviceGetMemPool = get_pool_of_device;
	sl_real.cuDeviceGetCount = count_devices;
	sl_real.cuStreamGetDevice = no_such_function;
	sl_real.cuStreamGetCtx = stream_context;
	fake_start(true);
	fake_lock();
	fake.gpus = STUB_DEVICES;
	fake_unlock();
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	for (int i = 0; i < STUB_DEVICES; i++) {
		stub_uuid(i, uuid);
		gpus[i] = sl_session_gpu(uuid);
		CHECK(gpus[i] != NULL);
	}
}

/* Both contexts; the second device's is current. */
static void make_contexts(void)
{
	for (int i = 0; i < STUB_DEVICES; i++)
		contexts[i] = stub_make_current(i);
}

static void take_from_pool(CUdevice payer)
{
	CUdeviceptr ptr;

	CHECK_EQ(cuMemAllocFromPoolAsync(&ptr, 8 * SL_MIB, POOL, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 1);
	CHECK_EQ(sl_held_bytes(gpus[payer]), 8 * SL_MIB);
	CHECK_EQ(sl_held_bytes(gpus[!payer]), 0);
	fake_stop();
}

static CUmemPoolProps managed = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};

static void body_managed(void)
{
	CUmemoryPool pool;

	start();
	make_contexts();
	CHECK_EQ(cuMemPoolCreate(&pool, &managed), CUDA_SUCCESS);
	take_from_pool(1);
}

/* A pool may be made before any context is current. */
static void body_managed_early(void)
{
	CUmemoryPool pool;

	start();
	CHECK_EQ(cuMemPoolCreate(&pool, &managed), CUDA_SUCCESS);
	make_contexts();
	take_from_pool(1);
}

static void body_managed_preferred(void)
{
	CUmemPoolProps props = managed;
	CUmemoryPool pool;

	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	start();
	make_contexts();
	CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	take_from_pool(0);
}

static void body_managed_default(void)
{
	CUmemLocation where = {0};
	CUmemoryPool pool;

	start();
	make_contexts();
	CHECK_EQ(cuMemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_MANAGED),
		CUDA_SUCCESS);
	take_from_pool(1);
}

static void body_current_of_domain(void)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x300};
	CUmemoryPool pool;

	start();
	make_contexts();
	CHECK_EQ(cuMemGetMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_SUCCESS);
	take_from_pool(0);
}

static void body_domain(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x200}};
	CUmemoryPool pool;

	start();
	make_contexts();
	CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	take_from_pool(0);
}

/* Host memory is no GPU's, however it is known. */
static void body_host(void)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUmemoryPool pool;
	CUdeviceptr ptr;

	start();
	make_contexts();
	CHECK_EQ(cuMemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocFromPoolAsync(&ptr, 8 * SL_MIB, POOL, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 0);
	fake_stop();
}

/* A driver before 12.8: the stream's context tells, and the current context stays current. */
static void body_old_driver(void)
{
	CUcontext current;
	CUdeviceptr ptr;

	start();
	make_contexts();
	for (int i = 1; i <= 2; i++) {
		CHECK_EQ(cuMemAllocAsync(&ptr, 40 * SL_MIB, (CUstream)contexts[0]),
			CUDA_SUCCESS);
		CHECK(sl_held_bytes(gpus[0]) >= i * 40 * SL_MIB);
		CHECK_EQ(sl_held_bytes(gpus[1]), 0);
	}
	CHECK_EQ(sl_real.cuCtxGetCurrent(&current), CUDA_SUCCESS);
	CHECK(current == contexts[1]);
	CHECK_EQ(searches, 1);
	pool_bytes = 0;
	CHECK_EQ(cuMemAllocAsync(&ptr, 40 * SL_MIB, (CUstream)contexts[1]), CUDA_SUCCESS);
	CHECK(sl_held_bytes(gpus[1]) >= 40 * SL_MIB);
	fake_stop();
}

/* --- graphs ----------------------------------------------------------------------------------- */

static CUresult add_node(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params)
{
	return CUDA_SUCCESS;
}

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode node, CUgraphNodeType *type)
{
	*type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult alloc_params(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	*params = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN,
			0x101},
		.bytesize = 4 * SL_MIB,
		.dptr = 0x200000000,
	};
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	*exec = (CUgraphExec)0x9000;
	return CUDA_SUCCESS;
}

static void body_newest_node(void)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUgraphExec exec;
	CUgraphNode node;

	start();
	sl_real.cuGraphAddNode_v3 = add_node;
	sl_real.cuGraphGetNodes = get_nodes;
	sl_real.cuGraphNodeGetType = node_type;
	sl_real.cuGraphMemAllocNodeGetParams = alloc_params;
	sl_real.cuGraphInstantiateWithFlags = instantiate;
	make_contexts();
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_graph_pending, 0);
	CHECK_EQ(cuGraphAddNode_v3(&node, GRAPH, NULL, NULL, 0, &params), CUDA_SUCCESS);
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_graph_pending, 1);
	fake_stop();
}

/* Kinds of graph nodes that are no allocations, by name. */
static const char *const without_memory[] = {"BatchMemOpNode", "ChildGraphNode",
	"EmptyNode", "EventRecordNode", "EventWaitNode", "ExternalSemaphoresSignalNode",
	"ExternalSemaphoresWaitNode", "HostNode", "KernelNode", "KernelNode_v2",
	"MemFreeNode", "MemcpyNode", "MemsetNode"};

static bool may_allocate(const char *name)
{
	static const char front[] = "cuGraphAdd";

	if (strncmp(name, front, sizeof(front) - 1) != 0 || !strstr(name, "Node"))
		return false;
	for (size_t i = 0; i < SL_ARRAY_LEN(without_memory); i++) {
		if (!strcmp(name + sizeof(front) - 1, without_memory[i]))
			return false;
	}
	return true;
}

/* Of every CUDA so far: a function that adds a node of any kind has a hook. */
static void body_every_node(void)
{
	static const char *const names[] = {
#define SL_CUDA_NAME(name, since) #name,
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
	};
	unsigned int adders = 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		const struct sl_hook_row *row;

		if (!may_allocate(names[i]))
			continue;
		adders++;
		row = sl_hook_row_named(names[i]);
		if (!row || !row->hook)
			fprintf(stderr, "%s may add an allocation, and has no hook\n",
				names[i]);
		CHECK(row && row->hook);
	}
	CHECK(adders >= 4);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 20);    \
	}
TEST(managed)
TEST(managed_early)
TEST(managed_preferred)
TEST(managed_default)
TEST(current_of_domain)
TEST(domain)
TEST(host)
TEST(old_driver)
TEST(newest_node)
TEST(every_node)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_managed_early),
		cmocka_unit_test(test_managed_preferred),
		cmocka_unit_test(test_managed_default),
		cmocka_unit_test(test_current_of_domain),
		cmocka_unit_test(test_domain),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_old_driver),
		cmocka_unit_test(test_newest_node),
		cmocka_unit_test(test_every_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
