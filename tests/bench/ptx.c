/*
 * ptx - how long the software GPU takes to make host code of a framework's kernels
 *
 * ptx SET FOLDER: each file of FOLDER is the PTX of one kernel of SET (tests/bench/frameworks puts
 * them there). Translation and the compiler are timed separately, by calling the companion's own
 * functions; nothing comes from the cache.
 */
#include "bench.h"

#include "base/file.h"
#include "softgpu/ptx/ptx.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_VERSION 13000
#define ROUNDS         5

static uint64_t translate(const char *name, const char *text, char **c)
{
	struct bench_samples *times = bench_samples_new();
	struct sl_image_log log = {""};
	uint64_t median;

	for (int i = 0; i < ROUNDS; i++) {
		sl_ns begin = sl_clock_now();

		free(*c);
		*c = NULL;
		bench_require(
			sl_ptx_translate(text, DRIVER_VERSION, c, &log) == CUDA_SUCCESS,
			"%s: %s", name, log.text);
		bench_samples_add(times, sl_clock_now() - begin);
	}
	median = bench_quantile(times, 500);
	free(times);
	return median;
}

static uint64_t compile(const char *name, const char *c)
{
	struct sl_image_log log = {""};
	sl_ns begin = sl_clock_now();
	int fd = -1;

	bench_require(sl_hostcc(c, &fd, &log) == CUDA_SUCCESS, "%s: %s", name, log.text);
	(void)close(fd);
	return sl_clock_now() - begin;
}

static double ms(struct bench_samples *samples, unsigned int per_mille)
{
	return (double)bench_quantile(samples, per_mille) / (double)SL_MS;
}

int bench_part_ptx(int argc, char **argv)
{
	struct bench_samples *translated = bench_samples_new(),
			     *compiled = bench_samples_new();
	struct dirent *e;
	DIR *folder;

	bench_require(argc == 3, "ptx SET FOLDER");
	/* Without a home there is no cache. */
	(void)unsetenv("HOME");
	(void)unsetenv("XDG_CACHE_HOME");
	folder = opendir(argv[2]);
	bench_require(folder, "%s: no such folder", argv[2]);
	while ((e = readdir(folder))) {
		sl_cleanup(sl_freep) char *path = NULL, *text = NULL, *c = NULL;
		size_t size = 0;

		if (e->d_name[0] == '.')
			continue;
		bench_require(asprintf(&path, "%s/%s", argv[2], e->d_name) > 0,
			"out of memory");
		bench_require(sl_file_read(path, SL_PTX_TEXT_MAX, &text, &size) == 0,
			"%s: cannot be read", path);
		bench_samples_add(translated, translate(path, text, &c));
		bench_samples_add(compiled, compile(path, c));
	}
	(void)closedir(folder);
	bench_emit(BENCH_PTX_TRANSLATE, argv[1], ms(translated, 500));
	bench_emit(BENCH_PTX_TRANSLATE_SLOWEST, argv[1], ms(translated, 1000));
	bench_emit(BENCH_PTX_COMPILE, argv[1], ms(compiled, 500));
	bench_emit(BENCH_PTX_COMPILE_SLOWEST, argv[1], ms(compiled, 1000));
	bench_emit(BENCH_PTX_KERNELS, argv[1], (double)compiled->count);
	free(translated);
	free(compiled);
	return 0;
}
