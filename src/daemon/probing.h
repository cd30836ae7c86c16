/*
 * probing - what clients' GPU work does, for those that the policy asks about
 *
 * Client side: PROBE out, PULSE in, both become events. System side: the state of the process
 * (/proc/PID/stat), looked at once a second while it is probed; and whether its agent still answers.
 * Costs nothing for who is not probed. A client of protocol 1 cannot be probed: it is never
 * idle, and silent only if its process is stopped or traced. Loop's thread.
 */
#ifndef SL_DAEMON_PROBING_H
#define SL_DAEMON_PROBING_H

#include "daemon/daemon.h"

/* Carries out an action PROBE. Called from within a step of the policy: must not step it. */
void sl_probing_set(struct sl_daemon *daemon, uint64_t client, enum sl_probe mode);
/* A PULSE came in. */
void sl_probing_pulse(struct sl_client *client, const struct sl_msg_pulse *pulse);

#endif
