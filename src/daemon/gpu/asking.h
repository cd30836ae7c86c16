/*
 * asking - when NVML is asked about a GPU
 *
 * NVML is asked about every GPU once per measure_interval, and at once when a client or a message
 * waits for the answer. Loop's thread; clients/reconcile.c handles the answers.
 */
#ifndef SL_DAEMON_GPU_ASKING_H
#define SL_DAEMON_GPU_ASKING_H

#include "daemon/state/daemon.h"

struct sl_client;

/* Longest delay of an answer to MEASURE. */
#define SL_ASKING_ANSWER_NS (200 * SL_MS)
#define SL_ASKING_BLIND_NS  (5 * SL_S)
/* Interval between urgent samples. It doubles from PAUSE_MIN_NS to PAUSE_NS, so that a release is
 * seen within the 5 ms allowed until a waiter is told. After URGENT_NS the driver is slow by any
 * measure, and the interval doubles on to PAUSE_MAX_NS. */
#define SL_ASKING_PAUSE_MIN_NS (1 * SL_MS)
#define SL_ASKING_PAUSE_NS     (3 * SL_MS)
#define SL_ASKING_PAUSE_MAX_NS (50 * SL_MS)
#define SL_ASKING_URGENT_NS    (2 * SL_S)

/* The GPU is managed from now on: starts measuring it. */
void sl_asking_begin(struct sl_daemon *daemon, uint32_t gpu);
/* Asks about this GPU at once, if it is managed. */
void sl_asking_now(struct sl_daemon *daemon, uint32_t gpu);
/* Has everything on this GPU counted by a look that begins now (control/recount.h). */
void sl_asking_look(struct sl_daemon *daemon, uint32_t gpu);
/* A client died holding memory: samples its GPUs often until it is released. */
void sl_asking_dying(struct sl_daemon *daemon, struct sl_client *client);
/* A client asks for its hidden bytes. */
void sl_asking_measure(
	struct sl_daemon *daemon, struct sl_client *client, uint32_t ordinal);
/* Asks about a client's GPUs within delay. */
void sl_asking_soon(
	struct sl_daemon *daemon, const struct sl_client *client, sl_ns delay);
/* Asks about this GPU at the given time, or earlier if it is due before. */
void sl_asking_at(struct sl_daemon *daemon, struct sl_gpu *gpu, sl_ns at);
/* Asks if it is due. Returns when to call again; SL_NS_NEVER: not for this GPU. */
sl_ns sl_asking_if_due(struct sl_daemon *daemon, uint32_t number, sl_ns now);
/* Makes measure_timer fire at the given time, or earlier. */
void sl_asking_arm(struct sl_daemon *daemon, sl_ns at);

#endif
