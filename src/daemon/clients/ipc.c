/*
 * ipc - see ipc.h
 *
 * Descriptors are charged to the client from the beginning of its offer until they are closed. So a
 * client that announces many and sends none, or withdraws offers before they were read, uses up
 * only its own share. Clients choose the keys, so the table is salted. Two keys with equal first
 * halves cannot coexist; random keys never collide there.
 */
#include "daemon/clients/ipc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/link/bundle.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"
#include "daemon/state/workload.h"

struct offer {
	struct sl_link link; /* client->offers */
	struct sl_client *client;
	uint8_t key[16];
	uid_t uid;
	uint32_t gpu; /* the daemon's number */
	uint64_t bytes, chunk_bytes;
	struct sl_bundle *bundle; /* complete when it is full */
};

/* An open that waits for its key. */
struct wait {
	struct sl_link link; /* ordered by `until` */
	struct sl_client *client;
	uint8_t key[16];
	uid_t uid;
	uint64_t ask;
	sl_ns until;
};

struct sl_ipc {
	struct sl_map offers; /* by salted key */
	struct sl_link waits;
	sd_event_source *timer;
	uint32_t most; /* descriptors that may be kept */
};

/* --- bounds ----------------------------------------------------------------------------------- */

/* The needs of clients, processes and files come first. */
static uint32_t most_of(const struct sl_daemon *daemon)
{
	uint64_t base = 64 + 3ull * daemon->config.max_clients, room;
	struct rlimit limit = {.rlim_cur = 1024};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	room = limit.rlim_cur > 2 * base ? limit.rlim_cur - base : limit.rlim_cur / 4;
	return (uint32_t)sl_min_u64(room, SL_IPC_FDS_MAX);
}

static int on_time(sd_event_source *source, uint64_t usec, void *context);

static struct sl_ipc *ipc_of(struct sl_daemon *daemon)
{
	struct sl_ipc *ipc = daemon->ipc;

	if (ipc)
		return ipc;
	ipc = calloc(1, sizeof(*ipc));
	if (!ipc)
		return NULL;
	sl_list_init(&ipc->waits);
	ipc->most = most_of(daemon);
	if (sl_timer_new(daemon, SL_PRIORITY_TIMER, on_time, &ipc->timer) < 0) {
		free(ipc);
		return NULL;
	}
	daemon->ipc = ipc;
	return ipc;
}

/* One client gets at most half; the last quarter is for users with less than a quarter
 * (places.h). */
static bool is_full(const struct sl_daemon *daemon, const struct sl_client *client,
	uid_t uid, uint32_t count)
{
	const struct sl_ipc *ipc = daemon->ipc;
	uint32_t quarter = ipc->most / 4, kept = sl_bundle_kept();

	if (kept + count > ipc->most || client->ipc_fds + count > ipc->most / 2)
		return true;
	if (kept + count <= ipc->most - quarter)
		return false;
	if (client->workload->is_contained)
		return client->ipc_fds + count > quarter;
	if (uid == 0 || uid == geteuid())
		return false;
	return sl_bundle_kept_of(uid) + count > quarter;
}

/* --- offers ----------------------------------------------------------------------------------- */

static uint64_t place_of(const struct sl_daemon *daemon, const uint8_t key[16])
{
	uint64_t hash;

	memcpy(&hash, key, sizeof(hash));
	hash ^= daemon->share_salt;
	hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	hash = (hash ^ hash >> 29) * 0x94d049bb133111ebull;
	return hash ^ hash >> 32;
}

/* Constant time, so that it reveals nothing about a key. */
static bool same_key(const uint8_t a[16], const uint8_t b[16])
{
	uint8_t differ = 0;

	for (int i = 0; i < 16; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

static struct offer *find(struct sl_daemon *daemon, const uint8_t key[16])
{
	struct offer *offer =
		daemon->ipc ? sl_map_get(&daemon->ipc->offers, place_of(daemon, key))
			    : NULL;

	return offer && same_key(offer->key, key) ? offer : NULL;
}

static bool is_whole(const struct offer *offer)
{
	return offer->bundle->count == offer->bundle->room;
}

static void drop(struct sl_daemon *daemon, struct offer *offer)
{
	(void)sl_map_take(&daemon->ipc->offers, place_of(daemon, offer->key));
	sl_list_unlink(&offer->link);
	offer->bundle = sl_bundle_put(daemon, offer->bundle);
	free(offer);
}

static void say_offered(
	struct sl_peer *peer, const uint8_t key[16], enum sl_wire_ipc_reason reason)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OFFERED);
	memcpy(msg.ipc_offered.key, key, sizeof(msg.ipc_offered.key));
	msg.ipc_offered.reason = reason;
	sl_peer_send(peer, &msg);
}

static bool fits_together(const struct sl_msg_ipc_offer *msg)
{
	return msg->count >= 1 && msg->count <= SL_IPC_COUNT_MAX && msg->bytes > 0 &&
	       msg->chunk_bytes > 0 &&
	       (msg->bytes - 1) / msg->chunk_bytes + 1 == msg->count;
}

static struct offer *offer_new(struct sl_daemon *daemon, struct sl_client *client,
	const struct sl_msg_ipc_offer *msg)
{
	struct offer *offer = calloc(1, sizeof(*offer));

	if (offer)
		offer->bundle = sl_bundle_new(msg->count, client->ipc_uid, client->id);
	if (!offer || !offer->bundle ||
		sl_map_put(&daemon->ipc->offers, place_of(daemon, msg->key), offer) < 0) {
		if (offer)
			offer->bundle = sl_bundle_unref(offer->bundle);
		free(offer);
		return NULL;
	}
	offer->client = client;
	memcpy(offer->key, msg->key, sizeof(offer->key));
	offer->uid = client->ipc_uid;
	offer->gpu = client->gpu_numbers[msg->ordinal];
	offer->bytes = msg->bytes;
	offer->chunk_bytes = msg->chunk_bytes;
	sl_list_push_tail(&client->offers, &offer->link);
	client->ipc_fds += msg->count;
	return offer;
}

static void tell_full(struct sl_peer *peer)
{
	const struct sl_ipc *ipc = peer->daemon->ipc;

	if (sl_peer_may_log(peer->daemon, SL_LOG_WARNING))
		sl_warning("process %d cannot share more memory with other processes: "
			   "%u descriptors are kept, of at most %u; raise sluiced's "
			   "limit of them (LimitNOFILE=)",
			(int)peer->pid, sl_bundle_kept(), ipc ? ipc->most : 0);
}

static void on_offer(struct sl_peer *peer, const struct sl_msg_ipc_offer *msg)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_client *client = peer->client;
	struct sl_ipc *ipc = ipc_of(daemon);
	struct offer *other;

	if (msg->ordinal >= client->gpu_count) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "GPU ordinal %u of %u",
			msg->ordinal, client->gpu_count);
		return;
	}
	sl_step(D_IPC_OFFER_TAKEN);
	other = ipc ? sl_map_get(&ipc->offers, place_of(daemon, msg->key)) : NULL;
	if (!fits_together(msg) ||
		(other && (other->client != client || !same_key(other->key, msg->key)))) {
		say_offered(peer, msg->key, SL_IPC_BAD);
		return;
	}
	if (other)
		drop(daemon, other);
	client->ipc_uid = peer->uid;
	if (ipc && !is_full(daemon, client, peer->uid, msg->count) &&
		offer_new(daemon, client, msg))
		return;
	tell_full(peer);
	say_offered(peer, msg->key, SL_IPC_FULL);
}

/* --- opens ------------------------------------------------------------------------------------ */

static void refuse(struct sl_client *client, uint64_t ask, enum sl_wire_ipc_reason reason)
{
	union sl_msg msg;

	if (!client->peer)
		return; /* asks again when it is back */
	sl_wire_init(&msg, SL_MSG_IPC_OPENED);
	msg.ipc_opened.ask = ask;
	msg.ipc_opened.reason = reason;
	sl_peer_send(client->peer, &msg);
}

/* The opener's number of the GPU, or -1. */
static int ordinal_of(const struct sl_client *client, uint32_t gpu)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpu_numbers[i] == gpu)
			return (int)i;
	}
	return -1;
}

static void hand_over(struct sl_client *client, uint64_t ask, const struct offer *offer)
{
	int ordinal = ordinal_of(client, offer->gpu);
	struct sl_bundle *bundle = offer->bundle;
	uint32_t done = 0;
	union sl_msg msg;

	if (ordinal < 0) {
		refuse(client, ask, SL_IPC_UNSEEN);
		return;
	}
	sl_wire_init(&msg, SL_MSG_IPC_OPENED);
	msg.ipc_opened.ask = ask;
	msg.ipc_opened.bytes = offer->bytes;
	msg.ipc_opened.chunk_bytes = offer->chunk_bytes;
	msg.ipc_opened.ordinal = (uint32_t)ordinal;
	msg.ipc_opened.count = bundle->count;
	if (client->peer)
		sl_peer_send(client->peer, &msg);
	sl_step(D_IPC_OPENED);
	/* Each send may lose the peer. */
	while (done < bundle->count && client->peer) {
		uint32_t fds =
			(uint32_t)sl_min_u64(bundle->count - done, SL_WIRE_FDS_MAX);

		sl_wire_init(&msg, SL_MSG_IPC_TAKE);
		msg.ipc_take.ask = ask;
		msg.ipc_take.fds = fds;
		sl_peer_send_fds(client->peer, &msg, bundle, done, fds);
		done += fds;
	}
	sl_step(D_IPC_TAKEN);
}

/* May the opener, run by user uid, open the maker's memory? Yes for the maker's user and for root.
 * If either client is in a container, only within one workload, because users in containers prove
 * nothing. */
static bool is_one_of(const struct sl_client *opener, uid_t uid,
	const struct sl_client *maker, uid_t other)
{
	const struct sl_workload *a = opener->workload, *b = maker->workload;

	if ((a && a->is_contained) || (b && b->is_contained))
		return a == b;
	return uid == 0 || uid == other;
}

static bool may_open(const struct sl_client *opener, uid_t uid, const struct offer *offer)
{
	return is_one_of(opener, uid, offer->client, offer->uid);
}

static bool may_yet_offer(
	const struct sl_client *client, const struct sl_client *opener, uid_t uid)
{
	return (client->state == SL_CLIENT_EXPECTED || client->ipc_unsettled) &&
	       is_one_of(opener, uid, client, client->workload->uid);
}

/* May an offer still be on its way from some client? */
static bool may_come(
	const struct sl_daemon *daemon, const struct sl_client *opener, uid_t uid)
{
	sl_list_foreach (at, &daemon->workload_list) {
		sl_list_foreach (
			link, &SL_LIST_ENTRY(at, struct sl_workload, link)->clients) {
			if (may_yet_offer(SL_LIST_ENTRY(link, struct sl_client, link),
				    opener, uid))
				return true;
		}
	}
	return false;
}

static void arm(struct sl_ipc *ipc)
{
	sl_timer_set(ipc->timer,
		sl_list_is_empty(&ipc->waits)
			? SL_NS_NEVER
			: SL_LIST_ENTRY(ipc->waits.next, struct wait, link)->until);
}

static void end_wait(struct wait *wait)
{
	sl_list_unlink(&wait->link);
	wait->client->ipc_waits--;
	free(wait);
}

/* False: too many waits, or no memory. */
static bool wait_for(struct sl_peer *peer, const struct sl_msg_ipc_open *msg)
{
	struct sl_client *client = peer->client;
	struct sl_ipc *ipc = ipc_of(peer->daemon);
	struct wait *wait;

	if (!ipc || client->ipc_waits >= SL_IPC_WAITS_MAX)
		return false;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return false;
	wait->client = client;
	memcpy(wait->key, msg->key, sizeof(wait->key));
	wait->uid = peer->uid;
	wait->ask = msg->ask;
	wait->until = sl_clock_now() + SL_IPC_WAIT_NS;
	client->ipc_waits++;
	sl_list_push_tail(&ipc->waits, &wait->link);
	arm(ipc);
	return true;
}

static void on_open(struct sl_peer *peer, const struct sl_msg_ipc_open *msg)
{
	struct offer *offer = find(peer->daemon, msg->key);

	sl_step(D_IPC_OPEN_TAKEN);
	if (offer && !may_open(peer->client, peer->uid, offer)) {
		if (sl_peer_may_log(peer->daemon, SL_LOG_WARNING))
			sl_warning("process %d of user %u has a handle of memory of user "
				   "%u, and may not open it",
				(int)peer->pid, (unsigned int)peer->uid,
				(unsigned int)offer->uid);
		/* The same answer as for an unknown key, so that it does not reveal the key. */
		refuse(peer->client, msg->ask, SL_IPC_UNKNOWN);
	} else if (offer && is_whole(offer)) {
		hand_over(peer->client, msg->ask, offer);
	} else if (!may_come(peer->daemon, peer->client, peer->uid) ||
		   !wait_for(peer, msg)) {
		refuse(peer->client, msg->ask, SL_IPC_UNKNOWN);
	}
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now();

	sl_list_foreach_safe (link, &daemon->ipc->waits) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, link);

		if (wait->until > now)
			break;
		refuse(wait->client, wait->ask, SL_IPC_UNKNOWN);
		end_wait(wait);
	}
	arm(daemon->ipc);
	daemon->up->settle(daemon);
	return 0;
}

/* A client has settled or is gone: ends waits for offers that cannot come any more. */
static void look_at_waits(struct sl_daemon *daemon)
{
	if (!daemon->ipc)
		return;
	sl_list_foreach_safe (link, &daemon->ipc->waits) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, link);

		if (may_come(daemon, wait->client, wait->uid))
			continue;
		refuse(wait->client, wait->ask, SL_IPC_UNKNOWN);
		end_wait(wait);
	}
	arm(daemon->ipc);
}

/* --- the rest of an offer's life -------------------------------------------------------------- */

static void answer_waits(struct sl_daemon *daemon, const struct offer *offer)
{
	sl_list_foreach_safe (link, &daemon->ipc->waits) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, link);

		if (!same_key(wait->key, offer->key) ||
			!may_open(wait->client, wait->uid, offer))
			continue;
		hand_over(wait->client, wait->ask, offer);
		end_wait(wait);
	}
	arm(daemon->ipc);
}

/* The driver's memory is never a socket, and a socket may hold further descriptors. The kernel
 * alone answers getsockopt(2); fstat(2) would ask the file's server, which may be the sender. */
static bool has_socket(const struct sl_wire_fds *fds)
{
	for (uint32_t i = 0; i < fds->count; i++) {
		int domain = 0;
		socklen_t size = sizeof(domain);

		if (getsockopt(fds->fd[i], SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 ||
			errno != ENOTSOCK)
			return true;
	}
	return false;
}

static void on_give(
	struct sl_peer *peer, const struct sl_msg_ipc_give *msg, struct sl_wire_fds *fds)
{
	struct sl_daemon *daemon = peer->daemon;
	struct offer *offer = find(daemon, msg->key);

	/* The offer was refused while the rest was on its way. */
	if (!offer || offer->client != peer->client || is_whole(offer))
		return;
	if (fds->count > offer->bundle->room - offer->bundle->count) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"IPC_GIVE of more descriptors than were offered");
		return;
	}
	if (fds->missing)
		tell_full(peer);
	if (fds->missing || has_socket(fds)) {
		drop(daemon, offer);
		say_offered(peer, msg->key, fds->missing ? SL_IPC_FULL : SL_IPC_BAD);
		return;
	}
	sl_bundle_add(offer->bundle, fds->fd, fds->count);
	fds->count = 0;
	if (!is_whole(offer))
		return;
	sl_step(D_IPC_GIVEN);
	say_offered(peer, offer->key, SL_IPC_OK);
	answer_waits(daemon, offer);
	sl_step(D_IPC_OFFERED);
}

static void on_withdraw(struct sl_peer *peer, const struct sl_msg_ipc_withdraw *msg)
{
	struct offer *offer = find(peer->daemon, msg->key);

	if (offer && offer->client == peer->client)
		drop(peer->daemon, offer);
	sl_step(D_IPC_WITHDRAWN);
}

static void on_settled(struct sl_client *client)
{
	client->ipc_unsettled = false;
	sl_step(D_IPC_SETTLED);
	look_at_waits(client->daemon);
}

void sl_ipc_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	switch (msg->head.type) {
	case SL_MSG_IPC_OFFER: on_offer(peer, &msg->ipc_offer); break;
	case SL_MSG_IPC_GIVE: on_give(peer, &msg->ipc_give, fds); break;
	case SL_MSG_IPC_WITHDRAW: on_withdraw(peer, &msg->ipc_withdraw); break;
	case SL_MSG_IPC_OPEN: on_open(peer, &msg->ipc_open); break;
	default: on_settled(peer->client);
	}
}

static void drop_all(struct sl_client *client)
{
	struct sl_daemon *daemon = client->daemon;

	while (!sl_list_is_empty(&client->offers))
		drop(daemon, SL_LIST_ENTRY(client->offers.next, struct offer, link));
	if (!client->ipc_waits)
		return;
	sl_list_foreach_safe (link, &daemon->ipc->waits) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, link);

		if (wait->client == client)
			end_wait(wait);
	}
	arm(daemon->ipc);
}

void sl_ipc_client_back(struct sl_client *client)
{
	drop_all(client);
	client->ipc_unsettled = true;
}

void sl_ipc_client_gone(struct sl_client *client)
{
	drop_all(client);
	client->ipc_unsettled = false;
	look_at_waits(client->daemon);
}

void sl_ipc_fini(struct sl_daemon *daemon)
{
	struct sl_ipc *ipc = daemon->ipc;

	if (!ipc)
		return;
	ipc->timer = sd_event_source_disable_unref(ipc->timer);
	sl_map_fini(&ipc->offers);
	free(ipc);
	daemon->ipc = NULL;
	sl_bundle_finish();
}
