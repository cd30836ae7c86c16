/*
 * order - parks, resumes or ends a running pod
 *
 * The order to park is a condition of the pod, which the node reads; the confirmation is a
 * condition of the claim, which the node writes. Until the confirmation the GPU is not free. The
 * next order is written only after it, so a confirmation never belongs to an earlier order.
 *
 * An order to park that is not confirmed in time is cancelled: the pod keeps its GPU, and the
 * machine chooses other victims. The pod is spared for much longer than its node's call can be in
 * flight, so a late confirmation never belongs to the next order. A node that has not even begun
 * counts as silent, and all of its pods are spared. The pod's condition records all of this, with
 * its time, so the next leader continues from there.
 *
 * Ending a pod is an eviction, so disruption budgets count. If a budget forbids it the machine is
 * told, and chooses other victims.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cluster/kubernetes/scheduler/bodies.h"

#define PATH_MAX_BYTES 640
#define SPARED_FOR     (300 * SL_S)

static bool may_write(const struct sl_ks_pod *pod)
{
	return !pod->order_call && pod->is_bound && pod->is_there &&
	       !pod->facts.is_over && pod->step == SL_KS_IDLE;
}

static void call(struct sl_ks *ks, struct sl_ks_pod *pod, enum sl_kube_verb verb,
	const char *suffix, json_t *body, sl_kube_done_fn done, sl_ns after)
{
	sl_ns left = sl_ks_lease_left(ks->lease);
	char path[PATH_MAX_BYTES];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/%s",
		pod->facts.namespace, pod->facts.name, suffix);
	ks->calls++;
	r = left ? sl_kube_call(ks->kube,
			   &(struct sl_kube_request){.verb = verb,
				   .path = path,
				   .body = body,
				   .done = done,
				   .context = pod,
				   .after = after,
				   .timeout = sl_min_u64(SL_KUBE_TIMEOUT, left)},
			   &pod->order_call)
		 : -ESHUTDOWN;
	json_decref(body);
	if (r < 0)
		sl_error_log("the order for pod %s cannot be written: %s", pod->named.key,
			strerror(-r));
}

/* --- Park and resume. --------------------------------------------------------------------- */

static void tell_machine(struct sl_ks *ks, const struct sl_ks_pod *pod, bool is_parked)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	if (!is_parked) {
		event.task_runs.job = pod->job->index.id;
		event.task_runs.task = pod->task;
		sl_ks_step(ks, &event);
		return;
	}
	event.type = SL_CLUSTER_EVENT_TASK_ENDED;
	event.task_ended.job = pod->job->index.id;
	event.task_ended.task = pod->task;
	event.task_ended.again = 1;
	sl_ks_step(ks, &event);
	if (sl_cluster_task(ks->cluster, pod->job->index.id, pod->task).parked)
		return;
	/* An earlier scheduler had it parked. */
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_TASK_PARKED};
	event.task_parked.job = pod->job->index.id;
	event.task_parked.task = pod->task;
	event.task_parked.node = pod->place.node->id;
	event.task_parked.gpu_mask = pod->place.gpu_mask;
	sl_ks_step(ks, &event);
}

/* Reads the node's reaction to the present order. */
static void hear(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;

	if (!claim || !claim->says_parked || pod->order_call || !pod->place.node)
		return;
	if (pod->is_ordered && pod->wants_parked && claim->is_parked && !pod->is_parked) {
		sl_info("pod %s is parked", pod->named.key);
		pod->is_parked = true;
		pod->stops_since = 0;
		if (pod->believed == SL_KS_PLACED && pod->job->index.id) {
			tell_machine(ks, pod, true);
			sl_ks_believe(pod, SL_KS_PARKED, &pod->place);
		}
		sl_ks_awake(ks);
	}
	if (pod->resumes && !pod->is_ordered && !claim->is_parked) {
		sl_info("pod %s has resumed", pod->named.key);
		pod->resumes = false;
		if (pod->believed == SL_KS_PLACED && pod->job->index.id)
			tell_machine(ks, pod, false);
		sl_ks_awake(ks);
	}
}

static void write_order(struct sl_ks *ks, struct sl_ks_pod *pod, sl_ns after);

static void on_order(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_pod *pod = context;

	if (answer->error[0] && answer->status != 404) {
		sl_info("pod %s: %s", pod->named.key, answer->error);
		write_order(pod->ks, pod,
			sl_kube_backoff_next(&pod->order_backoff, answer->retry_after_s));
		return;
	}
	pod->order_backoff = (struct sl_kube_backoff){0};
	pod->is_ordered = pod->is_ordering;
	sl_ks_order(pod->ks, pod);
}

static void write_order(struct sl_ks *ks, struct sl_ks_pod *pod, sl_ns after)
{
	bool parks = pod->wants_parked;

	pod->is_ordering = parks;
	call(ks, pod, SL_KUBE_STRATEGIC, "status",
		sl_bodies_condition(pod->facts.uid, SL_FACTS_CONDITION_PARKED, parks,
			pod->order_reason, pod->order_why, (int64_t)time(NULL)),
		on_order, after);
}

/* --- End. --------------------------------------------------------------------------------- */

static void refuse_stop(struct sl_ks *ks, const struct sl_ks_pod *pod, sl_ns spared_for)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_STOP_FAILED};

	if (pod->believed != SL_KS_PLACED || !pod->job->index.id)
		return;
	event.stop_failed.job = pod->job->index.id;
	event.stop_failed.task = pod->task;
	event.stop_failed.spared_for = spared_for;
	sl_ks_step(ks, &event);
	sl_ks_awake(ks);
}

static void on_evicted(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_pod *pod = context;

	if (!answer->error[0] || answer->status == 404)
		return;
	sl_info("pod %s is not evicted: %s", pod->named.key, answer->error);
	pod->wants_end = pod->is_evicted = pod->told_stops = false;
	pod->stops_since = 0;
	refuse_stop(pod->ks, pod, 0);
}

static void evict(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	pod->is_evicted = true;
	call(ks, pod, SL_KUBE_POST, "eviction",
		sl_bodies_evict(pod->facts.namespace, pod->facts.name, pod->facts.uid),
		on_evicted, 0);
}

/* --- Cancellation. -------------------------------------------------------------------------- */

/* Explains why it is not parked, and what to check. */
static void say_not_parked(struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;
	const char *node = pod->place.node ? pod->place.node->named.key : "";
	char *why = pod->order_why;

	pod->order_reason =
		pod->is_node_silent ? SL_FACTS_REASON_SILENT : SL_FACTS_REASON_NOT_PARKED;
	if (claim && claim->is_refused)
		(void)snprintf(why, sizeof(pod->order_why),
			"it has its GPU as before: its node %.100s cannot park it; "
			"kubectl describe resourceclaim %.100s says why",
			node, claim->name);
	else if (claim && claim->is_parking)
		(void)snprintf(why, sizeof(pod->order_why),
			"it has its GPU as before: its memory did not leave it in time; "
			"kubectl sluice why %.100s says what is in the way",
			pod->facts.name);
	else
		(void)snprintf(why, sizeof(pod->order_why),
			"it has its GPU as before: its node %.100s did not confirm in "
			"time that it parks; see that sluice-kube node and sluiced run "
			"there",
			node);
	sl_warning("pod %s is not parked: %s", pod->named.key, why);
}

void sl_ks_spare_node(const struct sl_ks_pod *pod)
{
	struct sl_ks_node *node = pod->place.node;

	if (node && pod->is_node_silent)
		node->spared_until = sl_max_u64(node->spared_until, pod->spared_until);
}

void sl_ks_recall(struct sl_ks_pod *pod)
{
	const struct sl_facts_pod *facts = &pod->facts;
	int64_t age_s = facts->order_s ? time(NULL) - facts->order_s : 0;
	sl_ns age = age_s > 0 ? (uint64_t)age_s * SL_S : 0, now = sl_clock_now();

	pod->is_ordered = pod->is_ordering = pod->wants_parked = facts->is_ordered_parked;
	if (facts->is_ordered_parked)
		pod->stops_since = sl_sub_sat(now, age);
	else if (facts->is_taken_back)
		pod->spared_until = now + sl_sub_sat(SPARED_FOR, age);
	pod->is_node_silent = facts->is_node_silent;
}

/* The pod keeps its GPU. */
static void take_back(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;

	pod->wants_parked = pod->told_stops = false;
	pod->resumes = true;
	pod->stops_since = 0;
	pod->spared_until = sl_clock_now() + SPARED_FOR;
	pod->is_node_silent = !claim || !(claim->is_parking || claim->is_refused);
	sl_ks_spare_node(pod);
	say_not_parked(pod);
	refuse_stop(ks, pod, SPARED_FOR);
}

/* --- Due orders. --------------------------------------------------------------------------- */

void sl_ks_order(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	hear(ks, pod);
	/* The node reports it before the deadline. */
	if (pod->is_ordered && pod->wants_parked && !pod->is_parked && !pod->order_call &&
		pod->claim && pod->claim->facts.is_refused)
		take_back(ks, pod);
	if (!may_write(pod))
		return;
	if (pod->wants_end && !pod->is_evicted)
		evict(ks, pod);
	else if (pod->wants_parked != pod->is_ordered &&
		 !(pod->wants_parked && pod->resumes))
		write_order(ks, pod, 0);
}

/* The node reports the pod parked without an order of ours: its owner parked it, or it has not
 * resumed yet. If we ordered it now, that report would look like the confirmation. */
static bool is_parked_already(const struct sl_ks_pod *pod)
{
	return pod->claim && pod->claim->facts.is_parked && !pod->is_ordered;
}

sl_ns sl_ks_spared(const struct sl_ks_pod *pod)
{
	sl_ns until = pod->spared_until;

	if (pod->place.node)
		until = sl_max_u64(until, pod->place.node->spared_until);
	return sl_sub_sat(until, sl_clock_now());
}

void sl_ks_stop(struct sl_ks *ks, struct sl_ks_pod *pod, uint32_t how,
	const struct sl_ks_job *other)
{
	const char *name = other ? sl_ks_project_name(ks, other->project) : NULL;
	sl_ns spared = sl_ks_spared(pod);

	if (spared || (how == SL_STOP_PARK && is_parked_already(pod))) {
		refuse_stop(ks, pod, spared);
		return;
	}
	pod->stops_since = sl_clock_now();
	pod->told_stops = true; /* by the machine itself */
	pod->order_reason = "Reclaimed";
	if (how == SL_STOP_PARK)
		pod->wants_parked = true;
	else
		pod->wants_end = true;
	if (name)
		(void)snprintf(pod->order_why, sizeof(pod->order_why),
			"its GPU goes to %.60s of project %.40s; it resumes by itself",
			other->named.key, name);
	else
		(void)snprintf(pod->order_why, sizeof(pod->order_why),
			"its GPU goes to another pod; it resumes by itself");
	sl_info("pod %s is to be %s: %s", pod->named.key,
		how == SL_STOP_PARK ? "parked" : "evicted", pod->order_why);
	sl_ks_order(ks, pod);
}

void sl_ks_resume(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	sl_info("pod %s is to resume", pod->named.key);
	pod->wants_parked = false;
	pod->is_parked = false;
	pod->resumes = true;
	pod->order_reason = "Resumed";
	(void)snprintf(pod->order_why, sizeof(pod->order_why), "its GPUs are free again");
	sl_ks_order(ks, pod);
}

void sl_ks_late(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	/* An eviction cannot be cancelled. */
	if (!pod->wants_parked || pod->is_parked || pod->facts.is_leaving)
		return;
	take_back(ks, pod);
	sl_ks_order(ks, pod);
}
