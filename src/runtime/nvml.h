/*
 * nvml - NVML as the process sees it
 *
 * Total and free memory of the workload's GPUs are the workload's; everything else is NVML's own.
 * Thread-safe; no lock.
 */
#ifndef SL_RUNTIME_NVML_H
#define SL_RUNTIME_NVML_H

#include "base/sl.h"

/* What programs get in place of NVML's function of that name, or NULL. */
void *sl_nvml_hook(const char *symbol);
/* NVML's own function, if the library is loaded. */
void *sl_nvml_address(const char *symbol);

#endif
