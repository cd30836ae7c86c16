/*
 * jobs_limits - the resource limits that a job starts with: those of who submitted it
 *
 * The daemon's own are a service's: more descriptors, other bounds on locked memory, processes and core files than the user's sessions have,
 * whichever its unit says. What the submitter has is asked of the kernel and not of him, so nobody gets more than he was allowed.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "daemon/jobs_room.h"

/* It lives, so what was asked of its number was asked of it. */
static bool lives(const struct sl_peer *peer)
{
	struct pollfd death = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd >= 0 && poll(&death, 1, 0) == 0;
}

int sl_jobs_add_limits(const struct sl_peer *peer, struct sl_jobspec *spec)
{
	struct rlimit limits[SL_JOBSPEC_LIMITS];
	char text[64];
	int r = 0;

	for (unsigned int i = 0; i < SL_JOBSPEC_LIMITS; i++) {
		if (prlimit(peer->pid, (enum __rlimit_resource)i, NULL, &limits[i]) == 0)
			continue;
		sl_debug("the limits of process %d cannot be read: %s", (int)peer->pid,
			strerror(errno));
		return 0;
	}
	/* Who has gone may have left its number to somebody else: then the job has the daemon's. */
	if (!lives(peer))
		return 0;
	for (unsigned int i = 0; r == 0 && i < SL_JOBSPEC_LIMITS; i++) {
		(void)snprintf(text, sizeof(text), "%u %" PRIu64 " %" PRIu64, i,
			(uint64_t)limits[i].rlim_cur, (uint64_t)limits[i].rlim_max);
		r = sl_jobspec_add(spec, SL_JOBSPEC_LIMIT, text);
	}
	return r;
}
