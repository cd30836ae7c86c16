/*
 * value - a parser per type
 *
 * The row's type decides how a text is read; libyaml's own guesses at types are not used.
 */
#include "daemon/config/value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"

/* With an article where the noun takes one. */
static const char *const type_words[] = {
	[SL_CONFIG_PATH] = "a path",
	[SL_CONFIG_TIME] = "a time",
	[SL_CONFIG_BYTES] = "bytes",
	[SL_CONFIG_COUNT] = "a number",
	[SL_CONFIG_MODE] = "an octal mode",
	[SL_CONFIG_GROUP] = "a group",
	[SL_CONFIG_LEVEL] = "a log level",
	[SL_CONFIG_GPUS] = "a list of UUIDs",
	[SL_CONFIG_CHOICE] = "a choice",
	[SL_CONFIG_FLAG] = "yes or no",
	[SL_CONFIG_CHAIN] = "a list of resolvers",
	[SL_CONFIG_POOL] = "a word, or bytes",
	[SL_CONFIG_SHARE] = "a share",
	[SL_CONFIG_ADDRESS] = "an address",
	[SL_CONFIG_TEXT] = "text",
	[SL_CONFIG_BOUNDS] = "a mapping",
	[SL_CONFIG_GROUPS] = "a mapping",
};

static const struct {
	const char *key, *word;
	uint32_t value;
} choices[] = {
#define SL_CHOICE(key, word, value) {#key, #word, value},
#include "daemon/config/choices.def"
#undef SL_CHOICE
};

/* A word that an option accepts in place of bytes is also its default. */
static const char *with_article(const struct sl_config_row *row)
{
	static const char *const pools[] = {"half, or bytes", "auto, or bytes"};

	for (size_t i = 0; row->type == SL_CONFIG_POOL && i < SL_ARRAY_LEN(pools); i++) {
		if (strncmp(pools[i], row->def, strlen(row->def)) == 0)
			return pools[i];
	}
	return type_words[row->type];
}

const char *sl_config_type_words(const struct sl_config_row *row)
{
	const char *text = with_article(row);

	if (strncmp(text, "a ", 2) == 0)
		return text + 2;
	return strncmp(text, "an ", 3) == 0 ? text + 3 : text;
}

/* --- one value ---------------------------------------------------------------------------- */

const char *sl_config_format(
	const struct sl_config_row *row, uint64_t value, char *buf, size_t size)
{
	if (row->type == SL_CONFIG_TIME)
		(void)sl_duration_format(value, buf, size);
	else if (row->type == SL_CONFIG_POOL && value == SL_CONFIG_WORD)
		(void)snprintf(buf, size, "%s", row->def);
	else if (row->type == SL_CONFIG_BYTES || row->type == SL_CONFIG_POOL)
		(void)sl_bytes_format(value, buf, size);
	else if (row->type == SL_CONFIG_SHARE && value % 10)
		(void)snprintf(
			buf, size, "%" PRIu64 ".%" PRIu64 "%%", value / 10, value % 10);
	else if (row->type == SL_CONFIG_SHARE)
		(void)snprintf(buf, size, "%" PRIu64 "%%", value / 10);
	else
		(void)snprintf(buf, size,
			row->type == SL_CONFIG_MODE ? "%#" PRIo64 : "%" PRIu64, value);
	return buf;
}

static int check_range(const struct sl_config_row *row, const char *text, uint64_t value,
	struct sl_error *err)
{
	char low[32], high[32];

	if (value >= row->min && value <= row->max)
		return SL_CONFIG_OK;
	sl_error_set(err, "%s: %.64s is out of range; write %s from %s to %s", row->key,
		text, with_article(row),
		sl_config_format(row, row->min, low, sizeof(low)),
		sl_config_format(row, row->max, high, sizeof(high)));
	return SL_CONFIG_BAD;
}

static int parse_number(const struct sl_config_row *row, const char *text, uint64_t *out,
	struct sl_error *err)
{
	int base = row->type == SL_CONFIG_MODE ? 8 : 10;
	char *end = NULL;

	errno = 0;
	*out = strtoull(text, &end, base);
	/* Of digits alone that exceed 64 bits strtoull returns the largest number. */
	if (!isdigit((unsigned char)text[0]) || *end || (errno && errno != ERANGE)) {
		sl_error_set(err, "%s: '%.64s' is not %s; write %s", row->key, text,
			base == 8 ? "an octal mode" : "a number",
			row->type == SL_CONFIG_MODE ? "for example 0660" : "digits only");
		return SL_CONFIG_BAD;
	}
	return check_range(row, text, *out, err);
}

static int parse_bytes(const struct sl_config_row *row, const char *text, uint64_t *out,
	struct sl_error *err)
{
	struct sl_amount amount = {0};
	bool is_part = strchr(text, '%');

	if (!is_part && sl_amount_parse(text, &amount, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "%s", row->key);
		return SL_CONFIG_BAD;
	}
	if (is_part || amount.kind != SL_AMOUNT_BYTES) {
		sl_error_set(err,
			"%s: '%.64s' is a fraction; write bytes, for example 2GiB",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	*out = amount.value;
	return check_range(row, text, *out, err);
}

static int parse_pool(const struct sl_config_row *row, const char *text, uint64_t *out,
	struct sl_error *err)
{
	if (strcmp(text, row->def) != 0)
		return parse_bytes(row, text, out, err);
	*out = SL_CONFIG_WORD;
	return SL_CONFIG_OK;
}

/* "5%" or "2.5%", into thousandths. */
static int parse_share(const struct sl_config_row *row, const char *text, uint32_t *out,
	struct sl_error *err)
{
	unsigned long whole = 0;
	unsigned int tenths = 0;
	char *end = NULL;

	if (isdigit((unsigned char)text[0]) && strlen(text) < 8)
		whole = strtoul(text, &end, 10);
	if (end && end[0] == '.' && isdigit((unsigned char)end[1])) {
		tenths = (unsigned int)(end[1] - '0');
		end += 2;
	}
	if (!end || strcmp(end, "%") != 0) {
		sl_error_set(err,
			"%s: '%.64s' is not a share; write for example 5%% or 2.5%%",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	*out = (uint32_t)(whole * 10 + tenths);
	return check_range(row, text, *out, err);
}

static int parse_time(const struct sl_config_row *row, const char *text, uint64_t *out,
	struct sl_error *err)
{
	if (sl_duration_parse(text, out, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "%s", row->key);
		return SL_CONFIG_BAD;
	}
	return check_range(row, text, *out, err);
}

static int parse_group(const struct sl_config_row *row, const char *text, uint32_t *out,
	struct sl_error *err)
{
	*out = SL_CONFIG_GROUP_NONE;
	if (text[0] == '\0')
		return SL_CONFIG_OK;
	if (!sl_config_find_id(text, false, out)) {
		sl_error_set(err,
			"%s: there is no group '%.64s'; create it with groupadd, or name "
			"another",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	return SL_CONFIG_OK;
}

static int parse_path(const struct sl_config_row *row, const char *text,
	struct sl_config_path *out, struct sl_error *err)
{
	if (text[0] && text[0] != '/') {
		sl_error_set(err, "%s: '%.64s' is not an absolute path; begin it with /",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	if (strlen(text) > row->max) {
		sl_error_set(err,
			"%s: the path has %zu bytes, and %" PRIu64
			" are possible; choose a shorter one",
			row->key, strlen(text), row->max);
		return SL_CONFIG_BAD;
	}
	sl_wire_str(out->text, sizeof(out->text), text);
	return SL_CONFIG_OK;
}

static int parse_level(const struct sl_config_row *row, const char *text,
	struct sl_config_level *out, struct sl_error *err)
{
	static const char *const names[] = {"off", "error", "warning", "info", "debug"};

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			sl_wire_str(out->text, sizeof(out->text), text);
			return SL_CONFIG_OK;
		}
	}
	sl_error_set(err,
		"%s: '%.64s' is not a log level; write error, warning, info or debug",
		row->key, text);
	return SL_CONFIG_BAD;
}

static int add_gpu(const struct sl_config_row *row, const char *text,
	struct sl_config_gpus *out, struct sl_error *err)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];

	if (!sl_wire_uuid_parse(text, uuid)) {
		sl_error_set(err,
			"%s: '%.64s' is not the UUID of a GPU; write all, or UUIDs as "
			"nvidia-smi "
			"-L prints them",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	for (uint32_t i = 0; i < out->count; i++) {
		if (memcmp(out->uuids[i], uuid, sizeof(uuid)) == 0) {
			sl_error_set(err, "%s: %.64s is listed twice; remove one",
				row->key, text);
			return SL_CONFIG_BAD;
		}
	}
	if (out->count >= row->max) {
		sl_error_set(err, "%s: more than %" PRIu64 " GPUs", row->key, row->max);
		return SL_CONFIG_BAD;
	}
	memcpy(out->uuids[out->count++], uuid, sizeof(uuid));
	return SL_CONFIG_OK;
}

static int parse_gpus(const struct sl_config_row *row, const char *text,
	struct sl_config_gpus *out, struct sl_error *err)
{
	*out = (struct sl_config_gpus){0};
	if (strcmp(text, "all") == 0) {
		out->all = true;
		return SL_CONFIG_OK;
	}
	return add_gpu(row, text, out, err);
}

/* --- choices, flags, chains, addresses ----------------------------------------------------- */

const char *sl_config_words(const char *key, char *buf, size_t size)
{
	size_t used = 0, left = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < SL_ARRAY_LEN(choices); i++)
		left += strcmp(choices[i].key, key) == 0;
	for (size_t i = 0; i < SL_ARRAY_LEN(choices); i++) {
		if (strcmp(choices[i].key, key) != 0)
			continue;
		left--;
		used += (size_t)snprintf(buf + used, size - used, "%s%s", choices[i].word,
			left > 1    ? ", "
			: left == 1 ? " or "
				    : "");
		if (used >= size)
			break;
	}
	return buf;
}

const char *sl_config_choice_word(const char *key, uint32_t value)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(choices); i++) {
		if (strcmp(choices[i].key, key) == 0 && choices[i].value == value)
			return choices[i].word;
	}
	return "?";
}

static int parse_choice(const struct sl_config_row *row, const char *text, uint32_t *out,
	struct sl_error *err)
{
	char words[128];

	for (size_t i = 0; i < SL_ARRAY_LEN(choices); i++) {
		if (strcmp(choices[i].key, row->key) == 0 &&
			strcmp(choices[i].word, text) == 0) {
			*out = choices[i].value;
			return SL_CONFIG_OK;
		}
	}
	sl_error_set(err, "%s: '%.64s' is no choice; write %s", row->key, text,
		sl_config_words(row->key, words, sizeof(words)));
	return SL_CONFIG_BAD;
}

static int parse_flag(const struct sl_config_row *row, const char *text, bool *out,
	struct sl_error *err)
{
	static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};

	for (size_t i = 0; i < SL_ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i % 2 == 1;
			return SL_CONFIG_OK;
		}
	}
	sl_error_set(err, "%s: '%.64s' is neither; write yes or no", row->key, text);
	return SL_CONFIG_BAD;
}

static int parse_chain(const struct sl_config_row *row, const char *text, uint32_t *out,
	struct sl_error *err)
{
	return sl_chain_parse(row->key, text, out, err) == SL_CHAIN_OK ? SL_CONFIG_OK
								       : SL_CONFIG_BAD;
}

static int add_resolver(const struct sl_config_row *row, const char *text,
	uint32_t *chain, struct sl_error *err)
{
	char had[SL_CHAIN_TEXT_MAX], all[2 * SL_CHAIN_TEXT_MAX];

	(void)snprintf(all, sizeof(all), "%s %s",
		sl_chain_format(*chain, had, sizeof(had)), text);
	return parse_chain(row, all, chain, err);
}

static int parse_port(const struct sl_config_row *row, const char *text,
	const char *digits, struct sl_config_address *out, struct sl_error *err)
{
	unsigned long port = 0;
	char *end = NULL;

	errno = 0;
	if (digits && isdigit((unsigned char)digits[0]))
		port = strtoul(digits, &end, 10);
	if (port > 0 && port <= 65535 && !*end && !errno) {
		out->port = (uint32_t)port;
		return SL_CONFIG_OK;
	}
	sl_error_set(err,
		"%s: '%.64s' has no port from 1 to 65535; write for example "
		"127.0.0.1:%s, or the path of a socket",
		row->key, text, row->def[0] ? "7654" : "9464");
	return SL_CONFIG_BAD;
}

/* "0.0.0.0:7654", "[fe80::1]:7654": any address of this machine. */
static int parse_host(const struct sl_config_row *row, const char *text,
	struct sl_config_address *out, struct sl_error *err)
{
	const char *colon = strrchr(text, ':');
	size_t length;
	char host[64] = "";

	if (parse_port(row, text, colon ? colon + 1 : NULL, out, err) != SL_CONFIG_OK)
		return SL_CONFIG_BAD;
	length = (size_t)(colon - text);
	(void)snprintf(host, sizeof(host), "%.*s", (int)length, text);
	if (strcmp(host, "localhost") == 0)
		(void)snprintf(host, sizeof(host), "127.0.0.1");
	out->kind = SL_CONFIG_IPV4;
	if (inet_pton(AF_INET, host, out->host) == 1)
		return SL_CONFIG_OK;
	out->kind = SL_CONFIG_IPV6;
	if (host[0] == '[' && length < sizeof(host) && host[length - 1] == ']') {
		host[length - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, out->host) == 1)
			return SL_CONFIG_OK;
	}
	sl_error_set(err,
		"%s: '%.64s' is no address; write numbers, for example 127.0.0.1:7654 or "
		"[::1]:7654, or the path of a socket",
		row->key, text);
	return SL_CONFIG_BAD;
}

/* Accepts "auto" if that is the option's default. */
static int parse_address(const struct sl_config_row *row, const char *text,
	struct sl_config_address *out, struct sl_error *err)
{
	struct sl_config_address fresh = {0};

	if (strlen(text) > row->max) {
		sl_error_set(err,
			"%s: the address has %zu bytes, and %" PRIu64
			" are possible; choose a shorter one",
			row->key, strlen(text), row->max);
		return SL_CONFIG_BAD;
	}
	if (row->def[0] && strcmp(text, row->def) == 0)
		fresh.kind = SL_CONFIG_AUTO;
	else if (text[0] == '/')
		fresh.kind = SL_CONFIG_SOCKET;
	else if (text[0] && parse_host(row, text, &fresh, err) != SL_CONFIG_OK)
		return SL_CONFIG_BAD;
	sl_wire_str(fresh.text, sizeof(fresh.text), text);
	*out = fresh;
	return SL_CONFIG_OK;
}

static int parse_text(const struct sl_config_row *row, const char *text,
	struct sl_config_path *out, struct sl_error *err)
{
	if (strlen(text) > row->max) {
		sl_error_set(err,
			"%s: the text has %zu bytes, and %" PRIu64 " are possible",
			row->key, strlen(text), row->max);
		return SL_CONFIG_BAD;
	}
	sl_wire_str(out->text, sizeof(out->text), text);
	return SL_CONFIG_OK;
}

/* --- rows --------------------------------------------------------------------------------- */

static int parse_mapping(const struct sl_config_row *row, const char *text, void *out,
	size_t size, struct sl_error *err)
{
	if (text[0]) {
		sl_error_set(err,
			"%s: '%.64s' is no mapping; write rows below it, for example "
			"'%s'",
			row->key, text,
			row->type == SL_CONFIG_BOUNDS ? "default: {max_request: 0.5}"
						      : "inference: {gpus: [0, 1]}");
		return SL_CONFIG_BAD;
	}
	memset(out, 0, size);
	return SL_CONFIG_OK;
}

int sl_config_value(const struct sl_config_row *row, const char *text,
	struct sl_config *config, struct sl_error *err)
{
	void *field = (char *)config + row->offset;
	uint64_t number = 0;
	int r;

	switch (row->type) {
	case SL_CONFIG_PATH: return parse_path(row, text, field, err);
	case SL_CONFIG_TIME: return parse_time(row, text, field, err);
	case SL_CONFIG_BYTES: return parse_bytes(row, text, field, err);
	case SL_CONFIG_GROUP: return parse_group(row, text, field, err);
	case SL_CONFIG_LEVEL: return parse_level(row, text, field, err);
	case SL_CONFIG_GPUS: return parse_gpus(row, text, field, err);
	case SL_CONFIG_CHOICE: return parse_choice(row, text, field, err);
	case SL_CONFIG_FLAG: return parse_flag(row, text, field, err);
	case SL_CONFIG_CHAIN: return parse_chain(row, text, field, err);
	case SL_CONFIG_POOL: return parse_pool(row, text, field, err);
	case SL_CONFIG_SHARE: return parse_share(row, text, field, err);
	case SL_CONFIG_ADDRESS: return parse_address(row, text, field, err);
	case SL_CONFIG_TEXT: return parse_text(row, text, field, err);
	case SL_CONFIG_BOUNDS:
		return parse_mapping(
			row, text, field, sizeof(struct sl_config_bounds), err);
	case SL_CONFIG_GROUPS:
		return parse_mapping(
			row, text, field, sizeof(struct sl_config_gpu_groups), err);
	case SL_CONFIG_COUNT:
	case SL_CONFIG_MODE:
		r = parse_number(row, text, &number, err);
		if (r == SL_CONFIG_OK)
			*(uint32_t *)field = (uint32_t)number;
		return r;
	}
	return SL_CONFIG_BAD;
}

void sl_config_list_begin(const struct sl_config_row *row, struct sl_config *config)
{
	void *field = (char *)config + row->offset;

	if (row->type == SL_CONFIG_GPUS)
		*(struct sl_config_gpus *)field = (struct sl_config_gpus){0};
	else
		*(uint32_t *)field = 0;
}

int sl_config_list_add(const struct sl_config_row *row, const char *text,
	struct sl_config *config, struct sl_error *err)
{
	void *field = (char *)config + row->offset;

	return row->type == SL_CONFIG_GPUS ? add_gpu(row, text, field, err)
					   : add_resolver(row, text, field, err);
}

int sl_config_list_end(const struct sl_config_row *row, const struct sl_config *config,
	struct sl_error *err)
{
	const void *field = (const char *)config + row->offset;
	bool is_empty = row->type == SL_CONFIG_GPUS
				? ((const struct sl_config_gpus *)field)->count == 0
				: *(const uint32_t *)field == 0;

	if (!is_empty)
		return SL_CONFIG_OK;
	sl_error_set(err, "%s: the list is empty; write %s", row->key,
		row->type == SL_CONFIG_GPUS ? "all, or at least one UUID"
					    : "swap, wait, priority or fail");
	return SL_CONFIG_BAD;
}
