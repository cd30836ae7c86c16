/*
 * child - each test of the runtime in a process of its own
 *
 * The runtime's state is the process's and is never unloaded, so a test runs in a forked child
 * with a time limit; CHECK prints both values and ends the child.
 */
#ifndef SL_TEST_RUNTIME_CHILD_H
#define SL_TEST_RUNTIME_CHILD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_EQ(got, want)                                                              \
	do {                                                                             \
		long long got_ = (long long)(got), want_ = (long long)(want);            \
		if (got_ != want_) {                                                     \
			fprintf(stderr, "%s:%d: %s is %lld, should be %lld\n", __FILE__, \
				__LINE__, #got, got_, want_);                            \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)
#define CHECK(what) CHECK_EQ(!!(what), 1)
#define CHECK_STR(got, want)                                                             \
	do {                                                                             \
		const char *got_ = (got), *want_ = (want);                               \
		if (!got_ || strcmp(got_, want_) != 0) {                                 \
			fprintf(stderr, "%s:%d: %s is '%s', should be '%s'\n", __FILE__, \
				__LINE__, #got, got_ ? got_ : "(none)", want_);          \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

/* Runs body in a child; fails the test unless it returns. */
static inline void in_child(void (*body)(void), unsigned int limit_s)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(limit_s);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
