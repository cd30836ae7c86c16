/*
 * log - one write(2) per line
 *
 * The line is formatted on the stack and written whole, so lines of several threads and processes
 * do not mix. The time is wall time, since people compare lines with other logs.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int sl_log_level_now = SL_LOG_OFF;
static const char *log_tag = "sluice";

static const char *const level_names[] = {
	[SL_LOG_OFF] = "off",
	[SL_LOG_ERROR] = "error",
	[SL_LOG_WARNING] = "warning",
	[SL_LOG_INFO] = "info",
	[SL_LOG_DEBUG] = "debug",
};

bool sl_log_set_level_name(const char *name)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(level_names); i++) {
		if (strcmp(name, level_names[i]) == 0) {
			sl_log_set_level((enum sl_log_level)i);
			return true;
		}
	}
	return false;
}

void sl_log_set_level(enum sl_log_level level)
{
	__atomic_store_n(&sl_log_level_now, (int)level, __ATOMIC_RELAXED);
}

void sl_log_set_tag(const char *tag)
{
	log_tag = tag;
}

void sl_log_write(enum sl_log_level level, const char *format, ...)
{
	int saved_errno = errno;
	struct timespec now = {0};
	struct tm tm = {0};
	char line[1024];
	size_t used;
	va_list args;
	int n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	n = snprintf(line, sizeof(line), "%02d:%02d:%02d.%03ld %s %s: ", tm.tm_hour,
		tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000, log_tag, level_names[level]);
	used = n < 0 ? 0 : (size_t)n;
	va_start(args, format);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (n > 0)
		used = sl_min_u64(used + (size_t)n, sizeof(line) - 2);
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0) {
		/* A failed log line has no other place to go. */
	}
	errno = saved_errno;
}
