/*
 * libc - one look-up per function, kept
 *
 * A slot is filled idempotently with a relaxed store: two threads may look up the same function and
 * find the same answer. So no lock is needed; dlsym may be called under any lock of the program. In
 * builds with a sanitizer the thread functions are linked: a look-up would miss the sanitizer's
 * interceptors.
 */
#include "runtime/process/libc.h"
#include "runtime/process/symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

static void *found(void **slot, const char *name)
{
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (!function) {
		function = sl_symbol_find_libc(name);
		__atomic_store_n(slot, function, __ATOMIC_RELAXED);
	}
	return function;
}

sl_dlsym_fn sl_libc_dlsym(void)
{
	static void *slot;

	return (sl_dlsym_fn)found(&slot, "dlsym");
}

sl_dlvsym_fn sl_libc_dlvsym(void)
{
	static void *slot;

	return (sl_dlvsym_fn)found(&slot, "dlvsym");
}

sl_dlopen_fn sl_libc_dlopen(void)
{
	static void *slot;

	return (sl_dlopen_fn)found(&slot, "dlopen");
}

void *sl_libc_dlopen_loaded(const char *name)
{
	sl_dlopen_fn open_library = sl_libc_dlopen();

	return open_library ? open_library(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

void sl_libc_clear_dlerror(void)
{
	static void *slot;
	char *(*function)(void) = found(&slot, "dlerror");

	if (function)
		(void)function();
}

const char *sl_libc_name_of(const void *function)
{
	static void *slot;
	int (*tell)(const void *, Dl_info *) = found(&slot, "dladdr");
	Dl_info info = {0};

	if (!tell || !tell(function, &info) || info.dli_saddr != function)
		return NULL;
	return info.dli_sname;
}

static int create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
#ifdef SANITIZED
	return pthread_create(thread, attr, main, arg);
#else
	static void *slot;
	int (*function)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		found(&slot, "pthread_create");

	return function ? function(thread, attr, main, arg) : ENOSYS;
#endif
}

int sl_libc_start_thread(void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* sigprocmask leaves out the two signals that glibc needs for setuid() in all threads. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &old);
	r = create(&thread, &attr, main, arg);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}

static bool create_key(pthread_key_t *key, void (*destroy)(void *))
{
#ifdef SANITIZED
	return pthread_key_create(key, destroy) == 0;
#else
	static void *slot;
	int (*function)(pthread_key_t *, void (*)(void *)) =
		found(&slot, "pthread_key_create");

	return function && function(key, destroy) == 0;
#endif
}

static void set_key(pthread_key_t key, void *value)
{
#ifdef SANITIZED
	(void)pthread_setspecific(key, value);
#else
	static void *slot;
	int (*function)(pthread_key_t, const void *) =
		found(&slot, "pthread_setspecific");

	if (function)
		(void)function(key, value);
#endif
}

enum { KEY_NONE = 0, KEY_MAKING, KEY_READY, KEY_FAILED };

void sl_libc_watch_exit(struct sl_libc_watch *watch, void (*on_exit)(void *), void *value)
{
	int state = KEY_NONE;

	if (__atomic_compare_exchange_n(&watch->state, &state, KEY_MAKING, false,
		    __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		state = create_key(&watch->key, on_exit) ? KEY_READY : KEY_FAILED;
		__atomic_store_n(&watch->state, state, __ATOMIC_RELEASE);
	}
	if (state == KEY_READY)
		set_key(watch->key, value);
}
