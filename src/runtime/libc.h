/*
 * libc - functions of the C library that are looked up instead of linked
 *
 * They carry newer symbol versions on new systems and live in libpthread or libdl on old ones;
 * linking them would tie libsluice.so to one of the two. NULL where the process has none (then
 * it has no CUDA either). Thread-safe, no lock.
 */
#ifndef SL_RUNTIME_LIBC_H
#define SL_RUNTIME_LIBC_H

#include "base/sl.h"

#include <pthread.h>

typedef void *(*sl_dlsym_fn)(void *handle, const char *name);
typedef void *(*sl_dlvsym_fn)(void *handle, const char *name, const char *version);

sl_dlsym_fn sl_libc_dlsym(void);
sl_dlvsym_fn sl_libc_dlvsym(void);
/* dlopen with RTLD_LAZY | RTLD_NOLOAD: a handle of what is loaded already, or NULL. */
void *sl_libc_dlopen_loaded(const char *name);
/* Forgets a failed look-up of ours, which the program's next dlerror() would tell. */
void sl_libc_clear_dlerror(void);
/* The exported name of the function that begins exactly there, or NULL. */
const char *sl_libc_name_of(const void *function);
/* Starts a detached thread with every signal blocked. 0 or an errno value. */
SL_MUST_CHECK int sl_libc_start_thread(void *(*main)(void *), void *arg);
/* A thread-specific key whose destructor runs at thread exit. False if there is none to have. */
SL_MUST_CHECK bool sl_libc_key_create(pthread_key_t *key, void (*destroy)(void *));
void sl_libc_key_set(pthread_key_t key, void *value);

#endif
