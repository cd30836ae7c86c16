/*
 * scheduler - connects the parts
 *
 * Watches begin once this replica has the Lease, so their lists include all writes of the previous
 * holder; a waiting replica stores nothing.
 */
#include "cluster/kubernetes/scheduler/scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/config.h"
#include "cluster/kubernetes/scheduler/internal.h"
#include "cluster/kubernetes/claims/slice.h"

typedef void (*on_object_fn)(
	struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);

static void on_event(struct sl_ks *ks, enum sl_ks_watch which,
	const struct sl_kube_event *event, on_object_fn fn)
{
	switch (event->kind) {
	case SL_KUBE_ADDED:
	case SL_KUBE_MODIFIED:
	case SL_KUBE_DELETED: fn(ks, event->kind, event->object); return;
	case SL_KUBE_SYNCED: break;
	case SL_KUBE_TROUBLE:
	default:
		if (event->status != 404)
			return;
		if (which < SL_KS_WATCH_PROJECTS) {
			sl_info("the cluster cannot be read: %s", event->error);
			return;
		}
		/* The API server does not serve this kind, so there are no such objects. Projects
		 * and Queues may be installed later, so their watches go on; PodGroups are built in
		 * and come only with another server. */
		if (which == SL_KS_WATCH_GROUPS)
			ks->watch[which] = sl_kube_watch_free(ks->watch[which]);
	}
	ks->synced |= 1u << which;
	sl_ks_awake(ks);
}

static void take_node(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	sl_ks_on_node(ks, kind, object);
}

static void take_slice(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	sl_ks_on_slice(ks, kind, object);
}

static void take_claim(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	sl_ks_on_claim(ks, kind, object);
}

static void take_pod(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	sl_ks_on_pod(ks, kind, object);
}

static void on_nodes(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_NODES, event, take_node);
}

static void on_slices(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_SLICES, event, take_slice);
}

static void on_claims(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_CLAIMS, event, take_claim);
}

static void on_pods(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_PODS, event, take_pod);
}

static void on_projects(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_PROJECTS, event, sl_ks_on_project);
}

static void on_queues(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_QUEUES, event, sl_ks_on_queue);
}

static void on_groups(void *context, const struct sl_kube_event *event)
{
	on_event(context, SL_KS_WATCH_GROUPS, event, sl_ks_on_group);
}

static void on_held(struct sl_ks *ks)
{
	static const struct {
		const char *path, *query;
		sl_kube_event_fn fn;
	} watches[SL_KS_WATCHES] = {
		[SL_KS_WATCH_NODES] = {"/api/v1/nodes", NULL, on_nodes},
		[SL_KS_WATCH_SLICES] = {SL_KUBE_SLICES_PATH,
			"fieldSelector=spec.driver%3D" SL_KUBE_DRIVER, on_slices},
		[SL_KS_WATCH_CLAIMS] = {"/apis/resource.k8s.io/v1/resourceclaims", NULL,
			on_claims},
		/* All pods, since other schedulers' pods use resources of the nodes. */
		[SL_KS_WATCH_PODS] = {"/api/v1/pods", NULL, on_pods},
		[SL_KS_WATCH_PROJECTS] = {"/apis/sluice.dev/v1/projects", NULL,
			on_projects},
		[SL_KS_WATCH_QUEUES] = {"/apis/scheduling.run.ai/v2/queues", NULL,
			on_queues},
		[SL_KS_WATCH_GROUPS] = {"/apis/scheduling.k8s.io/v1beta1/podgroups", NULL,
			on_groups},
	};

	sl_info("this replica has the Lease; reading the cluster");
	for (int i = 0; i < SL_KS_WATCHES; i++) {
		int r = sl_kube_watch_new(&ks->watch[i], ks->kube, watches[i].path,
			watches[i].query, watches[i].fn, ks);

		if (r < 0) {
			sl_error_log(
				"cannot watch %s: %s", watches[i].path, strerror(-r));
			(void)sd_event_exit(ks->loop, r);
		}
	}
}

static void on_lost(struct sl_ks *ks)
{
	if (ks->ends) {
		(void)sd_event_exit(ks->loop, 0);
		return;
	}
	sl_error_log(
		"the Lease could not be renewed in time; another replica may have it");
	(void)sd_event_exit(ks->loop, -ETIMEDOUT);
}

static int open_all(struct sl_ks *ks, struct sl_error *err)
{
	struct sl_kube **const kubes[] = {&ks->kube, &ks->lease_kube};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SL_ARRAY_LEN(kubes); i++) {
		struct sl_kube_config config = {0};

		r = sl_kube_config_find(&config, ks->options.kubeconfig, err);
		if (r < 0)
			return r;
		r = sl_kube_new(kubes[i], ks->loop, &config);
	}
	if (r == 0)
		r = sl_ks_drive_open(ks);
	if (r == 0)
		r = sl_ks_tell_open(ks);
	if (r == 0)
		r = sl_ks_lease_new(ks, on_held, on_lost, &ks->lease);
	if (r < 0)
		sl_error_set(err, "cannot start the scheduler: %s", strerror(-r));
	return r;
}

int sl_kube_scheduler_new(sd_event *loop, const struct sl_kube_scheduler_options *options,
	struct sl_ks **out, struct sl_error *err)
{
	struct sl_ks *ks = calloc(1, sizeof(*ks));
	int r;

	*out = NULL;
	if (!ks) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	ks->loop = sd_event_ref(loop);
	ks->options = *options;
	sl_list_init(&ks->nodes);
	sl_list_init(&ks->claims);
	sl_list_init(&ks->pods);
	sl_list_init(&ks->jobs);
	sl_list_init(&ks->rules);
	sl_list_init(&ks->projects);
	sl_list_init(&ks->groups);
	sl_list_init(&ks->changed_jobs);
	sl_list_init(&ks->changed_claims);
	sl_list_init(&ks->turns);
	ks->others = sl_ks_new_id(ks);
	ks->nameless.id = sl_ks_new_id(ks);
	r = open_all(ks, err);
	if (r < 0)
		ks = sl_kube_scheduler_free(ks);
	*out = ks;
	return r;
}

void sl_kube_scheduler_end(struct sl_ks *ks)
{
	ks->ends = true;
	sl_ks_lease_leave(ks->lease);
}

struct sl_ks *sl_kube_scheduler_free(struct sl_ks *ks)
{
	if (!ks)
		return NULL;
	for (int i = 0; i < SL_KS_WATCHES; i++)
		ks->watch[i] = sl_kube_watch_free(ks->watch[i]);
	ks->lease = sl_ks_lease_free(ks->lease);
	sl_ks_free_objects(ks);
	sl_ks_free_spaces(ks);
	sl_ks_free_groups(ks);
	ks->kube = sl_kube_free(ks->kube);
	ks->lease_kube = sl_kube_free(ks->lease_kube);
	ks->timer = sd_event_source_disable_unref(ks->timer);
	ks->teller = sd_event_source_disable_unref(ks->teller);
	ks->arena = sl_arena_free(ks->arena);
	ks->loop = sd_event_unref(ks->loop);
	free(ks->todo);
	free(ks);
	return NULL;
}
