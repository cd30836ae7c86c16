/*
 * oom - retries a call for which the driver had no memory
 *
 * Contexts, modules, first launches, arrays and pools take memory that the driver does not ask us
 * for. When such a call runs out of memory, the workload may still be entitled to the bytes. They
 * are demanded like any other memory, and the call is repeated while the grant keeps them free. The
 * amount is unknown, so the estimate doubles. The bytes are then measured as hidden. Works only
 * outside of captures. Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_MEMORY_OOM_H
#define SL_RUNTIME_MEMORY_OOM_H

#include "runtime/session/demand.h"

struct sl_oom {
	struct sl_gpu *gpu; /* NULL: not for us to retry */
	uint64_t bytes;     /* of the last demand */
	unsigned int rounds;
	bool granted;
	struct sl_demand demand;
};

/* The current context's device. */
#define SL_OOM_CURRENT (-1)

void sl_oom_open(struct sl_oom *oom, CUdevice dev) SL_COLD;
/* True: there is more room than before, so call again. May wait as long as a demand does. */
SL_MUST_CHECK bool sl_oom_make(struct sl_oom *oom) SL_COLD;
void sl_oom_close(struct sl_oom *oom) SL_COLD;

/* Repeats the call while it runs out of memory and more room can be made. */
#define SL_OOM_RETRY(result, dev, call)                                  \
	do {                                                             \
		if (sl_unlikely((result) == CUDA_ERROR_OUT_OF_MEMORY)) { \
			struct sl_oom oom_;                              \
                                                                         \
			sl_oom_open(&oom_, dev);                         \
			while ((result) == CUDA_ERROR_OUT_OF_MEMORY &&   \
				sl_oom_make(&oom_))                      \
				(result) = (call);                       \
			sl_oom_close(&oom_);                             \
		}                                                        \
	} while (0)

#endif
