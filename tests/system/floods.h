/*
 * floods - peers of the daemon that keep it busy
 *
 * Each function repeats one action that any peer can do, as fast as the daemon lets it, and never
 * returns. For the tests and the bench, which look at another client beside the flood.
 */
#ifndef SL_TESTS_FLOODS_H
#define SL_TESTS_FLOODS_H

#include "base/sl.h"

/* Names in the order of the table, NULL at the end. */
extern const char *const floods_names[];
/* Runs one against the daemon at path until killed; returns only if the name is unknown. */
void floods_run(const char *path, const char *name);

#endif
