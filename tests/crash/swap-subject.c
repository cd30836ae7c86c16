/*
 * swap-subject - has memory that is moved to the host and back, or makes others' memory move
 *
 * As `victim` it keeps memory of several kinds, lets it lie for a while, so that it may be moved,
 * and looks at all of it, again and again. Now and then a capture stays open, which prevents
 * moving. Now and then it frees memory and asks for more, wherever its memory is just then. As
 * `beneficiary` it takes more than is free, uses it and gives it back. Exit status 0: all was
 * right; PROG_WRONG: some words were lost, which its last line counts.
 */
#include "prog.h"

#include <stdlib.h>
#include <unistd.h>

/* One word of so many bytes is written and looked at: less than is ever moved. */
enum { GRAIN = 64, PIECES = 3, SMALL = 64, SMALL_BYTES = 4992 };

static CUfunction fill, check;
static CUdeviceptr bad;
static uint64_t lost_words;
static const char *until;

static void put(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = GRAIN / 4, count = bytes / GRAIN;
	void *args[] = {&at, &count, &stride, &seed};

	PROG_MUST(prog_launch(fill, count, NULL, args));
}

static void look(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = GRAIN / 4, count = bytes / GRAIN;
	uint32_t wrong = 0;
	void *args[] = {&at, &count, &stride, &seed, &bad};

	PROG_MUST(cuMemsetD32_v2(bad, 0, 1));
	PROG_MUST(prog_launch(check, count, NULL, args));
	PROG_MUST(cuMemcpyDtoH_v2(&wrong, bad, sizeof(wrong)));
	lost_words += wrong;
}

static CUdeviceptr map(uint64_t bytes)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	const CUmemAccessDesc access = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	PROG_MUST(cuMemCreate(&handle, bytes, &prop, 0));
	PROG_MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
	PROG_MUST(cuMemSetAccess(at, bytes, &access, 1));
	PROG_MUST(cuMemRelease(handle));
	return at;
}

/* Open for a while, and thrown away. */
static void hold_capture(uint64_t ms)
{
	CUstream stream;
	CUgraph graph;

	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	prog_sleep_ms(ms);
	PROG_MUST(cuStreamEndCapture(stream, &graph));
	PROG_MUST(cuGraphDestroy(graph));
	PROG_MUST(cuStreamDestroy_v2(stream));
}

static bool goes_on(uint64_t until_ms)
{
	return prog_now_ms() < until_ms && !(until && access(until, F_OK) == 0);
}

static void keep(uint64_t bytes, uint64_t ms, uint64_t idle_ms, uint64_t capture_ms)
{
	uint64_t until_ms = prog_now_ms() + ms, each = bytes / PIECES;
	CUdeviceptr piece[PIECES], small[SMALL];
	uint32_t seed = 1, first = 0;

	for (int i = 0; i < PIECES; i++) {
		if (i == PIECES - 1)
			piece[i] = map(each);
		else
			PROG_MUST(cuMemAlloc_v2(&piece[i], each));
		put(piece[i], each, (uint32_t)i);
	}
	for (int i = 0; i < SMALL; i++) {
		PROG_MUST(cuMemAlloc_v2(&small[i], SMALL_BYTES));
		put(small[i], SMALL_BYTES, 1000 + (uint32_t)i);
	}
	PROG_MUST(cuCtxSynchronize());
	prog_say("{\"event\":\"held\"}");
	for (; goes_on(until_ms); seed++) {
		prog_sleep_ms(idle_ms);
		/* Memory that may lie anywhere now. */
		if (seed % 3 == 0) {
			PROG_MUST(cuMemFree_v2(piece[0]));
			prog_sleep_ms(idle_ms / 4);
			PROG_MUST(cuMemAlloc_v2(&piece[0], each));
			put(piece[0], each, first = seed);
		}
		for (int i = 1; i < PIECES; i++)
			look(piece[i], each, (uint32_t)i);
		for (int i = 0; i < SMALL; i++)
			look(small[i], SMALL_BYTES, 1000 + (uint32_t)i);
		look(piece[0], each, first);
		hold_capture(capture_ms);
	}
}

static void take(uint64_t bytes, uint64_t ms, uint64_t idle_ms)
{
	uint64_t until_ms = prog_now_ms() + ms;
	uint32_t seed = 7;

	prog_say("{\"event\":\"held\"}");
	for (; goes_on(until_ms); seed++) {
		CUdeviceptr at;

		PROG_MUST(cuMemAlloc_v2(&at, bytes));
		put(at, bytes, seed);
		PROG_MUST(cuCtxSynchronize());
		prog_sleep_ms(idle_ms);
		look(at, bytes, seed);
		PROG_MUST(cuMemFree_v2(at));
		prog_sleep_ms(idle_ms / 2);
	}
}

int main(int argc, char **argv)
{
	uint64_t bytes = 240 << 20, ms = 2000, idle_ms = 200, capture_ms = 100;
	bool beneficiary = false;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "memory it has"},
		{"ms", PROG_NUMBER, &ms, "time it goes on for at the most"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
		{"idle-ms", PROG_NUMBER, &idle_ms, "time it lets its memory lie"},
		{"capture-ms", PROG_NUMBER, &capture_ms, "time a capture stays open"},
		{"beneficiary", PROG_FLAG, &beneficiary, "take and give back"},
	};
	CUmodule module;

	prog_options(argc, argv, "Has memory that is moved.", options,
		sizeof(options) / sizeof(options[0]));
	prog_context(0);
	module = prog_kernels();
	fill = prog_kernel(module, "prog_fill");
	check = prog_kernel(module, "prog_check");
	PROG_MUST(cuMemAlloc_v2(&bad, sizeof(uint32_t)));
	if (beneficiary)
		take(bytes, ms, idle_ms);
	else
		keep(bytes, ms, idle_ms, capture_ms);
	prog_say("{\"event\":\"end\",\"lost_bytes\":%llu}",
		(unsigned long long)lost_words * GRAIN);
	return lost_words ? PROG_WRONG : PROG_OK;
}
