/*
 * sluice-slurm - holds the workload of a Slurm step on one node; started by spank_sluice.so
 *
 * usage: sluice-slurm OPTION... -- CMD..., those of `sluice run`: the keeper.
 *        sluice-slurm --porter NAME UID
 *        sluice-slurm --clerk NAME UID JOB SINCE
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/line/cli.h"
#include "slurm/holder.h"

int main(int argc, char **argv)
{
	struct sl_slurm_page *page;

	if (argc == 4 && strcmp(argv[1], SL_SLURM_PORTER) == 0)
		sl_porter_main(argv + 2);
	if (argc == 6 && strcmp(argv[1], SL_SLURM_CLERK) == 0)
		return sl_clerk_main(argv + 2);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		SL_SLURM_PAGE_FD, 0);
	if (page == MAP_FAILED) {
		fputs("sluice-slurm: started by spank_sluice.so alone\n", stderr);
		return SL_EXIT_USAGE;
	}
	(void)close(SL_SLURM_PAGE_FD);
	return sl_keeper_main(page, argc, argv);
}
