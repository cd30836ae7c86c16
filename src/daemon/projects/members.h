/*
 * members - the users who may put work into a project
 *
 * A project lists them by names of users and groups. A project that lists none takes its parent's
 * list; one without a parent admits all users. Names become numbers when they are looked up, so
 * that no name service is asked while programs wait. A name of digits is the number itself. A name
 * that the system does not know admits no user and is logged. One thread.
 */
#ifndef SL_DAEMON_PROJECTS_MEMBERS_H
#define SL_DAEMON_PROJECTS_MEMBERS_H

#include "daemon/projects/projects.h"

/* Members of one project: ids[first..), users first. */
struct sl_project_who {
	uint32_t first, users, groups;
};

/* One entry per row of a set, in its order; invalid once the set changes. */
struct sl_members {
	struct sl_project_who *rows;
	uint32_t *ids;
	size_t count, id_count, id_room;
};

/* Asks the system's databases. The target was zeroed or filled before. 0 or -ENOMEM, and
 * then no user is admitted. */
SL_MUST_CHECK int sl_members_look_up(
	struct sl_members *who, const struct sl_projects *set);
void sl_members_fini(struct sl_members *who);

/* May a user with these groups put work into it? An unknown project is a label, open to all. */
bool sl_members_admits(const struct sl_members *who, const struct sl_projects *set,
	const char *project, uint32_t uid, const uint32_t gids[], size_t gid_count);

#endif
