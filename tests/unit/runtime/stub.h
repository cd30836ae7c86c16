/*
 * stub - a driver of a few tables, put behind the runtime's real functions
 *
 * Knows contexts, ranges, handles and mappings, so that a leak or an unmap of the wrong thing
 * shows. Any call of the memory functions can be made to fail by number. Thread-safe (one lock).
 */
#ifndef SL_TEST_RUNTIME_STUB_H
#define SL_TEST_RUNTIME_STUB_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define STUB_DEVICES 2

struct stub {
	uint64_t capacity_bytes; /* cuMemCreate beyond it is out of memory */
	uint64_t created_bytes, mapped_bytes, reserved_bytes;
	unsigned int creates, syncs, launches, frees;
	unsigned int calls;    /* of memory functions */
	unsigned int fault_at; /* the call of that number fails; 0: none */
	unsigned int no_room;  /* so many contexts and launches find no memory */
	CUresult fault;
	unsigned int sync_waits; /* held by stub_busy, so far */
	CUresult sync_result;
	bool capturing;
	unsigned int syncs_while_capturing;
	unsigned int capture_questions;
	bool no_exports; /* the device cannot, and says so */
	unsigned int exports, imports;
	CUdeviceptr last_attributes; /* the address asked about */
};

extern struct stub stub;

void stub_lock(void);
/* Result of a wait for a context's work from now on; unless it is CUDA_SUCCESS, at once. */
void stub_sync_with(CUresult r);
void stub_unlock(void);
/* A field, read under the lock. */
#define STUB(field)                               \
	({                                        \
		__typeof__(stub.field) stub_now_; \
                                                  \
		stub_lock();                      \
		stub_now_ = stub.field;           \
		stub_unlock();                    \
		stub_now_;                        \
	})

/* Fills the table of real functions. */
void stub_install(void);
void stub_uuid(int dev, uint8_t uuid[16]);
/* A context made current in this thread, without any hook. */
CUcontext stub_make_current(int dev);
/* Holds submissions inside cuLaunchKernel while above 0. */
extern int stub_hold_launches;
/* Holds threads that wait for all work of that context. */
extern CUcontext stub_busy;
/* Called by a context's destruction, which waits for it, if not NULL. */
extern void (*stub_on_destroy)(void);

#endif
