/*
 * symbol - functions of the C library, found without its help
 *
 * We export dlsym ourselves, so we cannot ask dlsym for the real one. Functions that moved to
 * another symbol version since glibc 2.17 (pthread_create, dlopen) must not be linked. So dlsym and
 * these are looked up in the dynamic symbol tables of the loaded libraries. No lock of ours, no
 * allocation.
 */
#ifndef SL_RUNTIME_PROCESS_SYMBOL_H
#define SL_RUNTIME_PROCESS_SYMBOL_H

#include "base/sl.h"

/* Address of a function in libc.so.6, libdl.so.2 or libpthread.so.0 in its default version, or
 * NULL. Costs microseconds: callers keep the answer. */
void *sl_symbol_find_libc(const char *name);

#endif
