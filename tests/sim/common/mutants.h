/*
 * mutants - switching one of the policy's deliberate faults on (policy/mutant.h)
 *
 * In the ordinary build there are none to switch.
 */
#ifndef SL_SIM_MUTANTS_H
#define SL_SIM_MUTANTS_H

#include <stdbool.h>
#include <stdio.h>

bool sl_mutant_can_switch(void);
/* False if there is no fault of this name. */
bool sl_mutant_switch(const char *name);
/* "NAME text", one a line; either build has the list. */
void sl_mutant_list(FILE *out);

#endif
