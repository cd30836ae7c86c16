/*
 * device - the driver's device numbers and the daemon's GPUs
 *
 * The UUID is the only key: numbers depend on the environment. Answers are kept; lock-free.
 */
#ifndef SL_RUNTIME_SESSION_DEVICE_H
#define SL_RUNTIME_SESSION_DEVICE_H

#include "base/cuda_types.h"
#include "runtime/session/gpu.h"

/* Granularity of handles on every GPU so far, in bytes; checked when a context is first used. */
#define SL_DEVICE_GRAIN (2 * SL_MIB)

/* The workload's GPU behind dev, or NULL. Only after the join. */
struct sl_gpu *sl_device_gpu(CUdevice dev);
/* Whether memory at that place is a device's, and which one's. The id tells one for locations on
 * devices alone, whatever it holds otherwise; it may be of a device that does not exist. */
bool sl_device_of_place(const CUmemLocation *where, CUdevice *dev);
/* Of a stream that is not one of the current context's own. */
SL_MUST_CHECK CUresult sl_device_of_stream(CUstream stream, CUdevice *dev);
void sl_device_forget(void);

#endif
