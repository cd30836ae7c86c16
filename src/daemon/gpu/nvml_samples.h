/*
 * nvml_samples - how much each process uses a GPU, as far as NVML tells
 *
 * NVML keeps samples of the last seconds. For each process that worked since a given moment it
 * gives the share of the time that the process used the GPU's processors. Not all GPUs have
 * samples, and samples lag. So NVML is asked for them once a second, and the answer is kept. One
 * thread.
 */
#ifndef SL_DAEMON_GPU_NVML_SAMPLES_H
#define SL_DAEMON_GPU_NVML_SAMPLES_H

#include "base/clock.h"
#include "base/nvml_abi.h"

typedef __typeof__(&nvmlDeviceGetProcessUtilization) sl_nvml_samples_fn;

struct sl_nvml_busy {
	uint32_t pid, busy_pct; /* 1 to 100 */
};

/* Samples of one GPU. Zeroed: not asked yet. */
struct sl_nvml_samples {
	bool refused;                 /* NVML does not tell; it is not asked again */
	bool known;                   /* the fields below were answered */
	unsigned long long newest_us; /* by NVML's clock; 0: no sample yet */
	sl_ns asked_at, newest_at;
	uint32_t count, room;
	struct sl_nvml_busy *all; /* by pid, each once */
};

/* Asks, unless it was asked a moment ago. call may be NULL: this NVML lacks the function. works:
 * the GPU is busy, so a process must be. */
void sl_nvml_samples_ask(struct sl_nvml_samples *samples, sl_nvml_samples_fn call,
	nvmlDevice_t device, bool works, sl_ns now);
/* 0: it did not work. */
uint32_t sl_nvml_samples_of(const struct sl_nvml_samples *samples, uint32_t pid);
uint32_t sl_nvml_samples_sum(const struct sl_nvml_samples *samples);
void sl_nvml_samples_fini(struct sl_nvml_samples *samples);

#endif
