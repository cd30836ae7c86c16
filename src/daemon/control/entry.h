/*
 * entry - a workload with a socket of its own, for what runs in containers
 *
 * Whoever connects there is a process of that workload: user, environment and ancestors of a
 * process in a container prove nothing, and the mount that leads to the socket is made by whoever
 * starts the container. The workload is there before its first process and after its last one,
 * until ENTRY_END; sluiced keeps it in its journal.
 *
 * The socket is FOLDER/KEY/sluiced.sock, FOLDER being `entries` beside the daemon's own socket, and
 * open to its user alone; KEY is open to all, since only its container sees it. A container mounts
 * KEY, not the socket: each daemon makes the socket anew. So KEY goes with ENTRY_END only.
 *
 * Its place was found by whoever made it (a scheduler of many nodes), so the daemon's queue and its
 * projects have no say; requests and limits are the node's as ever.
 */
#ifndef SL_DAEMON_CONTROL_ENTRY_H
#define SL_DAEMON_CONTROL_ENTRY_H

#include "daemon/link/peer.h"

#define SL_ENTRY_KEY_MAX 64

/* A name for a folder: letters, digits, - and ., no . in front. */
bool sl_entry_is_key(const char *key);
/* ENTRY_ADD and ENTRY_END of a greeted control peer. */
void sl_entry_add(struct sl_peer *peer, const struct sl_msg_entry_add *add);
void sl_entry_end(struct sl_peer *peer, const struct sl_msg_entry_end *end);
/* "": it has none. */
const char *sl_entry_key(const struct sl_workload *workload);
/* As the journal has it: the socket is made when the daemon's own is. 0 or negative errno. */
SL_MUST_CHECK int sl_entry_recover(
	struct sl_daemon *daemon, struct sl_workload *workload, const char *key);
/* Makes the sockets of those that were recovered. One that cannot be made is said in the log. */
void sl_entry_open_all(struct sl_daemon *daemon);
/* Closes the socket, if there is one; the folder stays for the next daemon. */
void sl_entry_close(struct sl_workload *workload);
/* The next row of LIST of entries; false: no more. */
bool sl_entry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
