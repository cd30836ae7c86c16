/*
 * actions - carries the policy's actions out
 *
 * Messages are sent or queued, never received, so no action steps the node again.
 */
#ifndef SL_DAEMON_LOOP_ACTIONS_H
#define SL_DAEMON_LOOP_ACTIONS_H

#include "policy/node.h"

/* The daemon's act in struct sl_upcalls. */
void sl_actions_carry_out(void *context, const struct sl_action *action);

#endif
