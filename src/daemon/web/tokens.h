/*
 * tokens - secrets that stand for a user, for a while
 *
 * A user gets one over the daemon's socket, where the kernel says who asks, and a browser brings it
 * with each request. In memory only: a restart of the daemon ends them all. A user has
 * SL_PAGE_TOKENS_EACH at most, then the oldest goes; where there are SL_PAGE_TOKENS_MOST, the
 * oldest of whoever has most. Thread-safe; looking one up takes the same
 * time whichever it is, or none.
 */
#ifndef SL_DAEMON_WEB_TOKENS_H
#define SL_DAEMON_WEB_TOKENS_H

#include "base/clock.h"
#include "daemon/core/user.h"

#define SL_PAGE_TOKEN_BYTES 24
/* In hex digits, with the terminator. */
#define SL_PAGE_TOKEN_ROOM  (2 * SL_PAGE_TOKEN_BYTES + 1)
#define SL_PAGE_TOKENS_EACH 16
#define SL_PAGE_TOKENS_MOST 1024
#define SL_PAGE_TOKEN_LIFE  (12 * 3600 * SL_S)

struct sl_page_tokens;

/* NULL: no memory. */
SL_MUST_CHECK struct sl_page_tokens *sl_page_tokens_new(void);
struct sl_page_tokens *sl_page_tokens_free(struct sl_page_tokens *tokens);
/* Makes one for who (copied). 0 or negative errno. */
SL_MUST_CHECK int sl_page_tokens_make(struct sl_page_tokens *tokens,
	const struct sl_user *who, sl_ns now, char text[SL_PAGE_TOKEN_ROOM]);
/* Whom it stands for, as a copy for the caller; NULL: for nobody, or not any more. */
SL_MUST_CHECK struct sl_user *sl_page_tokens_find(
	struct sl_page_tokens *tokens, const char *text, sl_ns now);
/* It stands for nobody from now on. False: it did not anyway. */
bool sl_page_tokens_end(struct sl_page_tokens *tokens, const char *text);

#endif
