/* The one decoder of UTF-8: shortest form only, no surrogates, nothing above U+10FFFF. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define NO_CHARACTER UINT32_MAX

uint32_t sl_text_next(const char **at)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *c = (const unsigned char *)*at;
	unsigned int length = c[0] < 0x80             ? 1
			      : (c[0] & 0xe0) == 0xc0 ? 2
			      : (c[0] & 0xf0) == 0xe0 ? 3
			      : (c[0] & 0xf8) == 0xf0 ? 4
						      : 0;
	uint32_t value = length == 1 ? c[0] : c[0] & (0x7fu >> length);

	if (!c[0])
		return 0;
	for (unsigned int i = 1; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			length = 0;
		else
			value = value << 6 | (c[i] & 0x3f);
	}
	if (!length || value < least[length] || value > 0x10ffff ||
		(value >= 0xd800 && value < 0xe000)) {
		++*at;
		return NO_CHARACTER;
	}
	*at += length;
	return value;
}

static bool is_harmful(uint32_t c)
{
	return c == NO_CHARACTER || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       c == 0x200e || c == 0x200f || c == 0x2028 || c == 0x2029;
}

void sl_text_tame(char *text)
{
	const char *from = text, *at = text;
	char *to = text;
	uint32_t c;

	while ((c = sl_text_next(&at))) {
		if (is_harmful(c)) {
			*to++ = '?';
		} else {
			memmove(to, from, (size_t)(at - from));
			to += at - from;
		}
		from = at;
	}
	*to = '\0';
}

json_t *sl_text_json(const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd";
	char *copy = malloc(strlen(text) * 3 + 1), *to = copy;
	const char *from = text;
	json_t *string;

	if (!copy)
		return NULL;
	for (const char *at = text; *at; from = at) {
		bool valid = sl_text_next(&at) != NO_CHARACTER;
		size_t length = valid ? (size_t)(at - from) : sizeof(unknown) - 1;

		memcpy(to, valid ? from : unknown, length);
		to += length;
	}
	*to = '\0';
	string = json_string(copy);
	free(copy);
	return string;
}
