/*
 * device - the driver's device numbers and the daemon's GPUs
 *
 * A device is found by its UUID, since numbers depend on the environment. Answers are kept;
 * lock-free.
 */
#ifndef SL_RUNTIME_SESSION_DEVICE_H
#define SL_RUNTIME_SESSION_DEVICE_H

#include "base/cuda_types.h"
#include "runtime/session/gpu.h"

/* Granularity of handles, in bytes, the same on every GPU so far; checked when a context is first
 * used. */
#define SL_DEVICE_GRAIN (2 * SL_MIB)

/* The workload's GPU behind dev, or NULL. Only after the join. */
struct sl_gpu *sl_device_gpu(CUdevice dev);
/* Has the workload left the GPU that the driver has for dev? A process without contexts is not
 * taken along when its workload moves. */
bool sl_device_is_left(CUdevice dev);
/* Is that place a device's memory? *dev is then that device. The id is valid only for locations on
 * devices, and may name a device that does not exist. */
bool sl_device_of_place(const CUmemLocation *where, CUdevice *dev);
/* For a stream other than the current context's default streams. */
SL_MUST_CHECK CUresult sl_device_of_stream(CUstream stream, CUdevice *dev);
void sl_device_forget(void);

#endif
