/*
 * nvml_samples - how much each process uses a GPU, as far as NVML tells
 *
 * NVML keeps samples of the last seconds, and gives for each process that did something since a
 * given moment what share of the time it used the GPU's processors. Not all GPUs have it, and it
 * lags; so what it says is asked for once a second at most, and kept. One thread's, as NVML is.
 */
#ifndef SL_DAEMON_GPU_NVML_SAMPLES_H
#define SL_DAEMON_GPU_NVML_SAMPLES_H

#include "base/clock.h"
#include "base/nvml_abi.h"

typedef __typeof__(&nvmlDeviceGetProcessUtilization) sl_nvml_samples_fn;

struct sl_nvml_busy {
	uint32_t pid, busy_pct; /* 1 to 100 */
};

/* Of one GPU. Zeroed: nothing was asked yet. */
struct sl_nvml_samples {
	bool refused;                 /* it does not tell; it is not asked again */
	bool known;                   /* what follows was said */
	unsigned long long newest_us; /* by NVML's clock; 0: there was no sample yet */
	sl_ns asked_at, newest_at;
	uint32_t count, room;
	struct sl_nvml_busy *all; /* by pid, each once */
};

/* Asks, if it was not asked just now. call may be NULL: this NVML has no such function. works: the
 * GPU does, so somebody must. */
void sl_nvml_samples_ask(struct sl_nvml_samples *samples, sl_nvml_samples_fn call,
	nvmlDevice_t device, bool works, sl_ns now);
/* 0: it did nothing. */
uint32_t sl_nvml_samples_of(const struct sl_nvml_samples *samples, uint32_t pid);
uint32_t sl_nvml_samples_sum(const struct sl_nvml_samples *samples);
void sl_nvml_samples_fini(struct sl_nvml_samples *samples);

#endif
