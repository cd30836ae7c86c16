/*
 * process - a living process, watched through its pidfd
 *
 * The time of a client's death is the pidfd, not its socket: a forked child may keep the
 * socket open. A number is told from its next owner by the start time.
 */
#ifndef SL_DAEMON_WORKLOADS_PROCESS_H
#define SL_DAEMON_WORKLOADS_PROCESS_H

#include "daemon/state/daemon.h"
#include "daemon/state/process.h"

enum { SL_PROCESS_OK = 0, SL_PROCESS_GONE /* dead, or another one by now */ };

/*
 * Finds or begins to watch process pid. *pidfd, of the process that started at start_ticks, is
 * taken if needed (and then -1), or opened here if it is -1. start_ticks 0: whoever has the pid
 * now. *out has one more user, and is set only on SL_PROCESS_OK. May call sl_process_died for a
 * process that had the number before.
 */
SL_MUST_CHECK int sl_process_get(struct sl_daemon *daemon, pid_t pid, int *pidfd,
	uint64_t start_ticks, struct sl_process **out);
/* One user less; the last one ends the watch. NULL is fine; returns NULL. */
struct sl_process *sl_process_put(struct sl_process *process);
/* A look at what it maps, by a thread (aside.h), has shown that its program is another one by now,
 * without CUDA: neither a driver nor host memory of ours (hostmem.h). False as long as that is not
 * known: it is looked at again with each call. uid: its user. */
SL_MUST_CHECK bool sl_process_is_without_cuda(struct sl_process *process, uid_t uid);
/* Its client exits, its workloads lose their root. */
void sl_process_died(struct sl_process *process);
/* Frees the dead; part of settling. */
void sl_process_bury(struct sl_daemon *daemon);

#endif
