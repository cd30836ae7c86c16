/*
 * tell - writes the reason of a wait to the pod
 *
 * The reason is the pod's condition PodScheduled=False, in the machine's words. A pod that is
 * placed at once gets none. Numbers in a sentence change all the time, so a sentence is written
 * again only when the reason changes, and from time to time.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cluster/kubernetes/scheduler/bodies.h"

#define EVERY       SL_S
#define WAITED      (2 * SL_S)
#define AGAIN_AFTER (300 * SL_S)
#define CALLS_MOST  4u
#define PODS_A_TURN 200u
#define TEXT_MAX    1400

enum { KIND_TEXT = 1000, KIND_REFUSED = 2000 };

/* The reason of its wait; returns a number for the reason. */
static uint32_t text_of(
	struct sl_ks *ks, const struct sl_ks_pod *pod, char *text, size_t size)
{
	const struct sl_ks_job *job = pod->job;
	struct sl_pending_because because;

	if (!sl_ks_pod_is_ready(pod, text, size))
		return KIND_TEXT;
	if (job && job->why[0]) {
		(void)snprintf(text, size, "%s", job->why);
		return KIND_TEXT;
	}
	if (!job || !ks->cluster)
		return 0;
	because = job->is_refused ? job->because
				  : sl_cluster_job(ks->cluster, job->index.id).because;
	if (because.reason == SL_PENDING_NONE)
		return 0;
	if ((because.reason == SL_PENDING_BIND_REFUSED ||
		    because.reason == SL_PENDING_BACK_OFF) &&
		pod->trouble[0]) {
		(void)snprintf(text, size, "%s", pod->trouble);
		return KIND_TEXT + 1;
	}
	(void)sl_pending_text(&because, sl_ks_project_name, ks, text, size);
	return because.reason + (job->is_refused ? KIND_REFUSED : 0);
}

/* For a namespace without a project, if there are projects. */
static void add_project(
	struct sl_ks *ks, const struct sl_ks_pod *pod, char *text, size_t size)
{
	size_t used = strlen(text);
	bool is_assigned;

	(void)sl_ks_project_of(ks, &pod->facts, &is_assigned);
	if (is_assigned || sl_list_is_empty(&ks->projects) || used >= size)
		return;
	if (pod->facts.project[0])
		(void)snprintf(text + used, size - used,
			" (there is no Project %.63s; it counts as project default, "
			"which is "
			"guaranteed nothing)",
			pod->facts.project);
	else
		(void)snprintf(text + used, size - used,
			" (no Project has namespace %.63s; it counts as project default, "
			"which is "
			"guaranteed nothing)",
			pod->facts.namespace);
}

static void on_told(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_pod *pod = context;

	pod->ks->telling--;
	if (!answer->error[0] || answer->status == 404)
		return;
	sl_info("the reason for pod %s's wait cannot be written: %s", pod->named.key,
		answer->error);
	pod->told = 0;
}

static void write_text(struct sl_ks *ks, struct sl_ks_pod *pod, const char *text)
{
	json_t *body = sl_bodies_condition(pod->facts.uid, "PodScheduled", false,
		"Unschedulable", text, (int64_t)time(NULL));
	sl_ns left = sl_ks_lease_left(ks->lease);
	char path[640];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/status",
		pod->facts.namespace, pod->facts.name);
	ks->calls++;
	r = left ? sl_kube_call(ks->kube,
			   &(struct sl_kube_request){.verb = SL_KUBE_STRATEGIC,
				   .path = path,
				   .body = body,
				   .done = on_told,
				   .context = pod,
				   .timeout = sl_min_u64(SL_KUBE_TIMEOUT, left)},
			   &pod->tell_call)
		 : -ESHUTDOWN;
	json_decref(body);
	if (r == 0)
		ks->telling++;
}

static void tell(struct sl_ks *ks, struct sl_ks_pod *pod, sl_ns now)
{
	char text[TEXT_MAX] = "";
	uint32_t kind, sum;

	if (!pod->is_there || !pod->facts.is_ours || pod->facts.is_over ||
		pod->place.node || pod->is_bound || pod->tell_call ||
		now - pod->since < WAITED)
		return;
	if (pod->told_kind && now - pod->told_at < AGAIN_AFTER &&
		pod->told_kind < KIND_TEXT && pod->job && !pod->job->is_refused &&
		pod->job->index.id &&
		(uint32_t)sl_cluster_job(ks->cluster, pod->job->index.id)
				.because.reason == pod->told_kind)
		return;
	kind = text_of(ks, pod, text, sizeof(text));
	if (!kind || pod->facts.is_gated)
		return;
	add_project(ks, pod, text, sizeof(text));
	sum = sl_facts_checksum(text);
	pod->told_kind = kind;
	pod->told_at = now;
	if (sum == pod->told)
		return;
	pod->told = sum;
	write_text(ks, pod, text);
}

static int on_teller(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_ks *ks = context;
	struct sl_link *at = ks->teller_at ? &ks->teller_at->link : ks->pods.next;
	sl_ns now = sl_clock_now();
	uint32_t looked = 0;

	sl_ks_tell_projects(ks);
	/* Placing pods comes first. */
	for (; ks->cluster && at != &ks->pods && ks->telling < CALLS_MOST &&
		looked < PODS_A_TURN && sl_list_is_empty(&ks->turns);
		at = at->next, looked++)
		tell(ks, SL_LIST_ENTRY(at, struct sl_ks_pod, link), now);
	ks->teller_at =
		at == &ks->pods ? NULL : SL_LIST_ENTRY(at, struct sl_ks_pod, link);
	(void)sd_event_source_set_time_relative(
		ks->teller, ks->teller_at && looked ? 50 * SL_MS / SL_US : EVERY / SL_US);
	(void)sd_event_source_set_enabled(ks->teller, SD_EVENT_ONESHOT);
	return 0;
}

int sl_ks_tell_open(struct sl_ks *ks)
{
	return sd_event_add_time_relative(
		ks->loop, &ks->teller, CLOCK_MONOTONIC, EVERY / SL_US, 0, on_teller, ks);
}
