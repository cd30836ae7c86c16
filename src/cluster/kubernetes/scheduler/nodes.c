/*
 * nodes - turns a Node and its ResourceSlice into a node of the machine
 *
 * A node's GPUs keep their numbers. A device that vanished, as all do while a kubelet starts, is
 * closed and comes back under its number. More GPUs on a node that has pods rebuild the machine,
 * which is rare.
 *
 * Rules of pods (match.h) reach the machine as pools. Nodes that satisfy the same rules are of one
 * kind, and each kind is a pool. The machine has only 31 pools, so the last kind has all remaining
 * nodes; only there do nodes differ. Rules allow a kind if all nodes of the kind satisfy them.
 * Rules and a node are compared when one of them changes. Each set of rules has a random number,
 * its mark. Each node has the sum of the marks of the rules that it satisfies; equal sums mean one
 * kind.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/match.h"
#include "cluster/kubernetes/claims/slice.h"

/* The nodes themselves manage host memory for parked pods. */
#define POOL_MIB (1ull << 40)
/* A slice is named after its node: NODE-gpu.sluice.dev. */
#define SLICE_SUFFIX "-" SL_KUBE_DRIVER
/* Unused rules kept, so that the next pods find the kinds unchanged. */
#define UNUSED_RULES 256u

/* --- Rules. ------------------------------------------------------------------------------- */

/* splitmix64: two sums of such numbers are equal by chance once in 2^64. */
static uint64_t mark_of(uint64_t id)
{
	uint64_t x = id + 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t holds_of(const struct sl_ks *ks, const json_t *labels)
{
	uint64_t holds = 0;

	sl_list_foreach (link, &ks->rules) {
		const struct sl_ks_rules *rules =
			SL_LIST_ENTRY(link, struct sl_ks_rules, link);

		holds += sl_match(rules->json, labels) ? rules->mark : 0;
	}
	return holds;
}

/* The kinds whose nodes all satisfy the rules. Checks one of the nodes with equal sums; in the last
 * kind several. */
static uint64_t kinds_of(const struct sl_ks *ks, const struct sl_ks_rules *rules)
{
	const struct sl_ks_node *seen[SL_KS_KINDS] = {NULL};
	uint64_t kinds = 0, others = 0;

	sl_list_foreach (link, &ks->nodes) {
		const struct sl_ks_node *node =
			SL_LIST_ENTRY(link, struct sl_ks_node, link);
		const struct sl_ks_node **alike = &seen[node->kind];

		if (!node->is_there || (*alike && (*alike)->holds == node->holds))
			continue;
		*alike = node;
		if (sl_match(rules->json, node->labels))
			kinds |= 1ull << node->kind;
		else
			others |= 1ull << node->kind;
	}
	return kinds & ~others;
}

static void mark_nodes(struct sl_ks *ks, const struct sl_ks_rules *rules, uint64_t mark)
{
	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		if (node->is_there && sl_match(rules->json, node->labels))
			node->holds += mark;
	}
}

void sl_ks_add_rules(struct sl_ks *ks, struct sl_ks_rules *rules)
{
	rules->mark = mark_of(sl_ks_new_id(ks));
	mark_nodes(ks, rules, rules->mark);
	rules->kinds = kinds_of(ks, rules);
	ks->nodes_changed = ks->kinds_changed = true;
}

void sl_ks_forget_rules(struct sl_ks *ks, const struct sl_ks_rules *rules)
{
	mark_nodes(ks, rules, -rules->mark);
}

/* --- Events of watches. ------------------------------------------------------------------- */

void sl_ks_on_node(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object)
{
	const char *name = sl_kube_text_at(object, "metadata", "name", NULL);
	struct sl_ks_node *node = sl_ks_node_of(ks, name);
	struct sl_facts_node facts;
	json_t *labels;

	if (!node || !sl_facts_node(object, &facts))
		return;
	ks->nodes_changed = true;
	sl_ks_awake(ks);
	if (kind == SL_KUBE_DELETED) {
		node->is_there = false;
		node->facts.is_closed = true;
		return;
	}
	node->facts = facts;
	labels = sl_match_node(object);
	if (!node->is_there || !json_equal(labels, node->labels)) {
		ks->kinds_changed = true;
		node->holds = holds_of(ks, labels);
	}
	node->is_there = true;
	json_decref(node->labels);
	node->labels = labels;
}

static struct sl_ks_gpu *gpu_of(struct sl_ks_node *node, const char *name)
{
	for (uint32_t i = 0; i < node->gpus; i++) {
		if (strcmp(node->gpu[i].name, name) == 0)
			return &node->gpu[i];
	}
	if (node->gpus == SL_FIT_GPUS_MAX)
		return NULL;
	node->gpu[node->gpus] = (struct sl_ks_gpu){0};
	(void)memcpy(node->gpu[node->gpus].name, name, strlen(name) + 1);
	return &node->gpu[node->gpus++];
}

void sl_ks_on_slice(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object)
{
	struct sl_facts_slice facts;
	struct sl_ks_node *node;

	/* A slice that vanished unseen is known by name only, which contains its node's. */
	if (!sl_facts_slice(object, &facts)) {
		const char *name = sl_kube_text_at(object, "metadata", "name", NULL);
		size_t length = strlen(name);

		if (kind != SL_KUBE_DELETED || length < sizeof(SLICE_SUFFIX) ||
			length >= sizeof(facts.node))
			return;
		length -= sizeof(SLICE_SUFFIX) - 1;
		(void)memcpy(facts.node, name, length);
		facts.node[length] = '\0';
		if (!sl_ks_find(&ks->nodes_by_name, facts.node))
			return;
	}
	node = sl_ks_node_of(ks, facts.node);
	if (!node)
		return;
	ks->nodes_changed = true;
	sl_ks_awake(ks);
	node->has_slice = kind != SL_KUBE_DELETED;
	for (uint32_t i = 0; i < node->gpus; i++)
		node->gpu[i].is_closed = true;
	if (!node->has_slice)
		return;
	(void)memcpy(node->pool, facts.pool, sizeof(node->pool));
	node->swaps = facts.swaps;
	for (uint32_t i = 0; i < facts.count; i++) {
		struct sl_ks_gpu *gpu = gpu_of(node, facts.device[i].name);

		if (!gpu)
			continue;
		gpu->memory_mib = facts.device[i].memory_mib;
		gpu->limit_mib = facts.device[i].limit_mib;
		gpu->is_closed = facts.device[i].is_closed;
	}
}

bool sl_ks_place_of(
	struct sl_ks *ks, const struct sl_facts_claim *claim, struct sl_ks_place *out)
{
	uint64_t milli = 0;
	uint32_t least;

	*out = (struct sl_ks_place){.node = sl_ks_find(&ks->nodes_by_name, claim->pool)};
	if (!out->node)
		return false;
	least = out->node->told.node_put.gpu_mib;
	for (uint32_t d = 0; d < claim->count; d++) {
		uint64_t mib = claim->device[d].memory_mib, part = SL_FIT_WHOLE;
		uint32_t i;

		for (i = 0; i < out->node->gpus; i++) {
			if (strcmp(out->node->gpu[i].name, claim->device[d].name) == 0)
				break;
		}
		/* A device that is not published is not offered. */
		if (i == out->node->gpus)
			continue;
		if (mib < least)
			part = (mib * SL_FIT_WHOLE + least - 1) / least;
		part = sl_max_u64(part, claim->device[d].compute_pct * 10);
		milli = sl_max_u64(milli, part);
		out->gpu_mask |= UINT32_C(1) << i;
	}
	out->milli = (uint16_t)sl_min_u64(milli, SL_FIT_WHOLE);
	return out->gpu_mask != 0;
}

/* --- Kinds of node. ----------------------------------------------------------------------- */

/* Gives each node its kind. False: there are too many. */
static bool number_kinds(struct sl_ks *ks)
{
	const struct sl_ks_node *first[SL_KS_KINDS];
	uint32_t kinds = 0, kind;
	bool all = true;

	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		if (!node->is_there)
			continue;
		for (kind = 0; kind < kinds && first[kind]->holds != node->holds; kind++)
			;
		if (kind == kinds && kinds < SL_KS_KINDS)
			first[kinds++] = node;
		all = all && kind < SL_KS_KINDS;
		kind = (uint32_t)sl_min_u64(kind, SL_KS_KINDS - 1);
		node->kind = kind;
	}
	return all;
}

static bool sort_nodes(struct sl_ks *ks)
{
	bool all = number_kinds(ks);

	sl_list_foreach (link, &ks->rules) {
		struct sl_ks_rules *rules = SL_LIST_ENTRY(link, struct sl_ks_rules, link);
		uint64_t kinds = kinds_of(ks, rules);

		/* The machine has the pools of jobs. */
		ks->rebuild |= kinds != rules->kinds && rules->pods;
		rules->kinds = kinds;
	}
	return all;
}

static uint32_t unused_rules(const struct sl_ks *ks)
{
	uint32_t count = 0;

	sl_list_foreach (link, &ks->rules)
		count += !SL_LIST_ENTRY(link, struct sl_ks_rules, link)->pods;
	return count;
}

void sl_ks_sort_nodes(struct sl_ks *ks)
{
	if (!ks->kinds_changed)
		return;
	ks->kinds_changed = false;
	if (unused_rules(ks) <= UNUSED_RULES && sort_nodes(ks))
		return;
	sl_ks_drop_unused_rules(ks);
	if (!sort_nodes(ks))
		sl_warning(
			"rules of pods tell more than %u kinds of node apart; some nodes "
			"get no pods that have such rules",
			SL_KS_KINDS);
}

/* --- The machine. ------------------------------------------------------------------------- */

static uint32_t left(uint32_t all, uint64_t others)
{
	return (uint32_t)(all > others ? all - others : 0);
}

static uint32_t least_gpu_mib(const struct sl_ks_node *node)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < node->gpus; i++) {
		if (node->gpu[i].memory_mib &&
			(!least || node->gpu[i].memory_mib < least))
			least = node->gpu[i].memory_mib;
	}
	return least;
}

/* The machine's model of a node: the largest limit of its GPUs. Beyond 64 values, the last one. */
static uint8_t model_of(struct sl_ks *ks, const struct sl_ks_node *node)
{
	uint32_t least = UINT32_MAX, i;

	/* Without GPUs the model does not matter. */
	if (!node->gpus)
		return 0;
	for (i = 0; i < node->gpus; i++)
		least = (uint32_t)sl_min_u64(least, node->gpu[i].limit_mib);
	for (i = 0; i < ks->limit_count && ks->limits[i] != least; i++)
		;
	if (i == ks->limit_count && i < 64)
		ks->limits[ks->limit_count++] = least;
	if (i == 64)
		ks->limits[63] = (uint32_t)sl_min_u64(ks->limits[63], least);
	return (uint8_t)sl_min_u64(i, 63);
}

/* The GPUs that take no pods. */
static uint32_t closed_gpus(const struct sl_ks_node *node)
{
	uint32_t closed = 0;

	for (uint32_t i = 0; i < node->gpus; i++)
		closed |= (uint32_t)node->gpu[i].is_closed << i;
	return closed;
}

/* Reports the node as it is now, if the machine does not know it so. */
static void put_node(struct sl_ks *ks, struct sl_ks_node *node)
{
	struct sl_cluster_event event;

	memset(&event, 0, sizeof(event));
	event.type = SL_CLUSTER_EVENT_NODE_PUT;
	event.node_put.node = node->id;
	event.node_put.cpu_milli = left(node->facts.cpu_milli, node->others_cpu);
	event.node_put.memory_mib = left(node->facts.memory_mib, node->others_mib);
	event.node_put.gpus = (uint16_t)node->gpus;
	event.node_put.shut = closed_gpus(node);
	event.node_put.gpu_mib = least_gpu_mib(node);
	event.node_put.model = model_of(ks, node);
	event.node_put.pool = (uint8_t)node->kind;
	event.node_put.swaps = node->swaps;
	event.node_put.pool_mib = node->swaps ? POOL_MIB : 0;
	event.node_put.closed = node->facts.is_closed;
	if (node->in_machine && memcmp(&event, &node->told, sizeof(event)) == 0)
		return;
	node->in_machine = true;
	node->told = event;
	sl_ks_step(ks, &event);
	ks->retry_refused = true;
}

void sl_ks_taken(const struct sl_ks_place *place, int sign)
{
	for (uint32_t mask = place->gpu_mask; mask; mask &= mask - 1)
		place->node->gpu[__builtin_ctz(mask)].taken += sign * place->milli;
}

uint16_t sl_ks_room_at(const struct sl_ks_place *place)
{
	int32_t most = SL_FIT_WHOLE;

	for (uint32_t mask = place->gpu_mask; mask; mask &= mask - 1) {
		const struct sl_ks_gpu *gpu = &place->node->gpu[__builtin_ctz(mask)];
		int32_t left = SL_FIT_WHOLE - gpu->taken;

		most = left < most ? left : most;
	}
	return (uint16_t)(most < place->milli ? (most > 0 ? most : 0) : place->milli);
}

/* A pod may still be placed on a node whose Node is gone; it must be accounted for. */
static bool is_known(const struct sl_ks_node *node)
{
	return node->labels && (node->is_there || node->pods);
}

void sl_ks_add_nodes(struct sl_ks *ks)
{
	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		for (uint32_t i = 0; i < node->gpus; i++)
			node->gpu[i].taken = 0;
		node->in_machine = false;
		if (is_known(node))
			put_node(ks, node);
	}
}

/* Is nothing placed there that must be accounted for? */
static bool is_empty(const struct sl_ks_node *node)
{
	for (uint32_t i = 0; i < node->gpus; i++) {
		if (node->gpu[i].taken)
			return false;
	}
	return !node->pods;
}

static void lose_node(struct sl_ks *ks, struct sl_ks_node *node)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	event.node_lost.node = node->id;
	sl_ks_step(ks, &event);
	node->in_machine = false;
	node->gpus = 0;
}

/* Holds the GPUs of claims there from now on. */
static void look_at_claims(struct sl_ks *ks, const struct sl_ks_node *node)
{
	sl_list_foreach (link, &ks->claims) {
		struct sl_ks_claim *claim = SL_LIST_ENTRY(link, struct sl_ks_claim, link);

		if (strcmp(claim->facts.pool, node->named.key) == 0)
			sl_ks_claim_changed(ks, claim);
	}
}

static void settle_node(struct sl_ks *ks, struct sl_ks_node *node)
{
	bool is_new = !node->in_machine;

	put_node(ks, node);
	if (is_new)
		look_at_claims(ks, node);
	if (!node->is_there && is_empty(node))
		lose_node(ks, node);
}

/* A node stays while something is placed on it, or while the machine has a job there. */
static void drop_nodes(struct sl_ks *ks)
{
	sl_list_foreach_safe (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		if (!node->is_there && !node->has_slice && !node->in_machine &&
			!node->pods)
			sl_ks_drop_node(ks, node);
	}
}

void sl_ks_settle_nodes(struct sl_ks *ks)
{
	if (!ks->nodes_changed)
		return;
	drop_nodes(ks);
	sl_ks_sort_nodes(ks);
	/* What comes to be known may be a pod's. */
	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		ks->rebuild |= node->in_machine && node->pods &&
			       node->gpus > node->told.node_put.gpus;
	}
	if (ks->rebuild)
		return;
	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		if (is_known(node) || node->in_machine)
			settle_node(ks, node);
	}
	ks->nodes_changed = false;
}
