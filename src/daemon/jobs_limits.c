/*
 * jobs_limits - the resource limits that a job starts with: those of who submitted it
 *
 * The daemon's own are a service's: more descriptors, other bounds on locked memory, processes and
 * core files than the user's sessions have, whichever its unit says. What the submitter has is
 * asked of the kernel and not of him, so nobody gets more than he was allowed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/log.h"
#include "daemon/jobs_room.h"
#include "daemon/who.h"

_Static_assert(SL_JOBSPEC_LIMITS <= RLIM_NLIMITS, "each has its number");

int sl_jobs_add_limits(const struct sl_peer *peer, struct sl_jobspec *spec)
{
	struct sl_who asked = {0};
	const struct sl_who *who = peer->who;
	char text[64];
	int r = 0;

	if (!who) {
		sl_who_ask_limits(&asked, peer->pid, peer->pidfd);
		who = &asked;
	}
	/* Then the job has the daemon's. */
	if (!who->has_limits) {
		sl_debug("the limits of process %d are not known", (int)peer->pid);
		return 0;
	}
	for (unsigned int i = 0; r == 0 && i < SL_JOBSPEC_LIMITS; i++) {
		(void)snprintf(text, sizeof(text), "%u %" PRIu64 " %" PRIu64, i,
			(uint64_t)who->limits[i].rlim_cur,
			(uint64_t)who->limits[i].rlim_max);
		r = sl_jobspec_add(spec, SL_JOBSPEC_LIMIT, text);
	}
	return r;
}
