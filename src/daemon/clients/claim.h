/*
 * claim - how much of what a process reports to hold is believed
 *
 * A REPORT is the only message that adds bytes to the books without a grant. So the daemon believes
 * a REPORT up to a bound, and no process gets more by reporting than by asking:
 *   - a process in this daemon's books: what they say, since every byte was granted;
 *   - a process from before this daemon: what a demand could get now or, if that is more, what NVML
 *     lists for the process in a sample begun after the reconnect (control/recount.h).
 * A demand could get free memory less what others' requests still lack, within the workload's
 * limit. An earlier limit counts if `sluice set` lowered it below what the workload has.
 *
 * What NVML lists beyond a process's backing counts as hidden memory, which cannot be moved. So an
 * honest process whose report is cut loses nothing, but other processes may wait for those bytes
 * for ever. From its second report on, a process is in the books.
 */
#ifndef SL_DAEMON_CLIENTS_CLAIM_H
#define SL_DAEMON_CLIENTS_CLAIM_H

#include "daemon/state/daemon.h"

struct sl_client;

/* Returns how many of `bytes` on the client's GPU to believe. Cuts *evicted, bytes on the host, to
 * the client's backing in the books or, on its first report, to the workload's limit. Logs a cut.
 * O(number of workloads). */
uint64_t sl_claim_believe(
	struct sl_client *client, uint32_t ordinal, uint64_t bytes, uint64_t *evicted);
/* Sets the client's hidden bytes, here and in the policy. */
void sl_claim_hidden(struct sl_client *client, uint32_t ordinal, uint64_t bytes);
/* A client reported its backing: subtracts it from hidden bytes that were measured before. */
void sl_claim_reported(struct sl_daemon *daemon, struct sl_client *client,
	uint32_t ordinal, uint64_t bytes);
/* Drops an earlier, larger limit once all clients have reported and were measured, and the workload
 * is within its limit on every GPU. */
void sl_claim_forget_former(struct sl_daemon *daemon, struct sl_workload *workload);

#endif
