/*
 * ptx_eval - a slow evaluator of PTX instructions, which shares nothing with the translation
 *
 * Integers are computed in 128 bits and cut. Floats are computed in quadruple precision, in the
 * rounding mode asked for. A half is then rounded by bisection over all values of its format.
 */
#ifndef SL_TEST_SOFTGPU_PTX_EVAL_H
#define SL_TEST_SOFTGPU_PTX_EVAL_H

#include <stdbool.h>
#include <stdint.h>

struct ptx_case {
	char op[16];
	char mods[64]; /* " rn ftz " and the like, types left out, blanks around each */
	char type[8], source[8];
	uint64_t in[4];
	uint32_t carry; /* in and out */
	uint64_t out;
	bool is_approximate;
};

/* False where it does not know the instruction. */
bool ptx_eval(struct ptx_case *c);
unsigned ptx_eval_bits(const char *type);
/* Are the bits a number's as near as the case asks for? No number equals any other. */
bool ptx_eval_same(const struct ptx_case *c, const char *type, uint64_t a, uint64_t b);

#endif
