/*
 * libc - functions of the C library that are looked up instead of linked
 *
 * They carry newer symbol versions on new systems and live in libpthread or libdl on old ones;
 * linking them would tie libsluice.so to one kind. NULL where the process lacks the function; such
 * a process has no CUDA either. Thread-safe, no lock.
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
/* dlopen with RTLD_LAZY | RTLD_NOLOAD: a handle of a library that is loaded already, or NULL. */
void *sl_libc_dlopen_loaded(const char *name);
/* Clears the error of our failed look-up, which the program's next dlerror() would report. */
void sl_libc_clear_dlerror(void);
/* The exported name of the function that begins exactly at that address, or NULL. */
const char *sl_libc_name_of(const void *function);
/* Starts a detached thread with every signal blocked. 0 or an errno value. */
SL_MUST_CHECK int sl_libc_start_thread(void *(*main)(void *), void *arg);

/* Reports the end of threads; zeroed before the first use. Its key is made for the first thread. */
struct sl_libc_watch {
	int state;
	pthread_key_t key;
};

/*
 * Calls on_exit(value) in the calling thread when that thread ends; value is not NULL. A thread is
 * not watched if it calls this while another thread makes the key, or if no key is left.
 */
void sl_libc_watch_exit(
	struct sl_libc_watch *watch, void (*on_exit)(void *), void *value);

#endif
