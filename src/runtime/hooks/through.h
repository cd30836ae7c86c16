/*
 * through - what programs get in place of the driver's functions that have no hook
 *
 * A trampoline per SL_THROUGH row of entry-points.def (through_x86_64.S): it enters the door, calls
 * the driver's function with all arguments and leaves the door. Thread-safe, no lock.
 */
#ifndef SL_RUNTIME_HOOKS_THROUGH_H
#define SL_RUNTIME_HOOKS_THROUGH_H

#include "base/sl.h"

/* The trampoline of an exported name, or NULL. */
void *sl_through_named(const char *symbol);
/* The trampoline for the driver's function, or NULL. The first call finds all of them. */
void *sl_through_of(const void *function);

#endif
