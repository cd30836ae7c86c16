/*
 * values - see the header
 */
#include "daemon/web/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/words/chain.h"

static json_t *member(const struct sl_page_request *request, const char *key)
{
	json_t *value = json_object_get(request->json, key);

	return json_is_null(value) ? NULL : value;
}

bool sl_page_has(const struct sl_page_request *request, const char *key)
{
	return member(request, key) != NULL;
}

bool sl_page_only(
	struct sl_page_request *request, const char *const keys[], enum MHD_Result *r)
{
	const char *key;
	json_t *value;

	json_object_foreach(request->json, key, value)
	{
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i])
			continue;
		*r = sl_page_refuse(
			request, 400, "'%.64s' is nothing that can be said here", key);
		return false;
	}
	return true;
}

static const char *as_text(const json_t *value, char *buf, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value))
		(void)snprintf(
			buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value) && json_real_value(value) >= 0 &&
		 json_real_value(value) <= 1)
		(void)snprintf(buf, size, "%.6f", json_real_value(value));
	else
		return NULL;
	return buf;
}

bool sl_page_amount(struct sl_page_request *request, const char *key,
	struct sl_amount *out, enum MHD_Result *r)
{
	const json_t *value = member(request, key);
	struct sl_error err = {0};
	const char *text;
	char buf[64];

	*out = (struct sl_amount){0};
	if (!value)
		return true;
	text = as_text(value, buf, sizeof(buf));
	if (text && text[0] && sl_amount_parse(text, out, &err) == SL_AMOUNT_OK)
		return true;
	*r = sl_page_refuse(request, 400, "%s: %s", key,
		err.text[0] ? err.text
			    : "write a fraction up to 1, or bytes like \"8GiB\"");
	return false;
}

bool sl_page_integer(struct sl_page_request *request, const char *key, int64_t least,
	int64_t most, int64_t fallback, int64_t *out, enum MHD_Result *r)
{
	const json_t *value = member(request, key);

	*out = fallback;
	if (!value)
		return true;
	*out = json_integer_value(value);
	if (json_is_integer(value) && *out >= least && *out <= most)
		return true;
	*r = sl_page_refuse(request, 400,
		"%s must be a whole number from %" PRId64 " to %" PRId64, key, least,
		most);
	return false;
}

bool sl_page_string(struct sl_page_request *request, const char *key, char *out,
	size_t size, enum MHD_Result *r)
{
	const json_t *value = member(request, key);
	const char *text = value ? json_string_value(value) : "";

	out[0] = '\0';
	if (!text) {
		*r = sl_page_refuse(request, 400, "%s must be text", key);
		return false;
	}
	/* jansson rejects NUL in strings by default. */
	if (strlen(text) >= size) {
		*r = sl_page_refuse(request, 400, "%s has %zu bytes, and may have %zu",
			key, strlen(text), size - 1);
		return false;
	}
	(void)snprintf(out, size, "%s", text);
	return true;
}

bool sl_page_chain(struct sl_page_request *request, uint32_t *out, enum MHD_Result *r)
{
	char text[2 * SL_CHAIN_TEXT_MAX];
	struct sl_error err = {0};

	*out = 0;
	if (!sl_page_string(request, "on_collision", text, sizeof(text), r))
		return false;
	if (!text[0] || strcmp(text, "default") == 0 ||
		sl_chain_parse("on_collision", text, out, &err) == SL_CHAIN_OK)
		return true;
	*r = sl_page_refuse(request, 400, "%s", err.text);
	return false;
}

bool sl_page_bool(struct sl_page_request *request, const char *key, bool fallback,
	bool *out, enum MHD_Result *r)
{
	const json_t *value = member(request, key);

	*out = value ? json_is_true(value) : fallback;
	if (!value || json_is_boolean(value))
		return true;
	*r = sl_page_refuse(request, 400, "%s must be true or false", key);
	return false;
}

bool sl_page_id(struct sl_page_request *request, uint64_t *out, enum MHD_Result *r)
{
	char *end = NULL;

	*out = 0;
	if (request->argument[0] >= '1' && request->argument[0] <= '9')
		*out = strtoull(request->argument, &end, 10);
	if (end && !*end && *out <= INT64_MAX)
		return true;
	*r = sl_page_refuse(
		request, 404, "there is no number '%.64s'", request->argument);
	return false;
}
