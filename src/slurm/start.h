/*
 * start - starts the keeper, the porter and the clerk of a step, from slurmstepd
 */
#ifndef SL_SLURM_START_H
#define SL_SLURM_START_H

#include "base/sl.h"

struct spank_handle; /* Slurm's */

/* What a step was given is no choice of the user's. This variable has it, and what there was
 * before: "GIVEN=BEFORE". */
#define SL_START_GPUS    "CUDA_VISIBLE_DEVICES"
#define SL_START_CHANGED "SLUICE_STEP_GPUS"
/* Values of these two variables (NULL: not set) -> the user's GPUs; NULL or "": none. */
const char *sl_start_own_gpus(const char *gpus, const char *changed);

struct sl_start_settings {
	const char *keeper; /* the program */
	const char *socket; /* the daemon's; NULL: the usual one */
	bool waits;         /* for room */
};

/* In task_post_fork, as root. The keeper has the user of the job, and page_fd and said_fd, which
 * stay the caller's. Returns its pidfd, or negative errno. Never blocks. */
SL_MUST_CHECK int sl_start_keeper(struct spank_handle *spank,
	const struct sl_start_settings *settings, const char *name, int page_fd,
	int said_fd);
/* Likewise. The porter stays root, and gets nothing of the job. */
SL_MUST_CHECK int sl_start_porter(struct spank_handle *spank,
	const struct sl_start_settings *settings, const char *name);
/* When the tasks of a step are over and its keeper is not, as root: waits until the clerk is done,
 * or a moment. since: seconds since 1970. */
void sl_start_clerk(struct spank_handle *spank, const struct sl_start_settings *settings,
	const char *name, uint64_t since);
/* Accepts a negative pidfd. */
void sl_start_kill(int pidfd);

#endif
