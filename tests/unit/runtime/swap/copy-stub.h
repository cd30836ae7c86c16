/*
 * copy-stub - a driver's streams, events and copies, on top of the memory of vmm-stub
 *
 * A copy of pinned memory is done only when a thread waits for it, as late as a driver may do it.
 * Copies of other memory are done at once. Memory that is unmapped or unpinned before its copy is
 * done ends the test. Calls fail by vmm-stub's numbers. Thread-safe (vmm-stub's lock).
 */
#ifndef SL_TEST_RUNTIME_COPY_STUB_H
#define SL_TEST_RUNTIME_COPY_STUB_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct copy_stub {
	uint64_t out_bytes, in_bytes, pinned_bytes;
	unsigned int streams, events, copies, pageable;
	unsigned int most; /* copies that were begun and not done, at most */
	CUresult broken;   /* all waiting calls say so, and no copy is done any more */
	uint64_t pin_most; /* larger registrations are refused */
};

extern struct copy_stub copy_stub;
/* While not 0, holds threads that wait for all work of a context. Atomic. */
extern uint32_t copy_stub_hold;

/* After vmm_stub_install. */
void copy_stub_install(void);
/* The driver pins so much at a time; any from the start. */
void copy_stub_let_pin(uint64_t most_bytes);
/* As a driver may when the process leaves its GPUs. */
void copy_stub_unpin_all(void);
/* A figure that other threads change, too. */
uint64_t copy_stub_pinned(void);
/* Fills memory of the device, or compares it, with bytes made from seed. */
void copy_stub_fill(CUdeviceptr at, uint64_t bytes, uint64_t seed);
bool copy_stub_is(CUdeviceptr at, uint64_t bytes, uint64_t seed);
void copy_stub_clear(CUdeviceptr at, uint64_t bytes);

#endif
