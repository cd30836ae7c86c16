#include "policy/words/chain.h"

#include <stdio.h>
#include <string.h>

#include "base/sl.h"

static const char *const words[SL_RESOLVERS] = {
	[SL_RESOLVER_SWAP] = "swap",
	[SL_RESOLVER_WAIT] = "wait",
	[SL_RESOLVER_PRIORITY] = "priority",
	[SL_RESOLVER_FAIL] = "fail",
};

/* 0 is the first resolver (lowest four bits), 8: not in the chain. */
static uint32_t place_of(uint32_t chain, enum sl_resolver resolver)
{
	uint32_t place = 0;

	while (place < 8 && (chain >> 4 * place & 15) != resolver)
		place++;
	return place;
}

bool sl_chain_has(uint32_t chain, enum sl_resolver resolver)
{
	return place_of(chain, resolver) < 8;
}

bool sl_chain_is_before(uint32_t chain, enum sl_resolver first, enum sl_resolver second)
{
	return place_of(chain, first) < place_of(chain, second);
}

uint32_t sl_chain_within(uint32_t chain, uint32_t other)
{
	uint32_t both = 0, shift = 0;

	for (; chain & 15; chain >>= 4) {
		if (!sl_chain_has(other, chain & 15))
			continue;
		both |= (chain & 15) << shift;
		shift += 4;
	}
	return both;
}

static int bad(struct sl_error *err, const char *what, const char *word, const char *why)
{
	sl_error_set(err, "%s: '%.64s' %s", what, word, why);
	return SL_CHAIN_BAD;
}

static int add(const char *what, const char *word, uint32_t *chain, struct sl_error *err)
{
	enum sl_resolver resolver = SL_RESOLVER_SWAP;
	uint32_t last = place_of(*chain, SL_RESOLVER_NONE);

	while (resolver < SL_RESOLVERS && strcmp(words[resolver], word) != 0)
		resolver++;
	if (resolver == SL_RESOLVERS)
		return bad(err, what, word,
			"is no resolver; write swap, wait, priority or fail, or several "
			"of them");
	if (sl_chain_has(*chain, resolver))
		return bad(err, what, word, "comes twice; remove one");
	if (sl_chain_has(*chain, SL_RESOLVER_FAIL))
		return bad(err, what, word, "comes after fail; fail must be the last");
	if (resolver == SL_RESOLVER_FAIL && sl_chain_has(*chain, SL_RESOLVER_WAIT))
		return bad(err, what, word,
			"and wait exclude each other; remove one (what waits gets "
			"out-of-memory after longest_wait)");
	*chain |= (uint32_t)resolver << 4 * last;
	return SL_CHAIN_OK;
}

int sl_chain_parse(
	const char *what, const char *text, uint32_t *out, struct sl_error *err)
{
	uint32_t chain = 0;

	for (text += strspn(text, " \t,"); *text; text += strspn(text, " \t,")) {
		size_t length = strcspn(text, " \t,");
		char word[65];

		(void)snprintf(word, sizeof(word), "%.*s",
			(int)sl_min_u64(length, sizeof(word) - 1), text);
		if (add(what, word, &chain, err) != SL_CHAIN_OK)
			return SL_CHAIN_BAD;
		text += length;
	}
	if (!chain)
		return bad(err, what, "",
			"names no resolver; write swap, wait, priority or fail, or "
			"several of them");
	*out = chain;
	return SL_CHAIN_OK;
}

const char *sl_chain_format(uint32_t chain, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (; chain & 15 && used < size; chain >>= 4) {
		uint32_t resolver = chain & 15;

		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "",
			resolver < SL_RESOLVERS ? words[resolver] : "?");
	}
	return buf;
}

bool sl_chain_is_valid(uint32_t chain)
{
	char text[SL_CHAIN_TEXT_MAX * 2];
	struct sl_error err;
	uint32_t same;

	return sl_chain_parse("", sl_chain_format(chain, text, sizeof(text)), &same,
		       &err) == SL_CHAIN_OK &&
	       same == chain;
}
