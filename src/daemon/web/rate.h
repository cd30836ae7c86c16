/*
 * rate - how often somebody may ask
 *
 * Buckets that fill with time, by a key: an address, or a user. A table of fixed size, found by a
 * salted hash, so that nobody can make it grow or aim at another's place. Thread-safe.
 */
#ifndef SL_DAEMON_WEB_RATE_H
#define SL_DAEMON_WEB_RATE_H

#include "base/clock.h"

struct sl_page_rate;

/* per_second of them, and `burst` at once. NULL: no memory. */
SL_MUST_CHECK struct sl_page_rate *sl_page_rate_new(uint32_t per_second, uint32_t burst);
struct sl_page_rate *sl_page_rate_free(struct sl_page_rate *rate);
/* Takes one. False: there is none left. */
SL_MUST_CHECK bool sl_page_rate_take(struct sl_page_rate *rate, uint64_t key, sl_ns now);

#endif
