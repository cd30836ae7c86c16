/*
 * node_contexts - contexts and code, and the reserve that pays for them
 *
 * A context never leaves its GPU. What the reserve pays of contexts and code takes nothing from
 * what is shared, so a workload that fills its limit is whole beside them. First come, first paid:
 * what was measured is paid as far as the reserve has room, stays paid while it is measured, and
 * the rest counts against its workload until the reserve has room again. So that no workload there
 * is left without a way to be whole, a workload is admitted, and a process makes its first context,
 * only where the next one has room.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"
#include "policy/verdicts/admit.h"

/* One more context is taken to need as much as the largest process there has, and this part of the
 * reserve besides, since code is loaded later. Too much makes a newcomer wait; too little would
 * leave a workload there that can never be whole. */
#define CODE_PART 8

/* Of those that count bytes against their workloads, the one that joined first. */
static struct sl_node_client *first_unpaid(const struct sl_node *node, uint32_t gpu)
{
	struct sl_node_client *first = NULL;

	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);

		if (client->holding.cell[gpu].hidden_bytes &&
			(!first || at->id < first->index.id))
			first = client;
	}
	return first;
}

void sl_node_repay(struct sl_node *node, uint32_t gpu)
{
	/* Ends: each round pays all of one client, or takes what is left of the reserve. */
	while (node->ledger.gpu[gpu].sum.hidden_bytes &&
		SL_MUTANT(PAID_ONCE, sl_ledger_reserve_room(&node->ledger, gpu), 0)) {
		struct sl_node_client *client = first_unpaid(node, gpu);

		sl_ledger_set_hidden(&node->ledger, &client->holding, gpu,
			sl_ledger_measured(&client->holding.cell[gpu]));
		sl_node_tell_view(node, client->member, gpu, 1);
		sl_node_touch(node, 1u << gpu);
		node->deadlock_dirty = true;
	}
}

/* --- one more --- */

static uint64_t context_of(const struct sl_node *node, uint32_t gpu)
{
	const struct sl_ledger_gpu *g = &node->ledger.gpu[gpu];
	uint64_t largest = 0;

	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at))
		largest = sl_max_u64(largest,
			sl_ledger_measured(
				&SL_NODE_ENTRY(at, sl_node_client)->holding.cell[gpu]));
	return largest + sl_sub_sat(g->reserve_bytes, g->driver_bytes) / CODE_PART;
}

static bool has_context(const struct sl_ledger_cell cell[], uint32_t gpu)
{
	return sl_ledger_measured(&cell[gpu]);
}

/* Contexts that are to come there of workloads other than `but`: of each that was admitted and has
 * none yet, and of further processes that were granted theirs. */
static uint32_t to_come(
	const struct sl_node *node, uint32_t gpu, const struct sl_node_member *but)
{
	uint32_t count = 0;

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		count += member != but && !member->leaving &&
			 (member->account.gpu_mask >> gpu & 1) &&
			 !has_context(member->account.cell, gpu);
	}
	sl_list_foreach (at, &node->contexts) {
		const struct sl_node_context *context =
			SL_LIST_ENTRY(at, struct sl_node_context, of_node);

		count += context->epoch && context->gpu == gpu &&
			 (context->client->member == but ||
				 has_context(
					 context->client->member->account.cell, gpu)) &&
			 !has_context(context->client->holding.cell, gpu);
	}
	return count;
}

/* One more context on the GPU, of the workload (NULL: of a new one): fills in what it may take, and
 * what the reserve has left for it. Returns the workload that could never be whole beside it, NULL
 * if there is none. */
static const struct sl_node_member *judge(const struct sl_node *node, uint32_t gpu,
	const struct sl_node_member *own, bool has_request, struct sl_admit_gpu *facts)
{
	uint64_t context = context_of(node, gpu);
	uint64_t left = sl_sub_sat(sl_ledger_reserve_room(&node->ledger, gpu),
		to_come(node, gpu, own) * context);

	facts->context_bytes = context;
	facts->reserve_bytes = left;
	/* Where nothing is moved, all that runs is whole. */
	return left < context && sl_node_swaps(node)
		       ? sl_node_not_whole_beside(node, gpu, context - left, has_request)
		       : NULL;
}

void sl_node_context_facts(const struct sl_node *node, uint32_t gpu, bool has_request,
	struct sl_admit_gpu *facts)
{
	facts->crowded = judge(node, gpu, NULL, has_request, facts) != NULL;
}

/* --- the first context of a process --- */

/*
 * A process asks before it makes one, and waits while a workload there could never be whole beside
 * it. The first process of a workload asks, too, since others may have grown after it was admitted.
 * The question stands in no queue: it takes no memory from demands, and none is moved for it.
 */

static void drop(struct sl_node *node, struct sl_node_context *context)
{
	sl_list_unlink(&context->of_node);
	sl_list_push_head(&node->spare_contexts, &context->of_node);
}

static void deny(struct sl_node *node, struct sl_node_context *context,
	enum sl_reason reason, const struct sl_node_because *because)
{
	context->client->member->denials += reason == SL_REASON_CONTEXT_WAITED;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_DENY,
				   .deny = {.client = context->client->index.id,
					   .ask = context->ask,
					   .reason = reason,
					   .gpu = context->gpu,
					   .bytes = because->bytes,
					   .available_bytes = because->available_bytes,
					   .workload = context->client->member->index.id,
					   .other = because->other,
					   .other_bytes = because->other_bytes,
					   .span = node->now - context->since}});
	drop(node, context);
}

static void grant(struct sl_node *node, struct sl_node_context *context)
{
	context->epoch = ++node->next_epoch;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_GRANT,
				   .grant = {.client = context->client->index.id,
					   .ask = context->ask,
					   .epoch = context->epoch,
					   .gpu = context->gpu}});
}

/* Why it waits; reason NONE: it need not. */
static struct sl_node_because because_of(
	const struct sl_node *node, const struct sl_node_context *context)
{
	const struct sl_node_member *own = context->client->member;
	struct sl_admit_gpu facts = {0};
	const struct sl_node_member *other = judge(node, context->gpu, own,
		sl_ledger_request(&own->account, context->gpu), &facts);

	return (struct sl_node_because){
		.reason = other ? SL_REASON_CONTEXT_WAITS : SL_REASON_NONE,
		.gpu = context->gpu,
		.workload = own->index.id,
		.client = context->client->index.id,
		.other = other ? other->index.id : 0,
		.other_bytes = other ? sl_ledger_use(&other->account, context->gpu) : 0,
		.bytes = facts.context_bytes,
		.available_bytes = facts.reserve_bytes,
		.span = node->now - context->since};
}

/* Decides about one that waits; returns when time alone may decide otherwise. */
static sl_ns decide(struct sl_node *node, struct sl_node_context *context)
{
	const struct sl_node_member *own = context->client->member;
	struct sl_node_because because = because_of(node, context);
	sl_ns note_at = sl_node_later(context->since, SL_NODE_NOTE_AFTER);
	sl_ns end = sl_node_later(
		context->since, own->wait_max ? own->wait_max : node->wait_max);

	if (node->queue[context->gpu].lost) {
		deny(node, context, SL_REASON_GPU_LOST, &because);
	} else if (own->leaving || own->stopping) {
		deny(node, context, SL_REASON_CANCELLED, &because);
	} else if (because.reason == SL_REASON_NONE) {
		grant(node, context);
	} else if (node->now >= end) {
		deny(node, context, SL_REASON_CONTEXT_WAITED, &because);
	} else {
		if (!context->noted && node->now >= note_at) {
			context->noted = true;
			sl_node_note_because(node, &because);
		}
		return context->noted ? end : sl_min_u64(end, note_at);
	}
	return SL_NS_NEVER;
}

sl_ns sl_node_time_contexts(struct sl_node *node)
{
	sl_ns due = SL_NS_NEVER;

	sl_list_foreach_safe (link, &node->contexts) {
		struct sl_node_context *context =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);

		if (!context->epoch)
			due = sl_min_u64(due, decide(node, context));
	}
	return due;
}

static struct sl_node_context *find(
	const struct sl_node *node, const struct sl_node_client *client, uint64_t ask)
{
	sl_list_foreach (link, &node->contexts) {
		struct sl_node_context *context =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);

		if (context->client == client && context->ask == ask)
			return context;
	}
	return NULL;
}

void sl_node_ask_context(
	struct sl_node *node, struct sl_node_client *client, const struct sl_event *event)
{
	uint32_t gpu = event->ask.gpu;
	struct sl_node_context *context;

	if (gpu >= SL_NODE_GPUS_MAX || !(client->member->account.gpu_mask >> gpu & 1)) {
		sl_node_emit(node, (struct sl_action){.type = SL_ACTION_DENY,
					   .deny = {.client = client->index.id,
						   .ask = event->ask.ask,
						   .reason = SL_REASON_UNKNOWN_CLIENT,
						   .gpu = gpu}});
		return;
	}
	if (find(node, client, event->ask.ask))
		return;
	if (sl_list_is_empty(&node->spare_contexts)) {
		context = sl_arena_take(node->arena, sizeof(*context));
	} else {
		context = SL_LIST_ENTRY(
			node->spare_contexts.next, struct sl_node_context, of_node);
		sl_list_unlink(&context->of_node);
	}
	*context = (struct sl_node_context){
		.client = client, .ask = event->ask.ask, .gpu = gpu, .since = node->now};
	sl_list_init(&context->of_node);
	sl_list_push_tail(&node->contexts, &context->of_node);
}

bool sl_node_cancel_context(
	struct sl_node *node, const struct sl_node_client *client, uint64_t ask)
{
	struct sl_node_context *context = find(node, client, ask);

	if (context && !context->epoch)
		deny(node, context, SL_REASON_CANCELLED, &(struct sl_node_because){0});
	return context != NULL;
}

bool sl_node_made_context(
	struct sl_node *node, const struct sl_node_client *client, uint64_t epoch)
{
	sl_list_foreach (link, &node->contexts) {
		struct sl_node_context *context =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);

		if (context->client != client || !epoch || context->epoch != epoch)
			continue;
		drop(node, context);
		return true;
	}
	return false;
}

void sl_node_drop_contexts(struct sl_node *node, const struct sl_node_client *client)
{
	sl_list_foreach_safe (link, &node->contexts) {
		struct sl_node_context *context =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);

		if (context->client == client)
			drop(node, context);
	}
}

void sl_node_why_contexts(const struct sl_node *node, const struct sl_node_client *client,
	sl_node_because_fn fn, void *context)
{
	sl_list_foreach (link, &node->contexts) {
		const struct sl_node_context *waiting =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);
		struct sl_node_because because = {.reason = SL_REASON_NONE};

		if (waiting->client == client && !waiting->epoch)
			because = because_of(node, waiting);
		if (because.reason != SL_REASON_NONE)
			fn(context, &because);
	}
}

int sl_node_check_contexts(const struct sl_node *node, struct sl_error *err)
{
	sl_list_foreach (link, &node->contexts) {
		const struct sl_node_context *context =
			SL_LIST_ENTRY(link, struct sl_node_context, of_node);

		if (context->client->alive &&
			(context->epoch || sl_node_is_recovering(node) ||
				because_of(node, context).reason != SL_REASON_NONE))
			continue;
		sl_error_set(err, "client %llu: its context has room, and waits",
			(unsigned long long)context->client->index.id);
		return 1;
	}
	return 0;
}
