/*
 * settle - what follows each callback of the loop
 *
 * What was only noted is done now, in the order in which the one may need the other: nothing
 * of it may be done in the middle of a callback, or inside an action of the policy.
 */
#ifndef SL_DAEMON_LOOP_SETTLE_H
#define SL_DAEMON_LOOP_SETTLE_H

struct sl_daemon;

/* After every callback: frees the dead, sends ready views, sets timers. Cheap when idle. */
void sl_settle(struct sl_daemon *daemon);

#endif
