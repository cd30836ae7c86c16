/*
 * stub-nvml - an NVML of three GPUs that says what a test wants
 *
 * Its GPU i has the UUID of the stub driver's device i, and is on bus i. The processes that it
 * lists are the same on each. The test finds `stub_nvml` in the library by name.
 */
#ifndef SL_TEST_RUNTIME_STUB_NVML_H
#define SL_TEST_RUNTIME_STUB_NVML_H

#include "base/nvml_abi.h"

#define STUB_NVML_GPUS 3

struct stub_nvml {
	nvmlReturn_t result; /* of calls about memory and processes */
	unsigned int calls;  /* of those */
	unsigned int processes;
	unsigned int pid[4];
};

#endif
