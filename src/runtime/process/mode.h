/*
 * mode - whether we interpose at all, and the options of the environment
 *
 * Bypass (SLUICE_BYPASS=1, or neither SLUICE_SOCKET nor SLUICE_WORKLOAD set) means no
 * interposition: look-ups return the driver's own functions, and our exported functions call those.
 * The mode is determined once and stored. Options are read once, at the join. Thread-safe.
 */
#ifndef SL_RUNTIME_PROCESS_MODE_H
#define SL_RUNTIME_PROCESS_MODE_H

#include "base/sl.h"

struct sl_options {
#define SL_OPTION(key, environment, unit, min, max, standard, help) uint64_t key;
#include "runtime/process/options.def"
#undef SL_OPTION
};

/* Defaults until sl_mode_read_options. Read-only afterwards. */
extern struct sl_options sl_options;

bool sl_mode_is_active(void);
/* An invalid or out-of-range value leaves the default. */
void sl_mode_read_options(void);

#endif
