/*
 * resources - a list, and a queue of changes
 */
#include "daemon/jobs/resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/compute.h"
#include "daemon/jobs/state.h"
#include "daemon/projects/registry.h"

/* Most changes that wait to be written. */
#define WAITING_MOST 64

struct change {
	struct sl_link link;
	struct sl_peer *peer; /* NULL: the peer is gone */
	bool drops;
	struct sl_compute resource;
};

struct sl_resources {
	struct sl_daemon *daemon;
	struct sl_error trouble;           /* why the list could not be read */
	struct sl_compute_list list, next; /* next: being written */
	struct sl_link waiting; /* changes, oldest first: the first is being written */
	uint32_t waiting_count;
};

/* --- answers ---------------------------------------------------------------------------------- */

static void reply(struct sl_peer *peer, const char *name, bool known, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RESOURCE_REPLY);
	msg.resource_reply.ok = !text[0];
	msg.resource_reply.known = known;
	sl_wire_str(msg.resource_reply.name, sizeof(msg.resource_reply.name), name);
	sl_wire_str(msg.resource_reply.text, sizeof(msg.resource_reply.text), text);
	sl_peer_send(peer, &msg);
}

static bool is_free(const struct sl_peer *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

/* A user sees shared resources and their own; root and the daemon's user see all. */
static bool may_see(const struct sl_peer_list *list, const struct sl_compute *row)
{
	const struct sl_peer *peer = SL_LIST_ENTRY(list, struct sl_peer, list);

	return row->shared || is_free(peer) || row->owner == peer->uid;
}

bool sl_resources_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	const struct sl_compute *row;

	do {
		if (!daemon->resources || list->place >= daemon->resources->list.count)
			return false;
		row = &daemon->resources->list.all[list->place++];
	} while (!may_see(list, row));
	sl_wire_init(msg, SL_MSG_RESOURCE_ROW);
	msg->resource_row.request_kind = row->request.kind;
	msg->resource_row.request_value = row->request.value;
	msg->resource_row.limit_kind = row->limit.kind;
	msg->resource_row.limit_value = row->limit.value;
	msg->resource_row.gpu_count = row->gpus;
	msg->resource_row.owner = row->owner;
	msg->resource_row.shared = row->shared;
	msg->resource_row.priority_biased =
		(uint32_t)((int64_t)row->priority + (int64_t)SL_PRIORITY_BIAS);
	memcpy(msg->resource_row.name, row->name, sizeof(msg->resource_row.name));
	memcpy(msg->resource_row.project, row->project,
		sizeof(msg->resource_row.project));
	return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static struct change *first(struct sl_resources *resources)
{
	return sl_list_is_empty(&resources->waiting)
		       ? NULL
		       : SL_LIST_ENTRY(resources->waiting.next, struct change, link);
}

static void drop_first(struct sl_resources *resources, bool known, const char *text)
{
	struct change *change = first(resources);

	sl_list_unlink(&change->link);
	resources->waiting_count--;
	if (change->peer)
		reply(change->peer, change->resource.name, known, text);
	free(change);
}

static void on_stored(void *context, int r, const struct sl_error *err);

/* `next` is the list with this change. */
static int store(struct sl_resources *resources, const struct change *change)
{
	struct sl_store_change *records = sl_store_change_new();

	if (change->drops)
		sl_store_drop(records, SL_KIND_RESOURCE,
			sl_compute_find(&resources->list, &change->resource)->number);
	else
		sl_compute_store(
			records, sl_compute_find(&resources->next, &change->resource));
	return sl_store_commit(resources->daemon->store, records, on_stored, resources);
}

/* Applies the first valid change to `next`, and hands it to the store. */
static void start(struct sl_resources *resources)
{
	struct change *change;

	while ((change = first(resources))) {
		bool there;

		resources->next = resources->list;
		there = sl_compute_find(&resources->next, &change->resource) != NULL;
		if (change->drops ? !sl_compute_drop(&resources->next, &change->resource)
				  : !sl_compute_put(&resources->next, &change->resource))
			drop_first(resources, there,
				change->drops
					? "there is no compute resource of that name; "
					  "`sluice resource list` says which there are"
					: "there are " SL_STRINGIFY(
						  SL_RESOURCES_MOST) " compute "
								     "resources, which "
								     "is the most; "
								     "delete "
								     "some");
		else if (store(resources, change) == 0)
			return;
		else
			drop_first(
				resources, there, "sluiced is out of memory; try again");
	}
}

static void on_stored(void *context, int r, const struct sl_error *err)
{
	struct sl_resources *resources = context;

	if (r < 0)
		sl_error_log("%s", err->text);
	else
		resources->list = resources->next;
	drop_first(resources, true, err->text);
	start(resources);
}

/* --- changes ---------------------------------------------------------------------------------- */

static bool may_change(struct sl_peer *peer, const char *name)
{
	struct sl_resources *resources = peer->daemon->resources;

	if (resources->trouble.text[0]) {
		reply(peer, name, false, resources->trouble.text);
		return false;
	}
	if (resources->waiting_count < WAITING_MOST)
		return true;
	reply(peer, name, false, "too many changes wait to be written; try again");
	return false;
}

/* Bounds of ordinary users: refuses resources that could never start, and too many of them. */
static bool may_have(
	struct sl_peer *peer, const struct sl_compute *resource, struct sl_error *text)
{
	const struct sl_compute_list *list = &peer->daemon->resources->list;
	struct sl_jobs_row row = {.uid = peer->uid,
		.request = resource->request,
		.limit = resource->limit,
		.priority = resource->priority,
		.gpu_count = resource->gpus,
		.least = 1};
	uint32_t count = 0;

	for (uint32_t i = 0; i < list->count; i++)
		count += !list->all[i].shared && list->all[i].owner == peer->uid &&
			 strcmp(list->all[i].name, resource->name) != 0;
	if (count >= SL_RESOURCES_OF_USER) {
		sl_error_set(text,
			"you have " SL_STRINGIFY(
				SL_RESOURCES_OF_USER) " compute "
						      "resources, the most that a user "
						      "may have; delete one");
		return false;
	}
	return sl_jobs_within_bounds(peer, &row, text);
}

static void enqueue(struct sl_peer *peer, bool drops, const struct sl_compute *resource)
{
	struct sl_resources *resources = peer->daemon->resources;
	struct change *change = calloc(1, sizeof(*change));
	bool idle = sl_list_is_empty(&resources->waiting);

	if (!change) {
		reply(peer, resource->name, false, "sluiced is out of memory; try again");
		return;
	}
	change->peer = peer;
	change->drops = drops;
	change->resource = *resource;
	sl_list_push_tail(&resources->waiting, &change->link);
	resources->waiting_count++;
	if (idle)
		start(resources);
}

void sl_resources_put(struct sl_peer *peer, const struct sl_msg_resource_put *put)
{
	struct sl_compute resource = {.gpus = put->gpu_count,
		.request = {.kind = put->request_kind, .value = put->request_value},
		.limit = {.kind = put->limit_kind, .value = put->limit_value}};
	int64_t priority = (int64_t)put->priority_biased - (int64_t)SL_PRIORITY_BIAS;
	struct sl_error text = {0};
	const char *mistake;

	if (!may_change(peer, put->name))
		return;
	memcpy(resource.name, put->name, sizeof(resource.name));
	/* Out of range stays out of range. */
	resource.priority = priority > INT32_MAX ? INT32_MAX : (int32_t)priority;
	memcpy(resource.project, put->project, sizeof(resource.project));
	resource.shared = is_free(peer);
	resource.owner = peer->uid;
	mistake = sl_compute_mistake(&resource);
	if (mistake[0])
		reply(peer, put->name, false, mistake);
	else if ((resource.project[0] &&
			 !sl_registry_admits(peer, resource.project, &text)) ||
		 (!resource.shared && !may_have(peer, &resource, &text)))
		reply(peer, put->name, false, text.text);
	else
		enqueue(peer, false, &resource);
}

void sl_resources_delete(
	struct sl_peer *peer, const struct sl_msg_resource_delete *delete)
{
	struct sl_compute resource = {0};

	if (!may_change(peer, delete->name))
		return;
	memcpy(resource.name, delete->name, sizeof(resource.name));
	resource.shared = is_free(peer) && delete->owner == UINT64_MAX;
	resource.owner = is_free(peer) ? (uint32_t) delete->owner : peer->uid;
	enqueue(peer, true, &resource);
}

void sl_resources_peer_gone(struct sl_peer *peer)
{
	struct sl_resources *resources = peer->daemon->resources;

	if (!resources)
		return;
	sl_list_foreach (link, &resources->waiting) {
		struct change *change = SL_LIST_ENTRY(link, struct change, link);

		if (change->peer == peer)
			change->peer = NULL;
	}
}

/* --- start and end ---------------------------------------------------------------------------- */

int sl_resources_open(struct sl_daemon *daemon)
{
	struct sl_resources *resources = calloc(1, sizeof(*resources));
	int r;

	if (!resources)
		return sl_err_origin(-ENOMEM);
	resources->daemon = daemon;
	sl_list_init(&resources->waiting);
	r = sl_compute_load(daemon->store, &resources->list, &resources->trouble);
	if (r != SL_STORE_OK)
		sl_error_log("%s", resources->trouble.text);
	/* With the others, changes go on. */
	if (r == SL_STORE_PARTLY)
		resources->trouble.text[0] = '\0';
	daemon->resources = resources;
	return 0;
}

void sl_resources_close(struct sl_daemon *daemon)
{
	struct sl_resources *resources = sl_steal(&daemon->resources);

	if (!resources)
		return;
	sl_list_foreach_safe (link, &resources->waiting) {
		sl_list_unlink(link);
		free(SL_LIST_ENTRY(link, struct change, link));
	}
	free(resources);
}
