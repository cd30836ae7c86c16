/*
 * share - how much of the page's server one asker may have at a time
 *
 * Streams, questions to the history, and bytes of answers under way are few, and anybody on the
 * machine may ask. So each asker has a bound, all without a token together have another, and what
 * is left is for those who have one. An asker is a number: a user, or an address. Thread-safe.
 */
#ifndef SL_DAEMON_WEB_SHARE_H
#define SL_DAEMON_WEB_SHARE_H

#include "base/sl.h"

#define SL_PAGE_CONNECTIONS 64
/* Of these, so many may be of those who watch (/api/live). */
#define SL_PAGE_WATCHERS 32

enum sl_page_good {
	SL_PAGE_STREAMS = 0, /* /api/live */
	SL_PAGE_QUESTIONS,   /* to the history: asked, and not answered */
	SL_PAGE_ANSWERS,     /* bytes of large answers that are not read to their end */
	SL_PAGE_GOODS
};

struct sl_page_asker {
	uint64_t key;
	bool known; /* by a token, or the kernel */
};

enum sl_page_taken {
	SL_PAGE_TAKEN = 0,
	SL_PAGE_OWN_FULL,     /* the asker has what one may have */
	SL_PAGE_UNKNOWN_FULL, /* all without a token have */
	SL_PAGE_ALL_FULL
};

struct sl_page_share;

/* NULL: no memory. */
SL_MUST_CHECK struct sl_page_share *sl_page_share_new(void);
struct sl_page_share *sl_page_share_free(struct sl_page_share *share);
/* What is taken is to be given back, by the same asker. enum sl_page_taken. */
SL_MUST_CHECK int sl_page_share_take(struct sl_page_share *share,
	struct sl_page_asker asker, enum sl_page_good good, uint64_t amount);
void sl_page_share_give(struct sl_page_share *share, struct sl_page_asker asker,
	enum sl_page_good good, uint64_t amount);
/* The most that one asker may have. */
uint64_t sl_page_share_each(enum sl_page_good good);

#endif
