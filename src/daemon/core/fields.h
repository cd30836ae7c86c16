/*
 * fields - values that messages may carry, and names made from them
 */
#ifndef SL_DAEMON_CORE_FIELDS_H
#define SL_DAEMON_CORE_FIELDS_H

#include "base/error.h"
#include "wire/wire.h"

/* Most of warm_after_ms and idle_grace_ms: 50 days less some hours, more than any user needs; more
 * does not fit a timer in milliseconds. */
#define SL_FIELD_TIME_MAX_MS UINT32_MAX

/* May RUN and SET carry this amount? */
bool sl_field_is_amount(uint32_t kind, uint64_t value);
bool sl_field_is_priority(uint32_t biased);
/* What is wrong with these fields of a RUN, and the remedy; NULL if nothing is. */
const char *sl_field_mistake(const struct sl_msg_run *run);
/* Likewise, of shares in thousandths; 0: not set. */
const char *sl_field_compute_mistake(uint32_t request_pm, uint32_t limit_pm);
/* Has the node, whose chain this is, all resolvers of the chain in flags? */
bool sl_field_chain_fits(uint32_t flags, uint32_t resolvers, struct sl_error *err);
/* Makes "python-7" from "/usr/bin/python train.py", mark and id. */
void sl_field_make_name(
	const char *command, const char *mark, uint64_t id, char name[64]);
/* Removes the characters that a terminal would act on. */
void sl_field_tame(char *text);

#endif
