/*
 * recount - see the header
 *
 * Waiting messages stand in a list by age; a peer has at most one.
 */
#include "daemon/control/recount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clients/client.h"
#include "daemon/gpu/asking.h"
#include "daemon/gpu/inventory.h"
#include "daemon/link/peer.h"
#include "daemon/state/timer.h"

struct sl_recount {
	struct sl_link link; /* sl_recounts.looks */
	struct sl_peer *peer;
	sl_ns since;
	uint32_t gpus; /* bit per number: to be sampled no earlier than `since` */
	union sl_msg msg;
};

struct sl_recounts {
	struct sl_link looks; /* by age */
	sd_event_source *timer;
};

/* GPUs that the message is judged by, one bit per number. */
static uint32_t judged_by(const struct sl_peer *peer, const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_RUN:
		return sl_inventory_usable(peer->daemon,
			msg->run.flags & SL_RUN_VISIBLE_SET ? msg->run.visible : NULL);
	case SL_MSG_ENTRY_ADD:
		return sl_inventory_usable(peer->daemon,
			msg->entry_add.flags & SL_RUN_VISIBLE_SET ? msg->entry_add.visible
								  : NULL);
	case SL_MSG_SET:
		return msg->set.which & (SL_SET_REQUEST | SL_SET_LIMIT) ? UINT32_MAX : 0;
	case SL_MSG_REPORT: return sl_client_unseen(peer->client);
	default: return 0;
	}
}

/* May the last sample of this GPU be out of date? False while NVML does not answer, since waiting
 * would not help. others: only unmanaged processes matter, so false unless some were seen there. */
static bool may_be_out_of_date(const struct sl_gpu *gpu, bool others, sl_ns now)
{
	return gpu->managed && !gpu->lost && (gpu->unmanaged_bytes || !others) &&
	       !(gpu->asked && now > gpu->asked_at + SL_RECOUNT_NS);
}

static uint32_t gpus_of(const struct sl_peer *peer, const union sl_msg *msg)
{
	const struct sl_daemon *daemon = peer->daemon;
	uint32_t judged = judged_by(peer, msg), mask = 0;
	sl_ns now = sl_clock_now();

	for (uint32_t i = 0; judged && i < daemon->gpu_count; i++)
		mask |= may_be_out_of_date(&daemon->gpus[i], peer->control, now) ? 1u << i
										 : 0;
	return mask & judged;
}

bool sl_recount_first(struct sl_peer *peer, const union sl_msg *msg)
{
	struct sl_daemon *daemon = peer->daemon;
	uint32_t mask = gpus_of(peer, msg);
	struct sl_recount *look = mask ? calloc(1, sizeof(*look)) : NULL;

	if (!look)
		return false;
	look->peer = peer;
	look->since = sl_clock_now();
	look->gpus = mask;
	memcpy(&look->msg, msg, sl_wire_size(msg->head.type));
	peer->look = look;
	if (sl_list_is_empty(&daemon->recounts->looks))
		sl_timer_set(daemon->recounts->timer, look->since + SL_RECOUNT_NS);
	sl_list_push_tail(&daemon->recounts->looks, &look->link);
	for (; mask; mask &= mask - 1)
		sl_asking_look(daemon, (uint32_t)__builtin_ctz(mask));
	return true;
}

static bool is_seen(
	const struct sl_daemon *daemon, const struct sl_recount *look, sl_ns now)
{
	bool seen = true;

	for (uint32_t left = look->gpus; left; left &= left - 1) {
		const struct sl_gpu *gpu = &daemon->gpus[__builtin_ctz(left)];

		seen &= gpu->counted_at >= look->since || gpu->lost;
	}
	return seen || now >= look->since + SL_RECOUNT_NS;
}

/* One by one from the head: handling one may remove or add others. */
static struct sl_recount *next_seen(struct sl_daemon *daemon, sl_ns now)
{
	sl_list_foreach (link, &daemon->recounts->looks) {
		struct sl_recount *look = SL_LIST_ENTRY(link, struct sl_recount, link);

		if (is_seen(daemon, look, now))
			return look;
	}
	return NULL;
}

void sl_recount_forget(struct sl_peer *peer)
{
	if (!peer->look)
		return;
	sl_list_unlink(&peer->look->link);
	free(peer->look);
	peer->look = NULL;
}

struct sl_peer *sl_recount_next(struct sl_daemon *daemon, sl_ns now, union sl_msg *msg)
{
	struct sl_recount *look = next_seen(daemon, now);
	struct sl_peer *peer = look ? look->peer : NULL;

	if (!look)
		return NULL;
	*msg = look->msg;
	sl_recount_forget(peer);
	return peer;
}

void sl_recount_arm(struct sl_daemon *daemon)
{
	if (sl_list_is_empty(&daemon->recounts->looks))
		sl_timer_set(daemon->recounts->timer, SL_NS_NEVER);
	else
		sl_timer_set(daemon->recounts->timer,
			SL_LIST_ENTRY(
				daemon->recounts->looks.next, struct sl_recount, link)
					->since +
				SL_RECOUNT_NS);
}

int sl_recount_open(struct sl_daemon *daemon, sd_event_time_handler_t late)
{
	struct sl_recounts *recounts = calloc(1, sizeof(*recounts));

	if (!recounts)
		return sl_err_origin(-ENOMEM);
	daemon->recounts = recounts;
	sl_list_init(&recounts->looks);
	return sl_timer_new(daemon, SL_PRIORITY_TIMER, late, &recounts->timer);
}

void sl_recount_close(struct sl_daemon *daemon)
{
	struct sl_recounts *recounts = sl_steal(&daemon->recounts);

	if (!recounts)
		return;
	recounts->timer = sd_event_source_disable_unref(recounts->timer);
	free(recounts);
}
