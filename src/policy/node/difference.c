/*
 * difference - orders that turn what is there into what has a seat
 *
 * Per GPU, by rank: what seats lack is granted or brought back as far as free memory reaches, after
 * setting aside the bytes of earlier seats. Then memory without a seat leaves, no more than needed.
 */
#include <stdlib.h>

#include "policy/node/plan.h"

struct move {
	struct sl_node_step *step;
	struct sl_node_plan *plan;
	int64_t avail[SL_NODE_GPUS_MAX];
	int64_t kept[SL_NODE_GPUS_MAX]; /* for demands, from later ones */
	/* The first claim that lacks something which free memory does not cover. */
	const struct sl_node_claim *lacker[SL_NODE_GPUS_MAX];
	uint32_t rightly; /* GPUs where a claim within its request lacks */
};

static void take(struct move *move, const struct sl_node_claim *claim, uint32_t gpu,
	uint64_t bytes)
{
	move->avail[gpu] -= (int64_t)bytes;
	if (bytes && move->avail[gpu] < 0 && !move->lacker[gpu])
		move->lacker[gpu] = claim;
	if (bytes && move->avail[gpu] < 0 && claim->entitled)
		move->rightly |= 1u << gpu;
}

static void set_aside(
	struct move *move, const struct sl_node_claim *claim, bool body, bool demand)
{
	sl_each_gpu (gpu, body ? claim->client->look->gpus : 0) {
		const struct sl_ledger_cell *cell = &claim->client->holding.cell[gpu];

		/* Leaving bytes are still there: they bring their room with them. */
		take(move, claim, gpu,
			sl_node_missing(move->step->node, claim->client, gpu) -
				cell->leaving_bytes);
	}
	if (demand)
		take(move, claim, claim->demand->gpu, claim->demand->bytes);
}

/* --- what comes --- */

/* The first GPU with evicted memory of the client, if there is room on all of them. */
static bool can_come(
	const struct move *move, const struct sl_node_client *client, uint32_t *first)
{
	bool found = false;

	sl_each_gpu (gpu, client->look->gpus) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		uint64_t lacks = sl_node_missing(move->step->node, client, gpu);

		if (lacks && (int64_t)lacks > move->avail[gpu])
			return false;
		if (!(cell->evicted_bytes || cell->away_bytes) || found)
			continue;
		*first = gpu;
		found = true;
	}
	return found;
}

static bool can_abort(const struct sl_node_client *client)
{
	const struct sl_node_order *order = &client->order;

	return order->id && order->kind == SL_NODE_EVICT &&
	       client->holding.cell[order->gpu].evicted_bytes <= order->out_bytes;
}

/* A client that leaves this GPU for others has already released some of it. */
static bool is_flowing(const struct sl_node_plan *plan, uint32_t gpu)
{
	for (uint32_t i = 0; i < plan->movers_count; i++) {
		const struct sl_node_client *client = plan->movers[i];

		if (client->order.id && client->order.kind != SL_NODE_RESTORE &&
			client->order.gpu == gpu &&
			client->holding.cell[gpu].evicted_bytes > client->order.out_bytes)
			return true;
	}
	return false;
}

/* The host had no room for what was told to leave the GPU. */
static bool is_host_full(const struct sl_node_plan *plan, uint32_t gpu)
{
	for (uint32_t i = 0; i < plan->all_count; i++) {
		const struct sl_node_client *client = plan->all[i];

		if (client->holding.touched >> gpu & 1 && client->back_off.times &&
			client->back_off.cause == SL_REASON_EVICT_NO_HOST)
			return true;
	}
	return false;
}

/* Brings back a piece although not all of it can come yet, for one of two reasons. The way in would
 * be idle while the way out is busy; or leaving bytes need the room on the host that returning ones
 * free. */
static void bring_piece(struct move *move, struct sl_node_client *client, bool is_first)
{
	const struct sl_node *node = move->step->node;
	uint32_t gpus = client->look->gpus, gpu = (uint32_t)__builtin_ctz(gpus);
	uint64_t least = sl_max_u64(client->chunk_bytes, sl_node_least_piece(node, gpu));

	if (!is_first || gpus & (gpus - 1) || move->avail[gpu] < (int64_t)least ||
		!(is_flowing(move->plan, gpu) || is_host_full(move->plan, gpu)) ||
		!sl_node_has_come(move->step, client->back_off.until) ||
		sl_node_is_detached(client))
		return;
	sl_node_restore(move->step, client, gpu,
		sl_min_u64((uint64_t)move->avail[gpu],
			client->holding.cell[gpu].evicted_bytes));
}

static void bring(struct move *move, struct sl_node_client *client, bool is_first)
{
	uint32_t gpu = 0;

	if (can_abort(client))
		sl_node_abort(move->step, client);
	if (client->look->is_whole || client->order.id || !client->look->answers)
		return;
	if (sl_node_must_wait(client, move->step->now)) {
		sl_node_wake(move->step, client->back_off.until);
		return;
	}
	if (!can_come(move, client, &gpu))
		bring_piece(move, client, is_first);
	else if (!sl_node_is_detached(client))
		sl_node_restore(
			move->step, client, gpu, client->holding.cell[gpu].evicted_bytes);
	else if (sl_node_may_attach(move->step->node, client))
		sl_node_attach(move->step, client);
}

/* Evicted memory of its workload was within the request and no longer is: this plan moves nothing
 * for it. */
static void grow_above(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	const struct sl_node_workload *workload = claim->client->workload;
	bool comes_back = false;

	if (claim->entitled || !workload->sums->is_within)
		return;
	sl_node_each_client_of (client, workload)
		comes_back |= sl_node_is_out(client);
	if (!comes_back)
		return;
	step->node->plan->is_stale = true;
	sl_node_wake(step, step->now);
}

static void grant(struct move *move, struct sl_node_claim *claim)
{
	struct sl_node_step *step = move->step;
	struct sl_node_client *client = claim->client;
	struct sl_node_demand *demand = claim->demand;
	int64_t avail =
		move->avail[demand->gpu] - (claim->helps ? 0 : move->kept[demand->gpu]);

	/* Earlier grants of this plan may have used up the limit. */
	if (sl_node_exceeds_limit(demand))
		return;
	if (sl_node_has_come(step, demand->back_off.until) &&
		avail >= (int64_t)demand->bytes && claim->has_seat &&
		client->look->is_whole && !client->order.id) {
		if (sl_node_can_lend(step->node, claim)) {
			sl_node_grant_in_slice(step, demand, claim->facts.coming,
				claim->rank.class == SL_RANK_OVERDUE);
			grow_above(step, claim);
		} else if (!move->lacker[demand->gpu]) {
			move->lacker[demand->gpu] = claim;
		}
	}
}

/* Sets aside what it keeps without a seat. */
static void keep(struct move *move, const struct sl_node_claim *claim)
{
	sl_each_gpu (gpu, claim->reserves ? claim->gpus : 0) {
		if (claim->demand)
			move->kept[gpu] += (int64_t)claim->reserved_bytes[gpu];
		else
			move->avail[gpu] -= (int64_t)claim->reserved_bytes[gpu];
	}
}

static void come(struct move *move)
{
	struct sl_node_plan *plan = move->plan;
	uint32_t coming = 0; /* GPUs that an earlier claim returns to */

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = plan->order[i];
		struct sl_node_client *client = claim->client;
		bool with_body;

		if (claim->is_over || client->look->coming)
			continue;
		if (!claim->has_seat) {
			keep(move, claim);
			continue;
		}
		with_body =
			!claim->demand ||
			(client->look->sits &&
				(!client->look->body || client->look->body->with_demand));
		/* A whole client that was not told to leave is there already. */
		if (with_body && !client->look->is_brought &&
			(!client->look->is_whole || client->order.id)) {
			struct move before = *move;

			/* What is on its way back is no longer missing. */
			client->look->is_brought = true;
			set_aside(move, claim, true, false);
			bring(&before, client, !(coming & claim->gpus));
			coming |= sl_node_away_gpus(client) ? claim->gpus : 0;
		}
		if (!claim->demand)
			continue;
		grant(move, claim);
		set_aside(move, claim, false, true);
	}
}

/* A granted demand that stays is there: nothing more must leave for it. */
static void let_go(struct move *move)
{
	uint32_t holds = 0;

	for (uint32_t i = 0; i < move->plan->claims_count; i++) {
		const struct sl_node_claim *claim = move->plan->order[i];

		if (claim->demand && claim->has_seat && !claim->demand->epoch &&
			sl_node_stays_for_good(move->step->node, claim->demand))
			holds |= 1u << claim->demand->gpu;
	}
	for (uint32_t gpu = 0; gpu < move->plan->now.gpus; gpu++)
		move->plan->now.gpu[gpu].holds &= holds >> gpu & 1;
}

/* --- what leaves --- */

static int by_class(const void *a, const void *b)
{
	const struct leaver *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->client->index.id < y->client->index.id ? -1 : 1;
}

static uint32_t place_of(
	const struct sl_node_plan *plan, const struct sl_node_claim *claim)
{
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		if (plan->order[i] == claim)
			return i;
	}
	return 0;
}

static struct leaver leaver_of(const struct move *move, struct sl_node_client *client)
{
	const struct sl_node_look *look = client->look;
	struct leaver leaver = {.client = client};

	if (sl_node_is_parked(client->workload)) {
		leaver.class = 0;
	} else if (!look->body) {
		leaver.class = look->is_whole ? 3 : 2;
		leaver.key = client->idle_since ? client->idle_since : SL_NS_NEVER;
	} else {
		leaver.class = look->is_whole ? 5 : 4;
		leaver.key = UINT32_MAX - place_of(move->plan, look->body);
	}
	return leaver;
}

/* Lists clients with movable bytes there and no seat. */
static uint32_t list_leavers(struct move *move, uint32_t gpu, struct leaver *leavers)
{
	struct sl_node *node = move->step->node;
	uint32_t count = 0;

	sl_node_each_client (client, node) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		uint64_t bytes =
			sl_sub_sat(sl_ledger_evictable(cell), cell->leaving_bytes);

		if (client->stage == SL_NODE_DYING || !bytes || client->look->stays ||
			client->look->coming || client->look->sits)
			continue;
		leavers[count] = leaver_of(move, client);
		leavers[count++].bytes = bytes;
	}
	if (count)
		qsort(leavers, count, sizeof(*leavers), by_class);
	return count;
}

/* A client that grows in its slice will ask for more. To save moves while it grows piece by piece,
 * as many bytes leave ahead as its workload grew in this slice, but no more than it has there. */
static uint64_t ahead_of(
	const struct move *move, const struct sl_node_claim *claim, uint32_t gpu)
{
	const struct sl_node_workload *workload = claim->client->workload;
	const struct sl_ledger_account *account = &workload->account;
	struct sl_node_claim more = *claim;
	struct sl_node_demand demand;
	struct sl_room_claim of;
	uint64_t grown, most, has;

	if (!claim->demand || claim->demand->gpu != gpu ||
		move->step->now >= workload->slice_ends)
		return 0;
	demand = *claim->demand;
	has = sl_ledger_use(account, gpu);
	most = claim->entitled ? sl_ledger_request(account, gpu) : account->limit_bytes;
	grown = sl_sub_sat(sl_node_use_of(workload), workload->slice_bytes);
	demand.bytes =
		sl_min_u64(sl_min_u64(grown, has), sl_sub_sat(most, has + demand.bytes));
	more.demand = &demand;
	sl_node_room_claim(
		move->step->node, &more, false, &claim->client->workload->sums->now, &of);
	if (!demand.bytes || sl_room_for(&move->plan->now, &of).code != SL_ROOM_OK)
		return 0;
	return demand.bytes;
}

/* Its workload's burst, less what already left of that. */
static uint64_t burst_of(const struct leaver *leavers, uint32_t i, uint32_t gpu)
{
	const struct sl_node_workload *workload = leavers[i].client->workload;
	uint64_t left = 0;

	for (uint32_t before = 0; before < i; before++) {
		if (leavers[before].client->workload == workload)
			left += leavers[before].taken;
	}
	return sl_sub_sat(sl_room_burst(&workload->sums->now.on[gpu]), left);
}

/* Returns how much was told to leave. */
static uint64_t send_out(
	struct move *move, uint32_t gpu, uint32_t count, uint64_t lack, bool bursts)
{
	struct leaver *leavers = move->plan->leavers;
	uint64_t other = move->lacker[gpu]->client->workload->index.id, all = 0;

	for (uint32_t i = 0; i < count && all < lack; i++) {
		struct sl_node_client *client = leavers[i].client;
		uint64_t part = client->workload->sums->now.part_bytes;
		uint64_t least = SL_MUTANT(LEAVES_TWICE, lack - all, 2 * (lack - all));
		uint64_t bytes = sl_min_u64(least, sl_min_u64(leavers[i].bytes, part));

		if (bursts)
			bytes = sl_min_u64(bytes, burst_of(leavers, i, gpu));
		if (!bytes || leavers[i].taken)
			continue;
		leavers[i].taken = bytes;
		all += bytes;
		/* Otherwise it waits for what the plan counts on. */
		if (!(move->rightly >> gpu & 1) &&
			!sl_node_can_leave_for(move->step->node, move->lacker[gpu],
				client->workload, gpu, bytes))
			continue;
		if (!client->order.id && sl_node_trim_for(move->step, client, bytes))
			sl_node_evict(move->step, client, gpu, bytes, other);
	}
	return all;
}

/* Beside a burst that stays, `lack` includes the room of uncovered requests. A byte within its
 * request then gains nothing by leaving, because its request still needs the room. So bursts leave
 * first; after them, bytes within requests leave only for what seats lack. */
static void leave(struct move *move, uint32_t gpu, uint64_t lack)
{
	const struct sl_room_gpu *room = &move->plan->now.gpu[gpu];
	uint32_t count = list_leavers(move, gpu, move->plan->leavers);

	if (room->holds) {
		uint64_t bursts = sl_sub_sat(lack, room->within_bytes);
		uint64_t left = send_out(move, gpu, count, bursts, true);

		lack = sl_sub_sat(
			room->fixed_bytes + room->seats_bytes + room->rest_bytes,
			room->shareable_bytes + left);
	} else {
		lack += ahead_of(move, move->lacker[gpu], gpu);
	}
	(void)send_out(move, gpu, count, lack, false);
}

/* Aborts EVICTs of which nothing has moved and that no claim needs any more. */
static void take_back(struct move *move)
{
	for (uint32_t i = 0; i < move->plan->movers_count; i++) {
		struct sl_node_client *client = move->plan->movers[i];
		uint32_t gpu = client->order.gpu;
		struct sl_room_gpu *room = &move->plan->now.gpu[gpu];
		uint64_t bytes = client->holding.cell[gpu].leaving_bytes;

		if (!can_abort(client) || !client->order.other ||
			client->order.other == client->workload->index.id)
			continue;
		room->rest_bytes += bytes;
		if (sl_room_out(room)) {
			room->rest_bytes -= bytes;
			continue;
		}
		sl_node_abort(move->step, client);
	}
}

/* --- all of it --- */

/* The next GPU that memory must leave, for the first claim by rank: a client has one order. */
static bool next_to_leave(const struct move *move, uint32_t done, uint32_t *gpu)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t g = 0; g < move->plan->now.gpus; g++) {
		uint32_t place;

		/* Measured bytes beyond what can be shared are in no claim's way. */
		if (done >> g & 1 || !move->lacker[g] ||
			!sl_room_out(&move->plan->now.gpu[g]))
			continue;
		place = place_of(move->plan, move->lacker[g]);
		if (place < first) {
			first = place;
			*gpu = g;
		}
	}
	return first != UINT32_MAX;
}

static void leave_all(struct move *move)
{
	uint32_t done = 0, gpu = 0;

	while (next_to_leave(move, done, &gpu)) {
		leave(move, gpu, sl_room_out(&move->plan->now.gpu[gpu]));
		move->step->node->lacks |= 1u << gpu;
		done |= 1u << gpu;
	}
}

/* An EVICT whose ABORT is not answered yet may still move memory, and the pool reserves room for
 * it. A client that does not answer at all moves nothing either. */
static bool is_taking_back(const struct sl_node_plan *plan)
{
	for (uint32_t i = 0; i < plan->movers_count; i++) {
		const struct sl_node_client *client = plan->movers[i];

		if (client->order.id && client->order.kind == SL_NODE_ABORTED &&
			client->look->answers)
			return true;
	}
	return false;
}

void sl_node_move(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	struct move move = {.step = step, .plan = node->plan};

	for (uint32_t gpu = 0; gpu < node->plan->now.gpus; gpu++)
		move.avail[gpu] = (int64_t)sl_ledger_free_bytes(&node->ledger, gpu);
	node->lacks = node->plan->refused;
	node->awaits = false;
	come(&move);
	sl_node_find_over_limit(step);
	let_go(&move);
	if (!node->plan->is_stale) {
		if (!is_taking_back(node->plan))
			leave_all(&move);
		take_back(&move);
	}
	sl_node_send_away(step);
	/* A whole client waits for nothing, seated or not. */
	for (uint32_t i = 0; i < node->plan->claims_count; i++) {
		const struct sl_node_claim *claim = node->plan->order[i];

		if (!claim->is_over &&
			(claim->demand ? !claim->demand->epoch
				       : sl_node_away_gpus(claim->client) != 0))
			node->lacks |= claim->gpus;
	}
}
