/*
 * test - cmocka in the order it wants to be included, and rows that say which failed
 */
#ifndef SL_TESTS_TEST_H
#define SL_TESTS_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

/* Both values and the row's name on failure. */
#define assert_row_u64(row, got, want)                                                 \
	do {                                                                           \
		uint64_t got_ = (got), want_ = (want);                                 \
		if (got_ != want_)                                                     \
			fail_msg("row '%s': " #got " is %" PRIu64 ", wanted %" PRIu64, \
				(row), got_, want_);                                   \
	} while (0)
#define assert_row_text(row, got, want)                                           \
	do {                                                                      \
		if (strcmp((got), (want)) != 0)                                   \
			fail_msg("row '%s': got '%s', wanted '%s'", (row), (got), \
				(want));                                          \
	} while (0)
#define assert_row_contains(row, got, want)                                            \
	do {                                                                           \
		if (!strstr((got), (want)))                                            \
			fail_msg("row '%s': '%s' does not contain '%s'", (row), (got), \
				(want));                                               \
	} while (0)

#endif
