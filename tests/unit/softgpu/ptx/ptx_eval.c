#include "ptx_eval.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 quad;
typedef __int128 wide;

static bool has(const struct ptx_case *c, const char *mod)
{
	char word[32];

	snprintf(word, sizeof(word), " %s ", mod);
	return strstr(c->mods, word) != NULL;
}

static bool is(const struct ptx_case *c, const char *op)
{
	return strcmp(c->op, op) == 0;
}

unsigned ptx_eval_bits(const char *type)
{
	if (!strcmp(type, "pred"))
		return 1;
	if (!strcmp(type, "f16x2") || !strcmp(type, "bf16x2"))
		return 32;
	return (unsigned)atoi(type + strcspn(type, "0123456789"));
}

static bool is_float(const char *type)
{
	return strchr(type, 'f') != NULL;
}

static uint64_t cut(wide v, unsigned bits)
{
	return bits < 64 ? (uint64_t)v & ((1ull << bits) - 1) : (uint64_t)v;
}

static wide integer(uint64_t bits, const char *type)
{
	unsigned n = ptx_eval_bits(type);

	bits = cut((wide)bits, n);
	return type[0] == 's' && bits >> (n - 1) & 1 ? (wide)bits - ((wide)1 << n)
						     : (wide)bits;
}

/* Floats -------------------------------------------------------------------------------------- */

static quad of_half(uint64_t bits, int digits)
{
	int exponents = 15 - digits, bias = (1 << (exponents - 1)) - 1;
	int exponent = (int)(bits >> digits) & ((1 << exponents) - 1);
	quad v = (quad)(bits & ((1ull << digits) - 1));

	if (exponent == (1 << exponents) - 1)
		v = v != 0 ? (quad)NAN : (quad)INFINITY;
	else
		v = (quad)ldexpl(
			(long double)v + (exponent ? (long double)(1 << digits) : 0),
			(exponent ? exponent : 1) - bias - digits);
	return bits >> 15 & 1 ? -v : v;
}

static quad number(uint64_t bits, const char *type)
{
	uint32_t word = (uint32_t)bits;
	float single;
	double twice;

	memcpy(&single, &word, 4);
	memcpy(&twice, &bits, 8);
	if (!strcmp(type, "f64"))
		return twice;
	if (!strcmp(type, "f16"))
		return of_half(bits & 0xffff, 10);
	if (!strcmp(type, "bf16"))
		return of_half(bits & 0xffff, 7);
	return single;
}

static int mode_of(const struct ptx_case *c)
{
	return has(c, "rz")   ? FE_TOWARDZERO
	       : has(c, "rm") ? FE_DOWNWARD
	       : has(c, "rp") ? FE_UPWARD
			      : FE_TONEAREST;
}

/* The largest magnitude not above v, by bisection; then the one above it or this one. */
static uint64_t to_half(quad v, int digits, int mode)
{
	uint64_t low = 0, high = (uint64_t)(((1 << (15 - digits)) - 1) << digits),
		 top = high;
	bool negative = signbit((double)v) != 0;
	quad m = negative ? -v : v, below, above;
	bool up;

	if (v != v)
		return 0x7fff;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (of_half(middle, digits) <= m)
			low = middle;
		else
			high = middle;
	}
	if (m >= of_half(top, digits))
		return top | (uint64_t)negative << 15;
	below = of_half(low, digits);
	above = low + 1 == top ? below + (below - of_half(low - 1, digits))
			       : of_half(low + 1, digits);
	up = mode == FE_TONEAREST
		     ? m - below > above - m || (m - below == above - m && (low & 1))
		     : m > below && ((mode == FE_UPWARD && !negative) ||
					    (mode == FE_DOWNWARD && negative));
	return (low + up) | (uint64_t)negative << 15;
}

static uint64_t bits_of(quad v, const char *type, int mode)
{
	volatile float single;
	volatile double twice;
	uint64_t bits = 0;

	if (!strcmp(type, "f16"))
		return to_half(v, 10, mode);
	if (!strcmp(type, "bf16"))
		return to_half(v, 7, mode);
	fesetround(mode);
	single = (float)v;
	twice = (double)v;
	fesetround(FE_TONEAREST);
	if (!strcmp(type, "f64"))
		memcpy(&bits, (const void *)&twice, 8);
	else
		memcpy(&bits, (const void *)&single, 4);
	return bits;
}

static quad flushed(const struct ptx_case *c, quad v, const char *type)
{
	quad least = !strcmp(type, "f64")   ? 0x1p-1022
		     : !strcmp(type, "f16") ? 0x1p-14
					    : 0x1p-126;

	return has(c, "ftz") && (v < 0 ? -v : v) < least
		       ? (signbit((double)v) ? -(quad)0 : 0)
		       : v;
}

static bool below_zero(quad v)
{
	return signbit((double)v) != 0;
}

static quad least_of(quad a, quad b)
{
	if (a != a || b != b)
		return a != a ? b : a;
	return a < b || (a == b && below_zero(a)) ? a : b;
}

static bool approximate(struct ptx_case *c, quad a, quad *v)
{
	long double x = (long double)a;

	c->is_approximate = true;
	if (is(c, "sin"))
		*v = sinl(x);
	else if (is(c, "cos"))
		*v = cosl(x);
	else if (is(c, "lg2"))
		*v = log2l(x);
	else if (is(c, "ex2"))
		*v = exp2l(x);
	else if (is(c, "tanh"))
		*v = tanhl(x);
	else if (is(c, "rsqrt"))
		*v = 1 / sqrtl(x);
	else
		return false;
	return true;
}

static bool float_value(struct ptx_case *c, quad a, quad b, quad e, quad *v)
{
	if (is(c, "add"))
		*v = a + b;
	else if (is(c, "sub"))
		*v = a - b;
	else if (is(c, "mul"))
		*v = a * b;
	else if (is(c, "fma") || is(c, "mad"))
		*v = a * b + e;
	else if (is(c, "div"))
		*v = a / b;
	else if (is(c, "rcp"))
		*v = 1 / a;
	else if (is(c, "sqrt"))
		*v = !strcmp(c->type, "f64") ? (quad)sqrt((double)a)
					     : (quad)sqrtl((long double)a);
	else if (is(c, "abs"))
		*v = below_zero(a) ? -a : a;
	else if (is(c, "neg"))
		*v = -a;
	else if (is(c, "min"))
		*v = has(c, "NaN") && (a != a || b != b) ? (quad)NAN : least_of(a, b);
	else if (is(c, "max"))
		*v = has(c, "NaN") && (a != a || b != b) ? (quad)NAN : -least_of(-a, -b);
	else if (is(c, "copysign"))
		*v = below_zero(a) == below_zero(b) ? b : -b;
	else
		return approximate(c, a, v);
	return true;
}

static quad finished(const struct ptx_case *c, quad v)
{
	if (has(c, "relu"))
		v = v != v ? v : v > 0 ? v : 0;
	if (has(c, "sat"))
		v = v > 0 ? v < 1 ? v : 1 : 0;
	return v;
}

static bool eval_float(struct ptx_case *c)
{
	quad in[3], v;
	int mode = mode_of(c);
	bool ok;

	for (unsigned i = 0; i < 3; i++)
		in[i] = flushed(c, number(c->in[i], c->type), c->type);
	fesetround(mode);
	ok = float_value(c, in[0], in[1], in[2], &v);
	if ((ptx_eval_bits(c->type) == 16 || mode == FE_TONEAREST) &&
		!c->is_approximate && !is(c, "sqrt")) {
		/* Of the two for inexact results, the one that is no tie of the format. */
		fesetround(FE_DOWNWARD);
		ok = float_value(c, in[0], in[1], in[2], &v);
		fesetround(FE_UPWARD);
		if (v == (quad)(long double)v)
			ok = float_value(c, in[0], in[1], in[2], &v);
	}
	fesetround(FE_TONEAREST);
	c->out = bits_of(finished(c, v), c->type, mode);
	c->out = bits_of(
		flushed(c, number(c->out, c->type), c->type), c->type, FE_TONEAREST);
	return ok;
}

/* Each half by itself. */
static bool eval_lanes(struct ptx_case *c)
{
	struct ptx_case half[2] = {*c, *c};

	for (unsigned i = 0; i < 2; i++) {
		snprintf(half[i].type, sizeof(half[i].type), "%s",
			c->type[0] == 'b' ? "bf16" : "f16");
		for (unsigned k = 0; k < 4; k++)
			half[i].in[k] = c->in[k] >> i * 16 & 0xffff;
		if (!eval_float(&half[i]))
			return false;
	}
	c->is_approximate = half[0].is_approximate;
	c->out = half[0].out | half[1].out << 16;
	return true;
}

/* Comparisons --------------------------------------------------------------------------------- */

static bool compared(const struct ptx_case *c, const char *type, bool *met)
{
	quad x = 0, y = 0;
	wide i = integer(c->in[0], type), k = integer(c->in[1], type);
	bool apart, less, same;

	if (is_float(type)) {
		x = flushed(c, number(c->in[0], type), type);
		y = flushed(c, number(c->in[1], type), type);
	}
	apart = x != x || y != y;
	less = is_float(type) ? x < y : i < k;
	same = is_float(type) ? x == y : i == k;
	if (has(c, "eq") || has(c, "equ"))
		*met = has(c, "eq") ? same : same || apart;
	else if (has(c, "ne") || has(c, "neu"))
		*met = has(c, "ne") ? !same && !apart : !same;
	else if (has(c, "lt") || has(c, "lo") || has(c, "ltu"))
		*met = less || (has(c, "ltu") && apart);
	else if (has(c, "le") || has(c, "ls") || has(c, "leu"))
		*met = less || same || (has(c, "leu") && apart);
	else if (has(c, "gt") || has(c, "hi") || has(c, "gtu"))
		*met = (!less && !same && !apart) || (has(c, "gtu") && apart);
	else if (has(c, "ge") || has(c, "hs") || has(c, "geu"))
		*met = (!less && !apart) || (has(c, "geu") && apart);
	else if (has(c, "num") || has(c, "nan"))
		*met = has(c, "nan") == apart;
	else
		return false;
	return true;
}

static bool eval_compare(struct ptx_case *c)
{
	bool met, third = c->in[2] & 1;

	if (!compared(c, is(c, "set") ? c->source : c->type, &met))
		return false;
	met = has(c, "and")   ? met && third
	      : has(c, "or")  ? met || third
	      : has(c, "xor") ? met != third
			      : met;
	c->out = is(c, "setp")             ? met
		 : !strcmp(c->type, "f32") ? (met ? 0x3f800000u : 0)
					   : (met ? 0xffffffffu : 0);
	return true;
}

static bool eval_testp(struct ptx_case *c)
{
	double v = (double)number(c->in[0], c->type);
	bool is_single = !strcmp(c->type, "f32");
	int kind = is_single ? fpclassify((float)v) : fpclassify(v);

	c->out = has(c, "finite")      ? kind != FP_NAN && kind != FP_INFINITE
		 : has(c, "infinite")  ? kind == FP_INFINITE
		 : has(c, "number")    ? kind != FP_NAN
		 : has(c, "normal")    ? kind == FP_NORMAL
		 : has(c, "subnormal") ? kind == FP_SUBNORMAL
				       : kind == FP_NAN;
	return true;
}

/* Conversions --------------------------------------------------------------------------------- */

static wide bounded(wide v, const char *type)
{
	unsigned n = ptx_eval_bits(type);
	wide low = type[0] == 's' ? -((wide)1 << (n - 1)) : 0;
	wide high = type[0] == 's' ? ((wide)1 << (n - 1)) - 1 : ((wide)1 << n) - 1;

	return v < low ? low : v > high ? high : v;
}

static long double to_whole(const struct ptx_case *c, long double v)
{
	return has(c, "rzi")   ? truncl(v)
	       : has(c, "rmi") ? floorl(v)
	       : has(c, "rpi") ? ceill(v)
	       : has(c, "rni") ? rintl(v)
			       : v;
}

static bool eval_convert(struct ptx_case *c)
{
	bool from_float = is_float(c->source), to_float = is_float(c->type);
	wide i = integer(c->in[0], c->source);
	quad v = (quad)i;

	if (!strcmp(c->type, "tf32")) {
		c->out = (uint32_t)(c->in[0] +
				    ((c->in[0] & 0x7f800000) != 0x7f800000) * 0x1000);
		if ((c->in[0] & 0x7f800000) != 0x7f800000)
			c->out &= 0xffffe000;
		return true;
	}
	if (strstr(c->type, "x2")) {
		const char *half = c->type[0] == 'b' ? "bf16" : "f16";

		c->out = bits_of(finished(c, number(c->in[0], "f32")), half, mode_of(c))
				 << 16 |
			 bits_of(finished(c, number(c->in[1], "f32")), half, mode_of(c));
		return true;
	}
	if (from_float)
		v = number(c->in[0], c->source);
	if (!strcmp(c->source, "f32"))
		v = flushed(c, v, c->source);
	if (from_float)
		v = (quad)to_whole(c, (long double)v);
	if (!to_float) {
		if (from_float)
			i = v != v         ? 0
			    : v > 0x1p100  ? (wide)1 << 100
			    : v < -0x1p100 ? -((wide)1 << 100)
					   : (wide)v;
		c->out = cut(from_float || has(c, "sat") ? bounded(i, c->type) : i,
			ptx_eval_bits(c->type));
		return true;
	}
	c->out = bits_of(finished(c, v), c->type, mode_of(c));
	if (!strcmp(c->type, "f32"))
		c->out = bits_of(flushed(c, number(c->out, c->type), c->type), c->type,
			FE_TONEAREST);
	return true;
}

/* Integers ------------------------------------------------------------------------------------ */

static wide bit_field(const struct ptx_case *c, unsigned n, wide a)
{
	unsigned at = c->in[1] & 255, length = c->in[2] & 255;
	wide v = 0;

	for (unsigned i = 0; i < length && i < n; i++) {
		bool sign = c->type[0] == 's' && (a >> (n - 1) & 1);

		v |= (wide)(at + i < n ? a >> (at + i) & 1 : sign) << i;
	}
	if (c->type[0] == 's' && length && length < n && (v >> (length - 1) & 1))
		v -= (wide)1 << length;
	return v;
}

static wide bytes_chosen(const struct ptx_case *c)
{
	uint8_t byte[8], pick;
	wide v = 0;

	for (unsigned i = 0; i < 8; i++)
		byte[i] = (uint8_t)(c->in[i / 4] >> i % 4 * 8);
	for (unsigned i = 0; i < 4; i++) {
		pick = c->in[2] >> 4 * i & 15;
		v |= (wide)(pick < 8                ? byte[pick]
			     : byte[pick - 8] & 128 ? 255
						    : 0)
		     << 8 * i;
	}
	return v;
}

static wide table_of(const struct ptx_case *c)
{
	wide v = 0;

	for (unsigned i = 0; i < 32; i++) {
		unsigned row = (c->in[0] >> i & 1) * 4 + (c->in[1] >> i & 1) * 2 +
			       (c->in[2] >> i & 1);

		v |= (wide)(c->in[3] >> row & 1) << i;
	}
	return v;
}

static wide dot(const struct ptx_case *c)
{
	wide v = (wide)c->in[2];

	for (unsigned i = 0; i < 32; i += 8) {
		wide a = (uint8_t)(c->in[0] >> i), b = (uint8_t)(c->in[1] >> i);

		a -= c->type[0] == 's' && a > 127 ? 256 : 0;
		b -= c->source[0] == 's' && b > 127 ? 256 : 0;
		v += a * b;
	}
	return v;
}

static wide from_top(const struct ptx_case *c, wide a, unsigned n)
{
	int found = -1;

	if (c->type[0] == 's' && a < 0)
		a = ~a;
	for (unsigned i = 0; i < n; i++)
		if (a >> i & 1)
			found = (int)i;
	return found >= 0 && has(c, "shiftamt") ? (wide)n - 1 - found : found;
}

static bool eval_bits(struct ptx_case *c, wide a, wide b, unsigned n, wide *v)
{
	unsigned by = (unsigned)c->in[1], third = (unsigned)c->in[2], used;

	if (is(c, "and"))
		*v = a & b;
	else if (is(c, "or"))
		*v = a | b;
	else if (is(c, "xor"))
		*v = a ^ b;
	else if (is(c, "not"))
		*v = ~a;
	else if (is(c, "cnot"))
		*v = a == 0;
	else if (is(c, "shl"))
		*v = by < n ? (wide)((unsigned __int128)a << by) : 0;
	else if (is(c, "shr"))
		*v = by < n ? a >> by : a < 0 ? -1 : 0;
	else if (is(c, "popc"))
		for (*v = 0; a; a &= a - 1)
			++*v;
	else if (is(c, "clz"))
		for (*v = 0; *v < n && !(a >> (n - 1 - (unsigned)*v) & 1);)
			++*v;
	else if (is(c, "brev"))
		for (unsigned i = *v = 0; i < n; i++)
			*v |= (a >> i & 1) << (n - 1 - i);
	else if (is(c, "bfind"))
		*v = from_top(c, a, n);
	else if (is(c, "bfe"))
		*v = bit_field(c, n, a);
	else if (is(c, "bfi"))
		for (unsigned i = 0, l = c->in[3] & 255, at = third & 255;
			(*v = i ? *v : b), i < l && at + i < n; i++)
			*v = (*v & ~((wide)1 << (at + i))) | (a >> i & 1) << (at + i);
	else if (is(c, "shf")) {
		used = has(c, "wrap") ? third & 31 : third < 32 ? third : 32;
		*v = (wide)(((unsigned __int128)c->in[1] << 32 | (uint32_t)c->in[0]) >>
			    (has(c, "l") ? 32 - used : used));
	} else
		return false;
	return true;
}

static wide divided(const struct ptx_case *c, wide a, wide b)
{
	if (is(c, "div"))
		return b ? a / b : -1;
	return b ? a % b : a;
}

static bool eval_sum(struct ptx_case *c, wide a, wide b, wide e, unsigned n, wide *v)
{
	wide product = (wide)((unsigned __int128)a * (unsigned __int128)b),
	     carry = c->carry;
	bool is_minus = !strncmp(c->op, "sub", 3),
	     takes = c->op[strlen(c->op) - 1] == 'c';

	if (is(c, "mul24") || is(c, "mad24")) {
		wide x = cut(a, 24), y = cut(b, 24);

		x -= c->type[0] == 's' && x >> 23 ? 1 << 24 : 0;
		y -= c->type[0] == 's' && y >> 23 ? 1 << 24 : 0;
		*v = (x * y >> (has(c, "hi") ? 16 : 0)) + (is(c, "mad24") ? e : 0);
		return true;
	}
	if (has(c, "hi"))
		product =
			n == 64 && c->type[0] == 'u'
				? (wide)(((unsigned __int128)a * (unsigned __int128)b) >>
					  64)
				: product >> n;
	if (is(c, "mul"))
		*v = product;
	else if (!strncmp(c->op, "mad", 3)) {
		unsigned __int128 sum = (unsigned __int128)cut(product, n) + cut(e, n) +
					(takes ? (unsigned)carry : 0);

		*v = has(c, "wide")  ? product + e
		     : has(c, "sat") ? bounded(product + e, c->type)
				     : (wide)sum;
		c->carry = has(c, "cc") ? sum >> n & 1 : c->carry;
	} else if (!strncmp(c->op, "add", 3) || is_minus) {
		unsigned __int128 x = cut(a, n), y = (unsigned __int128)cut(b, n) +
						     (takes ? (unsigned)carry : 0);

		*v = (wide)(is_minus ? x - y : x + y);
		if (has(c, "cc"))
			c->carry = is_minus ? x < y : (x + y) >> n & 1;
		if (has(c, "sat"))
			*v = bounded(is_minus ? a - b : a + b, c->type);
	} else
		return false;
	return true;
}

static bool eval_integer(struct ptx_case *c)
{
	unsigned n = ptx_eval_bits(c->type), result = n;
	wide a = integer(c->in[0], c->type), b = integer(c->in[1], c->type), v = 0;
	wide e = integer(c->in[2], has(c, "wide") ? "u64" : c->type);

	if (has(c, "wide"))
		result = n * 2;
	if (eval_sum(c, a, b, e, n, &v) || eval_bits(c, a, b, n, &v))
		;
	else if (is(c, "min") || is(c, "max"))
		v = (a < b) == is(c, "min") ? a : b;
	else if (is(c, "abs"))
		v = a < 0 ? -a : a;
	else if (is(c, "neg"))
		v = -a;
	else if (is(c, "sad"))
		v = e + (a < b ? b - a : a - b);
	else if (is(c, "div") || is(c, "rem"))
		v = divided(c, a, b);
	else if (is(c, "prmt"))
		v = bytes_chosen(c);
	else if (is(c, "lop3"))
		v = table_of(c);
	else if (is(c, "dp4a"))
		v = dot(c);
	else
		return false;
	if (is(c, "popc") || is(c, "clz") || is(c, "bfind"))
		result = 32;
	c->out = cut(v, result);
	return true;
}

bool ptx_eval(struct ptx_case *c)
{
	c->is_approximate = false;
	if (is(c, "setp") || is(c, "set"))
		return eval_compare(c);
	if (is(c, "testp"))
		return eval_testp(c);
	if (is(c, "cvt"))
		return eval_convert(c);
	if (is(c, "selp") || is(c, "slct")) {
		bool first = is(c, "selp") ? c->in[2] & 1
			     : is_float(c->source)
				     ? flushed(c, number(c->in[2], "f32"), "f32") >= 0
				     : (int32_t)c->in[2] >= 0;

		c->out = cut((wide)c->in[!first], ptx_eval_bits(c->type));
		return true;
	}
	if (strstr(c->type, "x2"))
		return eval_lanes(c);
	return is_float(c->type) ? eval_float(c) : eval_integer(c);
}

bool ptx_eval_same(const struct ptx_case *c, const char *type, uint64_t a, uint64_t b)
{
	quad x, y, apart, allowed;

	if (a == b)
		return true;
	if (strstr(type, "x2")) {
		const char *half = type[0] == 'b' ? "bf16" : "f16";

		return ptx_eval_same(c, half, a & 0xffff, b & 0xffff) &&
		       ptx_eval_same(c, half, a >> 16, b >> 16);
	}
	if (!is_float(type))
		return false;
	x = number(a, type);
	y = number(b, type);
	if (x != x || y != y)
		return x != x && y != y;
	apart = x < y ? y - x : x - y;
	allowed = (x < 0 ? -x : x) *
		  (strcmp(type, "f64") && strcmp(type, "f32") ? 0x1p-7 : 0x1p-20);
	return c->is_approximate &&
	       (apart <= allowed || apart < (has(c, "ftz") ? 0x1p-125 : 0x1p-147));
}
