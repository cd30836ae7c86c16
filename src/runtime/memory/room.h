/*
 * room - when the driver itself runs out of memory
 *
 * Contexts, modules, first launches, arrays and pools take memory that the driver does not ask us
 * for. If it has none left, the call has failed although the workload may be owed the bytes: they
 * are asked for as any other memory, and the call is made again while the grant keeps them free.
 * How many it needs nobody knows, so the estimate doubles. The bytes are then measured as hidden
 * ones. Outside of captures only. Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_MEMORY_ROOM_H
#define SL_RUNTIME_MEMORY_ROOM_H

#include "runtime/session/session.h"

struct sl_room {
	struct sl_gpu *gpu; /* NULL: it is not for us to help */
	uint64_t bytes;     /* asked for last */
	unsigned int rounds;
	bool granted;
	struct sl_demand demand;
};

/* The current context's device. */
#define SL_ROOM_CURRENT (-1)

void sl_room_open(struct sl_room *room, CUdevice dev) SL_COLD;
/* True: there is more room than before, so call again. May wait as long as a demand does. */
SL_MUST_CHECK bool sl_room_make(struct sl_room *room) SL_COLD;
void sl_room_close(struct sl_room *room) SL_COLD;

/* Makes the call again as long as it is out of memory and there is more room. */
#define SL_ROOM_RETRY(result, dev, call)                                 \
	do {                                                             \
		if (sl_unlikely((result) == CUDA_ERROR_OUT_OF_MEMORY)) { \
			struct sl_room room_;                            \
                                                                         \
			sl_room_open(&room_, dev);                       \
			while ((result) == CUDA_ERROR_OUT_OF_MEMORY &&   \
				sl_room_make(&room_))                    \
				(result) = (call);                       \
			sl_room_close(&room_);                           \
		}                                                        \
	} while (0)

#endif
