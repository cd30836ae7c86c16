/*
 * members - see the header
 */
#include "daemon/projects/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/config/value.h"

void sl_members_fini(struct sl_members *who)
{
	free(who->rows);
	free(who->ids);
	*who = (struct sl_members){0};
}

static bool add_id(struct sl_members *who, uint32_t id)
{
	size_t room = who->id_room ? 2 * who->id_room : 64;
	uint32_t *ids;

	if (who->id_count == who->id_room) {
		ids = realloc(who->ids, room * sizeof(ids[0]));
		if (!ids)
			return false;
		who->ids = ids;
		who->id_room = room;
	}
	who->ids[who->id_count++] = id;
	return true;
}

/* Adds the ids of the known names of list to *count. False: no memory. */
static bool look_up(struct sl_members *who, const struct sl_project_row *row,
	const char *list, bool is_user, uint32_t *count)
{
	while (*list) {
		size_t length = strcspn(list, ",");
		char name[SL_PROJECT_NAME_MAX];
		uint32_t id;

		(void)snprintf(name, sizeof(name), "%.*s", (int)length, list);
		list += length + (list[length] == ',');
		if (!sl_config_find_id(name, is_user, &id)) {
			sl_warning(
				"project %s names %s %s, whom this machine does not know",
				row->name, is_user ? "user" : "group", name);
			continue;
		}
		if (!add_id(who, id))
			return false;
		(*count)++;
	}
	return true;
}

int sl_members_look_up(struct sl_members *who, const struct sl_projects *set)
{
	sl_members_fini(who);
	who->rows = calloc(set->count ? set->count : 1, sizeof(who->rows[0]));
	if (!who->rows)
		return sl_err_origin(-ENOMEM);
	for (size_t i = 0; i < set->count; i++) {
		const struct sl_project_row *row = &set->rows[i];
		struct sl_project_who *of = &who->rows[i];

		of->first = (uint32_t)who->id_count;
		if (!look_up(who, row, row->users, true, &of->users) ||
			!look_up(who, row, row->groups, false, &of->groups)) {
			sl_members_fini(who);
			return sl_err_origin(-ENOMEM);
		}
	}
	who->count = set->count;
	return 0;
}

static bool is_among(const uint32_t *ids, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

bool sl_members_admits(const struct sl_members *who, const struct sl_projects *set,
	const char *project, uint32_t uid, const uint32_t gids[], size_t gid_count)
{
	const struct sl_project_row *row = sl_projects_find(set, project);
	const struct sl_project_who *of;
	const uint32_t *ids;

	/* Unknown names still restrict the project. */
	while (row && !row->users[0] && !row->groups[0])
		row = row->parent[0] ? sl_projects_find(set, row->parent) : NULL;
	if (!row)
		return true;
	if ((size_t)(row - set->rows) >= who->count)
		return false;
	of = &who->rows[row - set->rows];
	ids = who->ids + of->first;
	if (of->users && is_among(ids, of->users, uid))
		return true;
	for (size_t i = 0; i < gid_count; i++) {
		if (of->groups && is_among(ids + of->users, of->groups, gids[i]))
			return true;
	}
	return false;
}
