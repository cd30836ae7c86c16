/*
 * pids - a workload's processes as one of them may see them
 *
 * Answers PIDS: for each process of the asker's workload, its number in the asker's pid namespace
 * and what it holds. A container's process has one number inside and another outside, and drivers
 * differ in which one NVML reports. So programs inside cannot match them; the daemon knows each
 * process from its socket.
 */
#ifndef SL_DAEMON_LINK_PIDS_H
#define SL_DAEMON_LINK_PIDS_H

#include "daemon/link/peer.h"

/* Processes of one answer; more are left out. The messages must fit into a peer's queue. */
#define SL_PIDS_MAX 512

/* Answers a PIDS of a greeted client's peer. */
void sl_pids_tell(struct sl_peer *peer, const struct sl_msg_pids *ask);

/* The answer for a process that has gone, too. */
#define SL_PIDS_CONTAINED "is in a container"
/* Why a program started by the daemon would see another system than this process: "is in a
 * container", or the like. NULL: both see the same users, processes, files, network and IPC. For
 * files, the process may have the mounts of the daemon or of the machine's first process.
 * start_ticks: of the process meant; if that process has gone, the answer is SL_PIDS_CONTAINED. */
const char *sl_pids_apart(pid_t pid, uint64_t start_ticks);

/* --- for tests -------------------------------------------------------------------------- */

/* The number of levels in the NSpid line of a /proc/PID/status, the outermost first. Up to room of
 * them go to out. 0: no such line. */
uint32_t sl_pids_levels(const char *status, pid_t *out, uint32_t room);
/* The number of process pid in the namespace of `asker`; 0: it has none there, or has gone. */
pid_t sl_pids_inside(pid_t pid, pid_t asker);

#endif
