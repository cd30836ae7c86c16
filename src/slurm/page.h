/*
 * page - what the tasks of a step and their keeper share
 *
 * The plugin makes it before the tasks are forked; the keeper maps it from descriptor
 * SL_SLURM_PAGE_FD. The tasks wait until its state is no longer SL_SLURM_ASKING. The user may write
 * to it, so root reads nothing of it, and its size is sealed.
 */
#ifndef SL_SLURM_PAGE_H
#define SL_SLURM_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define SL_SLURM_PAGE_FD  3
#define SL_SLURM_NAME_MAX 64
/* The arguments that make a porter or a clerk of sluice-slurm. */
#define SL_SLURM_PORTER "--porter"
#define SL_SLURM_CLERK  "--clerk"

enum sl_slurm_state {
	SL_SLURM_ASKING = 0,
	SL_SLURM_READY,  /* environment is set */
	SL_SLURM_FAILED, /* status is set; the text went to the keeper's standard error */
};

struct sl_slurm_page {
	atomic_uint state; /* enum sl_slurm_state */
	atomic_int status; /* exit status of the tasks, as that of `sluice run` */
	/* NAME=VALUE of each variable that the tasks need, NUL-terminated; an empty one ends it. */
	char environment[32768];
};

#endif
