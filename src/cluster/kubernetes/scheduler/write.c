/*
 * write - the calls that place a pod
 *
 * A pod with a claim takes three calls, in this order: add the claim's finalizer, allocate it in
 * its status, bind the pod. Before each call next_step() checks the present pod, claim and node.
 *
 * For a pod that asks for GPUs by limits (extended.h) the scheduler first creates the claim, with
 * its finalizer. Before it allocates, it writes the claim's name into the pod's status. If the API
 * server drops that field, the scheduler notices while nothing is allocated yet.
 *
 * Writes to a claim name the version that was read, so they never overwrite a change. If an answer
 * leaves the result open (no connection, time, 5xx), the object is read, and the place stays taken
 * until it is certain that nothing was written. Only then may the machine give the place to others.
 *
 * A scheduler that finds a claim allocated to an unbound pod continues where the previous one
 * ended.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/bodies.h"

#define PATH_MAX_BYTES 640
#define CLAIMS_PATH    "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims"
#define CLAIM_PATH     CLAIMS_PATH "/%s%s"
#define POD_PATH       "/api/v1/namespaces/%s/pods/%s%s"

static void ask(struct sl_ks *ks, struct sl_ks_pod *pod, sl_ns after);

/* --- Steps. ------------------------------------------------------------------------------- */

static bool is_write(enum sl_ks_step step)
{
	return step >= SL_KS_CREATE && step <= SL_KS_BIND;
}

/* A write to the pod; the others are to its claim. */
static bool is_of_pod(enum sl_ks_step step)
{
	return step == SL_KS_KNOW_CLAIM || step == SL_KS_BIND || step == SL_KS_LOOK_POD;
}

static bool is_look(enum sl_ks_step step)
{
	return step == SL_KS_LOOK_CLAIM || step == SL_KS_LOOK_POD;
}

static void enter(struct sl_ks *ks, struct sl_ks_pod *pod, enum sl_ks_step step)
{
	ks->writing += is_write(step);
	ks->writing -= is_write(pod->step);
	ks->looking += is_look(step);
	ks->looking -= is_look(pod->step);
	pod->step = step;
}

static void end(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	enter(ks, pod, SL_KS_IDLE);
	pod->backoff = (struct sl_kube_backoff){0};
}

/* The next write, by the present knowledge. SL_KS_IDLE: none, for the reason in why. */
static enum sl_ks_step next_step(
	const struct sl_ks *ks, const struct sl_ks_pod *pod, char *why, size_t size)
{
	const struct sl_ks_claim *claim = pod->claim;
	bool stays = pod->is_there && !pod->facts.is_over && !pod->facts.is_leaving;

	/* Its place is final, whatever happens to claim and node. */
	if (stays && claim && sl_ks_claim_is_for(claim, pod))
		return SL_KS_BIND;
	if (!sl_ks_pod_is_ready(pod, why, size))
		return SL_KS_IDLE;
	if (!sl_ks_pod_fits(ks, pod)) {
		(void)snprintf(why, size, "node %.100s or the claim changed meanwhile",
			pod->place.node->named.key);
		return SL_KS_IDLE;
	}
	if (!claim)
		return SL_KS_BIND;
	if (!claim->is_there)
		return SL_KS_CREATE;
	if (pod->facts.gpus && !pod->facts.knows_claim)
		return SL_KS_KNOW_CLAIM;
	return claim->facts.is_protected ? SL_KS_ALLOCATE : SL_KS_PROTECT;
}

/* --- Results. ------------------------------------------------------------------------------ */

/* The pod has its place. */
static void succeed(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	end(ks, pod);
	pod->is_bound = true;
	pod->trouble[0] = '\0';
	ks->bound++;
	if (pod->believed == SL_KS_PLACED && pod->job->index.id) {
		event.task_runs.job = pod->job->index.id;
		event.task_runs.task = pod->task;
		sl_ks_step(ks, &event);
	}
	/* The watch will show it. */
	if (!pod->facts.node[0])
		(void)snprintf(pod->facts.node, sizeof(pod->facts.node), "%s",
			pod->place.node->named.key);
	sl_debug("pod %s is on node %s", pod->named.key, pod->facts.node);
	sl_ks_pod_look(ks, pod);
}

/* The machine queues it again; has_failed: with a growing delay. */
static void queue_again(struct sl_ks *ks, struct sl_ks_pod *pod, bool has_failed)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};
	struct sl_cluster_task_view task;

	event.task_ended.job = pod->job->index.id;
	event.task_ended.task = pod->task;
	event.task_ended.again = 1;
	event.task_ended.failed = has_failed;
	sl_ks_step(ks, &event);
	task = sl_cluster_task(ks->cluster, pod->job->index.id, pod->task);
	/* Otherwise its job is made anew. */
	if (task.state == SL_TASK_PENDING && !task.parked)
		sl_ks_believe(pod, SL_KS_QUEUED, NULL);
}

/* Nothing was written, or the watch shows all of it. is_refused: by the API server. */
static void give_up(
	struct sl_ks *ks, struct sl_ks_pod *pod, const char *why, bool is_refused)
{
	sl_info("pod %s is not placed: %s", pod->named.key, why);
	(void)snprintf(pod->trouble, sizeof(pod->trouble), "%s", why);
	end(ks, pod);
	sl_ks_pod_place(ks, pod);
	if (!pod->place.node && pod->believed == SL_KS_PLACED && pod->job->index.id)
		queue_again(ks, pod, is_refused);
	sl_ks_pod_look(ks, pod);
}

/* --- Turns. ------------------------------------------------------------------------------- */

static void advance(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	char why[sizeof(pod->trouble)];
	enum sl_ks_step next;

	if (pod->is_bound && pod->is_there) {
		succeed(ks, pod);
		return;
	}
	next = next_step(ks, pod, why, sizeof(why));
	if (next == SL_KS_IDLE) {
		give_up(ks, pod, why, false);
		return;
	}
	enter(ks, pod, next);
	ask(ks, pod, 0);
}

/* A few pods in back-off do not delay others. If there are many the server is in trouble, so all
 * wait. */
static void serve_turns(struct sl_ks *ks)
{
	while (ks->writing < SL_KS_WRITES && ks->writing + ks->looking < SL_KS_CALLS &&
		!sl_list_is_empty(&ks->turns) && sl_ks_lease_left(ks->lease)) {
		struct sl_ks_pod *pod =
			SL_LIST_ENTRY(ks->turns.next, struct sl_ks_pod, turn);

		sl_list_unlink(&pod->turn);
		advance(ks, pod);
	}
}

void sl_ks_write(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	if (pod->step != SL_KS_IDLE)
		return;
	enter(ks, pod, SL_KS_WAITS_FOR_TURN);
	sl_list_push_tail(&ks->turns, &pod->turn);
	serve_turns(ks);
}

bool sl_ks_is_writing(const struct sl_ks *ks)
{
	sl_list_foreach (link, &ks->pods) {
		const struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, link);

		if (pod->order_call || pod->is_ordering != pod->is_ordered)
			return true;
	}
	return ks->writing + ks->looking > 0;
}

/* A pod with some writes done comes before pods without any. */
static void go_on(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	enter(ks, pod, SL_KS_WAITS_FOR_TURN);
	sl_list_push_head(&ks->turns, &pod->turn);
}

/* --- Answers. ----------------------------------------------------------------------------- */

static void on_claim(
	struct sl_ks *ks, struct sl_ks_pod *pod, const struct sl_kube_answer *answer)
{
	if (answer->status == 404 && !pod->facts.gpus) {
		give_up(ks, pod, "its claim is gone", true);
		return;
	}
	/* The watch's handler takes the object; the step is not idle, so the place stays taken. */
	if (answer->status != 404)
		sl_ks_on_claim(ks, SL_KUBE_MODIFIED, answer->body);
	go_on(ks, pod);
}

static void on_pod(
	struct sl_ks *ks, struct sl_ks_pod *pod, const struct sl_kube_answer *answer)
{
	const char *node = sl_kube_text_at(answer->body, "spec", "nodeName", NULL);
	const char *uid = sl_kube_text_at(answer->body, "metadata", "uid", NULL);

	if (answer->status == 404 || strcmp(uid, pod->facts.uid) != 0) {
		/* The watch will show it. */
		pod->is_there = false;
		give_up(ks, pod, "the pod is gone", true);
	} else if (node[0]) {
		(void)snprintf(pod->facts.node, sizeof(pod->facts.node), "%s", node);
		succeed(ks, pod);
	} else {
		bool wrote_it = pod->step == SL_KS_KNOW_CLAIM;

		pod->facts.knows_claim = strcmp(sl_kube_text_at(answer->body, "status",
							"extendedResourceClaimStatus",
							"resourceClaimName", NULL),
						 pod->facts.claim) == 0;
		if (wrote_it && !pod->facts.knows_claim)
			give_up(ks, pod,
				"the API server keeps no extendedResourceClaimStatus "
				"(DRAExtendedResource is off); claim the GPU by a "
				"ResourceClaimTemplate instead of limits",
				true);
		else
			go_on(ks, pod);
	}
}

static void on_success(
	struct sl_ks *ks, struct sl_ks_pod *pod, const struct sl_kube_answer *answer)
{
	if (pod->step == SL_KS_BIND)
		succeed(ks, pod);
	else if (is_of_pod(pod->step))
		on_pod(ks, pod, answer);
	else
		on_claim(ks, pod, answer);
}

/* Reads the result of an unanswered write. at_once: without a delay. */
static void look(struct sl_ks *ks, struct sl_ks_pod *pod,
	const struct sl_kube_answer *answer, bool at_once)
{
	bool is_first = pod->backoff.tries == 0;
	sl_ns after = sl_kube_backoff_next(&pod->backoff, answer->retry_after_s);

	(void)snprintf(pod->trouble, sizeof(pod->trouble), "%s", answer->error);
	sl_debug("pod %s: %s", pod->named.key, answer->error);
	enter(ks, pod, is_of_pod(pod->step) ? SL_KS_LOOK_POD : SL_KS_LOOK_CLAIM);
	ask(ks, pod, at_once && is_first ? 0 : after);
}

static void on_done(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_pod *pod = context;
	struct sl_ks *ks = pod->ks;
	bool looks = is_look(pod->step);
	bool is_unknown =
		answer->status == 0 || answer->status == 429 || answer->status >= 500;

	if (!answer->error[0] || (looks && answer->status == 404))
		on_success(ks, pod, answer);
	else if (is_of_pod(pod->step) && answer->status == 404)
		on_pod(ks, pod, answer);
	/* An allocated claim stays allocated; its pod has no other place. */
	else if (is_unknown || looks || answer->status == 409 || pod->step == SL_KS_BIND)
		look(ks, pod, answer, answer->status == 409);
	else
		give_up(ks, pod, answer->error, true);
	serve_turns(ks);
}

/* --- The calls. --------------------------------------------------------------------------- */

static json_t *allocation(const struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = &pod->claim->facts;
	json_t *config =
		claim->config ? json_loads(claim->config, JSON_ALLOW_NUL, NULL) : NULL;
	struct sl_bodies_device device[SL_FIT_GPUS_MAX];
	struct sl_bodies_allocation body = {.node = pod->place.node->named.key,
		.pool = pod->place.node->pool,
		.devices = device,
		.pod = pod->facts.name,
		.pod_uid = pod->facts.uid,
		.claim_uid = claim->uid,
		.version = claim->version,
		.config = config};
	uint32_t request = 0, given = 0; /* to the present request */
	json_t *allocated;

	for (uint32_t mask = pod->place.gpu_mask; mask; mask &= mask - 1) {
		const struct sl_ks_gpu *gpu = &pod->place.node->gpu[__builtin_ctz(mask)];

		if (given++ == claim->request[request].gpus) {
			request++;
			given = 1;
		}
		device[body.count++] = (struct sl_bodies_device){.name = gpu->name,
			.request = claim->request[request].name,
			.memory_mib =
				claim->memory_mib ? claim->memory_mib : gpu->memory_mib,
			.limit_mib = claim->limit_mib,
			.compute_pct = claim->compute_pct,
			.compute_limit_pct = claim->compute_limit_pct};
	}
	allocated = sl_bodies_allocate(&body);
	json_decref(config);
	return allocated;
}

/* path receives the path of the step's call. */
static struct sl_kube_request request_of(struct sl_ks_pod *pod, char *path, json_t **body)
{
	const char *space = pod->facts.namespace, *name = pod->facts.name;
	struct sl_kube_request request = {.path = path, .done = on_done, .context = pod};
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;
	const char *claim_name = pod->facts.claim;

	*body = NULL;
	switch (pod->step) {
	case SL_KS_CREATE:
		request.verb = SL_KUBE_POST;
		*body = sl_bodies_claim(&pod->facts, pod->extended);
		(void)snprintf(path, PATH_MAX_BYTES, CLAIMS_PATH, space);
		break;
	case SL_KS_KNOW_CLAIM:
		request.verb = SL_KUBE_STRATEGIC;
		*body = sl_bodies_know_claim(&pod->facts, pod->extended);
		(void)snprintf(path, PATH_MAX_BYTES, POD_PATH, space, name, "/status");
		break;
	case SL_KS_PROTECT:
		request.verb = SL_KUBE_STRATEGIC;
		*body = sl_bodies_protect(claim->uid, claim->version);
		(void)snprintf(path, PATH_MAX_BYTES, CLAIM_PATH, space, claim_name, "");
		break;
	case SL_KS_ALLOCATE:
		request.verb = SL_KUBE_MERGE;
		*body = allocation(pod);
		(void)snprintf(
			path, PATH_MAX_BYTES, CLAIM_PATH, space, claim_name, "/status");
		break;
	case SL_KS_BIND:
		request.verb = SL_KUBE_POST;
		*body = sl_bodies_bind(
			space, name, pod->facts.uid, pod->place.node->named.key);
		(void)snprintf(path, PATH_MAX_BYTES, POD_PATH, space, name, "/binding");
		break;
	case SL_KS_LOOK_CLAIM:
		(void)snprintf(path, PATH_MAX_BYTES, CLAIM_PATH, space, claim_name, "");
		break;
	default: (void)snprintf(path, PATH_MAX_BYTES, POD_PATH, space, name, ""); break;
	}
	return request;
}

static void ask(struct sl_ks *ks, struct sl_ks_pod *pod, sl_ns after)
{
	sl_ns left = sl_ks_lease_left(ks->lease);
	struct sl_kube_request request;
	char path[PATH_MAX_BYTES];
	json_t *body;
	int r;

	request = request_of(pod, path, &body);
	request.body = body;
	request.after = after;
	/* An answer after the end of the Lease comes too late. */
	request.timeout = sl_min_u64(SL_KUBE_TIMEOUT, sl_max_u64(left, SL_S));
	ks->calls++;
	r = left ? sl_kube_call(ks->kube, &request, &pod->call) : -ESHUTDOWN;
	json_decref(body);
	if (r < 0)
		sl_error_log("pod %s cannot be placed: %s", pod->named.key, strerror(-r));
}
