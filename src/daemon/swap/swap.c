/*
 * swap - see swap.h
 *
 * An order is in one of three states: waiting for host memory, sent to the client, or over. The
 * policy must not be stepped inside an action, so clients whose order ended there wait in a list
 * until the daemon settles.
 */
#include "daemon/swap/swap.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/state/client.h"
#include "daemon/state/drive.h"
#include "daemon/swap/hostmem.h"
#include "daemon/swap/hostpool.h"
#include "daemon/workloads/probing.h"
#include "daemon/workloads/workload.h"

#define UNIT (64 * SL_MIB)

/* Rates of smaller moves are mostly overhead; no link is slower or faster than the two bounds. */
#define LINK_BYTES_MIN (8 * SL_MIB)
/* From this size on the overhead hardly matters. */
#define LINK_BYTES_BIG (64 * SL_MIB)
#define LINK_RATE_MIN  (16 * SL_MIB)
#define LINK_RATE_MAX  (2048 * SL_GIB)

static struct sl_node_use_view use_of(const struct sl_client *client, uint32_t ordinal)
{
	return sl_node_client_use(
		client->daemon->node, client->id, client->gpu_numbers[ordinal]);
}

/* --- the one answer ------------------------------------------------------------------------- */

static void end(struct sl_client *client, struct sl_event *event)
{
	struct sl_client_order *order = &client->order;

	event->type = SL_EVENT_DONE;
	event->done.client = client->id;
	event->done.order = order->id;
	event->done.gpu = client->gpu_numbers[order->ordinal];
	event->done.span = sl_sub_sat(sl_clock_now(), order->since);
	if (event->done.cause < SL_SWAP_CAUSES)
		client->daemon->swap_causes[order->restore][event->done.cause]++;
	sl_list_unlink(&client->order_over.link);
	*order = (struct sl_client_order){0};
	client->moved_at = client->changed_at = sl_clock_now();
	sl_drive(client->daemon, event);
}

/* Ends an order as one that moved nothing, as far as we know. But a restore that was sent may have
 * been carried out, so its bytes count as back from the host. */
static void end_refused(struct sl_client *client)
{
	struct sl_client_order *order = &client->order;
	struct sl_event event = {.type = SL_EVENT_DONE};
	bool unknown = order->restore && order->state == SL_ORDER_SENT;

	event.done.outcome = SL_SWAP_REFUSED;
	event.done.cause = order->cause;
	event.done.evicted_bytes = sl_sub_sat(
		use_of(client, order->ordinal).evicted_bytes, unknown ? order->bytes : 0);
	end(client, &event);
}

static void open_order_over(struct sl_letter *letter)
{
	struct sl_client *client = SL_CONTAINER_OF(letter, struct sl_client, order_over);
	struct sl_daemon *daemon = client->daemon;
	uint64_t id = client->id;

	/* Look first at why it is stopped, or the policy would send the same order again. */
	if (client->order.cause == SL_SWAP_STOPPED) {
		sl_probing_look(client);
		client = sl_map_get(&daemon->clients, id);
	}
	if (client && client->order.state == SL_ORDER_OVER)
		end_refused(client);
}

/* For use inside an action. */
static void refuse_later(struct sl_client *client, enum sl_swap_cause cause)
{
	client->order.state = SL_ORDER_OVER;
	client->order.cause = cause;
	sl_drive_post(client->daemon, &client->order_over, open_order_over);
}

/* --- orders --------------------------------------------------------------------------------- */

static void send_evict(struct sl_client *client)
{
	struct sl_client_order *order = &client->order;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVICT);
	msg.evict.order = order->id;
	msg.evict.ordinal = order->ordinal;
	msg.evict.deadline_ms = (uint32_t)sl_min_u64(order->drain / SL_MS, UINT32_MAX);
	msg.evict.bytes = order->bytes;
	msg.evict.tell_bytes = order->tell_bytes;
	order->state = SL_ORDER_SENT;
	order->sent = sl_clock_now();
	sl_peer_send(client->peer, &msg);
	sl_step(D_EVICT_SENT);
}

static int ordinal_of(const struct sl_client *client, uint32_t gpu)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpu_numbers[i] == gpu)
			return (int)i;
	}
	return -1;
}

/* Books the order; false if it ended at once. */
static bool begin(struct sl_daemon *daemon, struct sl_client *client, uint64_t id,
	uint32_t gpu, uint64_t bytes, bool restore)
{
	int ordinal = ordinal_of(client, gpu);

	if (client->order.state != SL_ORDER_NONE || ordinal < 0) {
		sl_error_log("the policy ordered client %" PRIu64
			     " to move memory of GPU %u and should not have",
			client->id, gpu);
		return false;
	}
	client->order = (struct sl_client_order){.id = id,
		.ordinal = (uint32_t)ordinal,
		.bytes = bytes,
		.since = sl_clock_now(),
		.restore = restore};
	if (client->peer && client->state == SL_CLIENT_LIVE)
		return true;
	refuse_later(client, SL_SWAP_LOST);
	return false;
}

/* An eviction may move up to this many bytes more than ordered. */
static uint64_t chunk_of(const struct sl_client *client)
{
	return client->chunk_bytes
		       ? sl_min_u64(client->chunk_bytes, SL_HOSTPOOL_CHUNK_MAX)
		       : SL_HOSTPOOL_CHUNK_MAX;
}

/* Host memory for an order: the least, a round figure, and with a chunk to spare. */
struct host_need {
	uint64_t bare, round, spare;
};

/*
 * What an order to evict `bytes` needs on the host: what is evicted already from the GPUs in
 * `ordinals`, plus what the order will evict from its own GPU; never more than the client has.
 * `spare` allows for the last chunk, which may exceed the order by nearly the chunk's size.
 */
static struct host_need need_of(
	const struct sl_client *client, uint32_t ordinals, uint64_t bytes)
{
	struct sl_node_use_view here = use_of(client, client->order.ordinal);
	uint64_t evicted = 0, most = sl_sub_sat(here.backing_bytes, here.evicted_bytes);
	struct host_need need;

	for (uint32_t i = 0; i < client->gpu_count; i++)
		evicted += ordinals >> i & 1 ? use_of(client, i).evicted_bytes : 0;
	most += evicted;
	need.bare = evicted + sl_min_u64(bytes, most - evicted);
	need.round = sl_min_u64(sl_round_up(need.bare, UNIT), most);
	need.spare = sl_min_u64(need.round + chunk_of(client), most);
	return need;
}

/* Host memory that the client can have, as far as is known now. */
static uint64_t easily_had(const struct sl_client *client)
{
	uint64_t chunk = sl_min_u64(client->host_short_bytes, SL_HOSTPOOL_CHUNK_MAX);

	return client->host_bytes + client->host_making_bytes +
	       sl_min_u64(sl_hostpool_left(client, chunk),
		       sl_hostpool_at_hand(client->daemon->hostpool));
}

/* Asks for the least that the order needs, where the round figure is not available. If files were
 * too small for a chunk last time, asks for as much of the round figure as there is. */
static enum sl_hostpool_outcome want_less(struct sl_client *client, uint64_t near_bytes)
{
	struct sl_client_order *order = &client->order;
	struct host_need need = need_of(client, UINT32_MAX, order->bytes);
	uint64_t bytes = need.bare;

	if (client->host_short_bytes)
		bytes = sl_max_u64(bytes, sl_min_u64(need.round, easily_had(client)));
	order->host_less = true;
	return sl_hostpool_want(client, bytes, near_bytes, order->ordinal);
}

/* The spare chunk gets a file of its own where there is room, so that the file can be taken back
 * while empty. */
static enum sl_hostpool_outcome want_host(struct sl_client *client, uint64_t bytes)
{
	uint32_t ordinal = client->order.ordinal;
	struct host_need all = need_of(client, UINT32_MAX, bytes);
	struct host_need near = need_of(client, sl_hostpool_near(client, ordinal), bytes);
	enum sl_hostpool_outcome outcome, spare;

	client->order.host_bytes = all.bare;
	if (all.round > easily_had(client))
		return want_less(client, near.bare);
	outcome = sl_hostpool_want(client, all.round, near.round, ordinal);
	if (outcome == SL_HOSTPOOL_FULL)
		return want_less(client, near.bare);
	spare = sl_hostpool_want(client,
		sl_min_u64(all.spare + client->host_short_bytes, easily_had(client)),
		near.spare, ordinal);
	return spare == SL_HOSTPOOL_FULL ? outcome : spare;
}

void sl_swap_evict(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->evict.client);

	if (!client || !begin(daemon, client, action->id, action->evict.gpu,
			       action->evict.bytes, false))
		return;
	client->order.drain = action->evict.drain;
	client->order.tell_bytes = action->evict.tell_bytes;
	client->order.state = SL_ORDER_MAKING;
	sl_step(D_EVICT_BOOKED);
	switch (want_host(client, action->evict.bytes)) {
	case SL_HOSTPOOL_HAS: send_evict(client); break;
	case SL_HOSTPOOL_MAKING: break;
	case SL_HOSTPOOL_FULL: refuse_later(client, SL_SWAP_NO_HOST); break;
	}
}

void sl_swap_host_ready(struct sl_client *client, bool ok)
{
	struct sl_client_order *order = &client->order;

	if (order->state != SL_ORDER_MAKING)
		return;
	/* The file that failed may have been the spare, a nearer one, or more than is needed. */
	ok = ok || client->host_bytes >= order->host_bytes;
	if (!ok && !order->host_less) {
		switch (want_less(client, 0)) {
		case SL_HOSTPOOL_HAS: ok = true; break;
		case SL_HOSTPOOL_MAKING: return;
		case SL_HOSTPOOL_FULL: break;
		}
	}
	if (ok && client->peer && client->state == SL_CLIENT_LIVE) {
		send_evict(client);
		return;
	}
	order->cause = ok ? SL_SWAP_LOST : SL_SWAP_NO_HOST;
	end_refused(client);
}

void sl_swap_restore(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->restore.client);
	union sl_msg msg;

	if (!client || !begin(daemon, client, action->id, action->restore.gpu,
			       action->restore.bytes, true))
		return;
	/* A stopped process would keep its place on the GPU reserved until it is continued. */
	if (sl_probing_is_stopped(client)) {
		refuse_later(client, SL_SWAP_STOPPED);
		return;
	}
	client->order.state = SL_ORDER_SENT;
	client->order.sent = sl_clock_now();
	sl_step(D_RESTORE_BOOKED);
	sl_wire_init(&msg, SL_MSG_RESTORE);
	msg.restore.order = action->id;
	msg.restore.ordinal = client->order.ordinal;
	msg.restore.bytes = action->restore.bytes;
	sl_peer_send(client->peer, &msg);
	sl_step(D_RESTORE_SENT);
	if (action->restore.bytes < use_of(client, client->order.ordinal).evicted_bytes)
		sl_step(D_PART_SENT);
}

void sl_swap_abort(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->abort.client);
	union sl_msg msg;

	if (!client || client->order.id != action->abort.order)
		return;
	if (client->order.state == SL_ORDER_MAKING)
		refuse_later(client, SL_SWAP_ABORTED);
	if (client->order.state != SL_ORDER_SENT || !client->peer)
		return;
	sl_wire_init(&msg, SL_MSG_ABORT);
	msg.abort.order = action->abort.order;
	sl_peer_send(client->peer, &msg);
}

void sl_swap_trim(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->trim.client);
	union sl_msg msg;

	if (!client || !client->peer || client->state != SL_CLIENT_LIVE)
		return;
	sl_wire_init(&msg, SL_MSG_TRIM);
	msg.trim.bytes = action->trim.bytes;
	sl_hostpool_trimmed(client);
	sl_peer_send(client->peer, &msg);
}

void sl_swap_lost(struct sl_client *client)
{
	struct sl_event want = {.type = SL_EVENT_WANT};

	if (client->order.state == SL_ORDER_OVER) {
		end_refused(client);
	} else if (client->order.state != SL_ORDER_NONE) {
		client->order.cause = SL_SWAP_LOST;
		end_refused(client);
	}
	/* The client sends WANT again when it is back. */
	want.want.client = client->id;
	sl_drive(client->daemon, &want);
}

/* --- messages ------------------------------------------------------------------------------- */

static enum sl_swap_outcome outcome_of(uint32_t wire)
{
	switch (wire) {
	case SL_WIRE_SWAP_OK: return SL_SWAP_OK;
	case SL_WIRE_SWAP_PART: return SL_SWAP_PART;
	default: return SL_SWAP_REFUSED;
	}
}

static enum sl_swap_cause cause_of(uint32_t wire)
{
	static const enum sl_swap_cause causes[SL_WIRE_SWAP_CAUSES] = {
		[SL_WIRE_SWAP_NO_CAUSE] = SL_SWAP_NO_CAUSE,
		[SL_WIRE_SWAP_CAPTURE] = SL_SWAP_CAPTURE,
		[SL_WIRE_SWAP_BUSY] = SL_SWAP_BUSY,
		[SL_WIRE_SWAP_NO_HOST] = SL_SWAP_NO_HOST,
		[SL_WIRE_SWAP_DRIVER] = SL_SWAP_DRIVER,
		[SL_WIRE_SWAP_NO_ROOM] = SL_SWAP_NO_ROOM,
		[SL_WIRE_SWAP_BROKEN] = SL_SWAP_BROKEN,
		[SL_WIRE_SWAP_NOTHING] = SL_SWAP_NOTHING,
		[SL_WIRE_SWAP_ABORTED] = SL_SWAP_ABORTED,
	};

	return wire < SL_WIRE_SWAP_CAUSES ? causes[wire] : SL_SWAP_NO_CAUSE;
}

/* The client had enough bytes, in files too small for its chunks: next time it gets more. */
static void note_short(struct sl_client *client, const struct sl_msg_swapped *msg)
{
	if (client->order.restore)
		return;
	if (msg->cause != SL_WIRE_SWAP_NO_HOST)
		client->host_short_bytes = 0;
	else
		client->host_short_bytes = sl_min_u64(
			client->host_short_bytes + client->order.bytes / 4 + UNIT,
			2 * SL_GIB);
}

/* A quarter of the way to the new figure; a sixteenth for a small move, so that a GPU with small
 * moves only learns, too. */
static void note_rate(struct sl_link_rate *rate, uint64_t bytes_s, uint64_t moved_bytes)
{
	uint64_t part = moved_bytes < LINK_BYTES_BIG ? 16 : 4;

	if (!rate->measured)
		rate->measured = bytes_s;
	else
		rate->measured = rate->measured - rate->measured / part + bytes_s / part;
}

static bool is_news(const struct sl_link_rate *rate)
{
	uint64_t apart = rate->measured > rate->told ? rate->measured - rate->told
						     : rate->told - rate->measured;

	return apart > rate->told / 10;
}

/* The move may have used memory that was not pinned yet. */
static bool has_new_files(const struct sl_client *client)
{
	return client->host_given_at &&
	       client->order.since < client->host_given_at + SL_HOSTPOOL_NEW_NS;
}

/*
 * The client's own figure, bounded by our clock: no longer than it had the order, and at least a
 * quarter of that without the time to drain.
 */
static uint64_t span_us(const struct sl_client *client, const struct sl_msg_swapped *msg)
{
	const struct sl_client_order *order = &client->order;
	sl_ns had = sl_sub_sat(sl_clock_now(), order->sent);
	uint64_t us = sl_sub_sat(msg->span_us, msg->drain_us);

	if (!us)
		return 0;
	us = sl_max_u64(us, sl_sub_sat(had, order->drain) / 4 / SL_US);
	return sl_min_u64(us, had / SL_US);
}

/*
 * Learns the cost of moving on this GPU, hashing included: bytes moved, over the time since the
 * work was drained. Orders that may have used new files do not count: such a move costs more, once,
 * and would make turns too long. Of the others count those of at least LINK_BYTES_MIN whose bytes
 * mostly crossed the link. A false figure is bounded by what the client has, and by what links can
 * do.
 */
static void learn_rate(struct sl_client *client, const struct sl_msg_swapped *msg)
{
	struct sl_daemon *daemon = client->daemon;
	uint32_t number = client->gpu_numbers[msg->ordinal];
	struct sl_gpu *gpu = &daemon->gpus[number];
	struct sl_link_rate *rate =
		client->order.restore ? &gpu->link_in : &gpu->link_out;
	uint64_t us = span_us(client, msg);
	struct sl_event event = {.type = SL_EVENT_LINK_COST};

	if (us == 0 || msg->moved_bytes < LINK_BYTES_MIN || has_new_files(client) ||
		msg->clean_bytes + msg->zero_bytes > msg->moved_bytes / 4 ||
		msg->moved_bytes > use_of(client, msg->ordinal).backing_bytes)
		return;
	note_rate(rate,
		sl_max_u64(LINK_RATE_MIN,
			sl_min_u64(LINK_RATE_MAX,
				(uint64_t)((double)msg->moved_bytes * 1e6 / (double)us))),
		msg->moved_bytes);
	if (!is_news(rate))
		return;
	rate->told = rate->measured;
	event.link_cost.gpu = number;
	event.link_cost.out_bytes_s = gpu->link_out.told;
	event.link_cost.in_bytes_s = gpu->link_in.told;
	sl_drive(daemon, &event);
}

/* Bounds a false figure by what the client has. */
static uint64_t at_most(uint64_t bytes, uint64_t *left)
{
	bytes = sl_min_u64(bytes, *left);
	*left -= bytes;
	return bytes;
}

static void add_moved(struct sl_moved *to, const struct sl_moved *more)
{
	to->out_bytes += more->out_bytes;
	to->in_bytes += more->in_bytes;
	to->clean_bytes += more->clean_bytes;
}

static void count(struct sl_client *client, const struct sl_msg_swapped *msg)
{
	struct sl_workload *workload = client->workload;
	uint64_t left = use_of(client, msg->ordinal).backing_bytes;
	struct sl_moved moved = {0};

	if (client->order.restore) {
		moved.in_bytes = at_most(msg->moved_bytes, &left);
	} else {
		moved.out_bytes = at_most(msg->moved_bytes, &left);
		moved.clean_bytes = at_most(msg->clean_bytes, &left);
		moved.clean_bytes += at_most(msg->zero_bytes, &left);
	}
	add_moved(&workload->moved[client->order.ordinal], &moved);
	add_moved(&client->daemon->gpus[workload->gpus[client->order.ordinal]].moved,
		&moved);
}

/* No client has more on the host than in all. But a doubted client may say so, because the books
 * have less than it reported: its figure is cut, since what was not believed then does not count
 * now. */
static bool is_possible(
	const struct sl_client *client, uint32_t ordinal, uint64_t *evicted)
{
	uint64_t most = use_of(client, ordinal).backing_bytes;

	if (*evicted > most && !client->doubted)
		return false;
	*evicted = sl_min_u64(*evicted, most);
	return true;
}

void sl_swap_on_swapped(struct sl_peer *peer, const struct sl_msg_swapped *msg)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_DONE};
	uint64_t evicted = msg->evicted_bytes;

	if (client->order.state != SL_ORDER_SENT || client->order.id != msg->order ||
		client->order.ordinal != msg->ordinal) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"SWAPPED of order %" PRIu64 ", which it does not have",
			msg->order);
		return;
	}
	if (!is_possible(client, msg->ordinal, &evicted)) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"SWAPPED of more than it has on GPU ordinal %u", msg->ordinal);
		return;
	}
	sl_step(D_SWAPPED_TAKEN);
	sl_debug("client %" PRIu64 " answers order %" PRIu64
		 ": outcome %u, cause %u, %" PRIu64 " bytes on the host, %" PRIu64
		 " copied, driver's result %u",
		client->id, msg->order, msg->outcome, msg->cause, msg->evicted_bytes,
		msg->moved_bytes, msg->driver_result);
	note_short(client, msg);
	count(client, msg);
	learn_rate(client, msg);
	event.done.outcome = outcome_of(msg->outcome);
	event.done.cause = cause_of(msg->cause);
	event.done.evicted_bytes = evicted;
	event.done.moved_bytes = msg->moved_bytes;
	end(client, &event);
	sl_step(D_SWAPPED);
}

void sl_swap_on_moved(struct sl_peer *peer, const struct sl_msg_moved *msg)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_MOVED};
	uint64_t evicted = msg->evicted_bytes;

	if (client->order.state != SL_ORDER_SENT || client->order.restore ||
		client->order.id != msg->order || client->order.ordinal != msg->ordinal) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"MOVED of order %" PRIu64 ", which it does not have", msg->order);
		return;
	}
	if (!is_possible(client, msg->ordinal, &evicted)) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"MOVED of more than it has on GPU ordinal %u", msg->ordinal);
		return;
	}
	sl_step(D_MOVED_TAKEN);
	event.moved.client = client->id;
	event.moved.order = msg->order;
	event.moved.gpu = client->gpu_numbers[msg->ordinal];
	event.moved.evicted_bytes = evicted;
	sl_drive(client->daemon, &event);
}

void sl_swap_on_want(struct sl_peer *peer, const struct sl_msg_want *msg)
{
	struct sl_client *client = peer->client;
	struct sl_event event = {.type = SL_EVENT_WANT};

	event.want.client = client->id;
	event.want.wants = msg->wants != 0;
	sl_drive(peer->daemon, &event);
}

bool sl_swap_is_moving(const struct sl_client *client, sl_ns at)
{
	return client->order.state != SL_ORDER_NONE ||
	       (client->moved_at && at < client->moved_at + SL_SWAP_CALM_NS);
}
