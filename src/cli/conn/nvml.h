/*
 * nvml - asks NVML about this machine, with a deadline
 *
 * NVML may hang for ever if the driver is in trouble. So a child process asks, and the parent waits
 * at most a few seconds. Blocking; no threads, no locks.
 */
#ifndef SL_CLI_CONN_NVML_H
#define SL_CLI_CONN_NVML_H

#include "base/sl.h"

#define SL_NVML_GPUS_MAX 32

enum sl_nvml_outcome {
	SL_NVML_OK = 0,
	SL_NVML_NO_LIBRARY, /* text: the loader's error */
	SL_NVML_ERROR,      /* text: the call and NVML's error */
	SL_NVML_HANGS       /* no answer in time */
};

struct sl_nvml_gpu {
	char name[96], uuid[96];
	uint64_t memory_bytes;
	int compute_mode; /* nvmlComputeMode_t, -1: unknown */
	int mig;          /* 1 on, 0 off, -1: unknown */
};

struct sl_nvml_report {
	enum sl_nvml_outcome outcome;
	char text[256];
	char driver[80]; /* "535.104.05" */
	unsigned int count;
	struct sl_nvml_gpu gpus[SL_NVML_GPUS_MAX];
};

/* Fills *report; report->outcome tells every failure. */
void sl_nvml_ask(struct sl_nvml_report *report);

#endif
