/*
 * vmm-stub - a driver's virtual memory as far as books can be kept of it
 *
 * Replaces the stub's functions for handles, ranges and mappings by ones that follow the driver's
 * rules: references are counted, memory lives while referenced, mapped or bound, ranges are
 * unmapped by whole mappings. Any call can be made to fail by number, without an effect.
 * Thread-safe (one lock).
 */
#ifndef SL_TEST_RUNTIME_VMM_STUB_H
#define SL_TEST_RUNTIME_VMM_STUB_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct vmm_stub {
	unsigned int calls;    /* of the functions replaced here */
	unsigned int fault_at; /* the call of that number fails; 0: none */
	CUresult fault;
	unsigned int no_memory;            /* so many creations are out of memory */
	uint64_t device_bytes;             /* that live, by a handle that is no import */
	uint64_t host_bytes;               /* of host locations */
	unsigned int live;                 /* handles that live, of whatever kind */
	unsigned int reserved;             /* ranges */
	unsigned int references;           /* of the program, as the driver sees it */
	int last_fd;                       /* exported */
	CUmemGenericAllocationHandle last; /* passed as a handle */
	unsigned int tile_maps;
	CUmemGenericAllocationHandle last_tile;
	CUresult access_result; /* of the second location of an access call */
};

extern struct vmm_stub vmm_stub;

/* After stub_install. */
void vmm_stub_install(void);
/* A field, read under the lock. */
#define VMM(field)                                   \
	({                                           \
		__typeof__(vmm_stub.field) vmm_now_; \
                                                     \
		vmm_stub_lock();                     \
		vmm_now_ = vmm_stub.field;           \
		vmm_stub_unlock();                   \
		vmm_now_;                            \
	})
void vmm_stub_lock(void);
void vmm_stub_unlock(void);
/* Above 0: so many calls after one that failed, another fails. */
extern unsigned int vmm_stub_twice;
/* So many further calls fail after the first. */
extern unsigned int vmm_stub_row;
/* Counts a call of a function replaced elsewhere. True: it is to fail, with *r. */
bool vmm_stub_fails(CUresult *r);
/* Under the lock: the memory at an address, with access for the device, or NULL. *bytes is how much
 * the caller wants, and then how much of it there is. Memory is full of 0xa5 before it is
 * written. */
unsigned char *vmm_stub_data(CUdeviceptr at, int dev, uint64_t *bytes);
/* Under the lock: does anything use that? Its unmapping then ends the test. NULL: not checked. */
extern bool (*vmm_stub_is_used)(CUdeviceptr at, uint64_t bytes);
/* What the driver says of an address's access for a device. */
CUmemAccess_flags vmm_stub_access(CUdeviceptr at, int dev);

#endif
