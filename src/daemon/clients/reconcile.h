/*
 * reconcile - compares what the driver says with what the books say
 *
 * Per sample of a GPU:
 *   hidden(client) = what NVML lists for its process - its resident backing, judged only while no
 *                    grant is open and nothing changed since the sample began. A change counts when
 *                    two samples agree: memory on its way in or out looks like hidden memory.
 *   unmanaged(GPU) = what NVML lists for processes that are not clients.
 *   dying(client)  = released when NVML no longer lists its dead process *and* the listed processes
 *                    account for the whole GPU's use again; at the latest 500 ms after it left the
 *                    list. Some drivers drop a process from the list before its memory is back. If
 *                    the driver lags longer, it refuses an allocation; the policy handles that.
 * Nothing waits for NVML: where it gives no sample for 5 s, dying bytes count as released.
 */
#ifndef SL_DAEMON_CLIENTS_RECONCILE_H
#define SL_DAEMON_CLIENTS_RECONCILE_H

#include "daemon/gpu/measure.h"
#include "daemon/state/daemon.h"

#define SL_RECONCILE_LEFT_NS (500 * SL_MS)

/* A sample from the measuring thread. */
void sl_reconcile_sample(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample);
/* Handler of measure_timer. */
int sl_reconcile_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
