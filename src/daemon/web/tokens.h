/*
 * tokens - secrets that stand for a user, for a while
 *
 * A user gets one over the daemon's socket, where the kernel identifies the user, and the browser
 * sends it with each request. Tokens are in memory only: a restart of the daemon ends them all. A
 * user's token beyond SL_PAGE_TOKENS_EACH replaces the user's oldest. With SL_PAGE_TOKENS_MOST in
 * all, a new one replaces the oldest of the user with most. Thread-safe; a lookup takes the same
 * time whichever token it finds, or none.
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
/* Makes a token for the user (copied). 0 or negative errno. */
SL_MUST_CHECK int sl_page_tokens_make(struct sl_page_tokens *tokens,
	const struct sl_user *who, sl_ns now, char text[SL_PAGE_TOKEN_ROOM]);
/* A copy of the token's user, for the caller; NULL: not valid, or no longer. */
SL_MUST_CHECK struct sl_user *sl_page_tokens_find(
	struct sl_page_tokens *tokens, const char *text, sl_ns now);
/* Ends a token. False: it was not valid. */
bool sl_page_tokens_end(struct sl_page_tokens *tokens, const char *text);

#endif
