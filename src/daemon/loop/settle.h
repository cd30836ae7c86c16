/*
 * settle - what follows each callback of the loop
 *
 * Callbacks, and actions of the policy, only note some of their work. That work is done here, in
 * the order in which one part may need another.
 */
#ifndef SL_DAEMON_LOOP_SETTLE_H
#define SL_DAEMON_LOOP_SETTLE_H

struct sl_daemon;

/* After every callback: frees dead objects, sends ready views, sets timers. Cheap when idle. */
void sl_settle(struct sl_daemon *daemon);

#endif
