/*
 * registry - the projects of this daemon: who may change them, and when a change counts
 *
 * A change (PROJECT_PUTs, or PROJECT_DELETE) is judged as a whole against what there is, stored by
 * the thread of projects/store.h, and counts, and is answered, once it is stored. One at a time, in
 * the order in which they came. Only the loop calls.
 */
#ifndef SL_DAEMON_PROJECTS_REGISTRY_H
#define SL_DAEMON_PROJECTS_REGISTRY_H

#include "daemon/link/peer.h"
#include "daemon/projects/projects.h"
#include "daemon/state/daemon.h"
#include "daemon/state/part.h"

/* Reads the database. One that cannot be read is logged: the daemon shares GPUs all the same, and
 * changes of projects are refused with the reason. 0 or negative errno. */
SL_MUST_CHECK int sl_registry_open(struct sl_daemon *daemon, struct sl_error *err);
/* What is being stored is stored. */
void sl_registry_close(struct sl_daemon *daemon);

void sl_registry_put(struct sl_peer *peer, const struct sl_msg_project_put *put);
void sl_registry_delete(struct sl_peer *peer, const struct sl_msg_project_delete *name);
/* The peer goes: what it has not sent whole is forgotten, what it has is done. */
void sl_registry_leave(struct sl_peer *peer);
/* The next PROJECT_ROW; false: there are no more. */
bool sl_registry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

/* How the database is: as it was read at the start, and as the last writing went. */
void sl_registry_part(const struct sl_daemon *daemon, struct sl_part *part);

/* Is there such a project ("": the default one), and may this peer put work into it? Root and the
 * daemon's user may always. Where not, *err says which name may be meant, or who may. */
bool sl_registry_admits(
	const struct sl_peer *peer, const char *project, struct sl_error *err);
/* Looks the names of users and groups up again. */
void sl_registry_look_up(struct sl_daemon *daemon);

/* All of them; `default` is always among them. Until the next change. */
const struct sl_projects *sl_registry_set(const struct sl_daemon *daemon);

#endif
