/*
 * bounds - facts from the kernel, rows from the configuration
 *
 * A peer whose groups cannot be read counts as being in its primary group alone.
 */
#include "daemon/link/bounds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/state/workload.h"

static bool is_free(const struct sl_peer *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

/* Fractions of different kinds are compared as on the largest GPU. */
static uint64_t largest_shareable(const struct sl_daemon *daemon)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		struct sl_node_gpu_view view = sl_node_gpu(daemon->node, i);

		largest = sl_max_u64(largest, view.shareable_bytes);
	}
	return largest;
}

size_t sl_bounds_groups_of(
	const struct sl_peer *peer, uint32_t gids[SL_BOUNDS_GROUPS_MAX])
{
	if (!peer->who)
		return sl_user_groups_of_socket(peer->fd, gids);
	memcpy(gids, peer->who->gids, peer->who->gid_count * sizeof(gids[0]));
	return peer->who->gid_count;
}

struct sl_bounds sl_bounds_of_peer(const struct sl_peer *peer)
{
	const struct sl_daemon *daemon = peer->daemon;
	uint32_t gids[SL_BOUNDS_GROUPS_MAX];
	size_t count;

	if (daemon->config.bounds.count == 0)
		return (struct sl_bounds){0};
	count = sl_bounds_groups_of(peer, gids);
	return sl_config_bounds_of(&daemon->config.bounds, peer->uid, is_free(peer), gids,
		count, largest_shareable(daemon));
}

bool sl_bounds_may_change(const struct sl_peer *peer, const struct sl_workload *workload)
{
	return is_free(peer) || peer->uid == workload->uid;
}
