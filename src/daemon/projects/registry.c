/*
 * registry - see the header
 */
#include "daemon/projects/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/paths.h"
#include "base/step.h"
#include "daemon/link/bounds.h"
#include "daemon/projects/members.h"
#include "daemon/projects/store.h"
#include "daemon/projects/wire.h"
#include "daemon/state/workload.h"

/* A change that a peer asks for. */
struct sl_projects_change {
	struct sl_link link;  /* sl_registry.waiting, once it is whole */
	struct sl_peer *peer; /* NULL: it has gone */
	struct sl_projects put;
	char remove[SL_PROJECT_NAME_MAX];  /* "": none */
	uint32_t count;                    /* number of PUTs to come */
	struct sl_error err;               /* the first fault among them, */
	char culprit[SL_PROJECT_NAME_MAX]; /* and the project at fault */
};

struct sl_registry {
	struct sl_projects_stored now, fresh; /* fresh: being stored */
	struct sl_members who;                /* of now */
	struct sl_link waiting;
	struct sl_projects_change *writing;
	struct sl_error trouble;  /* why the database could not be read at the start */
	struct sl_error unstored; /* why the last change could not be stored */
};

const struct sl_projects *sl_registry_set(const struct sl_daemon *daemon)
{
	return &daemon->projects->now.set;
}

static void change_free(struct sl_projects_change *change)
{
	if (change->peer)
		change->peer->change = NULL;
	sl_list_unlink(&change->link);
	sl_projects_fini(&change->put);
	free(change);
}

/* --- Admission of users. --- */

void sl_registry_look_up(struct sl_daemon *daemon)
{
	struct sl_registry *room = daemon->projects;

	if (sl_members_look_up(&room->who, &room->now.set) < 0)
		sl_error_log("out of memory: nobody is let into a project that names "
			     "users, until "
			     "the next SIGHUP");
}

/* A mistyped name would be a project without a quota, and its work would be hard to find again. */
static bool is_there(
	const struct sl_registry *room, const char *project, struct sl_error *err)
{
	const struct sl_projects *set = &room->now.set;
	struct sl_nearest near = sl_nearest_to(project);

	/* An unread database may contain the project: GPUs are shared without it. */
	if (!project[0] || room->trouble.text[0] || sl_projects_find(set, project))
		return true;
	for (size_t i = 0; i < set->count; i++)
		sl_nearest_offer(&near, set->rows[i].name);
	sl_error_set(err, "there is no project '%.63s'", project);
	sl_nearest_add(&near,
		"; sluice project list shows all, and sluice project apply adds one",
		err);
	return false;
}

bool sl_registry_admits(
	const struct sl_peer *peer, const char *project, struct sl_error *err)
{
	const struct sl_registry *room = peer->daemon->projects;
	uint32_t gids[SL_BOUNDS_GROUPS_MAX];
	size_t count;

	if (!is_there(room, project, err))
		return false;
	if (peer->uid == 0 || peer->uid == geteuid())
		return true;
	count = sl_bounds_groups_of(peer, gids);
	if (sl_members_admits(
		    &room->who, &room->now.set, project, peer->uid, gids, count))
		return true;
	sl_error_set(err,
		"project %s is for others (sluice project show says for whom); name "
		"another "
		"--project",
		project);
	return false;
}

/* --- Answers. --- */

static void reply(
	struct sl_projects_change *change, const struct sl_msg_project_reply *said)
{
	union sl_msg msg;

	if (change->peer) {
		sl_wire_init(&msg, SL_MSG_PROJECT_REPLY);
		msg.project_reply.ok = said->ok;
		msg.project_reply.added = said->added;
		msg.project_reply.changed = said->changed;
		msg.project_reply.removed = said->removed;
		memcpy(msg.project_reply.name, said->name, sizeof(said->name));
		memcpy(msg.project_reply.text, said->text, sizeof(said->text));
		sl_peer_send(change->peer, &msg);
	}
	change_free(change);
}

static void refuse(
	struct sl_projects_change *change, const char *culprit, const char *text)
{
	struct sl_msg_project_reply said = {.ok = 0};

	sl_wire_str(said.name, sizeof(said.name), culprit ? culprit : "");
	sl_wire_str(said.text, sizeof(said.text), text);
	reply(change, &said);
}

static bool is_same(const struct sl_project_row *a, const struct sl_project_row *b)
{
	return strcmp(a->parent, b->parent) == 0 && strcmp(a->users, b->users) == 0 &&
	       strcmp(a->groups, b->groups) == 0 && strcmp(a->pools, b->pools) == 0 &&
	       memcmp(&a->quota, &b->quota, sizeof(a->quota)) == 0 &&
	       memcmp(&a->limit, &b->limit, sizeof(a->limit)) == 0 &&
	       memcmp(a->weight, b->weight, sizeof(a->weight)) == 0 &&
	       a->priority == b->priority && a->no_swap == b->no_swap &&
	       a->preempt_min_runtime == b->preempt_min_runtime &&
	       a->reclaim_min_runtime == b->reclaim_min_runtime;
}

static void succeed(const struct sl_registry *room, struct sl_projects_change *change)
{
	struct sl_msg_project_reply said = {
		.ok = 1, .removed = change->remove[0] != '\0'};

	/* After the exchange `fresh` holds the former set: compare with that. */
	for (size_t i = 0; i < change->put.count; i++) {
		const struct sl_project_row *row = &change->put.rows[i];
		const struct sl_project_row *old =
			sl_projects_find(&room->fresh.set, row->name);

		said.added += !old;
		said.changed += old && !is_same(old, row);
	}
	sl_info("projects: %u added, %u changed, %u removed by user %u", said.added,
		said.changed, said.removed,
		change->peer ? (unsigned int)change->peer->uid : 0);
	reply(change, &said);
}

/* --- Judging. --- */

/* Does anything still need this project? err says what. */
static bool is_needed(
	const struct sl_daemon *daemon, const char *name, struct sl_error *err)
{
	const struct sl_projects *set = sl_registry_set(daemon);

	if (strcmp(name, SL_PROJECT_DEFAULT) == 0) {
		sl_error_set(err, "project default holds what was given no other; it "
				  "stays, and can be "
				  "changed");
		return true;
	}
	if (!sl_projects_find(set, name)) {
		sl_error_set(err, "there is no project %s; sluice project list shows all",
			name);
		return true;
	}
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->rows[i].parent, name) != 0)
			continue;
		sl_error_set(err,
			"project %s has children, %s for one; delete them first, or give "
			"them "
			"another parent",
			name, set->rows[i].name);
		return true;
	}
	sl_list_foreach (link, &daemon->workload_list) {
		const struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload->over || strcmp(workload->project, name) != 0)
			continue;
		sl_error_set(err,
			"project %s has workloads, %s for one; wait for their end, or "
			"stop them",
			name, workload->name);
		return true;
	}
	return daemon->up->project_is_needed(daemon, name, err);
}

/* Makes `fresh` from the present set and the change; false: refused with the reason. */
static bool compose(struct sl_daemon *daemon, struct sl_projects_change *change)
{
	struct sl_registry *room = daemon->projects;
	const struct sl_project_row *culprit = NULL;

	if (sl_projects_copy(&room->fresh.set, &room->now.set) < 0) {
		sl_error_set(&change->err, "sluiced is out of memory; try again");
		return false;
	}
	room->fresh.next_id = room->now.next_id;
	for (size_t i = 0; i < change->put.count; i++) {
		struct sl_project_row *row = &change->put.rows[i];

		row->id = room->fresh.next_id;
		if (!sl_projects_find(&room->fresh.set, row->name))
			room->fresh.next_id++;
		if (sl_projects_put(&room->fresh.set, row) < 0) {
			sl_error_set(&change->err,
				"there would be more than %d projects; delete some",
				SL_PROJECTS_MAX);
			return false;
		}
	}
	if (change->remove[0]) {
		if (is_needed(daemon, change->remove, &change->err))
			return false;
		sl_projects_drop(&room->fresh.set, change->remove);
	}
	if (sl_projects_check(&room->fresh.set, &culprit, &change->err) ==
		SL_PROJECTS_OK) {
		sl_projects_sort(&room->fresh.set);
		return true;
	}
	if (culprit)
		sl_wire_str(change->culprit, sizeof(change->culprit), culprit->name);
	return false;
}

static void on_stored(void *context, int r, const struct sl_error *err);

/* Hands `fresh` to the store. The default project is stored with the first change. */
static int store(struct sl_daemon *daemon, const struct sl_projects_change *change)
{
	const struct sl_registry *room = daemon->projects;
	struct sl_store_change *records = sl_store_change_new();
	uint64_t next_id = room->fresh.next_id;

	sl_projects_store_put(
		records, sl_projects_find(&room->fresh.set, SL_PROJECT_DEFAULT), next_id);
	for (size_t i = 0; i < change->put.count; i++)
		sl_projects_store_put(records,
			sl_projects_find(&room->fresh.set, change->put.rows[i].name),
			next_id);
	if (change->remove[0])
		sl_store_drop(records, SL_KIND_PROJECT,
			sl_projects_find(&room->now.set, change->remove)->id);
	return sl_store_commit(daemon->store, records, on_stored, daemon);
}

/* Begins the next change, unless one is being stored. */
static void go_on(struct sl_daemon *daemon)
{
	struct sl_registry *room = daemon->projects;

	while (!room->writing && !sl_list_is_empty(&room->waiting)) {
		struct sl_projects_change *change = SL_LIST_ENTRY(
			room->waiting.next, struct sl_projects_change, link);

		sl_list_unlink(&change->link);
		if (!change->err.text[0] && room->trouble.text[0])
			change->err = room->trouble;
		if (change->err.text[0] || !compose(daemon, change)) {
			refuse(change, change->culprit, change->err.text);
			continue;
		}
		if (store(daemon, change) == 0)
			room->writing = change;
		else
			refuse(change, NULL, "sluiced is out of memory; try again");
	}
}

static void on_stored(void *context, int r, const struct sl_error *err)
{
	struct sl_daemon *daemon = context;
	struct sl_registry *room = daemon->projects;
	struct sl_projects_change *change = sl_steal(&room->writing);

	room->unstored = *err;
	if (r == 0) {
		struct sl_projects_stored before = room->now;

		room->now = room->fresh;
		room->fresh = before;
		sl_registry_look_up(daemon);
		daemon->up->projects_changed(daemon);
		succeed(room, change);
	} else {
		sl_error_log("%s", err->text);
		refuse(change, NULL, err->text);
	}
	go_on(daemon);
}

/* --- Messages. --- */

static bool may_change(struct sl_peer *peer)
{
	if (peer->uid == 0 || peer->uid == geteuid())
		return true;
	sl_peer_reject(peer, SL_REJECT_DENIED,
		"only root and sluiced's own user may change projects");
	return false;
}

static struct sl_projects_change *change_new(struct sl_peer *peer)
{
	struct sl_projects_change *change = calloc(1, sizeof(*change));

	if (!change) {
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return NULL;
	}
	sl_list_init(&change->link);
	change->peer = peer;
	peer->change = change;
	return change;
}

static void take_row(
	struct sl_projects_change *change, const struct sl_msg_project_put *put)
{
	struct sl_project_row row;
	struct sl_error *err = &change->err;

	sl_project_from_put(put, &row);
	if (err->text[0])
		return;
	if (sl_project_check(&row, err) != SL_PROJECTS_OK)
		sl_wire_str(change->culprit, sizeof(change->culprit),
			sl_project_is_name(row.name) ? row.name : "");
	else if (sl_projects_find(&change->put, row.name))
		sl_error_set(err, "project %s comes twice; remove one", row.name);
	else if (sl_projects_put(&change->put, &row) < 0)
		sl_error_set(err, "sluiced is out of memory; try again");
}

void sl_registry_put(struct sl_peer *peer, const struct sl_msg_project_put *put)
{
	struct sl_projects_change *change = peer->change;

	if (!may_change(peer))
		return;
	if (!change && put->index == 0 && put->count > 0 &&
		put->count <= SL_PROJECTS_MAX) {
		change = change_new(peer);
		if (!change)
			return;
		change->count = put->count;
	} else if (!change || change->remove[0] || put->count != change->count ||
		   put->index >= change->count || !sl_list_is_empty(&change->link) ||
		   change == peer->daemon->projects->writing) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"PROJECT_PUT %" PRIu32 " of %" PRIu32 " out of order", put->index,
			put->count);
		return;
	}
	take_row(change, put);
	if (put->index + 1 < put->count)
		return;
	sl_list_push_tail(&peer->daemon->projects->waiting, &change->link);
	go_on(peer->daemon);
}

void sl_registry_delete(struct sl_peer *peer, const struct sl_msg_project_delete *name)
{
	struct sl_projects_change *change;

	if (!may_change(peer))
		return;
	if (peer->change || !name->name[0]) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "PROJECT_DELETE out of order");
		return;
	}
	change = change_new(peer);
	if (!change)
		return;
	memcpy(change->remove, name->name, sizeof(change->remove));
	sl_list_push_tail(&peer->daemon->projects->waiting, &change->link);
	go_on(peer->daemon);
}

void sl_registry_leave(struct sl_peer *peer)
{
	struct sl_projects_change *change = peer->change;

	if (!change)
		return;
	/* A complete change is carried out, as if only the answer were lost. */
	change->peer = NULL;
	peer->change = NULL;
	if (sl_list_is_empty(&change->link) && change != peer->daemon->projects->writing)
		change_free(change);
}

bool sl_registry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	const struct sl_projects *set = sl_registry_set(daemon);
	const struct sl_project_row *row;

	if (list->place >= set->count)
		return false;
	row = &set->rows[list->place];
	sl_wire_init(msg, SL_MSG_PROJECT_ROW);
	sl_project_to_row(row, &msg->project_row);
	msg->project_row.index = list->place++;
	msg->project_row.count = (uint32_t)set->count;
	if (daemon->projects->trouble.text[0])
		msg->project_row.flags |= SL_PROJECT_UNREAD;
	sl_list_foreach (link, &daemon->workload_list) {
		const struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		msg->project_row.workloads +=
			!workload->over && strcmp(workload->project, row->name) == 0;
	}
	return true;
}

void sl_registry_part(const struct sl_daemon *daemon, struct sl_part *part)
{
	const struct sl_registry *room = daemon->projects;

	(void)snprintf(part->path, sizeof(part->path), "%.250s",
		sl_store_path(daemon->store, SL_KIND_PROJECT));
	part->count = room->now.set.count;
	if (room->trouble.text[0]) {
		part->health = SL_HEALTH_BROKEN;
		part->text = room->trouble;
	} else if (room->unstored.text[0]) {
		part->health = SL_HEALTH_PARTLY;
		part->text = room->unstored;
	}
}

/* --- Start and end. --- */

/* The default project exists even if no project was ever configured. */
static int add_default(struct sl_projects_stored *stored)
{
	struct sl_project_row row;

	if (!stored->next_id)
		stored->next_id = 1;
	if (sl_projects_find(&stored->set, SL_PROJECT_DEFAULT))
		return 0;
	sl_project_defaults(&row, SL_PROJECT_DEFAULT);
	row.id = stored->next_id++;
	return sl_projects_put(&stored->set, &row);
}

int sl_registry_open(struct sl_daemon *daemon, struct sl_error *err)
{
	struct sl_registry *room = calloc(1, sizeof(*room));
	struct sl_error said = {0};
	int r;

	if (!room)
		return sl_err_origin(-ENOMEM);
	sl_list_init(&room->waiting);
	daemon->projects = room;
	if (sl_projects_store_load(daemon->store, &room->now, &said) != SL_STORE_OK) {
		sl_error_log(
			"%s; until then projects that were not read are missing, and "
			"none can be changed",
			said.text);
		sl_error_set(&room->trouble,
			"%.400s; sluiced met this at its start: restart it then",
			said.text);
	}
	r = add_default(&room->now);
	sl_projects_sort(&room->now.set);
	sl_registry_look_up(daemon);
	if (r < 0)
		sl_error_set(err, "cannot keep projects: %s", strerror(-r));
	return r;
}

void sl_registry_close(struct sl_daemon *daemon)
{
	struct sl_registry *room = daemon->projects;

	if (!room)
		return;
	if (room->writing)
		change_free(room->writing);
	while (!sl_list_is_empty(&room->waiting))
		change_free(SL_LIST_ENTRY(
			room->waiting.next, struct sl_projects_change, link));
	sl_projects_fini(&room->now.set);
	sl_projects_fini(&room->fresh.set);
	sl_members_fini(&room->who);
	free(room);
	daemon->projects = NULL;
}
