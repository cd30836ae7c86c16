/*
 * node_waited - how often and how long each workload waited, counted as it happens
 *
 * A workload waits while a demand of it is in a queue, while a process of it stands at its closed
 * gate or is to come back, and while it is being resumed; not while it is parked. What begins and
 * ends at the same moment was no wait. What overlaps is one: it is the workload's time that is
 * counted, not that of its processes.
 */
#include "policy/node_state.h"

static bool waits_now(const struct sl_node_member *member)
{
	if (member->parked)
		return member->resuming;
	return member->waiting || member->wanting;
}

void sl_node_count_wait(const struct sl_node *node, struct sl_node_member *member)
{
	bool waits = waits_now(member);

	if (waits == member->waits_now)
		return;
	member->waits_now = waits;
	if (waits) {
		member->waits_since = node->now;
	} else if (node->now > member->waits_since) {
		member->waits++;
		member->waited += node->now - member->waits_since;
	}
}

void sl_node_set_wants(const struct sl_node *node, struct sl_node_client *client,
	bool wants, bool comes_back)
{
	struct sl_node_member *member = client->member;

	member->wanting -= client->wants || client->comes_back;
	client->wants = wants;
	client->comes_back = comes_back;
	member->wanting += wants || comes_back;
	sl_node_count_wait(node, member);
}

uint64_t sl_node_waits_of(const struct sl_node *node, const struct sl_node_member *member)
{
	return member->waits + (member->waits_now && node->now > member->waits_since);
}

sl_ns sl_node_waited_of(const struct sl_node *node, const struct sl_node_member *member)
{
	return member->waited + (member->waits_now ? node->now - member->waits_since : 0);
}
