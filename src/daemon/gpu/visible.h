/*
 * visible - CUDA_VISIBLE_DEVICES, read as the driver reads it
 *
 * Pure. GPUs are in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID; bit i of a mask is the i-th GPU.
 */
#ifndef SL_DAEMON_GPU_VISIBLE_H
#define SL_DAEMON_GPU_VISIBLE_H

#include "base/sl.h"

#define SL_VISIBLE_GPUS_MAX 64

/*
 * The GPUs that text admits: integers, or UUIDs ("GPU-..." or a unique prefix of one), separated by
 * commas. As with the driver, the first invalid entry ends the list, and the empty text admits
 * none. uuids[i]: "GPU-...".
 */
uint64_t sl_visible_mask(const char *text, const char *const uuids[], uint32_t count);

#endif
