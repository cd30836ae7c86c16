/*
 * meters - when each process may submit GPU work: orders of policy/compute as messages
 *
 * Clients are added when they have reported, and leave with their connection, which opens their
 * gate.
 * Their messages only note what happened; settling decides. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_METERS_H
#define SL_DAEMON_WORKLOADS_METERS_H

#include "daemon/state/daemon.h"

struct sl_client;

/* The client has reported, for the first time or after a lost connection. */
void sl_meters_joined(struct sl_client *client);
/* It is dead, or its connection is lost. */
void sl_meters_left(struct sl_client *client);
void sl_meters_message(struct sl_client *client, const struct sl_msg_metered *metered);
/* Shares, GPUs of a workload, or the configuration changed. */
void sl_meters_changed(struct sl_daemon *daemon);
/* The workload is over; its clients have left. */
void sl_meters_forget(struct sl_workload *workload);
/* Sends what is due. */
void sl_meters_settle(struct sl_daemon *daemon);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_meters_open(struct sl_daemon *daemon);
/* Call after the clients are gone. */
void sl_meters_close(struct sl_daemon *daemon);

#endif
