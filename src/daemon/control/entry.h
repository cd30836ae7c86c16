/*
 * entry - a workload with a socket of its own, for programs in containers
 *
 * Every process that connects there belongs to that workload. User, environment and ancestors of a
 * process in a container prove nothing; the mount of the socket does, because the container's
 * starter makes it. The workload lives from before its first process until ENTRY_END; the journal
 * keeps it.
 *
 * The socket is FOLDER/KEY/sluiced.sock; FOLDER is `entries` beside the daemon's own socket. FOLDER
 * is open to the daemon's user alone; KEY is open to all, since only its container sees it. A
 * container mounts KEY, not the socket, because each daemon makes the socket anew. KEY outlives
 * daemons: only ENTRY_END removes it.
 *
 * The workload's creator (a scheduler of many nodes) has already chosen node and GPUs, so the queue
 * and projects do not apply. The node enforces requests and limits as for any workload.
 */
#ifndef SL_DAEMON_CONTROL_ENTRY_H
#define SL_DAEMON_CONTROL_ENTRY_H

#include "daemon/link/peer.h"

#define SL_ENTRY_KEY_MAX 64

/* Is it valid as a folder's name: letters, digits, - and ., no leading dot? */
bool sl_entry_is_key(const char *key);
/* ENTRY_ADD and ENTRY_END of a greeted control peer. */
void sl_entry_add(struct sl_peer *peer, const struct sl_msg_entry_add *add);
void sl_entry_end(struct sl_peer *peer, const struct sl_msg_entry_end *end);
/* "" if the workload has none. */
const char *sl_entry_key(const struct sl_workload *workload);
/* Takes over an entry from the journal; its socket is made together with the daemon's own. 0 or
 * negative errno. */
SL_MUST_CHECK int sl_entry_recover(
	struct sl_daemon *daemon, struct sl_workload *workload, const char *key);
/* Makes the sockets of recovered entries. Failures are logged. */
void sl_entry_open_all(struct sl_daemon *daemon);
/* Closes the socket, if there is one; the folder stays for the next daemon. */
void sl_entry_close(struct sl_workload *workload);
/* The next row of LIST of entries; false at the end. */
bool sl_entry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
