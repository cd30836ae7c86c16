/*
 * claims - all allocated claims, whichever scheduler allocated them
 *
 * A claim allocated to a pod of this scheduler is that pod's place. Any other claim with GPUs
 * belongs to another scheduler, or lost its pod before it was deallocated. For each of these a job
 * of the machine holds the GPUs until the API server reports the deallocation.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <string.h>

#include "cluster/kubernetes/api/parse.h"

void sl_ks_claim_changed(struct sl_ks *ks, struct sl_ks_claim *claim)
{
	if (!sl_list_is_linked(&claim->changed))
		sl_list_push_tail(&ks->changed_claims, &claim->changed);
	sl_ks_awake(ks);
}

/* The answer to a write may arrive before an older event of the watch, so facts older than the
 * known ones are ignored. Versions of claims can be compared, even between claims of one name; a
 * deleted uid does not come back. */
static bool is_old(const struct sl_ks_claim *claim, const struct sl_facts_claim *facts)
{
	return claim->is_there ? facts->version < claim->facts.version
			       : strcmp(facts->uid, claim->facts.uid) == 0;
}

void sl_ks_on_claim(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object)
{
	char key[SL_KS_NAME_MAX];
	struct sl_ks_claim *claim = sl_ks_claim_of(ks, sl_ks_key_of(key, object));
	struct sl_facts_claim facts;

	if (!claim)
		return;
	if (kind == SL_KUBE_DELETED) {
		/* An earlier claim of that name, older than an answer to a write. */
		if (claim->is_there &&
			strcmp(claim->facts.uid,
				sl_kube_text_at(object, "metadata", "uid", NULL)) != 0)
			return;
		claim->is_there = false;
		claim->facts.is_allocated = false;
		claim->facts.count = 0;
	} else {
		if (!sl_facts_claim(object, &facts))
			return;
		if (is_old(claim, &facts)) {
			sl_facts_claim_fini(&facts);
			return;
		}
		sl_facts_claim_fini(&claim->facts);
		claim->facts = facts;
		claim->is_there = true;
	}
	sl_ks_claim_changed(ks, claim);
	if (claim->pod)
		sl_ks_pod_look(ks, claim->pod);
}

bool sl_ks_claim_is_for(const struct sl_ks_claim *claim, const struct sl_ks_pod *pod)
{
	return claim->is_there && claim->facts.is_allocated && claim->facts.count &&
	       strcmp(claim->facts.pod_uid, pod->facts.uid) == 0;
}

static void let_go(struct sl_ks *ks, struct sl_ks_claim *claim)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	event.job_remove.job = claim->holder;
	sl_ks_step(ks, &event);
	sl_ks_taken(&claim->held, -1);
	ks->rebuild |= ks->is_clamped;
	claim->holder = 0;
	claim->held = (struct sl_ks_place){0};
}

/* Does it have GPUs that no task accounts for? */
static bool is_to_be_held(const struct sl_ks_claim *claim)
{
	const struct sl_ks_pod *pod = claim->pod;

	if (!claim->is_there || !claim->facts.is_allocated || !claim->facts.count)
		return false;
	/* Its task may be placed there without them until its job is made anew. */
	return !pod || !pod->believed_at.gpu_mask || !sl_ks_claim_is_for(claim, pod);
}

/* Adds a job that holds the place; returns its number. */
static uint64_t add_holder(struct sl_ks *ks, const struct sl_ks_place *place)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	uint64_t holder = sl_ks_new_id(ks);

	event.job_add.job = holder;
	event.job_add.project = ks->others;
	event.job_add.tasks = 1;
	event.job_add.need.gpus = (uint16_t)__builtin_popcount(place->gpu_mask);
	event.job_add.need.gpu_milli = place->milli;
	sl_ks_step(ks, &event);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_TASK_RUNS};
	event.task_runs.job = holder;
	event.task_runs.node = place->node->id;
	event.task_runs.gpu_mask = place->gpu_mask;
	sl_ks_step(ks, &event);
	return holder;
}

static void hold(struct sl_ks *ks, struct sl_ks_claim *claim)
{
	struct sl_ks_place place;

	if (!sl_ks_place_of(ks, &claim->facts, &place) || !place.node->in_machine)
		return;
	ks->is_clamped |= sl_ks_room_at(&place) < place.milli;
	place.milli = sl_ks_room_at(&place);
	if (!place.milli)
		return;
	claim->holder = add_holder(ks, &place);
	claim->held = place;
	sl_ks_taken(&place, 1);
}

/* Gives the claim to another pod that names it if its present pod is gone, or is the wrong one. */
static void find_pod(struct sl_ks *ks, struct sl_ks_claim *claim)
{
	char key[SL_KS_NAME_MAX];

	claim->is_named_again = false;
	sl_list_foreach (link, &ks->pods) {
		struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, link);

		if (pod->facts.is_ours && !pod->claim && pod->facts.claim[0] &&
			strcmp(claim->named.key, sl_ks_key(key, pod->facts.namespace,
							 pod->facts.claim)) == 0)
			sl_ks_pod_look(ks, pod);
	}
}

void sl_ks_settle_claims(struct sl_ks *ks)
{
	while (!sl_list_is_empty(&ks->changed_claims)) {
		struct sl_ks_claim *claim = SL_LIST_ENTRY(
			ks->changed_claims.next, struct sl_ks_claim, changed);
		bool held;

		sl_list_unlink(&claim->changed);
		if (claim->is_named_again)
			find_pod(ks, claim);
		held = is_to_be_held(claim);
		if (claim->holder && !held)
			let_go(ks, claim);
		if (!claim->holder && held)
			hold(ks, claim);
		sl_ks_drop_claim(ks, claim);
	}
}

void sl_ks_add_holders(struct sl_ks *ks)
{
	sl_list_foreach (link, &ks->claims) {
		struct sl_ks_claim *claim = SL_LIST_ENTRY(link, struct sl_ks_claim, link);

		claim->holder = 0;
		claim->held = (struct sl_ks_place){0};
		if (is_to_be_held(claim))
			hold(ks, claim);
	}
}
