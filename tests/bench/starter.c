/*
 * starter - a program that starts, initialises CUDA, and ends
 *
 * `starter init`: cuInit; `starter context`: and a primary context, and cuMemGetInfo. Linked to
 * nothing but the C library, so that its start is short and what is added to it shows.
 */
#include "driver.h"

#include <string.h>

int main(int argc, char **argv)
{
	size_t free_bytes = 0, total_bytes = 0;

	if (argc != 2)
		return 64;
	if (strcmp(argv[1], "init") == 0)
		return bench_driver_load() || bench_cu.cuInit(0) ? 1 : 0;
	if (bench_driver_context() || bench_cu.cuMemGetInfo_v2(&free_bytes, &total_bytes))
		return 1;
	return total_bytes ? 0 : 1;
}
