/*
 * options - --sluice-request, --sluice-limit and --sluice-gpus of srun, sbatch and salloc
 *
 * A wrong value is refused where it is given, on the submit host, with the sentence of `sluice
 * run`. State of the process, as SPANK's is; one thread.
 */
#ifndef SL_SLURM_OPTIONS_H
#define SL_SLURM_OPTIONS_H

#include "base/sl.h"

struct spank_handle; /* Slurm's */

/* To be called in every context. 0 or a SPANK error. */
SL_MUST_CHECK int sl_options_register(struct spank_handle *spank);
/* In a process that submits a job: those of the job around it, which Slurm hands on in the
 * environment, are not the new job's. */
void sl_options_forget_outer(void);
/* Do they go together? 0, or -1 after a message. */
SL_MUST_CHECK int sl_options_check(void);
/* Was one of them given? */
bool sl_options_given(void);
/* Appends those that were given to argv, as `sluice run` takes them; at most SL_OPTIONS_WORDS
 * words. Returns how many. The words live as long as the process. */
#define SL_OPTIONS_WORDS 6
size_t sl_options_words(const char **argv);
/* What was given, in one word; equal for equal options. */
void sl_options_print(char *out, size_t size);

#endif
