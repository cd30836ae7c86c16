/*
 * log - one line per event on standard error (daemon, tools) or nowhere (default in a guest)
 *
 * Thread-safe: each line is one write(2). Formatting happens only when the level is on; the
 * test of the level is one relaxed load. errno is preserved.
 */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include "base/sl.h"

enum sl_log_level {
	SL_LOG_OFF = 0,
	SL_LOG_ERROR,
	SL_LOG_WARNING,
	SL_LOG_INFO,
	SL_LOG_DEBUG,
};

extern int sl_log_level_now;

/* name is "off", "error", "warning", "info" or "debug"; anything else returns false. */
SL_MUST_CHECK bool sl_log_set_level_name(const char *name);
void sl_log_set_level(enum sl_log_level level);
/* The word before each line, e.g. "sluiced"; the string must stay valid. */
void sl_log_set_tag(const char *tag);

#define sl_log_on(level) (__atomic_load_n(&sl_log_level_now, __ATOMIC_RELAXED) >= (level))
#define sl_log(level, ...)                                  \
	do {                                                \
		if (sl_unlikely(sl_log_on(level)))          \
			sl_log_write((level), __VA_ARGS__); \
	} while (0)
#define sl_error_log(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_warning(...)   sl_log(SL_LOG_WARNING, __VA_ARGS__)
#define sl_info(...)      sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_debug(...)     sl_log(SL_LOG_DEBUG, __VA_ARGS__)

void sl_log_write(enum sl_log_level level, const char *format, ...) SL_COLD
	SL_PRINTF(2, 3);

#endif
