/*
 * standing - how the workload of a step stands, as the daemon lists it
 */
#ifndef SL_SLURM_STANDING_H
#define SL_SLURM_STANDING_H

#include <sys/types.h>

#include "base/sl.h"

struct sl_conn;

struct sl_standing {
	uint64_t workload; /* its number; 0: there is none */
	bool is_parked;    /* or is being parked */
	bool away;         /* all of it that can leave its GPUs has */
};

/* Of the user's workload of this name: another user may have chosen the name, too. 0 or an exit
 * status. */
SL_MUST_CHECK int sl_standing_look(
	struct sl_conn *conn, const char *name, uid_t uid, struct sl_standing *now);

#endif
