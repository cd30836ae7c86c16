/*
 * meters - see the header
 */
#include "daemon/workloads/meters.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/link/peer.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"
#include "daemon/workloads/workload.h"
#include "policy/compute/compute.h"

struct sl_meters {
	struct sl_compute_node compute;
	sd_event_source *timer;
	bool changed;
};

static void send_order(void *context, struct sl_compute_client *metered,
	enum sl_compute_order order, sl_ns span)
{
	static const enum sl_wire_meter modes[] = {
		[SL_COMPUTE_OFF] = SL_WIRE_METER_OFF,
		[SL_COMPUTE_SHUT] = SL_WIRE_METER_SHUT,
		[SL_COMPUTE_SLICE] = SL_WIRE_METER_SLICE,
		[SL_COMPUTE_OPEN] = SL_WIRE_METER_OPEN,
	};
	const struct sl_client *client =
		SL_CONTAINER_OF(metered, struct sl_client, compute);
	union sl_msg msg;

	(void)context;
	if (!client->peer)
		return;
	sl_wire_init(&msg, SL_MSG_METER);
	msg.meter.order = metered->order;
	msg.meter.mode = modes[order];
	msg.meter.span_us = (uint32_t)(span / SL_US);
	sl_peer_send(client->peer, &msg);
}

void sl_meters_changed(struct sl_daemon *daemon)
{
	daemon->meters->changed = true;
}

void sl_meters_joined(struct sl_client *client)
{
	struct sl_workload *workload = client->workload;

	if (!workload->compute.link.next)
		sl_compute_add(&client->daemon->meters->compute, &workload->compute);
	sl_compute_leave(&client->compute);
	sl_compute_join(&workload->compute, &client->compute);
	sl_meters_changed(client->daemon);
}

void sl_meters_left(struct sl_client *client)
{
	if (!client->compute.workload)
		return;
	sl_compute_leave(&client->compute);
	sl_meters_changed(client->daemon);
}

void sl_meters_forget(struct sl_workload *workload)
{
	if (!workload->compute.link.next)
		return;
	sl_compute_remove(&workload->compute);
	sl_meters_changed(workload->daemon);
}

void sl_meters_message(struct sl_client *client, const struct sl_msg_metered *metered)
{
	if (!client->compute.metered)
		return; /* it crossed the end of the metering */
	if (metered->ended)
		sl_compute_end(&client->compute, metered->order, metered->wants);
	else
		sl_compute_want(&client->compute);
	sl_meters_changed(client->daemon);
}

void sl_meters_settle(struct sl_daemon *daemon)
{
	struct sl_meters *meters = daemon->meters;

	if (!meters->changed)
		return;
	meters->changed = false;
	meters->compute.mode = daemon->config.compute;
	meters->compute.slice = daemon->config.compute_slice;
	sl_list_foreach (link, &meters->compute.workloads) {
		struct sl_workload *workload = SL_CONTAINER_OF(
			SL_LIST_ENTRY(link, struct sl_compute_workload, link),
			struct sl_workload, compute);

		workload->compute.gpu_mask = sl_workload_gpus(workload);
	}
	sl_timer_set(meters->timer, sl_compute_step(&meters->compute, sl_clock_now()));
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_meters_changed(daemon);
	daemon->up->settle(daemon);
	return 0;
}

int sl_meters_open(struct sl_daemon *daemon)
{
	daemon->meters = calloc(1, sizeof(*daemon->meters));
	if (!daemon->meters)
		return sl_err_origin(-ENOMEM);
	sl_compute_init(&daemon->meters->compute);
	daemon->meters->compute.send = send_order;
	/* An answer to an order of an earlier daemon must not look like one to ours. */
	daemon->meters->compute.orders = daemon->epoch;
	return sl_timer_new(daemon, SL_PRIORITY_TIMER, on_timer, &daemon->meters->timer);
}

void sl_meters_close(struct sl_daemon *daemon)
{
	if (daemon->meters)
		daemon->meters->timer =
			sd_event_source_disable_unref(daemon->meters->timer);
	free(daemon->meters);
	daemon->meters = NULL;
}
