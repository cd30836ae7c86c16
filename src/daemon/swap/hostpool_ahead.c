/*
 * hostpool_ahead - see hostpool_ahead.h
 *
 * Workloads are examined in the order of their ids. A client that lacks more than one file is
 * examined again once the file is there.
 */
#include "daemon/swap/hostpool_ahead.h"

#include "daemon/gpu/groups.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"
#include "daemon/swap/hostmem.h"
#include "daemon/swap/hostpool.h"
#include "daemon/workloads/workload.h"

/* Smaller than a file on need: an order that arrives meanwhile waits for it. */
#define AHEAD_BYTES (256 * SL_MIB)

static bool is_contended(const struct sl_daemon *daemon, uint32_t gpu)
{
	struct sl_node_gpu_view view = sl_node_gpu(daemon->node, gpu);

	return view.workloads > 1 &&
	       (view.waiting || view.free_bytes < view.shareable_bytes / 4);
}

/* Bytes of the client that may be evicted, per GPU. */
static void may_leave(const struct sl_client *client, uint64_t bytes[SL_NODE_GPUS_MAX])
{
	struct sl_daemon *daemon = client->daemon;

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		uint32_t number = client->gpu_numbers[i];
		struct sl_node_use_view use;

		bytes[i] = 0;
		if (!client->workload->warm_after && !is_contended(daemon, number))
			continue;
		use = sl_node_client_use(daemon->node, client->id, number);
		bytes[i] = sl_sub_sat(use.backing_bytes, use.held_bytes);
	}
}

/* The largest lack of memory near one GPU; *ordinal: that GPU. */
static uint64_t lacks_near(const struct sl_client *client, uint32_t *ordinal)
{
	uint64_t bytes[SL_NODE_GPUS_MAX], most = 0;

	may_leave(client, bytes);
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		uint32_t near = sl_hostpool_near(client, i);
		uint64_t lacks = 0;

		for (uint32_t n = 0; n < client->gpu_count; n++)
			lacks += near >> n & 1 ? bytes[n] : 0;
		lacks = sl_sub_sat(lacks, client->gpus[i].near_bytes);
		if (lacks > most)
			*ordinal = i;
		most = sl_max_u64(most, lacks);
	}
	return most;
}

static bool make_ahead(struct sl_client *client, sl_ns now)
{
	struct sl_hostpool *pool = client->daemon->hostpool;
	uint32_t ordinal = 0;
	uint64_t lacks;

	if (client->state != SL_CLIENT_LIVE || !client->peer || !client->swaps ||
		client->order.state != SL_ORDER_NONE || now < client->host_not_before)
		return false;
	lacks = lacks_near(client, &ordinal);
	lacks = sl_min_u64(sl_round_up(lacks, SL_HOSTMEM_GRAIN), AHEAD_BYTES);
	lacks = sl_min_u64(lacks, sl_hostpool_left(client, 0));
	if (!lacks || pool->made_bytes + lacks > pool->pool_bytes / 2)
		return false;
	return sl_hostpool_make(client, lacks, ordinal);
}

/* One file at a time, so that an urgent request does not wait for many. */
static bool look_ahead_at(struct sl_workload *workload, sl_ns now)
{
	if (workload->flags & SL_WORKLOAD_NO_SWAP ||
		sl_groups_fixed(workload->daemon, sl_workload_gpus(workload)))
		return false;
	sl_list_foreach (link, &workload->clients) {
		if (make_ahead(SL_LIST_ENTRY(link, struct sl_client, link), now))
			return true;
	}
	return false;
}

static void look_ahead(struct sl_daemon *daemon, sl_ns now)
{
	struct sl_hostpool *pool = daemon->hostpool;
	int looked = 0;

	sl_list_foreach (at, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		if (workload->id <= pool->ahead_workload)
			continue;
		if (look_ahead_at(workload, now) || ++looked == SL_HOSTPOOL_AHEAD_MAX) {
			/* Examine the same workload again: it may lack more than one file. */
			pool->ahead_workload = workload->id - (looked == 0);
			return;
		}
	}
	pool->ahead_workload = 0;
}

static int on_ahead(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now();

	if (!daemon->hostpool->making && now >= daemon->hostpool->ahead_not_before)
		look_ahead(daemon, now);
	sl_timer_set(source, now + SL_HOSTPOOL_AHEAD_NS);
	return 0;
}

int sl_hostpool_ahead_open(struct sl_daemon *daemon)
{
	return sl_timer_new(
		daemon, SL_PRIORITY_TIMER, on_ahead, &daemon->hostpool->ahead_timer);
}

void sl_hostpool_ahead_set(struct sl_daemon *daemon, bool on)
{
	sl_timer_set(daemon->hostpool->ahead_timer,
		on ? sl_clock_now() + SL_HOSTPOOL_AHEAD_NS : SL_NS_NEVER);
}
