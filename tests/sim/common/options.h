/*
 * options - what the programs of the simulations read and print alike
 */
#ifndef SL_SIM_OPTIONS_H
#define SL_SIM_OPTIONS_H

#include "base/sl.h"
#include "policy/words/reason.h"

/* Reads a word of the command line. False: it is no number, or 0 (a run of 0 events would
 * hold every rule). */
SL_MUST_CHECK bool sim_read_number(const char *text, uint64_t *out);
/* Another one for every run. */
uint64_t sim_some_seed(void);
/* Becomes the program with the faults in it, which lies beside this one. Returns an exit status
 * if that fails. */
int sim_hand_over(const char *program, char **argv);
/* A line: the title in `width` columns, then the name and count of each reason that occurred. */
void sim_print_counts(const char *title, int width, const uint64_t count[SL_REASONS]);

#endif
