/*
 * agent - the one thread that listens to the daemon
 *
 * It is detached, blocks all signals, and ends only when the daemon rejects us. It connects, and
 * connects again after a loss. It hands messages to the session and orders to the swap thread,
 * carries out GATE orders (gating.h) and answers PROBEs. After the program's first submissions it
 * asks for measurements.
 */
#ifndef SL_RUNTIME_LINK_AGENT_H
#define SL_RUNTIME_LINK_AGENT_H

#include "base/sl.h"

/* Starts the thread, which will connect to path (kept by reference). The session's join calls it
 * once per process. Negative errno or 0. */
SL_MUST_CHECK int sl_agent_start(const char *path);
/* In the child of a fork. */
void sl_agent_forget(void);

#endif
