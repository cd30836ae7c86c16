/*
 * passed - GPU memory that the driver itself keeps for the program
 *
 * Arrays, managed memory, pools, graph memory, external memory and the program's own handles are
 * made by the driver, but are charged like everything else: asked for before the call, settled
 * after it, given back when it goes. Per GPU the sum is charged in whole grains of 2 MiB, so that a
 * thousand small arrays cost what they take and not two gigabytes. What the driver takes beyond
 * what was asked for shows up as hidden bytes and is measured, so the account is never below the
 * truth. Thread-safe; no lock may be held by the caller, since asking may wait. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_PASSED_H
#define SL_RUNTIME_DRIVER_PASSED_H

#include "runtime/memory/oom.h"
#include "runtime/session/demand.h"

enum sl_passed_flags {
	SL_PASSED_HELD = 1,  /* cannot be evicted: what the driver alone can move */
	SL_PASSED_QUICK = 2, /* nobody is asked and nothing charged, only measured */
	SL_PASSED_APART = 4, /* the call is no context's, and a broken one is no matter */
};

/* One call that takes memory. On the caller's stack from ask to settle. */
struct sl_passed {
	struct sl_gpu *
		gpu; /* NULL: not for us to charge (bypass, a foreign device, a capture) */
	uint64_t
		bytes; /* after sl_passed_settle: for sl_passed_free, 0 where nothing was charged */
	uint32_t flags;
	uint32_t rounds;        /* the driver was out of memory so often */
	uint64_t granted_bytes; /* of the demand; 0: what was charged already sufficed */
	struct sl_demand demand;
	struct sl_oom oom; /* more than was asked for, while the driver wants more */
};

/* The current context's device. */
#define SL_PASSED_CURRENT (-1)

/* Asks for bytes more on dev. False: the driver is not to be called, *result is the program's. */
SL_MUST_CHECK bool sl_passed_ask(struct sl_passed *passed, CUdevice dev, uint64_t bytes,
	uint32_t flags, CUresult *result);
/* After the driver's answer. True: it was out of memory although the bytes were granted; they have
 * been asked for again and are there now, so call again. */
SL_MUST_CHECK bool sl_passed_again(struct sl_passed *passed, CUresult *result);
/* used_bytes of what was asked for exist now (0: the call failed). Always, after a true
 * sl_passed_ask. passed.bytes is then what has been charged for it, to be given to sl_passed_free
 * some day. */
void sl_passed_settle(struct sl_passed *passed, uint64_t used_bytes);
/* So many bytes that were settled before are gone. flags as they were asked with. */
void sl_passed_free(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);
/* The same of a whole handle of so many grains that is on the host: nothing of the GPU is spare
 * after it. */
void sl_passed_free_evicted(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);
/* What is charged beyond what exists goes, the spare grains too. False: there was nothing. */
bool sl_passed_trim(void);
bool sl_passed_has_spare(void);
/* In the child of a fork. */
void sl_passed_forget(void);

/* call with the memory it takes charged: result is the program's in every case. */
#define SL_PASSED_CALL(passed, result, dev, bytes, flags, call)                   \
	do {                                                                      \
		if (!sl_passed_ask(passed, dev, bytes, flags, &(result)))         \
			break;                                                    \
		do                                                                \
			(result) = (call);                                        \
		while (sl_passed_again(passed, &(result)));                       \
		sl_passed_settle(passed, (result) == CUDA_SUCCESS ? (bytes) : 0); \
	} while (0)

#endif
