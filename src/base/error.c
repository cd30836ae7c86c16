/*
 * error - traces and texts
 *
 * Texts reach terminals and logs, and parts of them come from users and peers. So control
 * characters are replaced here, where a text is made.
 */
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sl_error_trace(int negative_errno, const char *file, int line, const char *func)
{
	sl_debug("%s:%d: %s: errno %d", file, line, func, -negative_errno);
	return negative_errno;
}

static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

void sl_error_set(struct sl_error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	make_printable(err->text);
}

void sl_error_wrap(struct sl_error *err, const char *format, ...)
{
	char inner[SL_ERROR_TEXT_MAX];
	va_list args;
	int used;

	if (!err)
		return;
	memcpy(inner, err->text, sizeof(inner));
	va_start(args, format);
	used = vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof(err->text))
		(void)snprintf(err->text + used, sizeof(err->text) - (size_t)used, ": %s",
			inner);
	make_printable(err->text);
}
