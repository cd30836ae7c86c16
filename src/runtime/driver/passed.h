/*
 * passed - GPU memory that the driver itself keeps for the program
 *
 * The driver makes arrays, managed memory, pools, graph memory, external memory and the program's
 * own handles, but they are charged like everything else. The bytes are asked for before the call,
 * settled after it, and given back when the memory goes. Per GPU the sum is charged in whole grains
 * of 2 MiB, so a thousand small arrays cost what they take instead of 2 GiB. Whatever the driver
 * takes beyond that is measured as hidden bytes, so the account is never too low. Thread-safe; no
 * lock may be held by the caller, since asking may wait. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_PASSED_H
#define SL_RUNTIME_DRIVER_PASSED_H

#include "runtime/memory/oom.h"
#include "runtime/session/demand.h"

enum sl_passed_flags {
	SL_PASSED_HELD = 1,  /* cannot be evicted: only the driver can move it */
	SL_PASSED_QUICK = 2, /* neither asked for nor charged, only measured */
	SL_PASSED_APART = 4, /* the call belongs to no context */
};

/* One call that takes memory. On the caller's stack from ask to settle. */
struct sl_passed {
	struct sl_gpu *
		gpu; /* NULL: not for us to charge (bypass, a foreign device, a capture) */
	uint64_t
		bytes; /* after sl_passed_settle: for sl_passed_free; 0 if nothing was charged */
	uint32_t flags;
	uint32_t rounds;        /* times that the driver was out of memory */
	uint64_t granted_bytes; /* of the demand; 0: the charge already sufficed */
	struct sl_demand demand;
	struct sl_oom oom; /* additional bytes, while the driver is out of memory */
};

/* The current context's device. */
#define SL_PASSED_CURRENT (-1)

/* Asks for bytes on dev. False: do not call the driver; *result is the program's result. */
SL_MUST_CHECK bool sl_passed_ask(struct sl_passed *passed, CUdevice dev, uint64_t bytes,
	uint32_t flags, CUresult *result);
/* After the driver's answer. True: it was out of memory although the bytes were granted; more are
 * granted now, so call again. */
SL_MUST_CHECK bool sl_passed_again(struct sl_passed *passed, CUresult *result);
/* Must follow each sl_passed_ask that returned true. used_bytes of the bytes asked for exist now
 * (0: the call failed). passed.bytes is then the charge, to pass to sl_passed_free later. */
void sl_passed_settle(struct sl_passed *passed, uint64_t used_bytes);
/* bytes that were settled before are gone. flags: as in sl_passed_ask. */
void sl_passed_free(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);
/* The same for a whole handle (a multiple of the grain) that is on the host: it leaves no spare GPU
 * bytes. */
void sl_passed_free_evicted(struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);
/* Gives back what is charged beyond what exists, spare grains included. False: there was
 * nothing. */
bool sl_passed_trim(void);
bool sl_passed_has_spare(void);
/* In the child of a fork. */
void sl_passed_forget(void);

/* Makes the call with its memory charged; result is the program's in every case. */
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
