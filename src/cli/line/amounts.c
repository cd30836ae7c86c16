/* Finds amounts that contradict each other before the daemon is asked. */
#include "cli/line/amounts.h"

#include <string.h>

#include "policy/words/chain.h"

int sl_amounts_check(enum sl_verb_id verb, bool json, const struct sl_amount *request,
	const struct sl_amount *limit, bool request_is_limit)
{
	struct sl_error err = {0};

	if (sl_amount_check(request, limit, request_is_limit, &err) == SL_AMOUNT_OK)
		return -1;
	return sl_cli_fail(verb, json, SL_EXIT_USAGE, "%s", err.text);
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
