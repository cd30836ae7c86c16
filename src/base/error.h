/*
 * error - the two kinds of error, and the text that users see
 *
 * Inside: a negative errno is fatal to the operation, traced once where it arises
 * (sl_err_origin) and forwarded; callers never match on its value. A positive enum is an
 * outcome the direct caller handles. At the edges (command line, configuration, HTTP, wire)
 * a struct sl_error carries a sentence that names the operation, the thing and the remedy.
 * No locks; a struct sl_error belongs to one thread at a time.
 */
#ifndef SL_BASE_ERROR_H
#define SL_BASE_ERROR_H

#include "base/sl.h"

#define SL_ERROR_TEXT_MAX 512

/* Zero-initialise. text is empty until an error is set. */
struct sl_error {
	char text[SL_ERROR_TEXT_MAX];
};

/* Traces negative_errno with its place (log level debug) and returns it unchanged. */
#define sl_err_origin(negative_errno) \
	sl_error_trace((negative_errno), __FILE__, __LINE__, __func__)
int sl_error_trace(int negative_errno, const char *file, int line, const char *func);

/* Sets the text; NULL err is allowed and ignored. Control characters become '?'. */
void sl_error_set(struct sl_error *err, const char *format, ...) SL_PRINTF(2, 3);

/* Puts "prefix: " before the text that is there. Cuts at SL_ERROR_TEXT_MAX - 1 bytes. */
void sl_error_wrap(struct sl_error *err, const char *format, ...) SL_PRINTF(2, 3);

#endif
