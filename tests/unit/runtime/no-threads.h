/*
 * no-threads - the system refuses another thread, as at a limit of the user's or of a container
 *
 * For executables that are linked with --wrap=sl_libc_start_thread.
 */
#ifndef SL_TEST_RUNTIME_NO_THREADS_H
#define SL_TEST_RUNTIME_NO_THREADS_H

/* Atomic: not 0 while the runtime starts none. */
extern int no_threads;

#endif
