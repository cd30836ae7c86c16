/*
 * freezer - takes Slurm's freeze from a process' cgroup for a while
 *
 * Slurm freezes the cgroups of a suspended job's steps: in cgroup v1 by freezer.state. One thread.
 */
#ifndef SL_SLURM_FREEZER_H
#define SL_SLURM_FREEZER_H

#include <sys/types.h>

#include "base/sl.h"

#define SL_FREEZER_GROUPS_MAX 16
#define SL_FREEZER_PATH_MAX   512

/* Zeroed at first, but for within. */
struct sl_freezer {
	const char *within; /* only cgroups below this one; a folder */
	char paths[SL_FREEZER_GROUPS_MAX][SL_FREEZER_PATH_MAX]; /* thawed here; files */
	size_t count;
};

/* The folder of a process' cgroup in the freezer's hierarchy. False if there is none. */
SL_MUST_CHECK bool sl_freezer_folder(pid_t pid, char *path, size_t size);
/* That of the process' job, in Slurm's tree. Likewise. */
SL_MUST_CHECK bool sl_freezer_job(pid_t pid, char *path, size_t size);
/* If the process is in a frozen cgroup within: thaws that, and remembers it. */
void sl_freezer_thaw(struct sl_freezer *freezer, pid_t pid);
/* Freezes again what was thawed. */
void sl_freezer_freeze(struct sl_freezer *freezer);
/* Thaws what was frozen again, and forgets all. */
void sl_freezer_release(struct sl_freezer *freezer);

#endif
