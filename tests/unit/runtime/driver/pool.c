/*
 * pool - the driver's pools and graphs' memory: asked for before they grow, charged by what they
 * reserve
 *
 * Against a driver of one pool and one graph pool that reserve in steps, and a fake daemon whose
 * books must then agree with the reserved bytes. peer-failures rows 8 (async pools) and 15
 * (graphs).
 */
#include "../books-test.h"
#include "../no-threads.h"

#include "runtime/contexts/prove.h"
#include "runtime/driver/graph.h"
#include "runtime/driver/pool.h"
#include "runtime/real/real.h"
#include "runtime/session/held.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* The device's current pool; its default one has memory of ours (memory/stock.h). */
#define OWN_POOL     ((CUmemoryPool)0x5000)
#define DEFAULT_POOL ((CUmemoryPool)0x4000)
#define MADE_POOL    ((CUmemoryPool)0x6000)
#define EXEC         ((CUgraphExec)0x7000)
#define GRAPH        ((CUgraph)0x8000)

static CUcontext ctx;
static struct sl_gpu *gpu;

/* A pool of the driver; [0] the device's own, [1] one that was made, [2] of graphs. */
static struct pool {
	uint64_t used, reserved, step, freed_later;
	unsigned int queries;
} pools[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool current = OWN_POOL;
static uint64_t room_bytes; /* the device has so much */
static unsigned int allocs;

static uint64_t reserved_sum(void)
{
	return pools[0].reserved + pools[1].reserved + pools[2].reserved;
}

static CUresult take(struct pool *pool, uint64_t bytes)
{
	uint64_t grow = sl_sub_sat(pool->used + bytes, pool->reserved);

	grow = (grow + pool->step - 1) / pool->step * pool->step;
	if (reserved_sum() + grow > room_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->reserved += grow;
	pool->used += bytes;
	return CUDA_SUCCESS;
}

static CUresult alloc_from(
	CUdeviceptr *ptr, size_t bytes, CUmemoryPool handle, CUstream stream)
{
	CUresult r;

	pthread_mutex_lock(&lock);
	allocs++;
	r = take(&pools[handle == MADE_POOL], bytes);
	pthread_mutex_unlock(&lock);
	*ptr = 0x100000000 + bytes;
	return r;
}

static CUresult alloc_async(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return alloc_from(ptr, bytes, current, stream);
}

static CUresult get_attribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct pool *pool = &pools[handle == MADE_POOL];

	pthread_mutex_lock(&lock);
	pool->queries++;
	*(cuuint64_t *)value =
		attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? pool->used : pool->reserved;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return CUDA_SUCCESS;
}

static CUresult get_graph_attribute(CUdevice dev, CUgraphMem_attribute attr, void *value)
{
	*(cuuint64_t *)value = attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT
				       ? pools[2].used
				       : pools[2].reserved;
	return CUDA_SUCCESS;
}

/* Memory freed on a stream is free after a synchronisation, and free memory is given back. */
static void synced(struct pool *pool)
{
	pthread_mutex_lock(&lock);
	pool->used -= pool->freed_later;
	pool->freed_later = 0;
	pthread_mutex_unlock(&lock);
}

static uint32_t endless; /* atomic: work does not end */

static CUresult sync_context(void)
{
	while (__atomic_load_n(&endless, __ATOMIC_ACQUIRE))
		usleep(1000);
	synced(&pools[0]);
	synced(&pools[1]);
	stub.syncs++;
	return CUDA_SUCCESS;
}

static CUresult trim(CUmemoryPool handle, size_t keep)
{
	struct pool *pool = &pools[handle == MADE_POOL];

	pthread_mutex_lock(&lock);
	pool->reserved = sl_max_u64(pool->used, sl_min_u64(keep, pool->reserved));
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult trim_graphs(CUdevice dev)
{
	pools[2].reserved = pools[2].used;
	return CUDA_SUCCESS;
}

static CUresult sync_stream(CUstream stream)
{
	(void)sync_context();
	return trim(OWN_POOL, 0);
}

static CUresult own_pool(CUmemoryPool *pool, CUdevice dev)
{
	*pool = DEFAULT_POOL;
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult current_pool(CUmemoryPool *pool, CUdevice dev)
{
	*pool = current;
	return CUDA_SUCCESS;
}

static CUresult set_pool(CUdevice dev, CUmemoryPool pool)
{
	current = pool;
	return CUDA_SUCCESS;
}

static CUresult make_pool(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	*pool = MADE_POOL;
	return CUDA_SUCCESS;
}

static CUresult end_pool(CUmemoryPool pool)
{
	memset(&pools[1], 0, sizeof(pools[1]));
	return CUDA_SUCCESS;
}

static CUresult count_devices(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

/* --- graphs ----------------------------------------------------------------------------------- */

/* A graph of three allocation nodes, two of which share memory, and one that is a graph with
 * none. */
static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	if (graph != GRAPH)
		*count = 0;
	else if (!nodes)
		*count = 4;
	for (size_t i = 0; nodes && i < *count; i++)
		nodes[i] = (CUgraphNode)(i + 1);
	return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode node, CUgraphNodeType *type)
{
	*type = (uintptr_t)node == 4 ? CU_GRAPH_NODE_TYPE_GRAPH
				     : CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult child_graph(CUgraphNode node, CUgraph *graph)
{
	*graph = NULL;
	return CUDA_SUCCESS;
}

static uint64_t node_bytes = 4 * SL_MIB;

static CUresult alloc_params(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	uint64_t number = (uintptr_t)node == 3 ? 1 : (uintptr_t)node;

	*params = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.bytesize = node_bytes,
		.dptr = 0x200000000 + number * node_bytes,
	};
	return CUDA_SUCCESS;
}

static unsigned int instantiations, launches;

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	instantiations++;
	*exec = EXEC;
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec)
{
	pools[2].used = 0;
	return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	if (pools[2].used == 0)
		r = take(&pools[2], 2 * node_bytes);
	launches += r == CUDA_SUCCESS;
	return r;
}

static CUresult add_alloc_node(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	return CUDA_SUCCESS;
}

/* --- scenes ----------------------------------------------------------------------------------- */

static void start(uint64_t step)
{
	stub_install();
	sl_real.cuMemAllocAsync = alloc_async;
	sl_real.cuMemAllocFromPoolAsync = alloc_from;
	sl_real.cuMemPoolGetAttribute = get_attribute;
	sl_real.cuMemPoolSetAttribute = set_attribute;
	sl_real.cuMemPoolTrimTo = trim;
	sl_real.cuMemPoolCreate = make_pool;
	sl_real.cuMemPoolDestroy = end_pool;
	sl_real.cuDeviceGetDefaultMemPool = own_pool;
	sl_real.cuDeviceGetMemPool = current_pool;
	sl_real.cuDeviceSetMemPool = set_pool;
	sl_real.cuDeviceGetCount = count_devices;
	sl_real.cuDeviceGetGraphMemAttribute = get_graph_attribute;
	sl_real.cuDeviceGraphMemTrim = trim_graphs;
	sl_real.cuCtxSynchronize = sync_context;
	sl_real.cuStreamSynchronize = sync_stream;
	sl_real.cuGraphGetNodes = get_nodes;
	sl_real.cuGraphNodeGetType = node_type;
	sl_real.cuGraphChildGraphNodeGetGraph = child_graph;
	sl_real.cuGraphMemAllocNodeGetParams = alloc_params;
	sl_real.cuGraphInstantiateWithFlags = instantiate;
	sl_real.cuGraphExecDestroy = exec_destroy;
	sl_real.cuGraphLaunch = launch;
	sl_real.cuGraphAddMemAllocNode = add_alloc_node;
	for (int i = 0; i < 3; i++)
		pools[i].step = step;
	room_bytes = SL_GIB;
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
	sl_prove_created(ctx, -1);
	gpu = books_gpu();
}

static void check_books(uint64_t bytes)
{
	check_daemon(bytes);
	CHECK_EQ(sl_held_bytes(gpu), bytes);
}

static void free_now(struct pool *pool, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	pool->used -= bytes;
	pthread_mutex_unlock(&lock);
}

static void body_growth(void)
{
	unsigned int asks, queries;
	CUdeviceptr a;

	start(2 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 5 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(6 * SL_MIB);
	/* The reserve gives it: two questions to the driver, none to the daemon. */
	asks = FAKE(asks);
	queries = pools[0].queries;
	CHECK_EQ(cuMemAllocAsync(&a, 1 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), asks);
	CHECK_EQ(pools[0].queries, queries + 2);
	CHECK_EQ(cuMemAllocAsync(&a, 20 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(26 * SL_MIB);
	/* Freed memory stays in the pool, and is used again. */
	free_now(&pools[0], 20 * SL_MIB);
	asks = FAKE(asks);
	CHECK_EQ(cuMemAllocAsync(&a, 20 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), asks);
	check_books(26 * SL_MIB);
	free_now(&pools[0], 26 * SL_MIB);
	CHECK_EQ(cuMemPoolTrimTo(OWN_POOL, 4 * SL_MIB), CUDA_SUCCESS);
	check_books(4 * SL_MIB);
	/* A synchronisation makes the driver give back the rest. */
	CHECK_EQ(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	check_books(0);
	fake_stop();
}

/* A chunk is asked for, and kept if the driver takes one; from then on that is known. */
static void body_chunks(void)
{
	CUdeviceptr a;

	start(32 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_KIB, NULL), CUDA_SUCCESS);
	check_books(32 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 30 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 1);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(64 * SL_MIB);
	/* The needed bytes would fit, but the driver would take more. */
	CHECK_EQ(cuMemAllocAsync(&a, 30 * SL_MIB - 4 * SL_KIB, NULL), CUDA_SUCCESS);
	fake_lock();
	/* Of hidden bytes 8 MiB are measured meanwhile. */
	fake.limit_bytes = 76 * SL_MIB;
	fake_unlock();
	CHECK_EQ(cuMemAllocAsync(&a, 2 * SL_MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asked_bytes), 32 * SL_MIB);
	check_books(64 * SL_MIB);
	/* Unused memory goes first. */
	free_now(&pools[0], 30 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 32 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(66 * SL_MIB);
	fake_stop();
}

/* Larger ones than expected: measured at first, then asked for with the next. */
static void body_large_chunks(void)
{
	CUdeviceptr a;

	start(48 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 20 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(32 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 20 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(32 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 20 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(96 * SL_MIB);
	fake_stop();
}

/* A pool that takes exactly what it lacks is asked for no more than that, once this was seen. */
static void body_exact(void)
{
	CUdeviceptr a;

	start(2 * SL_MIB);
	fake_lock();
	fake.limit_bytes = 12 * SL_MIB;
	fake_unlock();
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asked_bytes), 4 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asked_bytes), 4 * SL_MIB);
	check_books(8 * SL_MIB);
	fake_stop();
}

static void body_denied(void)
{
	CUdeviceptr a;

	start(2 * SL_MIB);
	fake_lock();
	fake.limit_bytes = 28 * SL_MIB;
	fake_unlock();
	CHECK_EQ(cuMemAllocAsync(&a, 16 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(allocs, 1);
	CHECK_EQ(cuMemAllocAsync(&a, 16 * SL_MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(allocs, 1);
	check_books(16 * SL_MIB);
	/* Memory freed on a stream that is not synchronised yet counts as used, until it
	 * matters. */
	pools[0].freed_later = 16 * SL_MIB;
	CHECK_EQ(cuMemAllocAsync(&a, 18 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(18 * SL_MIB);
	/* So do regions that need memory which a pool keeps unused. */
	free_now(&pools[0], 18 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&a, 18 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(pools[0].reserved, 0);
	CHECK(fake_wait_u64(&fake.held_bytes, 18 * SL_MIB));
	CHECK_EQ(sl_held_bytes(gpu), 0);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	check_books(0);
	fake_stop();
}

/* Of 28 MiB 16 are a pool's, which gives them back once the work has ended. */
static void start_with_freed(void)
{
	CUdeviceptr a;

	start(2 * SL_MIB);
	fake_lock();
	fake.limit_bytes = 28 * SL_MIB;
	fake_unlock();
	CHECK_EQ(cuMemAllocAsync(&a, 16 * SL_MIB, NULL), CUDA_SUCCESS);
	pools[0].freed_later = 16 * SL_MIB;
}

/* Work may wait for what the thread does next that is out of memory: what does not go by then is
 * done without. */
static void body_endless(void)
{
	CUdeviceptr a;

	start_with_freed();
	__atomic_store_n(&endless, 1, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAllocAsync(&a, 18 * SL_MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	__atomic_store_n(&endless, 0, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAllocAsync(&a, 18 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(18 * SL_MIB);
	fake_stop();
}

/* A process that can have no thread to prove it waits for the work itself. */
static void body_no_thread(void)
{
	CUdeviceptr a;

	start_with_freed();
	__atomic_store_n(&no_threads, 1, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAllocAsync(&a, 18 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(18 * SL_MIB);
	fake_stop();
}

/* Granted, but others' memory is not gone yet. */
static void body_driver_is_full(void)
{
	CUdeviceptr a;

	start(2 * SL_MIB);
	room_bytes = 0;
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(fails), 1);
	check_books(0);
	room_bytes = SL_GIB;
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(4 * SL_MIB);
	fake_stop();
}

static void body_made(void)
{
	CUmemPoolProps props = {.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	cuuint64_t threshold = UINT64_MAX;
	CUmemoryPool pool;
	CUdeviceptr a;

	start(2 * SL_MIB);
	CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocFromPoolAsync(&a, 4 * SL_MIB, pool, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocAsync(&a, 2 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(6 * SL_MIB);
	/* The current pool may be the program's own. */
	CHECK_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(pools[1].reserved, 8 * SL_MIB);
	check_books(10 * SL_MIB);
	/* Pools that keep their memory are not looked at. */
	CHECK(sl_pool_watched);
	CHECK_EQ(cuMemPoolSetAttribute(
			 pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
		CUDA_SUCCESS);
	CHECK_EQ(cuMemPoolSetAttribute(
			 OWN_POOL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
		CUDA_SUCCESS);
	CHECK_EQ(sl_pool_watched, 0);
	CHECK_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	current = OWN_POOL;
	check_books(2 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	check_books(6 * SL_MIB);
	/* Host memory is not charged, nor is memory that another process exported. */
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	pools[1].step = SL_MIB;
	CHECK_EQ(cuMemAllocFromPoolAsync(&a, 64 * SL_MIB, pool, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	pools[1].step = SL_MIB;
	CHECK_EQ(cuMemAllocFromPoolAsync(&a, 64 * SL_MIB, MADE_POOL, NULL), CUDA_SUCCESS);
	check_books(6 * SL_MIB);
	fake_stop();
}

static void *ask_for_much(void *arg)
{
	CUdeviceptr a;

	(void)stub_make_current(0);
	CHECK_EQ(cuMemAllocAsync(&a, 100 * SL_MIB, NULL), CUDA_SUCCESS);
	return NULL;
}

/* A thread that waits for a large piece, or will be denied it, blocks no other. */
static void body_waiting(void)
{
	pthread_t thread;
	CUdeviceptr a;

	start(32 * SL_MIB);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_KIB, NULL), CUDA_SUCCESS);
	check_books(32 * SL_MIB);
	fake_lock();
	fake.silent = true;
	fake_unlock();
	CHECK_EQ(pthread_create(&thread, NULL, ask_for_much, NULL), 0);
	CHECK(fake_wait(&fake.asks, 2));
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 2);
	fake_answer_waiting();
	pthread_join(thread, NULL);
	check_books(pools[0].reserved);
	fake_stop();
}

static void *churn(void *arg)
{
	CUdeviceptr a;

	(void)stub_make_current(0);
	for (int i = 0; i < 300; i++) {
		uint64_t bytes = (1 + (uintptr_t)arg + i % 5) * 700 * SL_KIB;

		CHECK_EQ(cuMemAllocAsync(&a, bytes, NULL), CUDA_SUCCESS);
		free_now(&pools[0], bytes);
		if (i % 10 == 0)
			CHECK_EQ(cuMemPoolTrimTo(OWN_POOL, 0), CUDA_SUCCESS);
	}
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[6];

	start(2 * SL_MIB);
	for (uintptr_t i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(cuMemPoolTrimTo(OWN_POOL, 0), CUDA_SUCCESS);
	CHECK_EQ(pools[0].reserved, 0);
	check_books(0);
	fake_stop();
}

/* A captured allocation is a node: nothing is asked, nothing synchronised. */
static void body_capture(void)
{
	CUdeviceptr a;
	CUgraph graph;

	start(2 * SL_MIB);
	CHECK_EQ(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocAsync(&a, 4 * SL_MIB, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 0);
	CHECK_EQ(pools[0].queries, 0);
	CHECK_EQ(stub.syncs, 0);
	CHECK_EQ(cuStreamEndCapture(NULL, &graph), CUDA_SUCCESS);
	fake_stop();
}

static void body_graph(void)
{
	CUgraphExec exec;
	unsigned int asks;

	start(2 * SL_MIB);
	/* Memory in graphs is not looked for before any can have some. */
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_graph_pending, 0);
	CHECK_EQ(cuGraphAddMemAllocNode(NULL, GRAPH, NULL, 0, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_graph_pending, 1);
	CHECK_EQ(FAKE(asks), 0);
	/* Two nodes of the three share their memory. */
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 1);
	CHECK_EQ(FAKE(asked_bytes), 8 * SL_MIB);
	check_books(8 * SL_MIB);
	CHECK_EQ(sl_graph_pending, 0);
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 1);
	/* The trim takes no used memory; but the memory it took is asked for again. */
	CHECK_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	check_books(8 * SL_MIB);
	pools[2].used = 0;
	CHECK_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	check_books(0);
	CHECK_EQ(sl_graph_pending, 1);
	asks = FAKE(asks);
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), asks + 1);
	check_books(8 * SL_MIB);
	CHECK_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	CHECK_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	check_books(0);
	CHECK_EQ(sl_graph_pending, 0);
	fake_stop();
}

static void body_graph_refused(void)
{
	CUgraphExec exec;
	unsigned int asks;

	start(2 * SL_MIB);
	sl_graph_has_memory();
	node_bytes = 5 * SL_GIB;
	/* It could never run. */
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(instantiations, 0);
	node_bytes = 3 * SL_GIB;
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, GRAPH, 0), CUDA_SUCCESS);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	asks = FAKE(asks);
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 0);
	CHECK_EQ(FAKE(asks), asks + 1);
	check_books(0);
	fake_lock();
	fake.deny = false;
	fake_unlock();
	room_bytes = 100 * SL_GIB;
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	check_books(6 * SL_GIB);
	fake_stop();
}

#define TEST(name, limit_s)                       \
	static void test_##name(void **state)     \
	{                                         \
		in_child(body_##name, (limit_s)); \
	}
TEST(growth, 20)
TEST(chunks, 20)
TEST(large_chunks, 20)
TEST(exact, 20)
TEST(denied, 20)
TEST(endless, 40)
TEST(no_thread, 20)
TEST(driver_is_full, 20)
TEST(made, 20)
TEST(waiting, 20)
TEST(threads, 60)
TEST(capture, 20)
TEST(graph, 20)
TEST(graph_refused, 20)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_large_chunks),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_no_thread),
		cmocka_unit_test(test_driver_is_full),
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_graph_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
