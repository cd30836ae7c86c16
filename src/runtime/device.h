/*
 * device - the driver's device numbers and the daemon's GPUs
 *
 * The UUID is the only key: numbers depend on the environment. Answers are kept; lock-free.
 */
#ifndef SL_RUNTIME_DEVICE_H
#define SL_RUNTIME_DEVICE_H

#include "base/cuda_types.h"
#include "runtime/session.h"

/* The workload's GPU behind dev, or NULL. Only after the join. */
struct sl_gpu *sl_device_gpu(CUdevice dev);
void sl_device_forget(void);

#endif
