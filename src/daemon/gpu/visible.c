/*
 * visible - a list that ends at its first mistake
 *
 * That rule is the driver's, and programs rely on it ("-1" hides all GPUs).
 */
#include "daemon/gpu/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Index of the GPU that the entry names, or -1. */
static int find(
	const char *entry, size_t length, const char *const uuids[], uint32_t count)
{
	char text[48] = "", *end = NULL;
	int found = -1;
	long number;

	if (length == 0 || length >= sizeof(text))
		return -1;
	memcpy(text, entry, length);
	if (strncmp(text, "GPU-", 4) != 0) {
		number = strtol(text, &end, 10);
		return isdigit((unsigned char)text[0]) && *end == '\0' &&
				       number < (long)count
			       ? (int)number
			       : -1;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (strncasecmp(uuids[i], text, length) != 0)
			continue;
		if (found >= 0)
			return -1; /* a prefix of two UUIDs */
		found = (int)i;
	}
	return found;
}

uint64_t sl_visible_mask(const char *text, const char *const uuids[], uint32_t count)
{
	uint64_t mask = 0;

	while (*text) {
		size_t length = strcspn(text, ",");
		size_t skip = strspn(text, " \t");
		size_t end = length;
		int place;

		skip = skip < length ? skip : length;
		while (end > skip && isspace((unsigned char)text[end - 1]))
			end--;
		place = find(text + skip, end - skip, uuids, count);
		if (place < 0)
			break;
		mask |= 1ull << place;
		text += length;
		text += *text == ',';
	}
	return mask;
}
