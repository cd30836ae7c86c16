/*
 * stopper - TO DO: see the header
 */
#include "daemon/stopper.h"

void sl_stopper_stop(struct sl_daemon *daemon, const struct sl_action *action)
{
}

void sl_stopper_stranger(struct sl_daemon *daemon, const struct sl_action *action)
{
}
