/*
 * probing - TO DO: see the header
 */
#include "daemon/probing.h"

void sl_probing_set(struct sl_daemon *daemon, uint64_t client, enum sl_probe mode)
{
}

void sl_probing_pulse(struct sl_client *client, const struct sl_msg_pulse *pulse)
{
}
