/*
 * registry - this daemon's projects, and changes to them
 *
 * A change (PROJECT_PUTs, or PROJECT_DELETE) is checked as a whole against the present set and
 * stored (store/store.h). Once stored, it takes effect and is answered. Changes
 * are carried out one at a time, in the order of their arrival. Loop only.
 */
#ifndef SL_DAEMON_PROJECTS_REGISTRY_H
#define SL_DAEMON_PROJECTS_REGISTRY_H

#include "daemon/link/peer.h"
#include "daemon/projects/projects.h"
#include "daemon/state/daemon.h"
#include "daemon/state/part.h"

/* Reads the database. A database that cannot be read is logged: the daemon still shares GPUs, and
 * refuses changes of projects with the reason. 0 or negative errno. */
SL_MUST_CHECK int sl_registry_open(struct sl_daemon *daemon, struct sl_error *err);
/* A change that is being stored is stored, and not answered. */
void sl_registry_close(struct sl_daemon *daemon);

void sl_registry_put(struct sl_peer *peer, const struct sl_msg_project_put *put);
void sl_registry_delete(struct sl_peer *peer, const struct sl_msg_project_delete *name);
/* The peer has gone: an incomplete change of it is dropped, a complete one is carried out. */
void sl_registry_leave(struct sl_peer *peer);
/* The next PROJECT_ROW; false: no more rows. */
bool sl_registry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

/* Health of the database: how it was read at the start, and how the last write went. */
void sl_registry_part(const struct sl_daemon *daemon, struct sl_part *part);

/* Does this project exist ("": the default one), and may this peer put work into it? Root and the
 * daemon's user always may. If not, *err suggests a name, or names the users allowed. */
bool sl_registry_admits(
	const struct sl_peer *peer, const char *project, struct sl_error *err);
/* Looks up the names of users and groups again. */
void sl_registry_look_up(struct sl_daemon *daemon);

/* All projects, always including `default`. Valid until the next change. */
const struct sl_projects *sl_registry_set(const struct sl_daemon *daemon);

#endif
