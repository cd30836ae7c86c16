/*
 * amounts - checks of options of `run` and `set`, before the daemon is asked
 */
#ifndef SL_CLI_LINE_AMOUNTS_H
#define SL_CLI_LINE_AMOUNTS_H

#include "cli/line/cli.h"

/* Returns -1 to go on, else the exit status, after a message. request_is_limit: a request alone is
 * also the limit. */
SL_MUST_CHECK int sl_amounts_check(enum sl_verb_id verb, bool json,
	const struct sl_amount *request, const struct sl_amount *limit,
	bool request_is_limit);

/* The same of --compute-request and --compute-limit, which must be fractions; 0 stands for none. */
SL_MUST_CHECK int sl_amounts_check_compute(enum sl_verb_id verb, bool json,
	const struct sl_amount *request, const struct sl_amount *limit);
/* In thousandths; 0: none. */
uint32_t sl_amounts_share_pm(const struct sl_amount *share);
/* Reads --on-collision. NULL and "default": 0, the daemon's resolvers. Returns as above. */
SL_MUST_CHECK int sl_amounts_chain(
	enum sl_verb_id verb, bool json, const char *text, uint32_t *chain);

/* --warm-after and --idle-grace: at most 30 days; for longer times there is "never". */
#define SL_WARM_AFTER_MS_MAX (30LL * 24 * 3600 * 1000)
/* The setting stays unchanged. */
#define SL_WARM_UNSET SL_NS_NEVER
/* Which of --warm-after and --detach-after sends memory to the host; NULL: neither. */
const char *sl_amounts_goes(sl_ns warm_after, sl_ns detach_after);

#endif
