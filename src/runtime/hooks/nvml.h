/*
 * nvml - NVML as the process sees it
 *
 * A workload's GPUs show the workload's memory and processes, and the list of GPUs ends with the
 * workload's last one. Everything else is NVML's own. nvml.c looks functions up and reports memory,
 * nvml_devices.c the GPUs, nvml_processes.c the processes on them. Thread-safe; no lock is held
 * while NVML is called.
 */
#ifndef SL_RUNTIME_HOOKS_NVML_H
#define SL_RUNTIME_HOOKS_NVML_H

#include "base/nvml_abi.h"
#include "base/sl.h"
#include "runtime/session/gpu.h"

/* The functions that programs find in place of NVML's. */
#define SL_NVML(symbol, params, args) nvmlReturn_t symbol params;
#include "runtime/hooks/nvml.def"
#undef SL_NVML

/* The hook for NVML's function of that name, or NULL. */
void *sl_nvml_hook(const char *symbol);
/* NVML's own function, if the library is loaded. */
void *sl_nvml_address(const char *symbol);

/* --- for the hooks --------------------------------------------------------------------- */

/* NVML's own function as a typed variable; ends the hook if NVML lacks it. */
#define SL_NVML_REAL(real, symbol)                    \
	__typeof__(&symbol) real;                     \
	*(void **)&(real) = sl_nvml_address(#symbol); \
	if (!(real))                                  \
	return NVML_ERROR_FUNCTION_NOT_FOUND

/* Do our hooks answer? Joins at the first call. False in bypass, or if the daemon rejects the
 * process. */
bool sl_nvml_is_active(void);
/* False: our hooks do not answer. */
SL_MUST_CHECK bool sl_nvml_uuid(nvmlDevice_t device, uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* The workload's GPU behind a handle, which may be from before it moved. NULL: not the workload's,
 * or our hooks do not answer. */
struct sl_gpu *sl_nvml_gpu(nvmlDevice_t device);
/* Asks the daemon to measure, and waits briefly. */
void sl_nvml_measure(struct sl_gpu *gpu);

#endif
