/*
 * trims - copies of resident chunks make room on the host before anything moves there
 *
 * A client keeps copies of restored chunks in its host file, so that they need not be copied again.
 * The node asks clients to drop copies before it evicts, and waits for them at most 1s, because the
 * host may have room all the same. A client that gave nothing in time still needs those parts of
 * its file, and does not say until when. It is asked again once it reports, has less on the host,
 * or after a while.
 */
#include "policy/node/internal.h"

#define TRIM_WAIT        (1 * SL_S)
#define TRIM_AGAIN_FIRST (2 * SL_S)
#define TRIM_DOUBLINGS   4

static uint64_t on_host(const struct sl_node_client *client)
{
	uint64_t bytes = 0;

	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		bytes += cell->evicted_bytes + cell->leaving_bytes;
	}
	return bytes;
}

uint64_t sl_node_copies(const struct sl_node_client *client)
{
	return sl_sub_sat(client->store_bytes, on_host(client));
}

static bool is_waited_for(const struct sl_node_client *client, sl_ns now)
{
	return client->trim_bytes && now < client->trim.until;
}

void sl_node_trim_anew(const struct sl_node_step *step, struct sl_node_client *client)
{
	/* What was asked for in the last second may still come. */
	if (SL_MUTANT(TRIM_ASKED_ONCE, !is_waited_for(client, step->now), false))
		client->trim_bytes = 0;
	client->trim.times = 0;
}

void sl_node_on_store(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->store.client);
	uint64_t bytes = sl_min_u64(event->store.bytes, SL_LEDGER_BYTES_MAX);

	if (!client)
		return;
	step->plans |= is_waited_for(client, step->now);
	/* What is still to come is not asked for again. */
	client->trim_bytes =
		bytes < client->store_bytes
			? sl_sub_sat(client->trim_bytes, client->store_bytes - bytes)
			: 0;
	client->trim.times = 0;
	client->store_bytes = bytes;
	sl_node_wake(step, sl_node_later(step->now, SL_MS));
}

/* It gave nothing in time, and its back-off is not over. */
static bool is_left_alone(const struct sl_node_step *step, struct sl_node_client *client)
{
	if (!client->trim_bytes || is_waited_for(client, step->now))
		return false;
	if (SL_MUTANT(TRIM_ASKED_ONCE,
		    step->now < sl_node_later(client->trim.until,
					TRIM_AGAIN_FIRST << client->trim.times),
		    true))
		return true;
	client->trim_bytes = 0;
	client->trim.times += client->trim.times < TRIM_DOUBLINGS;
	return false;
}

/* Asks for this many more bytes. The client is told the total, which replaces earlier numbers, so
 * that bytes counted twice are not given twice. */
static void trim(struct sl_node_step *step, struct sl_node_client *client, uint64_t bytes)
{
	client->trim_bytes += bytes;
	client->trim.until = sl_node_later(step->now, TRIM_WAIT);
	sl_node_wake(step, client->trim.until);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_TRIM,
				   .trim = {.client = client->index.id,
					   .bytes = client->trim_bytes}});
}

/* Asks for copies to be dropped, so that host memory stays within most_bytes with this many more
 * bytes of the client. of: counts the host memory of this workload; NULL: of all. False: copies of
 * other clients must go first. */
static bool trim_within(struct sl_node_step *step, const struct sl_node_client *own,
	uint64_t bytes, const struct sl_node_workload *of, uint64_t most_bytes)
{
	uint64_t made = 0, coming = 0, missing;

	sl_node_each_client (client, step->node) {
		bool is_own = client == own;

		if (of && client->workload != of)
			continue;
		made += sl_max_u64(
			client->store_bytes, on_host(client) + (is_own ? bytes : 0));
		if (is_own || !is_waited_for(client, step->now))
			continue;
		coming += sl_min_u64(client->trim_bytes, sl_node_copies(client));
		sl_node_wake(step, client->trim.until);
	}
	missing = SL_MUTANT(COPIES_STAY, sl_sub_sat(made, most_bytes), 0);
	sl_node_each_client (client, step->node) {
		uint64_t more;

		if (coming >= missing)
			break;
		if (client == own || (of && client->workload != of) ||
			client->stage == SL_NODE_DYING || is_left_alone(step, client))
			continue;
		more = sl_min_u64(sl_sub_sat(sl_node_copies(client), client->trim_bytes),
			missing - coming);
		if (more)
			trim(step, client, more);
		coming += more;
	}
	return !missing || coming < missing;
}

/* What an EVICT may move: after one that lacked host memory, all of the client, because its pieces
 * may be larger than the node asks for. */
static uint64_t leaves(const struct sl_node_client *client, uint64_t bytes)
{
	if (!client->back_off.times ||
		client->back_off.cause !=
			SL_MUTANT(TRIM_AS_ASKED, SL_REASON_EVICT_NO_HOST, SL_REASONS))
		return bytes;
	return sl_max_u64(bytes,
		sl_ledger_evictable_on(client->holding.cell, client->holding.touched));
}

bool sl_node_trim_for(
	struct sl_node_step *step, const struct sl_node_client *client, uint64_t bytes)
{
	const struct sl_event *config = &step->node->config;
	uint64_t part = config->config.pool_member_bytes, all = leaves(client, bytes);

	return trim_within(step, client, all, NULL, config->config.pool_bytes) &&
	       (!part || trim_within(step, client, all, client->workload, part));
}
