/*
 * actions - the policy's actions are carried out
 *
 * Messages are sent or queued, never received, so nothing comes back into the node.
 */
#ifndef SL_DAEMON_LOOP_ACTIONS_H
#define SL_DAEMON_LOOP_ACTIONS_H

#include "policy/node.h"

/* The daemon's act of struct sl_upcalls. */
void sl_actions_carry_out(void *context, const struct sl_action *action);

#endif
