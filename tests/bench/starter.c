/*
 * starter - a program that starts, initialises CUDA, and ends
 *
 * `starter init` calls cuInit. `starter context` also makes a primary context and calls
 * cuMemGetInfo. `starter names` calls cuInit and looks up every function of the driver by dlsym and
 * by cuGetProcAddress. Linked to the C library only, so its own start is short and additions show.
 */
#include "driver.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
	const char *name;
	int since;
} names[] = {
#define SL_CUDA_NAME(symbol, since) {#symbol, since},
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
};

/* As the bindings for other languages do at their start. */
static int look_all_up(void)
{
	CUresult (*look_up)(
		const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	CUdriverProcAddressQueryResult status;
	unsigned int found = 0;
	void *function;

	if (bench_driver_load() || bench_cu.cuInit(0))
		return 1;
	*(void **)&look_up = dlsym(bench_cu.library, "cuGetProcAddress_v2");
	for (size_t i = 0; look_up && i < sizeof(names) / sizeof(names[0]); i++) {
		function = NULL;
		found += dlsym(bench_cu.library, names[i].name) != NULL;
		(void)look_up(names[i].name, &function, names[i].since, 0, &status);
	}
	return found > 100 ? 0 : 1;
}

int main(int argc, char **argv)
{
	size_t free_bytes = 0, total_bytes = 0;

	if (argc != 2)
		return 64;
	if (strcmp(argv[1], "init") == 0)
		return bench_driver_load() || bench_cu.cuInit(0) ? 1 : 0;
	if (strcmp(argv[1], "names") == 0)
		return look_all_up();
	if (bench_driver_context() || bench_cu.cuMemGetInfo_v2(&free_bytes, &total_bytes))
		return 1;
	return total_bytes ? 0 : 1;
}
