/*
 * reason - the list, and templates filled with numbers
 *
 * A place in a template is a word in braces; one that the table below does not know is written as
 * it stands, which the unit test forbids for every row of the list.
 */
#include "policy/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/amount.h"

static const struct {
	const char *name, *text;
	enum sl_reason_kind kind;
} reasons[SL_REASONS] = {
#define SL_REASON(NAME, kind, text) \
	[SL_REASON_##NAME] = {#NAME, text, SL_REASON_KIND_##kind},
#include "policy/reason.def"
#undef SL_REASON
};

const char *sl_reason_name(uint32_t reason)
{
	return reason < SL_REASONS ? reasons[reason].name : "?";
}

uint32_t sl_reason_named(const char *name)
{
	uint32_t reason = 0;

	while (reason < SL_REASONS && strcmp(reasons[reason].name, name) != 0)
		reason++;
	return reason;
}

const char *sl_reason_text(uint32_t reason)
{
	return reason < SL_REASONS ? reasons[reason].text : "?";
}

enum sl_reason_kind sl_reason_kind(uint32_t reason)
{
	return reason < SL_REASONS ? reasons[reason].kind : SL_REASON_KIND_NOTE;
}

const char *sl_reason_kind_name(enum sl_reason_kind kind)
{
	static const char *const names[SL_REASON_KINDS] = {
		"deny", "except", "refuse", "wait", "stop", "note"};

	return (uint32_t)kind < SL_REASON_KINDS ? names[kind] : "?";
}

/* --- the sentence --- */

/* The longest value of a place: a name of 63 bytes and the words around it. */
#define PLACE_MOST 160

struct out {
	char *buf;
	size_t size, used;
};

static void put(struct out *out, const char *text, size_t length)
{
	size_t room = out->size - out->used - 1;

	length = length < room ? length : room;
	memcpy(out->buf + out->used, text, length);
	out->used += length;
	out->buf[out->used] = '\0';
}

static const char *known(const char *name, const char *otherwise)
{
	return name && name[0] ? name : otherwise;
}

/* "850 ms", "12.5 s", "3 min", "7 h": what a reader takes in, not what a program needs. */
static void format_span(sl_ns span, char text[32])
{
	if (span < SL_S)
		(void)snprintf(text, 32, "%" PRIu64 " ms", (uint64_t)(span / SL_MS));
	else if (span < 100 * SL_S)
		(void)snprintf(text, 32, "%" PRIu64 ".%u s", (uint64_t)(span / SL_S),
			(unsigned int)(span / (SL_S / 10) % 10));
	else if (span < 7200 * SL_S)
		(void)snprintf(
			text, 32, "%" PRIu64 " min", (uint64_t)(span / (60 * SL_S)));
	else
		(void)snprintf(
			text, 32, "%" PRIu64 " h", (uint64_t)(span / (3600 * SL_S)));
}

/* What another workload could give back, if there is one. */
static const char *format_burst(
	const struct sl_reason_facts *facts, const char *verb, char text[PLACE_MOST])
{
	char bytes[32];

	if (!facts->other_bytes)
		(void)snprintf(text, PLACE_MOST,
			"no other workload %s anything above its request", verb);
	else
		(void)snprintf(text, PLACE_MOST, "%s %s %s above its request",
			known(facts->other, "another workload"), verb,
			sl_bytes_format(facts->other_bytes, bytes, sizeof(bytes)));
	return text;
}

/* The value of a place, in text or elsewhere; NULL if there is no such place. */
static const char *value_of(const struct sl_reason_facts *facts, const char *place,
	size_t length, char text[PLACE_MOST])
{
	static const char *const places[] = {"name", "other", "gpu", "bytes", "available",
		"other_bytes", "span", "pid", "xid", "user", "priority", "has_burst",
		"had_burst"};
	size_t i = 0;

	while (i < SL_ARRAY_LEN(places) &&
		(strlen(places[i]) != length || memcmp(places[i], place, length) != 0))
		i++;
	switch (i) {
	case 0: return known(facts->name, "a workload");
	case 1: return known(facts->other, "another workload");
	case 2: (void)snprintf(text, 32, "%" PRIu32, facts->gpu); return text;
	case 3: return sl_bytes_format(facts->bytes, text, 32);
	case 4: return sl_bytes_format(facts->available_bytes, text, 32);
	case 5: return sl_bytes_format(facts->other_bytes, text, 32);
	case 6: format_span(facts->span, text); return text;
	case 7:
		if (facts->pid)
			(void)snprintf(text, 32, "%" PRIu32, facts->pid);
		else
			(void)snprintf(text, 32, "(unknown)");
		return text;
	case 8: (void)snprintf(text, 32, "%" PRIu64, facts->other_bytes); return text;
	case 9:
		if (!facts->other_bytes)
			return "somebody";
		(void)snprintf(text, 32, "user %" PRIu64, facts->other_bytes - 1);
		return text;
	case 10: (void)snprintf(text, 32, "%" PRId64, (int64_t)facts->bytes); return text;
	case 11: return format_burst(facts, "has", text);
	case 12: return format_burst(facts, "had", text);
	default: return NULL;
	}
}

const char *sl_reason_sentence(
	const struct sl_reason_facts *facts, char *buf, size_t size)
{
	const char *at = sl_reason_text(facts->reason);
	struct out out = {.buf = buf, .size = size};

	if (size == 0)
		return "";
	buf[0] = '\0';
	while (*at) {
		size_t plain = strcspn(at, "{");
		const char *end = at[plain] ? strchr(at + plain, '}') : NULL;
		const char *value = NULL;
		char text[PLACE_MOST];

		put(&out, at, plain);
		at += plain;
		if (!*at)
			break;
		if (end)
			value = value_of(facts, at + 1, (size_t)(end - at) - 1, text);
		if (value) {
			put(&out, value, strlen(value));
			at = end + 1;
		} else {
			put(&out, at++, 1);
		}
	}
	return buf;
}
