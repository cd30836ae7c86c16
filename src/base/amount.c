/*
 * amount - one parser for everything a user writes as memory or time
 *
 * Numbers are read as integer and decimal digits by hand: strtod depends on the locale and
 * accepts "inf", hex and exponents, none of which is a memory size. A value is kept as
 * mantissa and number of decimals, so "0.1GiB" is exact to the byte, rounded down. Decimals
 * beyond those that can matter are dropped, which rounds down too.
 */
#include "base/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A whole number below this without a suffix is not meant as bytes: GPU memory comes in larger
 * pieces. */
#define PLAIN_BYTES_MIN SL_MIB
/* Below this such a number is more likely gigabytes than megabytes. */
#define PLAIN_MEBI_MIN 4096u
/* 2 MiB, the grain of GPU memory: what a fraction resolves to is a multiple. */
#define GRAIN_BYTES (2 * SL_MIB)
/* Decimals of a printed fraction, and those that matter in a number that is read (a byte of a
 * TiB). */
#define PRINTED_DECIMALS 6
#define DECIMALS_MAX     12

struct suffix {
	const char *text;
	uint64_t factor;
};

static const struct suffix suffixes[] = {
	{"", 1},
	{"k", 1000ull},
	{"K", 1000ull},
	{"M", 1000ull * 1000},
	{"G", 1000ull * 1000 * 1000},
	{"T", 1000ull * 1000 * 1000 * 1000},
	{"P", 1000ull * 1000 * 1000 * 1000 * 1000},
	{"E", 1000ull * 1000 * 1000 * 1000 * 1000 * 1000},
	{"Ki", SL_KIB},
	{"Mi", SL_MIB},
	{"Gi", SL_GIB},
	{"Ti", SL_GIB * 1024},
	{"Pi", SL_GIB * 1024 * 1024},
	{"Ei", SL_GIB * 1024 * 1024 * 1024},
};

struct number {
	uint64_t mantissa; /* digits without the point */
	uint64_t scale;    /* 10^decimals */
	bool has_point;
	bool is_cut; /* the number is a little larger than mantissa and scale */
	const char *rest;
};

/* False if text does not begin with a number, or if its digits do not fit. */
static bool read_number(const char *text, struct number *out)
{
	unsigned int digits = 0, decimals = 0;

	*out = (struct number){.scale = 1};
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !out->has_point);
		text++) {
		if (*text == '.') {
			out->has_point = true;
			continue;
		}
		digits++;
		if (out->has_point && (decimals == DECIMALS_MAX ||
					      out->mantissa > (UINT64_MAX - 9) / 10)) {
			out->is_cut = out->is_cut || *text != '0';
			continue;
		}
		if (out->mantissa > (UINT64_MAX - 9) / 10)
			return false;
		out->mantissa = out->mantissa * 10 + (uint64_t)(*text - '0');
		if (out->has_point) {
			out->scale *= 10;
			decimals++;
		}
	}
	out->rest = text;
	return digits > 0;
}

/* The factor of a suffix, 0 if it is not one. "B" may follow. */
static uint64_t read_suffix(const char *text)
{
	size_t length = strlen(text);

	if (length > 0 && text[length - 1] == 'B')
		length--;
	for (size_t i = 0; i < SL_ARRAY_LEN(suffixes); i++)
		if (strlen(suffixes[i].text) == length &&
			strncmp(suffixes[i].text, text, length) == 0)
			return suffixes[i].factor;
	return 0;
}

static int bad(struct sl_error *err, const char *text, const char *remedy)
{
	sl_error_set(err, "'%.40s' is not an amount of GPU memory: %s", text, remedy);
	return SL_AMOUNT_BAD;
}

/* Fractions have one printed form, which the parser takes back. */
static int percent(const char *text, const struct number *number, struct sl_error *err)
{
	unsigned __int128 millionths = (unsigned __int128)number->mantissa *
				       SL_AMOUNT_WHOLE / number->scale / 100;
	char fraction[32];

	if (millionths > SL_AMOUNT_WHOLE)
		return bad(
			err, text, "a GPU has no more than 1.0 of its memory to share");
	sl_amount_format(&(struct sl_amount){.kind = SL_AMOUNT_FRACTION,
				 .value = (uint64_t)millionths},
		fraction, sizeof(fraction));
	sl_error_set(err,
		"'%.40s' is not an amount of GPU memory; write it as a fraction: %s",
		text, fraction);
	return SL_AMOUNT_BAD;
}

static int above_one(const char *text, const struct number *number, struct sl_error *err)
{
	const char *unit = number->mantissa < PLAIN_MEBI_MIN ? "GiB" : "MiB";

	if (number->has_point)
		return bad(err, text,
			"a fraction is at most 1; with a suffix it is bytes, as in "
			"1.5GiB");
	sl_error_set(err,
		"'%.40s' is neither a fraction of a GPU (at most 1) nor an amount of "
		"memory; did you mean %.40s%s? Bytes take a suffix, as in %.40sB",
		text, text, unit, text);
	return SL_AMOUNT_BAD;
}

static int parse_fraction(const char *text, const struct number *number,
	struct sl_amount *out, struct sl_error *err)
{
	bool is_zero = number->mantissa == 0 && !number->is_cut;
	uint64_t millionths;

	if (number->mantissa > number->scale ||
		(number->mantissa == number->scale && number->is_cut))
		return above_one(text, number, err);
	millionths = (uint64_t)((unsigned __int128)number->mantissa * SL_AMOUNT_WHOLE /
				number->scale);
	if (millionths == 0 && !is_zero)
		return bad(
			err, text, "it is too small; the smallest fraction is 0.000001");
	*out = (struct sl_amount){.kind = is_zero ? SL_AMOUNT_BYTES : SL_AMOUNT_FRACTION,
		.value = millionths};
	return SL_AMOUNT_OK;
}

int sl_amount_parse(const char *text, struct sl_amount *out, struct sl_error *err)
{
	unsigned __int128 bytes;
	struct number number;
	uint64_t factor;

	if (text[0] == '-')
		return bad(err, text, "it cannot be negative");
	if (!read_number(text, &number))
		return bad(err, text, "write a fraction like 0.25 or bytes like 8GiB");
	if (number.rest[0] == '\0' &&
		(number.has_point || number.mantissa < PLAIN_BYTES_MIN))
		return parse_fraction(text, &number, out, err);
	if (!strcmp(number.rest, "%"))
		return percent(text, &number, err);
	factor = read_suffix(number.rest);
	if (factor == 0)
		return bad(err, text,
			"the suffixes are Ki Mi Gi Ti (1024) and k M G T (1000), as in "
			"8GiB or 8G");
	bytes = (unsigned __int128)number.mantissa * factor / number.scale;
	if (bytes > INT64_MAX)
		return bad(err, text, "it is larger than any memory");
	*out = (struct sl_amount){.kind = SL_AMOUNT_BYTES, .value = (uint64_t)bytes};
	return SL_AMOUNT_OK;
}

static int too_small(const struct sl_amount *limit, bool is_request, struct sl_error *err)
{
	char text[32];

	sl_error_set(err, "--%s %s%s is below 2 MiB, the least piece of GPU memory; %s",
		is_request ? "request" : "limit",
		sl_amount_format(limit, text, sizeof(text)),
		is_request ? ", which alone is also the limit," : "",
		is_request ? "add --limit, or raise it" : "raise it, or leave it out");
	return SL_AMOUNT_BAD;
}

int sl_amount_check(const struct sl_amount *request, const struct sl_amount *limit,
	bool request_is_limit, struct sl_error *err)
{
	bool is_request = !limit->kind && request_is_limit;
	const struct sl_amount *least = is_request ? request : limit;
	char a[32], b[32];

	/* A request of 0 guarantees nothing, and does not set the limit. */
	if (least->kind == SL_AMOUNT_BYTES && least->value < GRAIN_BYTES &&
		!(is_request && !least->value))
		return too_small(least, is_request, err);
	if (!limit->kind || limit->kind != request->kind ||
		limit->value >= request->value)
		return SL_AMOUNT_OK;
	sl_error_set(err,
		"--limit %s is below --request %s; the limit is the most it may hold, so "
		"raise it or leave it out",
		sl_amount_format(limit, a, sizeof(a)),
		sl_amount_format(request, b, sizeof(b)));
	return SL_AMOUNT_BAD;
}

uint64_t sl_amount_resolve(
	const struct sl_amount *amount, uint64_t shareable_bytes, uint64_t unset_bytes)
{
	if (amount->kind == SL_AMOUNT_BYTES)
		return amount->value;
	if (amount->kind != SL_AMOUNT_FRACTION)
		return unset_bytes;
	if (amount->value >= SL_AMOUNT_WHOLE)
		return shareable_bytes;
	return (uint64_t)((unsigned __int128)shareable_bytes * amount->value /
			  SL_AMOUNT_WHOLE) &
	       ~(GRAIN_BYTES - 1);
}

const char *sl_amount_format(const struct sl_amount *amount, char *buf, size_t size)
{
	static const char *const names[] = {"Ei", "Pi", "Ti", "Gi", "Mi", "Ki"};
	uint64_t value = amount->value;

	if (amount->kind == SL_AMOUNT_UNSET) {
		(void)snprintf(buf, size, "-");
	} else if (amount->kind == SL_AMOUNT_FRACTION) {
		int decimals = PRINTED_DECIMALS;

		for (; decimals > 1 && value % 10 == 0; decimals--)
			value /= 10;
		(void)snprintf(buf, size, "%.*f", decimals,
			(double)amount->value / (double)SL_AMOUNT_WHOLE);
	} else {
		uint64_t unit = SL_GIB * 1024 * 1024 * 1024;
		size_t i = 0;

		while (i < SL_ARRAY_LEN(names) && (value < unit || value % unit != 0)) {
			unit /= 1024;
			i++;
		}
		if (i < SL_ARRAY_LEN(names))
			(void)snprintf(buf, size, "%llu%sB",
				(unsigned long long)(value / unit), names[i]);
		else
			(void)snprintf(buf, size, "%llu%s", (unsigned long long)value,
				value && value < PLAIN_BYTES_MIN ? "B" : "");
	}
	return buf;
}

/* The value in the largest unit in which it is below most; *unit is the unit's name. */
static double scale(uint64_t bytes, double most, const char **unit)
{
	static const char *const names[] = {
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= most && i + 1 < SL_ARRAY_LEN(names); i++)
		value /= 1024;
	*unit = names[i];
	return value;
}

const char *sl_bytes_format(uint64_t bytes, char *buf, size_t size)
{
	const char *unit;
	/* 1023.995 would print as 1024 of the smaller unit. */
	double value = scale(bytes, 1023.995, &unit);

	(void)snprintf(
		buf, size, "%g %s", (double)(uint64_t)(value * 100 + 0.5) / 100, unit);
	return buf;
}

const char *sl_bytes_short(uint64_t bytes, char *buf, size_t size)
{
	const char *unit;
	/* "1001MiB" needs one digit more than "0.98GiB". */
	double value = scale(bytes, 999.5, &unit);

	/* Rounds halves up, as the page does. */
	(void)snprintf(buf, size, "%.*g%s", value < 1 ? 2 : 3, value * (1 + 1e-12), unit);
	return buf;
}

const char *sl_duration_format(sl_ns span, char *buf, size_t size)
{
	bool whole = span % SL_S == 0;

	(void)snprintf(buf, size, "%" PRIu64 "%s",
		(uint64_t)(span / (whole ? SL_S : SL_MS)), whole ? "s" : "ms");
	return buf;
}

const char *sl_span_format(sl_ns span, char *buf, size_t size)
{
	uint64_t s = span / SL_S, tenths = span / (SL_S / 10);

	if (!s && span)
		(void)snprintf(buf, size, "%" PRIu64 "ms", (uint64_t)(span / SL_MS));
	else if (s < 100)
		(void)snprintf(buf, size, "%gs", (double)tenths / 10);
	else if (s < 100 * 60)
		(void)snprintf(buf, size, "%" PRIu64 "m", s / 60);
	else if (s < 100 * 3600)
		(void)snprintf(buf, size, "%" PRIu64 "h", s / 3600);
	else
		(void)snprintf(buf, size, "%" PRIu64 "d", s / 86400);
	return buf;
}

int sl_duration_parse(const char *text, sl_ns *out, struct sl_error *err)
{
	static const struct suffix units[] = {
		{"", SL_S},
		{"s", SL_S},
		{"ms", SL_MS},
		{"us", SL_US},
		{"m", 60 * SL_S},
		{"min", 60 * SL_S},
		{"h", 3600 * SL_S},
		{"d", 24 * 3600 * SL_S},
	};
	struct number number;

	if (read_number(text, &number)) {
		for (size_t i = 0; i < SL_ARRAY_LEN(units); i++) {
			unsigned __int128 ns = (unsigned __int128)number.mantissa *
					       units[i].factor / number.scale;

			if (strcmp(number.rest, units[i].text) != 0)
				continue;
			if (ns > INT64_MAX)
				break;
			*out = (sl_ns)ns;
			return SL_AMOUNT_OK;
		}
	}
	sl_error_set(err, "'%.40s' is not a duration: write 250ms, 2s, 10m or 1h", text);
	return SL_AMOUNT_BAD;
}
