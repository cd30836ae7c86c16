/*
 * keeper - takes memory that the driver itself keeps, kind by kind, until it is used up
 *
 * The driver hands out arrays, mipmapped arrays, managed memory, pools and graphs' memory, so a
 * limit can only be enforced in the calls that make them. For each round it prints what it got, how
 * the last call failed and what cuMemGetInfo and NVML said then. After it has freed all, it does
 * the same again. Out of memory must not be sticky: each round gets as much as the first.
 */
#include "gpu-memory.h"
#include "prog.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 4096, TEXEL_BYTES = 16, ROW_TEXELS = 1024, LEVELS = 4 };

union piece {
	CUarray array;
	CUmipmappedArray mipmap;
	CUdeviceptr at;
	struct {
		CUgraph graph;
		CUgraphExec exec;
		CUdeviceptr at;
	} graph;
};

static union piece pieces[PIECES_MAX];
static CUmemoryPool own_pool;
static bool keep;

/* Rows of 16 KiB, so that a piece of whole MiB is one without padding. */
static CUDA_ARRAY3D_DESCRIPTOR plane(uint64_t bytes)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = ROW_TEXELS,
		.Height = bytes / (ROW_TEXELS * TEXEL_BYTES),
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 4,
	};
}

static CUresult make_array(union piece *piece, uint64_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR full = plane(bytes);
	CUDA_ARRAY_DESCRIPTOR desc = {
		full.Width, full.Height, full.Format, full.NumChannels};

	return cuArrayCreate_v2(&piece->array, &desc);
}

static CUresult make_array3d(union piece *piece, uint64_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = plane(bytes / 8);

	desc.Depth = 8;
	return cuArray3DCreate_v2(&piece->array, &desc);
}

static CUresult end_array(union piece *piece)
{
	return cuArrayDestroy(piece->array);
}

/* All levels together are a third more than the first, or a little less. */
static CUresult make_mipmap(union piece *piece, uint64_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = plane(bytes * 3 / 4);

	return cuMipmappedArrayCreate(&piece->mipmap, &desc, LEVELS);
}

static CUresult end_mipmap(union piece *piece)
{
	return cuMipmappedArrayDestroy(piece->mipmap);
}

static CUresult make_managed(union piece *piece, uint64_t bytes)
{
	return cuMemAllocManaged(&piece->at, bytes, CU_MEM_ATTACH_GLOBAL);
}

static CUresult end_managed(union piece *piece)
{
	return cuMemFree_v2(piece->at);
}

static CUresult make_pool(union piece *piece, uint64_t bytes)
{
	return cuMemAllocAsync(&piece->at, bytes, NULL);
}

static CUresult make_own_pool(union piece *piece, uint64_t bytes)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	cuuint64_t threshold = keep ? UINT64_MAX : 0;

	if (!own_pool) {
		PROG_MUST(cuMemPoolCreate(&own_pool, &props));
		PROG_MUST(cuMemPoolSetAttribute(
			own_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	}
	return cuMemAllocFromPoolAsync(&piece->at, bytes, own_pool, NULL);
}

static CUresult end_pool(union piece *piece)
{
	return cuMemFreeAsync(piece->at, NULL);
}

/* From a graph that leaves its allocation to the program; takes the graph in every case. */
static CUresult launch_graph(union piece *piece)
{
	CUresult r =
		cuGraphInstantiateWithFlags(&piece->graph.exec, piece->graph.graph, 0);

	if (r == CUDA_SUCCESS) {
		r = cuGraphLaunch(piece->graph.exec, NULL);
		if (r == CUDA_SUCCESS)
			r = cuCtxSynchronize();
		else
			PROG_MUST(cuGraphExecDestroy(piece->graph.exec));
	}
	if (r != CUDA_SUCCESS)
		PROG_MUST(cuGraphDestroy(piece->graph.graph));
	return r;
}

static CUresult make_graph(union piece *piece, uint64_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes,
	};
	CUgraphNode node;

	PROG_MUST(cuGraphCreate(&piece->graph.graph, 0));
	PROG_MUST(cuGraphAddMemAllocNode(&node, piece->graph.graph, NULL, 0, &params));
	piece->graph.at = params.dptr;
	return launch_graph(piece);
}

/* The same by a capture. */
static CUresult make_captured(union piece *piece, uint64_t bytes)
{
	static CUstream stream;

	if (!stream)
		PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	PROG_MUST(cuMemAllocAsync(&piece->graph.at, bytes, stream));
	PROG_MUST(cuStreamEndCapture(stream, &piece->graph.graph));
	return launch_graph(piece);
}

static CUresult end_graph(union piece *piece)
{
	CUresult r = cuMemFreeAsync(piece->graph.at, NULL);

	if (r == CUDA_SUCCESS)
		r = cuGraphExecDestroy(piece->graph.exec);
	return r == CUDA_SUCCESS ? cuGraphDestroy(piece->graph.graph) : r;
}

static const struct kind {
	const char *name;
	CUresult (*make)(union piece *piece, uint64_t bytes);
	CUresult (*end)(union piece *piece);
} kinds[] = {
	{"array", make_array, end_array},
	{"array3d", make_array3d, end_array},
	{"mipmap", make_mipmap, end_mipmap},
	{"managed", make_managed, end_managed},
	{"pool", make_pool, end_pool},
	{"own-pool", make_own_pool, end_pool},
	{"graph", make_graph, end_graph},
	{"captured", make_captured, end_graph},
};

static const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	fprintf(stderr, "keeper: no kind '%s'\n", name);
	exit(PROG_USAGE);
}

static void say(const char *event, uint64_t round, uint64_t bytes, CUresult result)
{
	size_t free_bytes, total_bytes;
	nvmlMemory_t view;

	PROG_MUST(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	view = prog_gpu_memory();
	prog_say("{\"event\":\"%s\",\"round\":%llu,\"bytes\":%llu,\"result\":\"%s\","
		 "\"free_bytes\":%zu,\"total_bytes\":%zu,\"nvml_used_bytes\":%llu,"
		 "\"nvml_total_bytes\":%llu}",
		event, (unsigned long long)round, (unsigned long long)bytes,
		prog_error_name(result), free_bytes, total_bytes,
		(unsigned long long)view.used, (unsigned long long)view.total);
}

static uint64_t take(
	const struct kind *kind, uint64_t bytes, uint64_t max, CUresult *last)
{
	uint64_t count = 0;

	*last = CUDA_SUCCESS;
	while (count < PIECES_MAX && (count + 1) * bytes <= max) {
		*last = kind->make(&pieces[count], bytes);
		if (*last != CUDA_SUCCESS)
			break;
		count++;
	}
	return count;
}

static void give_back(const struct kind *kind, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		prog_must(kind->end(&pieces[i]), "giving back");
	PROG_MUST(cuCtxSynchronize());
	if (kind->end == end_graph)
		PROG_MUST(cuDeviceGraphMemTrim(0));
	if (keep && own_pool)
		PROG_MUST(cuMemPoolTrimTo(own_pool, 0));
}

int main(int argc, char **argv)
{
	uint64_t bytes = 8 << 20, max = UINT64_MAX, hold_ms = 0, rounds = 1, least = 0;
	bool leak = false, reset = false;
	const char *name = "array";
	const struct prog_option options[] = {
		{"kind", PROG_TEXT, &name,
			"array, array3d, mipmap, managed, pool, own-pool, graph or "
			"captured"},
		{"piece", PROG_SIZE, &bytes, "bytes of each"},
		{"max", PROG_SIZE, &max, "stop at so many bytes"},
		{"least", PROG_SIZE, &least, "end with out of memory if it gets fewer"},
		{"hold-ms", PROG_NUMBER, &hold_ms, "time the memory is held"},
		{"rounds", PROG_NUMBER, &rounds, "times to take and free"},
		{"keep", PROG_FLAG, &keep,
			"own-pool: it keeps what is freed until trimmed"},
		{"leak", PROG_FLAG, &leak, "end without freeing"},
		{"reset", PROG_FLAG, &reset, "reset the context instead of freeing"},
	};
	uint64_t first_count = 0;
	const struct kind *kind;

	prog_options(argc, argv, "Takes memory that the driver keeps.", options,
		sizeof(options) / sizeof(options[0]));
	kind = kind_named(name);
	prog_context(0);
	(void)prog_gpu_open();
	say("start", 0, 0, CUDA_SUCCESS);
	for (uint64_t round = 0; round < rounds; round++) {
		CUresult last;
		uint64_t count = take(kind, bytes, max, &last);

		say("took", round, count * bytes, last);
		prog_sleep_ms(hold_ms);
		if (count * bytes < least)
			return PROG_OUT_OF_MEMORY;
		if (leak)
			return PROG_OK;
		if (reset) {
			PROG_MUST(cuDevicePrimaryCtxReset_v2(0));
			own_pool = NULL;
			prog_context(0);
		} else {
			give_back(kind, count);
		}
		say("freed", round, 0, CUDA_SUCCESS);
		if (round && count < first_count) {
			prog_say("{\"error\":\"round %llu got less than the first\"}",
				(unsigned long long)round);
			return PROG_WRONG;
		}
		if (!round)
			first_count = count;
	}
	prog_say("{\"event\":\"end\"}");
	return PROG_OK;
}
