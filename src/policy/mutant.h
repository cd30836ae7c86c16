/*
 * mutant - deliberate one-line faults, to prove that the tests notice them
 *
 * SL_MUTANT(NAME, correct, broken) is `correct` in every ordinary build; `broken` is not even
 * compiled. Built with -DSL_MUTANTS (tests/sim only), the fault that is switched on takes `broken`.
 * tests/sim/common/mutants.def lists all faults.
 */
#ifndef SL_POLICY_MUTANT_H
#define SL_POLICY_MUTANT_H

#ifdef SL_MUTANTS

enum sl_mutant {
	SL_MUTANT_OFF,
#define SL_MUTANT_ROW(NAME, text) SL_MUTANT_IS_##NAME,
#include <sim/common/mutants.def> /* lies with the tests */
#undef SL_MUTANT_ROW
	SL_MUTANTS_END
};

extern int sl_mutant_now;

#define SL_MUTANT(NAME, correct, broken) \
	(__builtin_expect(sl_mutant_now == SL_MUTANT_IS_##NAME, 0) ? (broken) : (correct))

#else

#define SL_MUTANT(NAME, correct, broken) (correct)

#endif
#endif
