/*
 * JSON of the API server. A document that jansson accepts stays as it is, JSON as the API server
 * writes it is read, and the parser never reads or writes outside of the text.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

/* The API server takes no more. */
#define DEPTH_MAX 10000

static bool is_value(const char **at, unsigned int depth);

static void skip_blanks(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}

static bool take(const char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

static bool is_string(const char **at)
{
	if (!take(at, '"'))
		return false;
	while (**at != '"') {
		if ((unsigned char)**at < 0x20)
			return false;
		if (*(*at)++ != '\\')
			continue;
		if (**at == 'u' && strspn(*at + 1, "0123456789abcdefABCDEF") >= 4)
			*at += 5;
		else if (**at && strchr("bfnrt\\/\"", **at))
			++*at;
		else
			return false;
	}
	return take(at, '"');
}

static bool are_digits(const char **at)
{
	size_t count = strspn(*at, "0123456789");

	*at += count;
	return count > 0;
}

static bool is_number(const char **at)
{
	(void)take(at, '-');
	if (!take(at, '0') && !are_digits(at))
		return false;
	if (take(at, '.') && !are_digits(at))
		return false;
	if (!take(at, 'e') && !take(at, 'E'))
		return true;
	if (!take(at, '+'))
		(void)take(at, '-');
	return are_digits(at);
}

static bool is_word(const char **at)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < SL_ARRAY_LEN(words); i++) {
		if (strncmp(*at, words[i], strlen(words[i])) == 0) {
			*at += strlen(words[i]);
			return true;
		}
	}
	return false;
}

static bool is_member(const char **at, bool has_key, unsigned int depth)
{
	skip_blanks(at);
	if (has_key && !is_string(at))
		return false;
	skip_blanks(at);
	return (!has_key || take(at, ':')) && is_value(at, depth);
}

static bool are_members(const char **at, char end, unsigned int depth)
{
	skip_blanks(at);
	if (take(at, end))
		return true;
	do {
		if (!is_member(at, end == '}', depth))
			return false;
		skip_blanks(at);
	} while (take(at, ','));
	return take(at, end);
}

static bool is_value(const char **at, unsigned int depth)
{
	skip_blanks(at);
	if (depth > DEPTH_MAX)
		return false;
	if (take(at, '{'))
		return are_members(at, '}', depth + 1);
	if (take(at, '['))
		return are_members(at, ']', depth + 1);
	if (**at == '"')
		return is_string(at);
	return is_number(at) || is_word(at);
}

/* An object or array, as Go's encoding/json takes it, whatever the strings and numbers are. */
static bool is_json(const char *text, size_t size)
{
	const char *at = text;

	skip_blanks(&at);
	if ((*at != '{' && *at != '[') || !is_value(&at, 0))
		return false;
	skip_blanks(&at);
	return at == text + size;
}

/* text[size] is NUL. */
static void check(char *text, size_t size)
{
	json_t *plain = json_loadb(text, size, JSON_ALLOW_NUL, NULL), *tamed;
	bool is_right = is_json(text, size);

	tamed = sl_kube_parse(text, size);
	if (plain && !json_equal(plain, tamed))
		abort();
	if (is_right && !tamed)
		abort();
	if (text[size] != '\0')
		abort();
	json_decref(plain);
	json_decref(tamed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "{\"", behind[] = "\":1}";
	char *text = malloc(size + sizeof(before) + sizeof(behind));
	char *end = text;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check(text, size);
	/* Within a string nearly everything is JSON. */
	end = mempcpy(end, before, sizeof(before) - 1);
	end = mempcpy(end, data, size);
	end = mempcpy(end, behind, sizeof(behind));
	check(text, (size_t)(end - text) - 1);
	free(text);
	return 0;
}
