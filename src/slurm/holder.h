/*
 * holder - the two processes that sluice-slurm becomes; one thread each
 */
#ifndef SL_SLURM_HOLDER_H
#define SL_SLURM_HOLDER_H

#include "slurm/page.h"

/* Both return the exit status. */
int sl_keeper_main(struct sl_slurm_page *page, int argc, char **argv);
/* argv: the name of the workload, the number of its user, the cgroup of the job ("": none). */
int sl_porter_main(struct sl_slurm_page *page, char **argv);

#endif
