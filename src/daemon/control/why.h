/*
 * why - what stands in a workload's way now, and what happened to it
 *
 * First what the policy says is so at this moment (current 1), then the kept events about it that
 * say why it was stopped, denied or got less, at most SL_WHY_EVENTS, oldest first. A workload that
 * has ended is found in the events by its name or number. Everybody may ask about everybody's, as
 * ps(1) shows everybody's processes.
 */
#ifndef SL_DAEMON_CONTROL_WHY_H
#define SL_DAEMON_CONTROL_WHY_H

#include "daemon/core/stream.h"
#include "daemon/link/peer.h"

#define SL_WHY_EVENTS  32
#define SL_WHY_CURRENT 256

/* WHY came in: sets the peer's stream up. */
void sl_why_begin(struct sl_peer *peer, const struct sl_msg_why *why);
enum sl_stream_outcome sl_why_next(struct sl_peer *peer, union sl_msg *msg);

#endif
