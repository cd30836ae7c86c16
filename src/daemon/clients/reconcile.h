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

#include "daemon/state/daemon.h"

/* An answer to MEASURE comes after this at the latest. */
#define SL_RECONCILE_ANSWER_NS (200 * SL_MS)
#define SL_RECONCILE_LEFT_NS   (500 * SL_MS)
#define SL_RECONCILE_BLIND_NS  (5 * SL_S)
/* Distance between urgent samples: doubles from the first to the second, so that a release is
 * seen within the 5 ms that it may take until a waiter is told; after URGENT_NS, when the driver
 * is slow by any measure, up to the third. */
#define SL_RECONCILE_PAUSE_MIN_NS (1 * SL_MS)
#define SL_RECONCILE_PAUSE_NS     (3 * SL_MS)
#define SL_RECONCILE_PAUSE_MAX_NS (50 * SL_MS)
#define SL_RECONCILE_URGENT_NS    (2 * SL_S)

/* The GPU is managed from now on: measure it. */
void sl_reconcile_begin(struct sl_daemon *daemon, uint32_t gpu);
/* Ask about this GPU at once, if it is managed. */
void sl_reconcile_now(struct sl_daemon *daemon, uint32_t gpu);
/* Count all that there is on this GPU, from now on and at once (control/recount.h). */
void sl_reconcile_look(struct sl_daemon *daemon, uint32_t gpu);
/* A client died with bytes: look often until they are gone. */
void sl_reconcile_dying(struct sl_daemon *daemon, struct sl_client *client);
/* A client wants to know its hidden bytes. */
void sl_reconcile_measure(
	struct sl_daemon *daemon, struct sl_client *client, uint32_t ordinal);
/* A client told its backing: hidden bytes measured before are too many by that. */
void sl_reconcile_reported(struct sl_daemon *daemon, struct sl_client *client,
	uint32_t ordinal, uint64_t bytes);
/* Look at a client's GPUs within delay. */
void sl_reconcile_soon(
	struct sl_daemon *daemon, const struct sl_client *client, sl_ns delay);
/* A usage from the measuring thread. */
void sl_reconcile_sample(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample);
/* Handler of measure_timer. */
int sl_reconcile_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
