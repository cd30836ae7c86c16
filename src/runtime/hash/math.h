/*
 * math - the arithmetic of the hash: its definition, and what the CPU and the kernel share
 *
 * Let p = 2^61 - 1. A chunk is a row of 32-bit words, little-endian. Word i stands in column c = i
 * mod 1024 of line r = i div 1024, so a line is one page of 4 KiB; missing words of the last line
 * are 0. With a key (a, b), two numbers below p, one half of the hash is
 *
 *     h(a, b) = sum over i of  word(i) * a^c * b^r   mod p
 *
 * and the hash is h under two independent keys, `low` and `high`, each below 2^61.
 *
 * Bound. The difference of two chunks of the same size is a polynomial in a and b. It is not 0,
 * since no two words share a monomial and a difference of two words is below p in size. Its degree
 * is d <= 1023 + lines - 1. A random point is a root of it with a probability of at most d / p
 * (Schwartz, Zippel). This holds for any chunks chosen without knowledge of the key. Both halves
 * collide with at most (d / p)^2: 2^-103 for 2 MiB, 2^-93 for 64 MiB, 2^-85 for 1 GiB. Every
 * comparison is one such chance. Chunks of different sizes must not be compared.
 *
 * Why this hash: the sum commutes, so any number of threads may add their parts in any order. Each
 * needs three multiplications and one reduction for 16 bytes and half. The key is 32 bytes, and no
 * expansion of unproven strength is needed.
 *
 * Plain C for the CPU, for a host module and for PTX; includes nothing.
 */
#ifndef SL_RUNTIME_HASH_MATH_H
#define SL_RUNTIME_HASH_MATH_H

#ifndef SL_HASH_FN
#define SL_HASH_FN static inline
#endif

#define SL_HASH_PRIME      ((1ull << 61) - 1)
#define SL_HASH_LINE_WORDS 1024u /* of 32 bits */
#define SL_HASH_LINE_BYTES (4 * SL_HASH_LINE_WORDS)

/* How the kernel divides the work: a block of threads takes one tile, a thread four of its
 * columns. */
#define SL_HASH_TILE_LINES 256u
#define SL_HASH_TILE_BYTES ((unsigned long long)SL_HASH_TILE_LINES * SL_HASH_LINE_BYTES)
#define SL_HASH_THREADS    (SL_HASH_LINE_WORDS / 4)
/* Most chunks in one launch. */
#define SL_HASH_JOBS 1024u

typedef unsigned __int128 sl_hash_wide;

/* A chunk in the kernel's list, and its result. A sum of numbers below 2^61 is kept as two sums, of
 * their lower and their upper 32 bits. These cannot overflow in 2^32 additions. */
struct sl_hash_job {
	unsigned long long address;
	unsigned long long tile; /* number of its first tile in this launch */
	unsigned long long bottom[2],
		top[2];          /* of both halves of the hash; must start at 0 */
	unsigned long long bits; /* a sum that is 0 if and only if all bytes are 0 */
};

/* A key, and the powers of a that one step needs. */
struct sl_hash_powers {
	unsigned long long a, a2, a3, b;
};

/* Four consecutive words. */
struct sl_hash_quad {
	unsigned int word[4];
} __attribute__((aligned(16)));

/* The same modulo p, below 2^61 + 8. x is below 2^124. */
SL_HASH_FN unsigned long long sl_hash_fold(sl_hash_wide x)
{
	unsigned long long once =
		((unsigned long long)x & SL_HASH_PRIME) + (unsigned long long)(x >> 61);

	return (once & SL_HASH_PRIME) + (once >> 61);
}

/* The number below p that equals a folded one modulo p. */
SL_HASH_FN unsigned long long sl_hash_final(unsigned long long folded)
{
	return folded >= SL_HASH_PRIME ? folded - SL_HASH_PRIME : folded;
}

/* Folded factors, folded product. */
SL_HASH_FN unsigned long long sl_hash_times(unsigned long long x, unsigned long long y)
{
	return sl_hash_fold((sl_hash_wide)x * y);
}

SL_HASH_FN unsigned long long sl_hash_power(
	unsigned long long x, unsigned long long exponent)
{
	unsigned long long out = 1;

	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			out = sl_hash_times(out, x);
		x = sl_hash_times(x, x);
	}
	return out;
}

/* Any 64 random bits make a and b. */
SL_HASH_FN struct sl_hash_powers sl_hash_powers_of(
	unsigned long long a, unsigned long long b)
{
	struct sl_hash_powers k;

	k.a = sl_hash_final(a & SL_HASH_PRIME);
	k.a2 = sl_hash_final(sl_hash_times(k.a, k.a));
	k.a3 = sl_hash_final(sl_hash_times(k.a2, k.a));
	k.b = sl_hash_final(b & SL_HASH_PRIME);
	return k;
}

/* One step of Horner's rule: sum * by + the four words as a polynomial in a. by is below 2^61 +
 * 8. */
SL_HASH_FN unsigned long long sl_hash_step(unsigned long long sum, unsigned long long by,
	const struct sl_hash_powers *k, const struct sl_hash_quad *q)
{
	return sl_hash_fold(
		(sl_hash_wide)sum * by + q->word[0] + (sl_hash_wide)k->a * q->word[1] +
		(sl_hash_wide)k->a2 * q->word[2] + (sl_hash_wide)k->a3 * q->word[3]);
}

/* --- for the CPU: line by line, which is three times as fast there and quick over zeros --- */

/* The powers of a by which the words of a line are multiplied, for both keys. */
struct sl_hash_columns {
	unsigned long long power[2][SL_HASH_LINE_WORDS];
};

SL_HASH_FN void sl_hash_columns_init(struct sl_hash_columns *columns,
	const struct sl_hash_powers k[2], unsigned int words)
{
	for (int half = 0; half < 2; half++) {
		unsigned long long power = 1;

		for (unsigned int c = 0; c < words; c++) {
			columns->power[half][c] = sl_hash_final(power);
			power = sl_hash_times(power, k[half].a);
		}
	}
}

/* The sum of a line's words times their powers of a, folded; 1024 products of 93 bits do not
 * overflow. Returns 0 if all words are 0. */
SL_HASH_FN unsigned int sl_hash_line(const struct sl_hash_columns *columns,
	const unsigned int *words, unsigned int count, unsigned long long sum[2])
{
	sl_hash_wide wide[2] = {0, 0};
	unsigned int seen = 0;

	for (unsigned int c = 0; c < count;) {
		unsigned int end = c + 16 < count ? c + 16 : count, any = 0;

		for (unsigned int i = c; i < end; i++)
			any |= words[i];
		for (; any && c < end; c++) {
			wide[0] += (sl_hash_wide)columns->power[0][c] * words[c];
			wide[1] += (sl_hash_wide)columns->power[1][c] * words[c];
		}
		seen |= any;
		c = end;
	}
	sum[0] = sl_hash_fold(wide[0]);
	sum[1] = sl_hash_fold(wide[1]);
	return seen;
}

#endif
