/*
 * why - what stands in a workload's way now, and what happened to it
 *
 * First the policy's current reasons (current 1). Then the kept events that say why the workload
 * was stopped, denied or got less: at most SL_WHY_EVENTS, oldest first. An ended workload is found
 * in the events by name or number. Every user may ask about every workload, as ps(1) shows all
 * processes.
 */
#ifndef SL_DAEMON_CONTROL_WHY_H
#define SL_DAEMON_CONTROL_WHY_H

#include "daemon/core/stream.h"
#include "daemon/link/peer.h"

#define SL_WHY_EVENTS  32
#define SL_WHY_CURRENT 256

/* WHY came in: sets up the peer's stream. */
void sl_why_begin(struct sl_peer *peer, const struct sl_msg_why *why);
enum sl_stream_outcome sl_why_next(struct sl_peer *peer, union sl_msg *msg);

#endif
