/*
 * route - every way a program can find a driver function leads to its hook
 *
 * Linked programs find our exported symbols first. For the rest: dlsym, dlvsym and dlopen (exported
 * in both of glibc's versions, entered in assembly: route_x86_64.S) and cuGetProcAddress. Functions
 * without a hook lead to their trampoline (through.h) in the same way. A look-up is answered with
 * ours only if the driver itself has the function.
 */
#ifndef SL_RUNTIME_HOOKS_ROUTE_H
#define SL_RUNTIME_HOOKS_ROUTE_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* The common end of dlsym and dlvsym, for a known name and any handle but RTLD_NEXT. */
SL_HIDDEN void *sl_route_dlsym(void *handle, const char *name);
SL_HIDDEN void *sl_route_dlvsym(void *handle, const char *name, const char *version);
/* True if name has a hook or a trampoline. Called for names in "cu" and "nv". */
SL_HIDDEN bool sl_route_knows(const char *name);
/*
 * The flags to pass on to dlopen. In a workload RTLD_DEEPBIND is removed: a library opened with it
 * would bind to the driver before our hooks, and its memory would have no limit.
 */
SL_HIDDEN int sl_route_open_flags(int flags);
/* The C library's dlopen, found at the first call; NULL if there is none. */
SL_HIDDEN void *sl_route_real_dlopen(void);
SL_HIDDEN void *sl_route_real_dlsym(void);
SL_HIDDEN void *sl_route_real_dlvsym(void);

/* What programs get for what cuGetProcAddress returned; function itself if we do not know it. */
void *sl_route_function(
	const char *symbol, void *function, int cuda_version, uint64_t flags);

#endif
