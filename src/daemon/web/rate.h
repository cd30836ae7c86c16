/*
 * rate - bounds how often an address or user may ask
 *
 * Buckets that fill with time, by a key: an address, or a user. The table has a fixed size and a
 * salted hash, so that an attacker can neither make it grow nor aim at another key's bucket.
 * Thread-safe.
 */
#ifndef SL_DAEMON_WEB_RATE_H
#define SL_DAEMON_WEB_RATE_H

#include "base/clock.h"

struct sl_page_rate;

/* Allows per_second requests, and `burst` at once. NULL: no memory. */
SL_MUST_CHECK struct sl_page_rate *sl_page_rate_new(uint32_t per_second, uint32_t burst);
struct sl_page_rate *sl_page_rate_free(struct sl_page_rate *rate);
/* Takes one. False: none is left. */
SL_MUST_CHECK bool sl_page_rate_take(struct sl_page_rate *rate, uint64_t key, sl_ns now);

#endif
