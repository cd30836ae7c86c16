/*
 * reason - the list, and templates filled with numbers
 *
 * A placeholder in a template is a word in braces. An unknown one is printed unchanged; the unit
 * test fails if a row has one.
 */
#include "policy/words/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/amount.h"
#include "base/log.h"

static const struct {
	const char *name, *text;
	enum sl_reason_kind kind;
	enum { PLAIN = 0, CAUSE, CHANGE } about;
	int level; /* of a note */
} reasons[SL_REASONS] = {
#define SL_REASON(NAME, kind, text) \
	[SL_REASON_##NAME] = {#NAME, text, SL_REASON_KIND_##kind, PLAIN, 0},
#define SL_NOTE(NAME, level, about, text) \
	[SL_REASON_##NAME] = {#NAME, text, SL_REASON_KIND_NOTE, about, SL_LOG_##level},
#include "policy/words/reason.def"
#undef SL_REASON
#undef SL_NOTE
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

static const char *const kinds[SL_REASON_KINDS] = {
	"deny", "except", "refuse", "wait", "stop", "note"};
const char sl_reason_kinds_known[] = "deny, except, refuse, wait, stop, note";

const char *sl_reason_kind_name(enum sl_reason_kind kind)
{
	return (uint32_t)kind < SL_REASON_KINDS ? kinds[kind] : "?";
}

bool sl_reason_kinds_read(const char *text, uint32_t *out)
{
	*out = 0;
	while (text && *text) {
		size_t length = strcspn(text, ",");
		uint32_t kind = 0;

		while (kind < SL_REASON_KINDS &&
			(strlen(kinds[kind]) != length ||
				memcmp(kinds[kind], text, length) != 0))
			kind++;
		if (kind == SL_REASON_KINDS)
			return false;
		*out |= 1u << kind;
		text += length + (text[length] == ',');
	}
	return true;
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

static const char *state_of(uint64_t condition)
{
	switch (condition) {
	case SL_CONDITION_STOPPED: return "stopped";
	case SL_CONDITION_TRACED: return "traced";
	case SL_CONDITION_SILENT: return "silent";
	default: return "busy with one piece of GPU work";
	}
}

static const char *format_share(uint64_t pm, char text[PLACE_MOST])
{
	(void)snprintf(text, PLACE_MOST, "%g", (double)pm / 1000);
	return text;
}

/* The value of a place, in text or elsewhere; NULL if there is no such place. */
static const char *value_of(const struct sl_reason_facts *facts, const char *place,
	size_t length, char text[PLACE_MOST])
{
	static const char *const places[] = {"name", "other", "gpu", "bytes", "available",
		"other_bytes", "span", "pid", "xid", "user", "priority", "has_burst",
		"had_burst", "state", "share", "share_left"};
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
	case 6: return sl_span_format(facts->span, text, 32);
	case 7:
		if (facts->pid)
			(void)snprintf(text, 32, "%" PRIu32, facts->pid);
		else
			(void)snprintf(text, 32, "(unknown)");
		return text;
	case 8: (void)snprintf(text, 32, "%" PRIu64, facts->other_bytes); return text;
	case 9:
		if (!facts->other_bytes)
			return "an unknown user";
		(void)snprintf(text, 32, "user %" PRIu64, facts->other_bytes - 1);
		return text;
	case 10: (void)snprintf(text, 32, "%" PRId64, (int64_t)facts->bytes); return text;
	case 11: return format_burst(facts, "has", text);
	case 12: return format_burst(facts, "had", text);
	case 13: return state_of(facts->available_bytes);
	case 14: return format_share(facts->bytes, text);
	case 15: return format_share(facts->available_bytes, text);
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

int sl_reason_level(uint32_t reason)
{
	switch (sl_reason_kind(reason)) {
	/* Waits and refusals are the daemon's normal work, and the peer's answer says them. */
	case SL_REASON_KIND_WAIT:
	case SL_REASON_KIND_DENY:
	case SL_REASON_KIND_REFUSE: return SL_LOG_DEBUG;
	case SL_REASON_KIND_NOTE:
		return reason < SL_REASONS ? reasons[reason].level : SL_LOG_WARNING;
	default: return SL_LOG_WARNING;
	}
}

bool sl_reason_is_change(uint32_t reason)
{
	return reason < SL_REASONS && reasons[reason].about == CHANGE;
}

bool sl_reason_explains(uint32_t reason)
{
	switch (sl_reason_kind(reason)) {
	case SL_REASON_KIND_WAIT: return false;
	case SL_REASON_KIND_NOTE:
		return reason < SL_REASONS && reasons[reason].about != PLAIN;
	default: return true;
	}
}
