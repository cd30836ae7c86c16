/*
 * members - who may put work into a project
 *
 * A project says so by names of users and groups; one that names nobody is as its parent, and at
 * the top everybody's. Names become numbers when they are looked up, so that no name service is
 * asked while programs wait. Digits are the number itself. A name that the system does not know is
 * nobody, and logged. One thread.
 */
#ifndef SL_DAEMON_PROJECTS_MEMBERS_H
#define SL_DAEMON_PROJECTS_MEMBERS_H

#include "daemon/projects/projects.h"

/* Those of one project: ids[first..), users first. */
struct sl_project_who {
	uint32_t first, users, groups;
};

/* Of each row of a set, in its order; of no use once the set changes. */
struct sl_members {
	struct sl_project_who *rows;
	uint32_t *ids;
	size_t count, id_count, id_room;
};

/* Asks the system's databases. *who was zeroed or filled before. 0 or -ENOMEM; then nobody is
 * admitted. */
SL_MUST_CHECK int sl_members_look_up(
	struct sl_members *who, const struct sl_projects *set);
void sl_members_fini(struct sl_members *who);

/* May a user with these groups? A project that is unknown admits everybody: it is a word and no
 * more. */
bool sl_members_admits(const struct sl_members *who, const struct sl_projects *set,
	const char *project, uint32_t uid, const uint32_t gids[], size_t gid_count);

#endif
