/*
 * claim - how much a process can hold that says what it holds
 *
 * A REPORT is the only message that adds bytes to the books without a grant, so it is believed
 * up to a bound, and no process gets further by reporting than by asking:
 *   - who has been in this daemon's books: no more than they say, since every byte was granted;
 *   - others (of a daemon before): no more than a demand could get now, that is free memory
 *	less what others' requests still lack, within the workload's limit, or the larger one it
 *	had before where that was lowered below what it has; or what NVML lists for the process,
 *	if that is more, by a sample that began after it came back (control/recount.h).
 * What NVML lists beyond its backing counts as hidden, which nothing can move: so an honest process
 * that is cut loses nothing, but others may wait for those bytes for ever. What it says of its
 * memory later counts as far as the books go.
 */
#ifndef SL_DAEMON_CLIENTS_CLAIM_H
#define SL_DAEMON_CLIENTS_CLAIM_H

#include "daemon/state/daemon.h"

struct sl_client;

/* What to believe of `bytes` on the client's GPU, and of *evicted on the host besides, which is
 * believed up to the workload's limit; says so in the log when it is less. O(number of
 * workloads). */
uint64_t sl_claim_believe(
	struct sl_client *client, uint32_t ordinal, uint64_t bytes, uint64_t *evicted);
/* What the client has beside its backing, as the policy is to know it. */
void sl_claim_hidden(struct sl_client *client, uint32_t ordinal, uint64_t bytes);
/* A client told its backing: hidden bytes measured before are too many by that. */
void sl_claim_reported(struct sl_daemon *daemon, struct sl_client *client,
	uint32_t ordinal, uint64_t bytes);
/* Nothing is believed up to an earlier, larger limit any more, once all have reported and were
 * measured, and no GPU has more of the workload than its limit. */
void sl_claim_forget_former(struct sl_daemon *daemon, struct sl_workload *workload);

#endif
