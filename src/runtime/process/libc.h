/*
 * libc - functions of the C library that are looked up instead of linked
 *
 * They carry newer symbol versions on new systems and live in libpthread or libdl on old ones;
 * linking them would tie libsluice.so to one of the two. NULL where the process has none (then
 * it has no CUDA either). Thread-safe, no lock.
 */
#ifndef SL_RUNTIME_PROCESS_LIBC_H
#define SL_RUNTIME_PROCESS_LIBC_H

#include "base/sl.h"

#include <pthread.h>

typedef void *(*sl_dlopen_fn)(const char *name, int flags);
typedef void *(*sl_dlsym_fn)(void *handle, const char *name);
typedef void *(*sl_dlvsym_fn)(void *handle, const char *name, const char *version);

sl_dlopen_fn sl_libc_dlopen(void);
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

/* Tells of the end of threads; zeroed before the first use. Its key is made for the first
 * thread. */
struct sl_libc_watch {
	int state;
	pthread_key_t key;
};

/*
 * Has on_exit(value) called, in this thread, when it ends; value is not NULL. A thread goes
 * unwatched that comes while another makes the key, or where there is no key to have.
 */
void sl_libc_watch_exit(
	struct sl_libc_watch *watch, void (*on_exit)(void *), void *value);
/* This thread is not to be told of any more. */
void sl_libc_unwatch_exit(struct sl_libc_watch *watch);

#endif
