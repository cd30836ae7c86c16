/*
 * chain - the resolvers of a collision in order, as one number and in words
 *
 * "swap,wait" is SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0). policy/node.h says what each
 * resolver does. Pure.
 */
#ifndef SL_POLICY_WORDS_CHAIN_H
#define SL_POLICY_WORDS_CHAIN_H

#include "base/sl.h"
#include "base/error.h"

enum sl_resolver {
	SL_RESOLVER_NONE = 0,
	SL_RESOLVER_SWAP,
	SL_RESOLVER_WAIT,
	SL_RESOLVER_PRIORITY,
	SL_RESOLVER_FAIL, /* resolves nothing: the end of a chain without `wait`, written out */
	SL_RESOLVERS
};

/* A chain of up to four resolvers, the first in the lowest four bits. */
#define SL_CHAIN(first, second, third) \
	((uint32_t)(first) | (uint32_t)(second) << 4 | (uint32_t)(third) << 8)
/* Long enough for every chain in words. */
#define SL_CHAIN_TEXT_MAX 40

bool sl_chain_has(uint32_t chain, enum sl_resolver resolver);
/* It has `first`, before `second` if it has that. */
bool sl_chain_is_before(uint32_t chain, enum sl_resolver first, enum sl_resolver second);
/* What of the chain the other one has, too. */
uint32_t sl_chain_within(uint32_t chain, uint32_t other);
/* Every number that a peer may send: known resolvers, each once, `fail` last and without `wait`. 0,
 * no chain, is not one. */
bool sl_chain_is_valid(uint32_t chain);

enum { SL_CHAIN_OK = 0, SL_CHAIN_BAD /* err names the mistake, and `what` it is in */ };

/* Words with commas or blanks between them. */
SL_MUST_CHECK int sl_chain_parse(
	const char *what, const char *text, uint32_t *out, struct sl_error *err);
/* "wait priority"; returns buf. */
const char *sl_chain_format(uint32_t chain, char *buf, size_t size);

#endif
