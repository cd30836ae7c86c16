/*
 * rights - a job starts with its submitter's limits, capabilities and sandbox
 *
 * The daemon's own are those of a service: more descriptors, other bounds on locked memory and
 * processes, capabilities that a submitter may have dropped for good. The kernel is asked for the
 * submitter's, so a job gets no more than its submitter has. A process that has ended, or whose
 * seccomp filters the job could not have, cannot submit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "daemon/core/user.h"
#include "daemon/jobs/internal.h"

_Static_assert(SL_JOBSPEC_LIMITS <= RLIM_NLIMITS, "each has its number");

bool sl_jobs_ask_rights(
	const struct sl_peer *peer, struct sl_user_rights *out, struct sl_error *err)
{
	struct sl_user asked = {0};
	const struct sl_user *who = peer->who;

	if (!who) {
		sl_user_ask_rights(&asked, peer->pid, peer->pidfd);
		who = &asked;
	}
	*out = who->rights;
	if (!who->has_rights && peer->who)
		sl_error_set(err, "which process asks is not known: it has ended, or the "
				  "kernel (before "
				  "Linux 6.5) does not say; use `sluice submit`, or a "
				  "token of `sluice "
				  "page`");
	else if (!who->has_rights)
		sl_error_set(err,
			"what process %d may do cannot be read, and a job may do no more "
			"than "
			"its submitter; let the process that submits wait for the answer",
			(int)peer->pid);
	else if (who->rights.filtered)
		sl_error_set(err,
			"this process runs under seccomp filters (a sandbox), and a job "
			"would run without them; submit from outside of the sandbox "
			"(sluice run works here)");
	return who->has_rights && !who->rights.filtered;
}

int sl_jobs_add_rights(const struct sl_user_rights *rights, struct sl_jobspec *spec)
{
	char text[64];
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < SL_JOBSPEC_LIMITS; i++) {
		(void)snprintf(text, sizeof(text), "%u %" PRIu64 " %" PRIu64, i,
			(uint64_t)rights->limits[i].rlim_cur,
			(uint64_t)rights->limits[i].rlim_max);
		r = sl_jobspec_add(spec, SL_JOBSPEC_LIMIT, text);
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %d %" PRIu32, rights->caps,
		rights->no_new_privs, rights->login);
	return r ? r : sl_jobspec_add(spec, SL_JOBSPEC_RIGHTS, text);
}
