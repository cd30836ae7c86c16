/*
 * reconcile - what the driver says, against what the books say
 *
 * Per sample of a GPU:
 *   hidden(client) = what NVML lists for its process - its backing, judged only while no grant
 *	is open and nothing changed since the sample began; a change counts when two samples
 *	agree, because memory on its way in or out looks like hidden memory
 *   unmanaged(GPU) = what NVML lists for processes that are no clients
 *   dying(client)  = released when NVML no longer lists its dead process *and* the sum of the
 *	listed processes accounts for the whole GPU's use again (some drivers drop the process
 *	from the list before its memory is back); at the latest 500 ms after it left the list.
 *	A driver that lags beyond that refuses a creation, which the policy handles.
 * Nothing waits for NVML: where it gives no sample for 5 s, dying bytes count as released.
 */
#ifndef SL_DAEMON_CLIENTS_RECONCILE_H
#define SL_DAEMON_CLIENTS_RECONCILE_H

#include "daemon/gpu/measure.h"
#include "daemon/state/daemon.h"

#define SL_RECONCILE_LEFT_NS (500 * SL_MS)

/* A usage from the measuring thread. */
void sl_reconcile_sample(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample);
/* Handler of measure_timer. */
int sl_reconcile_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
