/*
 * asking - when NVML is asked about a GPU
 *
 * Once per measure_interval about everything, and at once where a client or a message waits for the
 * answer. Loop's thread; clients/reconcile.c takes the answers.
 */
#ifndef SL_DAEMON_GPU_ASKING_H
#define SL_DAEMON_GPU_ASKING_H

#include "daemon/state/daemon.h"

struct sl_client;

/* An answer to MEASURE comes after this at the latest. */
#define SL_ASKING_ANSWER_NS (200 * SL_MS)
#define SL_ASKING_BLIND_NS  (5 * SL_S)
/* Distance between urgent samples: doubles from the first to the second, so that a release is
 * seen within the 5 ms that it may take until a waiter is told; after URGENT_NS, when the driver
 * is slow by any measure, up to the third. */
#define SL_ASKING_PAUSE_MIN_NS (1 * SL_MS)
#define SL_ASKING_PAUSE_NS     (3 * SL_MS)
#define SL_ASKING_PAUSE_MAX_NS (50 * SL_MS)
#define SL_ASKING_URGENT_NS    (2 * SL_S)

/* The GPU is managed from now on: measure it. */
void sl_asking_begin(struct sl_daemon *daemon, uint32_t gpu);
/* Ask about this GPU at once, if it is managed. */
void sl_asking_now(struct sl_daemon *daemon, uint32_t gpu);
/* Count all that there is on this GPU, from now on and at once (control/recount.h). */
void sl_asking_look(struct sl_daemon *daemon, uint32_t gpu);
/* A client died with bytes: look often until they are gone. */
void sl_asking_dying(struct sl_daemon *daemon, struct sl_client *client);
/* A client wants to know its hidden bytes. */
void sl_asking_measure(
	struct sl_daemon *daemon, struct sl_client *client, uint32_t ordinal);
/* Look at a client's GPUs within delay. */
void sl_asking_soon(
	struct sl_daemon *daemon, const struct sl_client *client, sl_ns delay);
/* Ask about this GPU at the given time, if nothing is due before. */
void sl_asking_at(struct sl_daemon *daemon, struct sl_gpu *gpu, sl_ns at);
/* Asks, if that is due. When to come again; SL_NS_NEVER: not for this GPU. */
sl_ns sl_asking_if_due(struct sl_daemon *daemon, uint32_t number, sl_ns now);
/* measure_timer fires at the given time, or earlier. */
void sl_asking_arm(struct sl_daemon *daemon, sl_ns at);

#endif
