/*
 * entry - a workload with a socket of its own, for programs in containers
 *
 * Every process that connects there belongs to that workload. User, environment and ancestors of
 * a process in a container prove nothing; the mount of the socket does, because the container's
 * starter makes it. There are two kinds:
 *
 * A claim (ENTRY_ADD) lives from before its first process until ENTRY_END; the journal keeps it.
 * Its creator (a scheduler of many nodes) has already chosen node and GPUs, so the queue and
 * projects do not apply. The node enforces requests and limits as for any workload.
 *
 * A run (ENTRY_OPEN) is any `sluice run`, whose program starts a container. It lives as long as
 * its processes or the container's (container.h).
 *
 * The socket is FOLDER/KEY/sluiced.sock beside the daemon's own socket. FOLDER is `entries` for
 * claims, open to the daemon's user alone, and `runs/UID` for runs, open to that user alone: so
 * it is that user's containers that can mount it. KEY is open to all, since only its container
 * sees it. A container mounts KEY, not the socket, because each daemon makes the socket anew. KEY
 * outlives daemons: ENTRY_END removes it, or the end of the run. Beside the socket lies the file
 * that makes a container's loader load the library.
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
/* ENTRY_OPEN of the process that is to become its workload's container. */
void sl_entry_open(struct sl_peer *peer, const struct sl_msg_entry_open *open);
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
/* The same at the workload's end: the folder of a run goes, too. */
void sl_entry_over(struct sl_workload *workload);
/* The next row of LIST of entries; false at the end. */
bool sl_entry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
