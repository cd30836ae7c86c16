/*
 * gpu-memory - what NVML says of the first GPU, for programs that watch it
 *
 * NVML is opened by name, so a program needs no library to link with. One thread.
 */
#ifndef SL_TESTS_GPU_MEMORY_H
#define SL_TESTS_GPU_MEMORY_H

#include "base/nvml_abi.h"

#include <stdbool.h>

/* False if NVML or a GPU is missing. Once, before prog_gpu_memory. */
bool prog_gpu_open(void);
/* Zeros where NVML fails. */
nvmlMemory_t prog_gpu_memory(void);

#endif
