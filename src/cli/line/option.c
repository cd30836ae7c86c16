/*
 * The parser walks argv once and writes each value at the row's offset, so a verb never sees the
 * text of options. For an unknown option the error suggests the nearest known one: users of other
 * tools write --mem or --requests, and one suggestion is quicker to read than a list.
 */
#include "cli/line/option.h"

#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 63
/* Longer than any option. */
#define WORD_MAX 32

/* False for a row that describes words. */
static bool is_option(const struct sl_option *row)
{
	return row->type < SL_OPTION_WORDS;
}

static const struct sl_option *find(
	const struct sl_option *rows, const char *name, size_t len)
{
	for (const struct sl_option *row = rows; row->type; row++)
		if (is_option(row) && strlen(row->name) == len &&
			!memcmp(row->name, name, len))
			return row;
	return NULL;
}

static int unknown(
	const struct sl_option *rows, const char *name, size_t len, struct sl_error *err)
{
	char word[WORD_MAX + 1];
	struct sl_nearest near;

	if (len > WORD_MAX) {
		sl_error_set(err, "unknown option --%.*s...", WORD_MAX, name);
		return SL_OPTION_BAD;
	}
	memcpy(word, name, len);
	word[len] = '\0';
	near = sl_nearest_to(word);
	for (const struct sl_option *row = rows; row->type; row++)
		if (is_option(row))
			sl_nearest_offer(&near, row->name);
	sl_nearest_offer(&near, "help");
	if (near.best)
		sl_error_set(
			err, "unknown option --%s; did you mean --%s?", word, near.best);
	else
		sl_error_set(err, "unknown option --%s", word);
	return SL_OPTION_BAD;
}

static int set_name(const struct sl_option *row, const char *text, const char **out,
	struct sl_error *err)
{
	size_t len = strlen(text);

	if (!len || len > NAME_BYTES_MAX) {
		sl_error_set(err, "--%s must have 1 to %d bytes, not %zu", row->name,
			NAME_BYTES_MAX, len);
		return SL_OPTION_BAD;
	}
	for (const char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c) || *c == ' ') {
			sl_error_set(err,
				"--%s '%s': blanks and control characters are not "
				"allowed",
				row->name, text);
			return SL_OPTION_BAD;
		}
	*out = text;
	return SL_OPTION_OK;
}

static int set_integer(
	const struct sl_option *row, const char *text, int64_t *out, struct sl_error *err)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end || isspace((unsigned char)*text)) {
		sl_error_set(err, "--%s '%s' is not a whole number", row->name, text);
		return SL_OPTION_BAD;
	}
	if (errno == ERANGE || value < row->min || value > row->max) {
		sl_error_set(err, "--%s %s is not within %lld to %lld", row->name, text,
			(long long)row->min, (long long)row->max);
		return SL_OPTION_BAD;
	}
	*out = value;
	return SL_OPTION_OK;
}

/* Plain digits are taken as they are (milliseconds, counts, bytes); anything else is an amount. */
static int set_size(const struct sl_option *row, const char *text, uint64_t *out,
	struct sl_error *err)
{
	struct sl_amount amount = {0};
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno) {
		if (sl_amount_parse(text, &amount, err)) {
			sl_error_wrap(err, "--%s", row->name);
			return SL_OPTION_BAD;
		}
		if (amount.kind != SL_AMOUNT_BYTES) {
			sl_error_set(err, "--%s %s: a fraction has no meaning here",
				row->name, text);
			return SL_OPTION_BAD;
		}
		value = amount.value;
	}
	if (value < (uint64_t)row->min || value > (uint64_t)row->max) {
		char low[32], high[32];
		bool few = !*end && value < SL_KIB && (uint64_t)row->min >= SL_MIB;

		sl_error_set(err, "--%s %s is not within %s to %s%s%s%s", row->name, text,
			sl_bytes_format((uint64_t)row->min, low, sizeof(low)),
			sl_bytes_format((uint64_t)row->max, high, sizeof(high)),
			few ? "; did you mean " : "", few ? text : "", few ? "GiB?" : "");
		return SL_OPTION_BAD;
	}
	*out = value;
	return SL_OPTION_OK;
}

/* In the largest unit that gives a whole number. */
static const char *span_text(int64_t ms, char *buf, size_t size)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms || (!ms && units[i].ms > 1000))
		i++;
	snprintf(buf, size, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
	return buf;
}

static int set_duration(
	const struct sl_option *row, const char *text, sl_ns *out, struct sl_error *err)
{
	sl_ns value;

	if (sl_duration_parse(text, &value, err)) {
		sl_error_wrap(err, "--%s", row->name);
		return SL_OPTION_BAD;
	}
	/* Times travel as whole milliseconds: rounding down to 0 would change the meaning. */
	if (!row->min && value && value < SL_MS) {
		sl_error_set(err, "--%s %s is less than 1ms; write 0 or at least 1ms",
			row->name, text);
		return SL_OPTION_BAD;
	}
	if (value < (uint64_t)row->min * SL_MS || value > (uint64_t)row->max * SL_MS) {
		char low[32], high[32];

		sl_error_set(err, "--%s %s is not within %s to %s", row->name, text,
			span_text(row->min, low, sizeof(low)),
			span_text(row->max, high, sizeof(high)));
		return SL_OPTION_BAD;
	}
	*out = value;
	return SL_OPTION_OK;
}

/* The two words stand in the row itself, so help and parser cannot differ. */
static int set_switch(const struct sl_option *row, const char *text, enum sl_switch *out,
	struct sl_error *err)
{
	size_t len = strcspn(row->value, "|");
	const char *off = row->value + len + 1;

	if (strlen(text) == len && !memcmp(text, row->value, len)) {
		*out = SL_SWITCH_ON;
		return SL_OPTION_OK;
	}
	if (!strcmp(text, off)) {
		*out = SL_SWITCH_OFF;
		return SL_OPTION_OK;
	}
	sl_error_set(err, "--%s '%s': write %.*s or %s", row->name, text, (int)len,
		row->value, off);
	return SL_OPTION_BAD;
}

static int add_string(const struct sl_option *row, const char *text,
	struct sl_strings *out, struct sl_error *err)
{
	const char **all = reallocarray(out->all, out->count + 1, sizeof(*all));

	if (!all) {
		sl_error_set(err, "--%s: out of memory", row->name);
		return SL_OPTION_BAD;
	}
	out->all = all;
	out->all[out->count++] = text;
	return SL_OPTION_OK;
}

void sl_strings_fini(struct sl_strings *strings)
{
	free(strings->all);
	*strings = (struct sl_strings){0};
}

static int set(
	const struct sl_option *row, void *into, const char *text, struct sl_error *err)
{
	void *at = (char *)into + row->offset;

	switch (row->type) {
	case SL_OPTION_STRING: *(const char **)at = text; return SL_OPTION_OK;
	case SL_OPTION_NAME: return set_name(row, text, at, err);
	case SL_OPTION_INTEGER: return set_integer(row, text, at, err);
	case SL_OPTION_SIZE: return set_size(row, text, at, err);
	case SL_OPTION_DURATION:
	case SL_OPTION_SECONDS: return set_duration(row, text, at, err);
	case SL_OPTION_SWITCH: return set_switch(row, text, at, err);
	case SL_OPTION_STRINGS: return add_string(row, text, at, err);
	case SL_OPTION_AMOUNT:
		if (!sl_amount_parse(text, at, err))
			return SL_OPTION_OK;
		sl_error_wrap(err, "--%s", row->name);
		return SL_OPTION_BAD;
	case SL_OPTION_FLAG:
	case SL_OPTION_WORDS:
	case SL_OPTION_OPERAND:
	case SL_OPTION_OPERANDS:
	case SL_OPTION_END: break;
	}
	sl_error_set(err, "--%s has no type; please report this", row->name);
	return SL_OPTION_BAD;
}

/* Is the word after an option with optional value that value? */
static bool looks_like_value(const char *word)
{
	return word && isdigit((unsigned char)*word);
}

/* One option at argv[*at], with its value in the same word or the next. */
static int parse_one(const struct sl_option *rows, void *into, int argc, char **argv,
	int *at, struct sl_error *err)
{
	const char *name = argv[*at] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct sl_option *row = find(rows, name, len);
	const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;

	if (!row)
		return unknown(rows, name, len, err);
	if (row->type == SL_OPTION_FLAG) {
		if (equals) {
			sl_error_set(err, "--%s takes no value", row->name);
			return SL_OPTION_BAD;
		}
		*(bool *)((char *)into + row->offset) = true;
		return SL_OPTION_OK;
	}
	if (equals)
		return set(row, into, equals + 1, err);
	if (row->type == SL_OPTION_SECONDS && !looks_like_value(next)) {
		*(sl_ns *)((char *)into + row->offset) = (uint64_t)row->min * SL_MS;
		return SL_OPTION_OK;
	}
	if (!next || !strncmp(next, "--", 2)) {
		sl_error_set(err, "--%s needs a value: --%s %s", row->name, row->name,
			row->value);
		return SL_OPTION_BAD;
	}
	++*at;
	return set(row, into, next, err);
}

/* "-f" */
static int parse_letter(
	const struct sl_option *rows, void *into, const char *word, struct sl_error *err)
{
	for (const struct sl_option *row = rows; row->type; row++)
		if (row->letter && word[1] == row->letter && !word[2]) {
			*(bool *)((char *)into + row->offset) = true;
			return SL_OPTION_OK;
		}
	sl_error_set(err, "unknown option %.40s; options have two dashes", word);
	return SL_OPTION_BAD;
}

static const struct sl_option *operand_of(const struct sl_option *rows)
{
	while (rows->type && rows->type != SL_OPTION_OPERAND &&
		rows->type != SL_OPTION_OPERANDS)
		rows++;
	return rows->type ? rows : NULL;
}

/* Stores a word of a verb that takes words. The caller refuses one too many. */
static bool take_operand(const struct sl_option *row, void *into, const char *word)
{
	void *at = row ? (char *)into + row->offset : NULL;

	if (!at || (row->type == SL_OPTION_OPERAND && *(const char **)at))
		return false;
	if (row->type == SL_OPTION_OPERANDS)
		return !add_string(row, word, at, NULL);
	*(const char **)at = word;
	return true;
}

int sl_option_parse(const struct sl_option *rows, void *into, int argc, char **argv,
	int *first, struct sl_error *err)
{
	const struct sl_option *operand = operand_of(rows);
	int at = 1;

	for (; at < argc; at++) {
		const char *word = argv[at];
		int outcome;

		if (!strcmp(word, "--")) {
			at++;
			break;
		}
		if (word[0] != '-' || !word[1]) {
			if (take_operand(operand, into, word))
				continue;
			break;
		}
		if (!strcmp(word, "--help") || !strcmp(word, "-h"))
			return SL_OPTION_HELP;
		outcome = word[1] == '-' ? parse_one(rows, into, argc, argv, &at, err)
					 : parse_letter(rows, into, word, err);
		if (outcome)
			return outcome;
	}
	/* Behind "--" an operand may begin with "-". */
	while (at < argc && take_operand(operand, into, argv[at]))
		at++;
	*first = at;
	return SL_OPTION_OK;
}

bool sl_option_has_flag(const struct sl_option *rows, const char *name, bool has_words,
	int argc, char *const *argv)
{
	const struct sl_option *flag = find(rows, name, strlen(name));

	if (!flag || flag->type != SL_OPTION_FLAG)
		return false;
	for (int at = 1; at < argc && strcmp(argv[at], "--"); at++) {
		const char *word = argv[at], *next = at + 1 < argc ? argv[at + 1] : "";
		const struct sl_option *row;

		if (strncmp(word, "--", 2)) {
			if (has_words)
				return false;
			continue;
		}
		row = find(rows, word + 2, strcspn(word + 2, "="));
		if (row == flag)
			return true;
		/* Take the word behind an unknown option for its value. */
		if (!strchr(word, '=') && next[0] != '-' &&
			(!row || row->type != SL_OPTION_FLAG))
			at++;
	}
	return false;
}
