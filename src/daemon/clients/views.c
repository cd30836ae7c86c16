/*
 * views - two lists of workloads
 *
 * Those in `ready` may be told now; those in `later` were told less than 10 ms ago. A change costs
 * O(1) whatever the number of clients; telling costs one message per client whose numbers differ.
 */
#include "daemon/clients/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/link/peer.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"
#include "daemon/workloads/workload.h"

struct sl_views {
	struct sl_link ready, later; /* workloads: view_link */
	sd_event_source *timer;
	bool timer_on;
};

void sl_views_changed(struct sl_daemon *daemon, uint64_t id, uint32_t gpu)
{
	struct sl_workload *workload = sl_map_get(&daemon->workloads, id);
	int ordinal = workload ? sl_workload_ordinal(workload, gpu) : -1;
	sl_ns now;

	if (ordinal < 0)
		return;
	workload->view_mask |= 1u << ordinal;
	if (sl_list_is_linked(&workload->view_link))
		return;
	now = sl_clock_now();
	if (workload->view_sent + SL_VIEWS_PAUSE_NS <= now) {
		sl_list_push_tail(&daemon->views->ready, &workload->view_link);
		return;
	}
	sl_list_push_tail(&daemon->views->later, &workload->view_link);
	if (!daemon->views->timer_on) {
		daemon->views->timer_on = true;
		sl_timer_set(
			daemon->views->timer, workload->view_sent + SL_VIEWS_PAUSE_NS);
	}
}

static struct sl_node_use_view use_of(const struct sl_client *client, uint32_t ordinal)
{
	return sl_node_use(
		client->daemon->node, client->workload->id, client->gpu_numbers[ordinal]);
}

static void fill(const struct sl_client *client, uint32_t ordinal,
	const struct sl_node_use_view *all, union sl_msg *msg)
{
	const struct sl_daemon *daemon = client->daemon;
	uint32_t gpu = client->gpu_numbers[ordinal];
	uint32_t first = client->workload->first[ordinal];
	struct sl_node_workload_view workload =
		sl_node_workload_alone(daemon->node, client->workload->id);
	struct sl_node_use_view own = sl_node_client_use(daemon->node, client->id, gpu);

	sl_wire_init(msg, SL_MSG_GPU);
	msg->gpu.ordinal = ordinal;
	msg->gpu.number = daemon->gpus[gpu].rank;
	memcpy(msg->gpu.uuid, daemon->gpus[gpu].uuid, sizeof(msg->gpu.uuid));
	msg->gpu.first_number = daemon->gpus[first].rank;
	memcpy(msg->gpu.first_uuid, daemon->gpus[first].uuid,
		sizeof(msg->gpu.first_uuid));
	msg->gpu.limit_bytes = workload.limit_bytes;
	msg->gpu.request_bytes = workload.request_bytes;
	msg->gpu.total_bytes =
		sl_min_u64(workload.limit_bytes, daemon->gpus[gpu].capacity_bytes);
	/* Others' grants count like backing: they become backing, or are given back, which is
	 * told. */
	msg->gpu.others_bytes = all->hidden_bytes +
				sl_sub_sat(all->backing_bytes, own.backing_bytes) +
				sl_sub_sat(all->granted_bytes, own.granted_bytes);
}

/* all: what the whole workload uses, counted once for all its clients. */
static void send_view(struct sl_client *client, uint32_t ordinal,
	const struct sl_node_use_view *all, bool always)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];
	union sl_msg msg;

	if (!client->peer)
		return;
	if (!always && !sl_peer_is_drained(client->peer)) {
		client->view_owed = true;
		return;
	}
	fill(client, ordinal, all, &msg);
	if (!always && memcmp(&gpu->sent, &msg.gpu, sizeof(msg.gpu)) == 0)
		return;
	gpu->sent = msg.gpu;
	sl_peer_send(client->peer, &msg);
}

void sl_views_send_all(struct sl_client *client)
{
	for (uint32_t i = 0; i < client->gpu_count; i++)
		sl_views_answer(client, i);
}

void sl_views_answer(struct sl_client *client, uint32_t ordinal)
{
	struct sl_node_use_view all = use_of(client, ordinal);

	send_view(client, ordinal, &all, true);
}

void sl_views_catch_up(struct sl_client *client)
{
	client->view_owed = false;
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		struct sl_node_use_view all = use_of(client, i);

		send_view(client, i, &all, false);
	}
}

static void tell_ordinal(struct sl_workload *workload, uint32_t ordinal)
{
	struct sl_node_use_view all = {0};
	bool counted = false;

	sl_list_foreach (link, &workload->clients) {
		struct sl_client *client = SL_LIST_ENTRY(link, struct sl_client, link);

		if (!counted)
			all = use_of(client, ordinal);
		counted = true;
		send_view(client, ordinal, &all, false);
	}
}

static void tell(struct sl_workload *workload, sl_ns now)
{
	uint32_t mask = workload->view_mask;

	sl_list_unlink(&workload->view_link);
	workload->view_mask = 0;
	workload->view_sent = now;
	for (; mask; mask &= mask - 1)
		tell_ordinal(workload, (uint32_t)__builtin_ctz(mask));
}

void sl_views_settle(struct sl_daemon *daemon)
{
	while (!sl_list_is_empty(&daemon->views->ready))
		tell(SL_LIST_ENTRY(
			     daemon->views->ready.next, struct sl_workload, view_link),
			sl_clock_now());
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now(), next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &daemon->views->later) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, view_link);
		sl_ns due = workload->view_sent + SL_VIEWS_PAUSE_NS;

		if (due <= now)
			tell(workload, now);
		else
			next = sl_min_u64(next, due);
	}
	daemon->views->timer_on = next != SL_NS_NEVER;
	sl_timer_set(source, next);
	daemon->up->settle(daemon);
	return 0;
}

int sl_views_open(struct sl_daemon *daemon)
{
	struct sl_views *views = calloc(1, sizeof(*views));

	if (!views)
		return sl_err_origin(-ENOMEM);
	daemon->views = views;
	sl_list_init(&views->ready);
	sl_list_init(&views->later);
	return sl_timer_new(daemon, SL_PRIORITY_TIMER, on_time, &views->timer);
}

void sl_views_close(struct sl_daemon *daemon)
{
	struct sl_views *views = sl_steal(&daemon->views);

	if (!views)
		return;
	views->timer = sd_event_source_disable_unref(views->timer);
	free(views);
}
