/*
 * nvml - what the parts of the software GPU's libnvidia-ml.so.1 share
 *
 * nvml.c: the connection, the system, and the list of devices; usage.c: memory, processes,
 * utilisation; events.c: sets of events; facts.c: constants; absent.c: all other names, which
 * answer "not supported". Any thread; nvml.c has the lock.
 */
#ifndef SL_SOFTGPU_NVML_NVML_H
#define SL_SOFTGPU_NVML_NVML_H

#include "softgpu/link/proto.h"

#pragma GCC visibility push(default)
#include "base/nvml_abi.h"
#pragma GCC visibility pop

#define SL_NVML_EXPORT __attribute__((visibility("default")))

/* The box's greeting, and its board; constant between nvmlInit and nvmlShutdown. */
extern struct sl_sg_hello sl_nvml_hello;
extern const struct sl_sg_board *sl_nvml_board;
/* The last figures that this thread asked for. */
extern __thread struct sl_sg_figures sl_nvml_figures;

bool sl_nvml_is_ready(void);
/* A device handle is its number plus one, as a pointer. */
bool sl_nvml_device(nvmlDevice_t device, uint32_t *index);
bool sl_nvml_is_lost(uint32_t index);
/* Stores the figures in sl_nvml_figures. */
nvmlReturn_t sl_nvml_ask(uint32_t index);
nvmlReturn_t sl_nvml_put_text(char *out, unsigned length, const char *text);

#define NEED_READY                                       \
	do {                                             \
		if (!sl_nvml_is_ready())                 \
			return NVML_ERROR_UNINITIALIZED; \
	} while (0)
#define NEED(condition)                                     \
	do {                                                \
		if (!(condition))                           \
			return NVML_ERROR_INVALID_ARGUMENT; \
	} while (0)
#define NEED_DEVICE(device, index)                          \
	do {                                                \
		NEED_READY;                                 \
		if (!sl_nvml_device(device, index))         \
			return NVML_ERROR_INVALID_ARGUMENT; \
		if (sl_nvml_is_lost(*(index)))              \
			return NVML_ERROR_GPU_IS_LOST;      \
	} while (0)

#endif
