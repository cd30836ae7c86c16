/*
 * memhog - takes memory piece by piece until the GPU has no more
 *
 * It prints what it got and how the last call failed, and holds the memory for a while. Then it
 * frees all and checks that it gets as much again: out of memory must not be sticky (peer-failures
 * rows 7, 9).
 */
#include "prog.h"

#include <stdlib.h>

enum { PIECES_MAX = 1 << 16 };

static CUdeviceptr pieces[PIECES_MAX];

static uint64_t take(uint64_t piece_bytes, uint64_t max_bytes, CUresult *last)
{
	uint64_t count = 0;

	*last = CUDA_SUCCESS;
	while (count < PIECES_MAX && (count + 1) * piece_bytes <= max_bytes) {
		*last = cuMemAlloc_v2(&pieces[count], piece_bytes);
		if (*last != CUDA_SUCCESS)
			break;
		count++;
	}
	return count;
}

static void give_back(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		PROG_MUST(cuMemFree_v2(pieces[i]));
}

int main(int argc, char **argv)
{
	uint64_t piece_bytes = 32 << 20, max_bytes = UINT64_MAX, hold_ms = 0, rounds = 1;
	uint64_t before_count = 0;
	const char *until = NULL;
	bool leak = false;
	const struct prog_option options[] = {
		{"piece", PROG_SIZE, &piece_bytes, "bytes per allocation"},
		{"max", PROG_SIZE, &max_bytes, "stop at so many bytes"},
		{"hold-ms", PROG_NUMBER, &hold_ms, "time the memory is held"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
		{"rounds", PROG_NUMBER, &rounds, "times to take and free"},
		{"leak", PROG_FLAG, &leak, "end without freeing"},
	};

	prog_options(argc, argv, "Takes memory until there is no more.", options,
		sizeof(options) / sizeof(options[0]));
	prog_context(0);
	for (uint64_t round = 0; round < rounds; round++) {
		CUresult last;
		uint64_t count = take(piece_bytes, max_bytes, &last);

		prog_say(
			"{\"event\":\"took\",\"round\":%llu,\"bytes\":%llu,\"result\":\"%"
			"s\"}",
			(unsigned long long)round,
			(unsigned long long)(count * piece_bytes), prog_error_name(last));
		prog_rest(hold_ms, until);
		if (leak)
			return PROG_OK;
		give_back(count);
		if (round && count < before_count) {
			prog_say(
				"{\"error\":\"round %llu got less than the one before\"}",
				(unsigned long long)round);
			return PROG_WRONG;
		}
		before_count = count;
	}
	return PROG_OK;
}
