/* Finds amounts that contradict each other before the daemon is asked. */
#include "cli/line/amounts.h"

#include <string.h>

#include "policy/words/chain.h"

/* The grain of GPU memory; a program with a smaller limit could hold nothing. */
#define LIMIT_BYTES_MIN (2 * SL_MIB)

static int too_small(
	enum sl_verb_id verb, bool json, const struct sl_amount *limit, bool is_request)
{
	char text[32];

	return sl_cli_fail(verb, json, SL_EXIT_USAGE,
		"--%s %s%s is below 2 MiB, the least piece of GPU memory; %s",
		is_request ? "request" : "limit",
		sl_amount_format(limit, text, sizeof(text)),
		is_request ? ", which alone is also the limit," : "",
		is_request ? "add --limit, or raise it" : "raise it, or leave it out");
}

int sl_amounts_check(enum sl_verb_id verb, bool json, const struct sl_amount *request,
	const struct sl_amount *limit, bool request_is_limit)
{
	bool is_request = !limit->kind && request_is_limit;
	const struct sl_amount *least = is_request ? request : limit;
	char a[32], b[32];

	if (least->kind == SL_AMOUNT_BYTES && least->value < LIMIT_BYTES_MIN)
		return too_small(verb, json, least, is_request);
	if (limit->kind && limit->kind == request->kind && limit->value < request->value)
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"--limit %s is below --request %s; the limit is the most it may "
			"hold, so raise it or leave it out",
			sl_amount_format(limit, a, sizeof(a)),
			sl_amount_format(request, b, sizeof(b)));
	return -1;
}

static bool is_share(const struct sl_amount *share)
{
	return share->kind == SL_AMOUNT_UNSET || sl_amounts_share_pm(share) ||
	       (share->kind == SL_AMOUNT_BYTES && !share->value);
}

int sl_amounts_check_compute(enum sl_verb_id verb, bool json,
	const struct sl_amount *request, const struct sl_amount *limit)
{
	char a[32], b[32];

	if (!is_share(request) || !is_share(limit))
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"--compute-%s %s is no share of a GPU's time; write 0.001 to 1, "
			"or 0 "
			"for none",
			is_share(request) ? "limit" : "request",
			sl_amount_format(
				is_share(request) ? limit : request, a, sizeof(a)));
	if (sl_amounts_share_pm(limit) &&
		sl_amounts_share_pm(limit) < sl_amounts_share_pm(request))
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"--compute-limit %s is below --compute-request %s; raise it or "
			"leave "
			"it out",
			sl_amount_format(limit, a, sizeof(a)),
			sl_amount_format(request, b, sizeof(b)));
	return -1;
}

uint32_t sl_amounts_share_pm(const struct sl_amount *share)
{
	return share->kind == SL_AMOUNT_FRACTION
		       ? (uint32_t)(share->value * 1000 / SL_AMOUNT_WHOLE)
		       : 0;
}

int sl_amounts_chain(enum sl_verb_id verb, bool json, const char *text, uint32_t *chain)
{
	struct sl_error err = {0};

	*chain = 0;
	if (!text || strcmp(text, "default") == 0 ||
		sl_chain_parse("--on-collision", text, chain, &err) == SL_CHAIN_OK)
		return -1;
	return sl_cli_fail(verb, json, SL_EXIT_USAGE, "%s", err.text);
}

const char *sl_amounts_goes(sl_ns warm_after, sl_ns detach_after)
{
	if (warm_after && warm_after != SL_WARM_UNSET)
		return "--warm-after";
	return detach_after && detach_after != SL_WARM_UNSET ? "--detach-after" : NULL;
}
