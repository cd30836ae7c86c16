/*
 * places - counting a user's share only when places get scarce
 */
#include "daemon/link/places.h"

#include <unistd.h>

#include "daemon/link/peer.h"
#include "daemon/state/workload.h"

typedef uint32_t (*count_fn)(const struct sl_daemon *daemon, uid_t uid);

static bool is_full(
	const struct sl_daemon *daemon, uid_t uid, uint32_t taken, count_fn count)
{
	uint32_t most = daemon->config.max_clients, quarter = most / 4;

	if (taken >= most)
		return true;
	if (taken < most - quarter || uid == 0 || uid == geteuid())
		return false;
	return count(daemon, uid) >= quarter;
}

static uint32_t peers_in(const struct sl_link *list, uid_t uid)
{
	uint32_t count = 0;

	sl_list_foreach (link, list)
		count += SL_LIST_ENTRY(link, struct sl_peer, link)->uid == uid;
	return count;
}

static uint32_t peers_of(const struct sl_daemon *daemon, uid_t uid)
{
	return peers_in(&daemon->peers->all, uid) +
	       peers_in(&daemon->peers->greeting, uid);
}

uint32_t sl_places_workloads_of(const struct sl_daemon *daemon, uid_t uid)
{
	uint32_t count = 0;

	sl_list_foreach (link, &daemon->workload_list)
		count += SL_LIST_ENTRY(link, struct sl_workload, link)->uid == uid;
	return count;
}

static uint32_t clients_of(const struct sl_daemon *daemon, uid_t uid)
{
	uint32_t count = 0;

	sl_list_foreach (at, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		if (workload->uid != uid)
			continue;
		sl_list_foreach (link, &workload->clients)
			count++;
	}
	return count;
}

bool sl_places_peers_full(const struct sl_daemon *daemon, uid_t uid)
{
	return is_full(daemon, uid, daemon->peers->count, peers_of);
}

bool sl_places_workloads_full(const struct sl_daemon *daemon, uid_t uid)
{
	return is_full(daemon, uid, daemon->workload_count, sl_places_workloads_of);
}

bool sl_places_clients_full(const struct sl_daemon *daemon, uid_t uid)
{
	return is_full(daemon, uid, daemon->client_count, clients_of);
}

static uint32_t peers_by(const struct sl_link *list, uint64_t workload)
{
	uint32_t count = 0;

	sl_list_foreach (link, list)
		count += SL_LIST_ENTRY(link, struct sl_peer, link)->entry == workload;
	return count;
}

bool sl_places_entry_full(const struct sl_daemon *daemon, uint64_t id)
{
	const struct sl_workload *workload = sl_map_get(&daemon->workloads, id);
	uint32_t most = daemon->config.max_clients, quarter = most / 4, clients = 0;

	if (workload) {
		sl_list_foreach (link, &workload->clients)
			clients++;
	}
	return daemon->peers->count >= most || daemon->client_count >= most ||
	       clients >= quarter ||
	       peers_by(&daemon->peers->all, id) +
			       peers_by(&daemon->peers->greeting, id) >=
		       quarter;
}
