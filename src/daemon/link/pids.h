/*
 * pids - a workload's processes as one of them may see them
 *
 * Answers PIDS: per process of the asker's workload its number in the asker's own pid namespace and
 * what it holds. A container's process has one number inside and another outside, and drivers
 * differ in which one NVML tells, so nobody inside can match them; the daemon knows who is who from
 * the sockets.
 */
#ifndef SL_DAEMON_LINK_PIDS_H
#define SL_DAEMON_LINK_PIDS_H

#include "daemon/link/peer.h"

/* Processes of one answer; more are left out. The messages must fit into what a peer may leave
 * unread. */
#define SL_PIDS_MAX 512

/* A PIDS of a greeted client's peer. */
void sl_pids_tell(struct sl_peer *peer, const struct sl_msg_pids *ask);

/* Of a process of which no more is known. */
#define SL_PIDS_CONTAINED "is in a container"
/* What a program started by the daemon would have that this process has not: "is in a container",
 * or the like. NULL: both see the same users, processes, files (or the process those of the
 * machine's first one), network and IPC. start_ticks: of the process that is meant; of one that is
 * gone no more is known. */
const char *sl_pids_apart(pid_t pid, uint64_t start_ticks);

/* --- for tests -------------------------------------------------------------------------- */

/* The number of levels in the NSpid line of a /proc/PID/status, the outermost first; at most room
 * of them go to out. 0: no such line. */
uint32_t sl_pids_levels(const char *status, pid_t *out, uint32_t room);
/* The number that process pid has in the namespace of `asker`, or 0: not seen there, or gone. */
pid_t sl_pids_inside(pid_t pid, pid_t asker);

#endif
