/*
 * pods - the needs of pods, and their places
 *
 * The place of a pod comes from its claim (without one, from spec.nodeName), or from a write of
 * this scheduler that may have happened. A pod that has ended has no place; the GPUs that its claim
 * still has are held for the claim (claims.c).
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/extended.h"

/* --- Accounts. ---------------------------------------------------------------------------- */

void sl_ks_believe(struct sl_ks_pod *pod, enum sl_ks_believed believed,
	const struct sl_ks_place *place)
{
	struct sl_ks *ks = pod->ks;

	if (pod->believed == SL_KS_PLACED) {
		sl_ks_taken(&pod->believed_at, -1);
		ks->rebuild |= ks->is_clamped;
	}
	pod->believed = believed;
	pod->believed_at = place ? *place : (struct sl_ks_place){0};
	pod->told_stops = false;
	if (believed == SL_KS_PLACED)
		sl_ks_taken(&pod->believed_at, 1);
	if (pod->claim)
		sl_ks_claim_changed(ks, pod->claim);
}

static void count(struct sl_ks_pod *pod, struct sl_ks_node *node)
{
	bool is_other = node && !pod->facts.is_ours;
	uint32_t cpu = is_other ? pod->facts.cpu_milli : 0;
	uint32_t mib = is_other ? pod->facts.memory_mib : 0;

	if (node == pod->counted && cpu == pod->counted_cpu && mib == pod->counted_mib)
		return;
	if (pod->counted) {
		pod->counted->pods--;
		pod->counted->others_cpu -= pod->counted_cpu;
		pod->counted->others_mib -= pod->counted_mib;
	}
	/* The machine itself counts pods of this scheduler. */
	pod->ks->nodes_changed |= cpu || mib || pod->counted_cpu || pod->counted_mib;
	pod->counted = node;
	pod->counted_cpu = cpu;
	pod->counted_mib = mib;
	if (!node)
		return;
	node->pods++;
	node->others_cpu += cpu;
	node->others_mib += mib;
}

/* --- Needs. -------------------------------------------------------------------------------- */

/* Is it the claim that is made for the pod's limits? */
static bool is_of_limits(const struct sl_ks_pod *pod, const struct sl_ks_claim *claim)
{
	return strcmp(claim->facts.owner, pod->facts.uid) == 0 &&
	       claim->facts.gpus == pod->facts.gpus && !claim->facts.memory_mib;
}

static bool claim_is_ready(const struct sl_ks_pod *pod, char *why, size_t size)
{
	const struct sl_ks_claim *claim = pod->claim;
	const char *name = pod->facts.claim;
	char key[SL_KS_NAME_MAX];

	if (!claim)
		claim = sl_ks_find(&pod->ks->claims_by_name,
			sl_ks_key(key, pod->facts.namespace, name));
	if (pod->facts.lacks_claim)
		(void)snprintf(why, size, "its claim is not made from its template yet");
	else if (!claim || (!claim->is_there && !pod->facts.gpus))
		(void)snprintf(why, size, "there is no ResourceClaim %.100s", name);
	else if (claim->pod != pod)
		(void)snprintf(why, size,
			"claim %.100s belongs to pod %.100s, and this scheduler gives a "
			"claim to "
			"one pod; use a resourceClaimTemplateName",
			name, claim->pod ? claim->pod->facts.name : "?");
	else if (!claim->is_there)
		return true;
	else if (pod->facts.gpus && !is_of_limits(pod, claim))
		(void)snprintf(why, size,
			"claim %.100s stands where the one for its limits belongs; "
			"delete that claim",
			name);
	else if (claim->facts.refusal.text[0])
		(void)snprintf(why, size, "%s", claim->facts.refusal.text);
	else if (claim->facts.is_leaving)
		(void)snprintf(why, size, "claim %.100s is being deleted", name);
	else if (claim->facts.is_allocated)
		(void)snprintf(why, size,
			"claim %.100s is allocated, and not to this pod", name);
	else
		return true;
	return false;
}

bool sl_ks_pod_is_ready(const struct sl_ks_pod *pod, char *why, size_t size)
{
	if (!pod->is_there || pod->facts.is_over)
		(void)snprintf(why, size, "the pod is gone, or over");
	else if (pod->facts.is_gated)
		(void)snprintf(why, size, "it has scheduling gates");
	else if (pod->facts.is_leaving)
		(void)snprintf(why, size, "it is being deleted");
	else if (pod->facts.refusal.text[0])
		(void)snprintf(why, size, "%s", pod->facts.refusal.text);
	else if (pod->is_bound)
		(void)snprintf(why, size,
			"it names its node itself; leave spec.nodeName out, or use no "
			"scheduler");
	else if (!pod->rules)
		(void)snprintf(why, size, "the scheduler is out of memory");
	else if (pod->facts.claim[0] || pod->facts.lacks_claim)
		return claim_is_ready(pod, why, size);
	else
		return true;
	return false;
}

struct sl_need sl_ks_pod_need(const struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;
	struct sl_need need = {.cpu_milli = pod->facts.cpu_milli,
		.memory_mib = pod->facts.memory_mib,
		/* A bit of no pool: if no kind is allowed, no node is. */
		.pools = pod->rules->kinds ? pod->rules->kinds : 1ull << 63};

	/* The machine does not accept an empty need. */
	need.memory_mib += !claim && !need.cpu_milli && !need.memory_mib;
	if (pod->facts.gpus) {
		need.gpus = (uint16_t)pod->facts.gpus;
		need.gpu_milli = SL_FIT_WHOLE;
	}
	if (!claim || pod->facts.gpus)
		return need;
	need.gpus = claim->gpus;
	need.gpu_mib = claim->memory_mib;
	need.gpu_milli = claim->memory_mib ? 0 : SL_FIT_WHOLE;
	sl_need_add_compute(&need, claim->compute_pct * 10);
	for (uint32_t i = 0; claim->limit_mib && i < ks->limit_count; i++) {
		if (ks->limits[i] >= claim->limit_mib)
			need.models |= 1ull << i;
	}
	if (claim->limit_mib && !need.models)
		need.pools = 1ull << 63;
	return need;
}

static bool is_closed(const struct sl_ks_place *place)
{
	bool is_closed = place->node->facts.is_closed;

	for (uint32_t mask = place->gpu_mask; mask; mask &= mask - 1)
		is_closed |= place->node->gpu[__builtin_ctz(mask)].is_closed;
	return is_closed;
}

bool sl_ks_pod_fits(const struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	const struct sl_ks_node *node = pod->place.node;
	struct sl_need need = sl_ks_pod_need(ks, pod);
	const struct sl_cluster_event *told = &node->told;
	struct sl_fit_node fit;

	sl_fit_node_init(&fit, told->node_put.cpu_milli, told->node_put.memory_mib,
		told->node_put.gpus, told->node_put.gpu_mib, told->node_put.model,
		told->node_put.pool);
	return !is_closed(&pod->place) && sl_fit_ever(&fit, &need) &&
	       need.gpus == __builtin_popcount(pod->place.gpu_mask) &&
	       sl_fit_milli(&fit, &need) <= pod->place.milli;
}

/* --- Places. ------------------------------------------------------------------------------- */

/* A claim has one pod: the one that it is allocated to, else the first that names it. */
static void link_claim(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	char key[SL_KS_NAME_MAX];
	struct sl_ks_claim *claim = NULL;
	struct sl_ks_pod *other;

	/* Not while a write to it may happen. */
	if (pod->step != SL_KS_IDLE)
		return;
	if (pod->is_there && !pod->facts.is_over && pod->facts.claim[0])
		claim = sl_ks_claim_of(
			ks, sl_ks_key(key, pod->facts.namespace, pod->facts.claim));
	if (claim == pod->claim)
		return;
	if (pod->claim) {
		pod->claim->pod = NULL;
		sl_ks_claim_changed(ks, pod->claim);
		pod->claim = NULL;
	}
	if (!claim)
		return;
	other = claim->pod;
	if (other && (other->step != SL_KS_IDLE || !sl_ks_claim_is_for(claim, pod))) {
		claim->is_named_again = true;
		return;
	}
	claim->pod = pod;
	pod->claim = claim;
	if (!other)
		return;
	other->claim = NULL;
	sl_ks_pod_look(ks, other);
}

/* Its place according to the API, while no write is in flight. */
static struct sl_ks_place place_of(struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	struct sl_ks_place place = {0};

	if (!pod->is_there || pod->facts.is_over)
		return place;
	if (pod->claim && sl_ks_claim_is_for(pod->claim, pod) &&
		sl_ks_place_of(ks, &pod->claim->facts, &place))
		return place;
	/* No devices, or unknown ones: its cores and memory are used all the same. */
	place = (struct sl_ks_place){0};
	if (pod->facts.node[0])
		place.node = sl_ks_node_of(ks, pod->facts.node);
	return place;
}

void sl_ks_pod_place(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	pod->is_bound |= pod->facts.node[0] != '\0';
	/* A write in flight decides; the place stays taken until it is known to have failed. */
	if (pod->step == SL_KS_IDLE)
		pod->place = place_of(ks, pod);
	count(pod, pod->place.node);
	sl_ks_spare_node(pod);
}

static void look_at_stranger(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	bool stands = pod->is_there && !pod->facts.is_over && pod->facts.node[0];

	count(pod, stands ? sl_ks_node_of(ks, pod->facts.node) : NULL);
	sl_ks_awake(ks);
	if (!pod->is_there)
		sl_ks_drop_pod(ks, pod);
}

void sl_ks_pod_finish(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	if (pod->step == SL_KS_IDLE && pod->place.node && !pod->is_bound &&
		!pod->facts.is_leaving)
		sl_ks_write(ks, pod);
}

void sl_ks_pod_look(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	if (!pod->facts.is_ours) {
		look_at_stranger(ks, pod);
		return;
	}
	link_claim(ks, pod);
	sl_ks_pod_place(ks, pod);
	if (pod->job)
		sl_ks_job_changed(ks, pod->job);
	sl_ks_order(ks, pod);
	sl_ks_pod_finish(ks, pod);
}

/* --- Events of the watch. ----------------------------------------------------------------- */

static void join_job(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	char key[SL_KS_NAME_MAX];

	if (pod->facts.gang[0])
		(void)snprintf(key, sizeof(key), "%s/%s%s", pod->facts.namespace,
			pod->facts.group[0] ? SL_KS_GROUP : SL_KS_GANG, pod->facts.gang);
	else
		(void)sl_ks_key(key, pod->facts.namespace, pod->facts.name);
	pod->job = sl_ks_job_of(ks, key, pod->facts.gang[0]);
	if (pod->job)
		sl_list_push_tail(&pod->job->pods, &pod->in_job);
}

static void meet(struct sl_ks *ks, struct sl_ks_pod *pod, const json_t *object)
{
	struct sl_facts_refusal refusal = {0}; /* in its facts as well */

	pod->since = sl_clock_now();
	pod->told = pod->facts.told;
	sl_ks_recall(pod);
	if (!pod->facts.is_ours)
		return;
	(void)sl_extended_read(json_object_get(object, "spec"), &pod->extended, &refusal);
	pod->rules = sl_ks_rules_of(ks, object);
	if (pod->rules)
		pod->rules->pods++;
	join_job(ks, pod);
}

/* Another pod has its name. It stays, with its place, until its last write is answered. */
static bool retire(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	struct sl_ks_job *job = pod->job;

	if ((job && !job->is_gang &&
		    !sl_ks_retire(&ks->jobs_by_name, job, pod->facts.uid)) ||
		!sl_ks_retire(&ks->pods_by_name, pod, pod->facts.uid))
		return false;
	pod->is_there = false;
	sl_ks_pod_look(ks, pod);
	return true;
}

void sl_ks_on_pod(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object)
{
	char key[SL_KS_NAME_MAX];
	struct sl_ks_pod *pod;
	struct sl_facts_pod facts;
	bool is_same;

	(void)sl_ks_key_of(key, object);
	pod = sl_ks_find(&ks->pods_by_name, key);
	if (kind == SL_KUBE_DELETED) {
		if (!pod || strcmp(pod->facts.uid, sl_kube_text_at(object, "metadata",
							   "uid", NULL)) != 0)
			return;
		pod->is_there = false;
		sl_ks_pod_look(ks, pod);
		return;
	}
	if (!sl_facts_pod(object, ks->options.name, &facts))
		return;
	is_same = pod && strcmp(pod->facts.uid, facts.uid) == 0;
	/* A deleted uid does not come back: this object is outdated. */
	if (is_same && !pod->is_there)
		return;
	if (pod && !is_same && !retire(ks, pod))
		return;
	if (!is_same)
		pod = sl_ks_pod_of(ks, key);
	if (!pod)
		return;
	/* A pod never leaves its node or drops its claim, either. */
	if (!facts.node[0])
		(void)memcpy(facts.node, pod->facts.node, sizeof(facts.node));
	facts.knows_claim |= pod->facts.knows_claim;
	pod->facts = facts;
	if (!pod->is_there)
		meet(ks, pod, object);
	pod->is_there = true;
	sl_ks_pod_look(ks, pod);
}
