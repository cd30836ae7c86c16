/*
 * nvml - used memory of the first GPU, as NVML tells it
 *
 * The library is looked up at run time. One thread.
 */
#ifndef SL_TESTS_BENCH_NVML_H
#define SL_TESTS_BENCH_NVML_H

#include "wire/wire.h"

/* Loads NVML and finds the GPU; dies if either is missing. */
void bench_nvml_open(const uint8_t uuid[SL_WIRE_UUID_BYTES]);
uint64_t bench_nvml_used_bytes(void);

#endif
