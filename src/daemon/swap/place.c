/*
 * place - see place.h
 */
#include "daemon/swap/place.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "base/cuda_types.h"
#include "daemon/away/away.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"
#include "daemon/state/workload.h"

/* Of an order that only makes sure that a process is away; beside the client's id. */
#define CHECKS (1ull << 63)

/* --- the door ------------------------------------------------------------------------------- */

static void set_door(struct sl_client *client, bool closed)
{
	union sl_msg msg;

	if (!client->peer)
		return;
	sl_wire_init(&msg, SL_MSG_GATE);
	msg.gate.order = client->place.order;
	msg.gate.closed = closed;
	sl_peer_send(client->peer, &msg);
}

/* --- which GPUs it is on --------------------------------------------------------------------- */

/* It left other GPUs than it comes back to. */
static bool is_moved(const struct sl_client *client)
{
	return memcmp(client->home, client->gpu_numbers, client->gpu_count) != 0;
}

/* Where what was on a GPU when the process left is now. A GPU that it did not use takes the place
 * from which those that come to it began: that one is left, and of the same type. */
static uint32_t place_of(const struct sl_client *client, uint32_t gpu)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->home[i] == gpu)
			return client->gpu_numbers[i];
	}
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpu_numbers[i] != gpu)
			continue;
		gpu = client->home[i];
		i = UINT32_MAX; /* again from the first */
	}
	return gpu;
}

static void add_pair(
	const struct sl_client *client, uint32_t gpu, struct sl_away_order *order)
{
	struct sl_move_pair *pair = &order->pair[order->pairs++];

	memcpy(pair->from, client->daemon->gpus[gpu].uuid, sizeof(pair->from));
	memcpy(pair->to, client->daemon->gpus[place_of(client, gpu)].uuid,
		sizeof(pair->to));
}

/* A process in a container knows the GPUs whose device nodes it has, and no others. */
static void pair(const struct sl_client *client, struct sl_away_order *order)
{
	const struct sl_workload *workload = client->workload;

	order->whole = workload->is_contained;
	for (uint32_t i = 0; !order->whole && i < client->gpu_count; i++)
		add_pair(client, client->home[i], order);
	for (uint32_t left = order->whole ? workload->reach : 0; left; left &= left - 1)
		add_pair(client, (uint32_t)__builtin_ctz(left), order);
}

/* --- the one answer ------------------------------------------------------------------------- */

/* The policy's figures count now, and only samples that begin from now on. */
static void agree(struct sl_client *client)
{
	client->changed_at = sl_clock_now();
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		struct sl_node_use_view use = sl_node_client_use(
			client->daemon->node, client->id, client->gpu_numbers[i]);

		client->gpus[i].hidden_bytes = use.hidden_bytes + use.paid_bytes;
		client->gpus[i].sampled = false;
	}
}

static void end(struct sl_client *client, bool ok, enum sl_swap_cause cause)
{
	struct sl_event event = {.type = SL_EVENT_PLACED,
		.placed = {.client = client->id,
			.order = client->place.order,
			.outcome = ok ? SL_SWAP_OK : SL_SWAP_REFUSED,
			.cause = cause,
			.span = sl_sub_sat(sl_clock_now(), client->place.since)}};

	if (ok == client->place.back) {
		if (client->away_bytes)
			sl_commit_soon(client->daemon);
		client->away_bytes = 0;
		memcpy(client->home, client->gpu_numbers, sizeof(client->home));
		set_door(client, false);
	}
	sl_list_unlink(&client->place.link);
	sl_list_unlink(&client->place.over.link);
	client->place.order = 0;
	sl_drive(client->daemon, &event);
	agree(client);
}

static void open_over(struct sl_letter *letter)
{
	struct sl_client *client = SL_CONTAINER_OF(letter, struct sl_client, place.over);

	if (client->place.order)
		end(client, false, client->place.cause);
}

/* For use inside an action. */
static void refuse_later(struct sl_client *client, enum sl_swap_cause cause)
{
	client->place.cause = cause;
	sl_drive_post(client->daemon, &client->place.over, open_over);
}

static enum sl_swap_cause cause_of(const struct sl_away_answer *answer)
{
	if (answer->outcome == SL_MOVE_BROKEN)
		return SL_SWAP_BROKEN;
	return answer->at == SL_MOVE_CALL_LOCK &&
			       answer->cuda_result == CUDA_ERROR_NOT_READY
		       ? SL_SWAP_BUSY
		       : SL_SWAP_DRIVER;
}

static void say(const struct sl_client *client, const struct sl_away_answer *answer)
{
	static const char *const words[SL_MOVE_OUTCOMES] = {[SL_MOVE_REFUSED] = "stays",
		[SL_MOVE_AWAY_STILL] = "does not come back yet",
		[SL_MOVE_BROKEN] = "can use no GPU any more",
		[SL_MOVE_GONE] = "is gone",
		[SL_MOVE_UNABLE] =
			"cannot be moved: there is no helper for its user, or its "
			"driver cannot do it"};

	sl_info("process %d %s%s%s%s", (int)client->pid, words[answer->outcome],
		answer->at ? ": " : "", sl_away_call_name(answer->at),
		answer->at ? " failed" : "");
	if (answer->cuda_result)
		sl_info("error %d of the driver, for process %d",
			(int)answer->cuda_result, (int)client->pid);
}

/* The earlier daemon wrote that it leaves, and died before it left. */
static void stayed(struct sl_client *client)
{
	sl_info("process %d had not left its GPUs", (int)client->pid);
	sl_place_recovered(client, 0);
	sl_commit_soon(client->daemon);
	set_door(client, false);
	agree(client);
}

static void checked(struct sl_daemon *daemon, const struct sl_away_answer *answer)
{
	struct sl_client *client = sl_map_get(&daemon->clients, answer->id & ~CHECKS);

	if (client)
		client->place.checks = false;
	/* An ATTACH that was given meanwhile comes right in any case. */
	if (client && client->process && client->away_bytes && !client->place.order &&
		answer->outcome == SL_MOVE_REFUSED)
		stayed(client);
	daemon->up->settle(daemon);
}

static void on_done(void *context, const struct sl_away_answer *answer)
{
	struct sl_daemon *daemon = context;
	struct sl_client *client = sl_map_get(&daemon->clients, answer->id);
	bool ok = answer->outcome == SL_MOVE_DONE;

	if (answer->id & CHECKS) {
		checked(daemon, answer);
		return;
	}
	/* It may have ended meanwhile. */
	if (client && client->place.order && client->process) {
		sl_step(D_PLACED);
		if (!ok && !client->place.failed)
			say(client, answer);
		client->place.failed = !ok;
		/* A process that does not run is as good as away. */
		if (client->place.back)
			ok |= answer->outcome == SL_MOVE_REFUSED ||
			      answer->outcome == SL_MOVE_BROKEN;
		else
			ok |= answer->outcome == SL_MOVE_AWAY_STILL;
		end(client, ok,
			answer->outcome == SL_MOVE_DONE ? SL_SWAP_NO_CAUSE
							: cause_of(answer));
	}
	daemon->up->settle(daemon);
}

/* --- orders --------------------------------------------------------------------------------- */

/* 0 or negative errno. */
static int give_as(struct sl_client *client, uint64_t id, bool back, sl_ns drain)
{
	struct sl_away_order order = {.id = id,
		.uid = client->uid,
		.pid = client->pid,
		.start_ticks = client->start_ticks,
		.back = back,
		.lock_ms =
			(uint32_t)sl_max_u64(1, sl_min_u64(drain / SL_MS, UINT32_MAX))};
	struct sl_pid_rights rights;
	int r = sl_file_pid_rights(client->pid, &rights);

	if (r < 0)
		return r;
	order.gid = rights.gid;
	order.capabilities = client->uid == 0 ? rights.capabilities : 0;
	if (back && is_moved(client))
		pair(client, &order);
	return sl_away_order(client->daemon->away, &order);
}

static int give(struct sl_client *client)
{
	return give_as(client, client->id, client->place.back, client->place.drain);
}

static sl_ns until(const struct sl_client *client)
{
	return client->place.since + client->place.drain;
}

/* For the first door that does not shut in time. */
static void arm(struct sl_daemon *daemon)
{
	sl_ns at = SL_NS_NEVER;

	sl_list_foreach (link, &daemon->placing) {
		const struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, place.link);

		if (client->place.state == SL_PLACE_SHUTS)
			at = sl_min_u64(at, until(client));
	}
	sl_timer_set(daemon->place_timer, at);
}

static int on_late(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now();

	sl_list_foreach_safe (link, &daemon->placing) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, place.link);

		if (client->place.state == SL_PLACE_SHUTS && until(client) <= now)
			end(client, false, SL_SWAP_BUSY);
	}
	arm(daemon);
	daemon->up->settle(daemon);
	return 0;
}

static bool begin(struct sl_client *client, uint64_t id, bool back, sl_ns drain)
{
	if (client->place.order || !client->process) {
		sl_error_log("the policy ordered client %" PRIu64
			     " to be moved and should not have",
			client->id);
		return false;
	}
	client->place.order = id;
	client->place.state = SL_PLACE_MOVES;
	client->place.back = back;
	client->place.drain = drain;
	client->place.since = sl_clock_now();
	return true;
}

void sl_place_detach(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->detach.client);

	if (!client || !begin(client, action->id, false, action->detach.drain))
		return;
	if (!client->peer || client->state != SL_CLIENT_LIVE) {
		refuse_later(client, SL_SWAP_LOST);
		return;
	}
	client->place.state = SL_PLACE_SHUTS;
	sl_list_push_tail(&daemon->placing, &client->place.link);
	set_door(client, true);
	arm(daemon);
	sl_step(D_DETACH_BOOKED);
}

/* The journal first. */
static void save(struct sl_client *client)
{
	sl_commit_soon(client->daemon);
	client->place.state = SL_PLACE_SAVES;
	client->place.commit = sl_commit_next(client->daemon);
}

/* The door is shut. */
static void leave(struct sl_client *client)
{
	struct sl_daemon *daemon = client->daemon;

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		struct sl_node_use_view use = sl_node_client_use(
			daemon->node, client->id, client->gpu_numbers[i]);

		client->away_bytes =
			sl_max_u64(client->away_bytes, use.hidden_bytes + use.paid_bytes);
	}
	save(client);
}

void sl_place_on_gate_done(struct sl_peer *peer, const struct sl_msg_gate_done *msg)
{
	struct sl_client *client = peer->client;

	if (!msg->closed)
		return;
	if (client->place.order == msg->order && client->place.state == SL_PLACE_SHUTS)
		leave(client);
	/* It was told before, by a daemon that did not come to take it away, or not all the way. */
	else if (!client->place.order && !client->away_bytes)
		set_door(client, false);
	/* Nor does an order tell whether one that was coming back to other GPUs has come. */
	else if (!client->place.order && !client->place.checks && !is_moved(client))
		client->place.checks = give_as(client, client->id | CHECKS, false,
					       client->daemon->config.evict_drain) == 0;
}

void sl_place_gone(struct sl_client *client)
{
	sl_list_unlink(&client->place.link);
	sl_list_unlink(&client->place.over.link);
	client->place.order = 0;
	client->away_bytes = 0;
}

void sl_place_lost(struct sl_client *client)
{
	if (client->place.order && client->place.state == SL_PLACE_SHUTS)
		end(client, false, SL_SWAP_LOST);
}

void sl_place_attach(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->attach.client);

	if (!client || !begin(client, action->id, true, 0))
		return;
	/* A later daemon must not bring it back from, or to, other GPUs. */
	if (is_moved(client)) {
		sl_list_push_tail(&daemon->placing, &client->place.link);
		save(client);
		return;
	}
	if (give(client) < 0)
		refuse_later(client, SL_SWAP_DRIVER);
	sl_step(D_ATTACH_SENT);
}

void sl_place_written(struct sl_daemon *daemon)
{
	sl_list_foreach_safe (link, &daemon->placing) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, place.link);

		if (client->place.state != SL_PLACE_SAVES ||
			!sl_commit_is_done(daemon, client->place.commit))
			continue;
		sl_list_unlink(link);
		client->place.state = SL_PLACE_MOVES;
		if (client->place.back)
			sl_step(D_MOVE_SAVED);
		else
			sl_step(D_AWAY_SAVED);
		if (give(client) < 0)
			refuse_later(client, SL_SWAP_DRIVER);
		if (client->place.back)
			sl_step(D_MOVE_SENT);
		else
			sl_step(D_AWAY_SENT);
	}
}

void sl_place_recovered(struct sl_client *client, uint64_t away_bytes)
{
	bool news = client->away_bytes != away_bytes;

	client->away_bytes = away_bytes;
	for (uint32_t i = 0; i < client->gpu_count && news; i++)
		sl_drive(client->daemon,
			&(struct sl_event){.type = SL_EVENT_CLIENT_AWAY,
				.client_away = {
					client->id, client->gpu_numbers[i], away_bytes}});
}

int sl_place_open(struct sl_daemon *daemon)
{
	int r = sl_timer_new(daemon, SL_PRIORITY_TIMER, on_late, &daemon->place_timer);

	return r < 0 ? r : sl_away_open(daemon->loop, on_done, daemon, &daemon->away);
}

void sl_place_close(struct sl_daemon *daemon)
{
	daemon->place_timer = sd_event_source_disable_unref(daemon->place_timer);
	daemon->away = sl_away_close(daemon->away);
}
