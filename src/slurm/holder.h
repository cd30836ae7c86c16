/*
 * holder - the processes that sluice-slurm becomes
 */
#ifndef SL_SLURM_HOLDER_H
#define SL_SLURM_HOLDER_H

#include "slurm/page.h"

/* All signals are blocked. Returns the exit status. */
int sl_keeper_main(struct sl_slurm_page *page, int argc, char **argv);
/* Likewise. argv: the name of the workload, the number of its user. */
_Noreturn void sl_porter_main(char **argv);
/* Becomes scontrol, or returns the exit status. argv: the name of the workload, the number of its
 * user, that of the job; since when, in seconds since 1970. */
int sl_clerk_main(char **argv);

#endif
