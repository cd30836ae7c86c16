/*
 * floods - peers of the daemon that want to be a nuisance
 *
 * Each keeps one process busy with one action that any peer can do, as fast as the daemon lets
 * it, and never comes back. For the tests and the bench, which look at another client beside it.
 */
#ifndef SL_TESTS_FLOODS_H
#define SL_TESTS_FLOODS_H

#include "base/sl.h"

/* Names in the order of the table, NULL at the end. */
extern const char *const floods_names[];
/* Runs one against the daemon at path until killed; returns only if the name is unknown. */
void floods_run(const char *path, const char *name);

#endif
