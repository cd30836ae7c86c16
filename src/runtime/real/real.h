/*
 * real - the driver's own functions
 *
 * Found in the libcuda.so.1 that the process has loaded; we never load one. No lock: slots are
 * filled idempotently.
 */
#ifndef SL_RUNTIME_REAL_REAL_H
#define SL_RUNTIME_REAL_REAL_H

#include "runtime/real/hooks.h"

/* Fills the slot of id. False if the driver lacks the function or is not loaded. */
bool sl_real_find(enum sl_hook_id id);
/* Makes handle the driver's if none is known yet and it looks like a driver. */
void sl_real_offer(void *handle);
/* The row whose real function is `function`, or NULL. Fills all slots at first. */
const struct sl_hook_row *sl_real_row_of(const void *function);
/* The driver's function of that exported name, or NULL. */
void *sl_real_address(const char *symbol);
/* The row of an exported name, or NULL. Linear: a microsecond. */
const struct sl_hook_row *sl_hook_row_named(const char *symbol);

#endif
