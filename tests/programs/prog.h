/*
 * prog - what the test programs have in common
 *
 * Test programs are ordinary users of the driver: they know nothing of Sluice, ask for memory
 * until they get it or die, and check what the GPU answers. One line of JSON per fact on stdout,
 * flushed at once, so that a reader sees how far a killed program came.
 *
 * Exit statuses: 0 all right; 1 a wrong answer; 2 usage; 3 the GPU's memory ran out; 4 another
 * error of the driver. Sizes are bytes, times milliseconds. Single-threaded unless a program says
 * otherwise.
 */
#ifndef SL_TESTS_PROG_H
#define SL_TESTS_PROG_H

#include "base/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	PROG_OK = 0,
	PROG_WRONG = 1,
	PROG_USAGE = 2,
	PROG_OUT_OF_MEMORY = 3,
	PROG_DRIVER = 4,
};

/* One word is written per page in the big buffers: enough to tell whose page it is. */
#define PROG_PAGE_WORDS 1024u

enum prog_option_kind { PROG_FLAG, PROG_NUMBER, PROG_SIZE, PROG_TEXT };

/* `where` is a bool, uint64_t, uint64_t (with Ki, Mi, Gi, Ti) or const char * by kind. */
struct prog_option {
	const char *name;
	enum prog_option_kind kind;
	void *where;
	const char *help;
};

/* Reads --name VALUE and --name=VALUE; --help prints the rows. Stops at the first word that is no
 * option and returns its index. Exits with PROG_USAGE on a bad option. */
int prog_options(int argc, char **argv, const char *summary,
	const struct prog_option *options, size_t count);

/* "CUDA_ERROR_OUT_OF_MEMORY"; for numbers unknown to us "CUDA_ERROR_<n>". */
const char *prog_error_name(CUresult result);

/* Prints {"error":...,"call":...} and exits with PROG_OUT_OF_MEMORY or PROG_DRIVER unless result is
 * CUDA_SUCCESS. */
void prog_must(CUresult result, const char *call);
#define PROG_MUST(call) prog_must(call, #call)

/* cuInit and the primary context of device 0, made current. Must succeed. */
CUcontext prog_context(CUdevice device);

/* Both images of the kernels; the host module ends where the second symbol stands. */
extern const unsigned char prog_host_image[], prog_host_image_end[], prog_ptx_image[];

/* The image of kernels.c that this driver takes: host module in a box of software GPUs, PTX else.
 * Must succeed. */
CUmodule prog_kernels(void);
CUresult prog_kernels_try(CUmodule *module);
CUfunction prog_kernel(CUmodule module, const char *name);

/* Word i under seed, as kernels.c has it. */
uint32_t prog_mix(uint32_t seed, uint64_t i);

/* One-dimensional launch of at least `threads` threads, 256 to a block. */
CUresult prog_launch(CUfunction function, uint64_t threads, CUstream stream, void **args);

/* prog_fill over bytes of memory, a word per page; and the count of words that differ. */
CUresult prog_fill(CUfunction fill, CUdeviceptr at, uint64_t bytes, uint32_t seed);
CUresult prog_check(CUfunction check, CUdeviceptr at, uint64_t bytes, uint32_t seed,
	CUdeviceptr bad, uint32_t *out_wrong);

/* One line on stdout, flushed. */
void prog_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t prog_now_ms(void);
uint64_t prog_now_ns(void);
void prog_sleep_ms(uint64_t ms);
/* Not longer than until there is such a file, if any is named: for scripts that know no time. */
void prog_rest(uint64_t ms, const char *until);
/* A small generator of our own, so that a seed means the same everywhere. */
uint64_t prog_random(uint64_t *state);

#endif
