/*
 * parse - jansson first; a document that it refuses is repaired
 *
 * The repair knows strings, numbers and brackets only. It needs no grammar: jansson reads the
 * repaired text and refuses any other error. The repair writes in place, since nothing becomes
 * longer.
 */
#include "cluster/kubernetes/api/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* NUL in a string is legal JSON, and so in an annotation. */
#define FLAGS JSON_ALLOW_NUL

/* Digits that always fit int64: a whole number of that length is kept. */
#define DIGITS_MAX 18
#define HEX_DIGITS "0123456789abcdefABCDEF"

static void blank(char *from, const char *end)
{
	*from++ = '0';
	memset(from, ' ', (size_t)(end - from));
}

/* The code of \uXXXX at this place; UINT32_MAX if there is none. The text ends with a NUL. */
static uint32_t code_at(const char *at)
{
	char digits[5] = "";

	if (at[0] != '\\' || at[1] != 'u' || strspn(at + 2, HEX_DIGITS) < 4)
		return UINT32_MAX;
	memcpy(digits, at + 2, 4);
	return (uint32_t)strtoul(digits, NULL, 16);
}

static bool is_surrogate(uint32_t code, uint32_t first)
{
	return code >= first && code < first + 0x400;
}

/* Half a surrogate pair becomes U+FFFD, as in Go; so does NUL, which jansson refuses in a key. */
static char *tame_escape(char *at)
{
	uint32_t code = code_at(at);

	if (code == UINT32_MAX)
		return at[1] ? at + 2 : at + 1;
	if (is_surrogate(code, 0xd800) && is_surrogate(code_at(at + 6), 0xdc00))
		return at + 12;
	if (code == 0 || is_surrogate(code, 0xd800) || is_surrogate(code, 0xdc00))
		memcpy(at, "\\ufffd", 6);
	return at + 6;
}

/* A byte that is not UTF-8 becomes '?'. */
static char *tame_character(char *at)
{
	const char *behind = at;

	if (!*at)
		return at + 1;
	if (sl_text_next(&behind) == UINT32_MAX)
		*at = '?';
	return at + (behind - at);
}

/* Returns the place behind the string. */
static char *tame_string(char *at, const char *end)
{
	for (at++; at < end && *at != '"';)
		at = *at == '\\' ? tame_escape(at) : tame_character(at);
	return at < end ? at + 1 : at;
}

static bool is_number(char c)
{
	return (c >= '0' && c <= '9') || strchr("+-.eE", c);
}

/* The text ends with a NUL, so strtod does not run on. */
static char *tame_number(char *at, const char *end)
{
	char *from = at;
	bool is_whole = true;

	for (; at < end && *at && is_number(*at); at++)
		is_whole = is_whole && !strchr(".eE", *at);
	if (is_whole ? at - from > DIGITS_MAX : !isfinite(strtod(from, NULL)))
		blank(from, at);
	return at;
}

static void tame(char *text, size_t size)
{
	char *end = text + size, *deep = NULL;
	size_t depth = 0;

	for (char *at = text; at < end;) {
		if (*at == '"') {
			at = tame_string(at, end);
		} else if (*at == '[' || *at == '{') {
			if (++depth == SL_KUBE_DEPTH_MAX + 1)
				deep = at;
			at++;
		} else if (*at == ']' || *at == '}') {
			at++;
			if (depth > 0 && depth-- == SL_KUBE_DEPTH_MAX + 1 && deep)
				blank(deep, at);
		} else if (*at && (*at == '-' || (*at >= '0' && *at <= '9'))) {
			at = tame_number(at, end);
		} else {
			at++;
		}
	}
}

/* Counts brackets and commas, since each begins a value. */
bool sl_kube_is_vast(const char *text, size_t size)
{
	const char *end = text + size;
	size_t values = 0;
	bool is_text = false;

	for (const char *at = text; at < end && values <= SL_KUBE_VALUES_MAX; at++) {
		if (*at == '"')
			is_text = !is_text;
		else if (is_text && *at == '\\')
			at++;
		else if (!is_text && (*at == '{' || *at == '[' || *at == ','))
			values++;
	}
	return values > SL_KUBE_VALUES_MAX;
}

json_t *sl_kube_parse(char *text, size_t size)
{
	return sl_kube_is_vast(text, size) ? NULL : sl_kube_parse_object(text, size);
}

json_t *sl_kube_parse_object(char *text, size_t size)
{
	json_t *json = json_loadb(text, size, FLAGS, NULL);

	if (json)
		return json;
	tame(text, size);
	return json_loadb(text, size, FLAGS, NULL);
}

static json_t *walk(const json_t *object, va_list path)
{
	const char *key;

	while ((key = va_arg(path, const char *)))
		object = json_object_get(object, key);
	return (json_t *)object;
}

json_t *sl_kube_at(const json_t *object, ...)
{
	va_list path;
	json_t *at;

	va_start(path, object);
	at = walk(object, path);
	va_end(path);
	return at;
}

const char *sl_kube_text_at(const json_t *object, ...)
{
	const char *text;
	va_list path;

	va_start(path, object);
	text = json_string_value(walk(object, path));
	va_end(path);
	return text ? text : "";
}
