/*
 * no-threads - see no-threads.h
 */
#include "no-threads.h"

#include <errno.h>

int no_threads;

int __real_sl_libc_start_thread(void *(*main)(void *), void *arg);
int __wrap_sl_libc_start_thread(void *(*main)(void *), void *arg);

int __wrap_sl_libc_start_thread(void *(*main)(void *), void *arg)
{
	if (__atomic_load_n(&no_threads, __ATOMIC_ACQUIRE))
		return EAGAIN;
	return __real_sl_libc_start_thread(main, arg);
}
