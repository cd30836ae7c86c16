/*
 * values - reads and checks the members of a body
 *
 * Each function returns false after it has refused the request with a sentence that names the
 * member; then *r is the request's result.
 */
#ifndef SL_DAEMON_WEB_VALUES_H
#define SL_DAEMON_WEB_VALUES_H

#include "base/amount.h"
#include "daemon/web/internal.h"

/* No other members may be present; keys is NULL-terminated. */
SL_MUST_CHECK bool sl_page_only(
	struct sl_page_request *request, const char *const keys[], enum MHD_Result *r);
/* "4GiB", "0.25", 0.25, or whole bytes; absent or null: UNSET. */
SL_MUST_CHECK bool sl_page_amount(struct sl_page_request *request, const char *key,
	struct sl_amount *out, enum MHD_Result *r);
/* Absent or null: fallback. */
SL_MUST_CHECK bool sl_page_integer(struct sl_page_request *request, const char *key,
	int64_t least, int64_t most, int64_t fallback, int64_t *out, enum MHD_Result *r);
/* At most size - 1 bytes; absent or null: "". */
SL_MUST_CHECK bool sl_page_string(struct sl_page_request *request, const char *key,
	char *out, size_t size, enum MHD_Result *r);
SL_MUST_CHECK bool sl_page_bool(struct sl_page_request *request, const char *key,
	bool fallback, bool *out, enum MHD_Result *r);
/* The member on_collision: a chain in words; absent, null or "default": 0. */
SL_MUST_CHECK bool sl_page_chain(
	struct sl_page_request *request, uint32_t *out, enum MHD_Result *r);
/* Whether it is present and not null. */
bool sl_page_has(const struct sl_page_request *request, const char *key);
/* The number in place of the * in the path. */
SL_MUST_CHECK bool sl_page_id(
	struct sl_page_request *request, uint64_t *out, enum MHD_Result *r);

#endif
