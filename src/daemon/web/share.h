/*
 * share - bounds how much of the page's server one asker may use at a time
 *
 * Streams, questions to the history and bytes of unread answers are limited, and any user may ask.
 * So each asker has a bound, and all askers without a token together have another; the rest is for
 * askers with a token. An asker is a number: a user, or an address. Thread-safe.
 */
#ifndef SL_DAEMON_WEB_SHARE_H
#define SL_DAEMON_WEB_SHARE_H

#include "base/sl.h"

#define SL_PAGE_CONNECTIONS 64
/* How many of these may be streams (/api/live). */
#define SL_PAGE_WATCHERS 32

enum sl_page_good {
	SL_PAGE_STREAMS = 0, /* /api/live */
	SL_PAGE_QUESTIONS,   /* to the history, not answered yet */
	SL_PAGE_ANSWERS,     /* bytes of large answers that are not read to the end */
	SL_PAGE_GOODS
};

struct sl_page_asker {
	uint64_t key;
	bool known; /* by a token, or the kernel */
};

enum sl_page_taken {
	SL_PAGE_TAKEN = 0,
	SL_PAGE_OWN_FULL,     /* the asker's bound is reached */
	SL_PAGE_UNKNOWN_FULL, /* the bound of all without a token is reached */
	SL_PAGE_ALL_FULL
};

struct sl_page_share;

/* NULL: no memory. */
SL_MUST_CHECK struct sl_page_share *sl_page_share_new(void);
struct sl_page_share *sl_page_share_free(struct sl_page_share *share);
/* The same asker must give back what it took. enum sl_page_taken. */
SL_MUST_CHECK int sl_page_share_take(struct sl_page_share *share,
	struct sl_page_asker asker, enum sl_page_good good, uint64_t amount);
void sl_page_share_give(struct sl_page_share *share, struct sl_page_asker asker,
	enum sl_page_good good, uint64_t amount);
/* The bound of one asker. */
uint64_t sl_page_share_each(enum sl_page_good good);

#endif
