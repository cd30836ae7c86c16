/*
 * control - what the command line asks
 *
 * RUN checks the form of what was asked and hands it to the policy, which admits or refuses;
 * the words of a refusal are made here, from the policy's numbers. LIST is for everyone, as
 * ps(1) is, and is answered row by row as the peer reads.
 */
#ifndef SL_DAEMON_CONTROL_H
#define SL_DAEMON_CONTROL_H

#include "daemon/peer.h"

/* A message of a greeted control peer: now, or after a look at the GPUs (look.h). */
void sl_control_message(struct sl_peer *peer, const union sl_msg *msg);
void sl_control_take(struct sl_peer *peer, const union sl_msg *msg);
/* Sends more rows of what is going out, as many as are due in one turn. */
void sl_control_list_more(struct sl_peer *peer);
/* What RUN and SET may carry. */
bool sl_control_is_amount(uint32_t kind, uint64_t value);
bool sl_control_is_priority(uint32_t biased);

#endif
