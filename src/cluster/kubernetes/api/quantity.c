/*
 * quantity - see the header
 *
 * The number is digits / 10^scale, times the suffix; so one exact division of 128 bits remains.
 */
#include "cluster/kubernetes/api/quantity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1ull << 62)

/* Powers of the base. False: no suffix. */
static bool suffix_of(const char *text, unsigned int *base, int *power)
{
	static const char binary[] = "KMGTPE", decimal[] = "num kMGTPE";
	const char *at = text[0] ? strchr(binary, text[0]) : NULL;

	*base = 1000;
	*power = 0;
	if (!text[0])
		return true;
	if (at && text[1] == 'i' && !text[2]) {
		*base = 1024;
		*power = (int)(at - binary) + 1;
		return true;
	}
	at = text[1] || text[0] == ' ' ? NULL : strchr(decimal, text[0]);
	if (at) {
		*power = (int)(at - decimal) - 3;
		return true;
	}
	if ((text[0] == 'e' || text[0] == 'E') && text[1]) {
		const char *digits = text + 1 + (text[1] == '-' || text[1] == '+');
		long exponent = strtol(text + 1, NULL, 10);

		*base = 10;
		*power = (int)exponent;
		return digits[0] && !digits[strspn(digits, "0123456789")] &&
		       exponent > -40 && exponent < 40;
	}
	return false;
}

/* times: factor for the amount. */
static bool parse(const char *text, unsigned int times, uint64_t *out)
{
	unsigned __int128 number = 0, divisor = 1;
	bool point = false, any = false;
	unsigned int base;
	int power;

	for (text += text[0] == '+';
		isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		any = true;
		/* Further digits cannot change a whole number. */
		if (divisor > MOST)
			continue;
		number = number * 10 + (unsigned int)(*text - '0');
		divisor *= point ? 10 : 1;
		if (number > (unsigned __int128)MOST * MOST / 16)
			return false;
	}
	if (!any || !suffix_of(text, &base, &power))
		return false;
	if (number > (unsigned __int128)MOST * MOST / times)
		return false;
	number *= times;
	for (; power > 0; power--) {
		if (divisor % base == 0)
			divisor /= base;
		else
			number *= base;
		if (number > (unsigned __int128)MOST * MOST / 1024)
			return false;
	}
	for (; power < 0; power++) {
		if (divisor > (unsigned __int128)MOST * MOST / 1024)
			number = number != 0;
		else
			divisor *= base;
	}
	number = number / divisor + (number % divisor != 0);
	*out = (uint64_t)number;
	return number <= MOST;
}

bool sl_kube_quantity_parse(const char *text, uint64_t *out)
{
	return parse(text, 1, out);
}

bool sl_kube_quantity_parse_milli(const char *text, uint64_t *out)
{
	return parse(text, 1000, out);
}
