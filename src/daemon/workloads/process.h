/*
 * process - a living process, watched through its pidfd
 *
 * A client is dead when its pidfd says so, not when its socket closes: a forked child may keep the
 * socket open. The start time tells a process from the next one with its number.
 */
#ifndef SL_DAEMON_WORKLOADS_PROCESS_H
#define SL_DAEMON_WORKLOADS_PROCESS_H

#include "daemon/state/daemon.h"
#include "daemon/state/process.h"

enum { SL_PROCESS_OK = 0, SL_PROCESS_GONE /* dead, or its number was reused */ };

/*
 * Finds process pid, or begins to watch it. *pidfd refers to the process that started at
 * start_ticks, or is -1: then one is opened here. If *pidfd is needed, it is taken over and becomes
 * -1. start_ticks 0: the process that has the pid now. *out has one more user, and is set only on
 * SL_PROCESS_OK. May call sl_process_died for an earlier process of that number.
 */
SL_MUST_CHECK int sl_process_get(struct sl_daemon *daemon, pid_t pid, int *pidfd,
	uint64_t start_ticks, struct sl_process **out);
/* Removes a user; the last one ends the watch. Accepts NULL; returns NULL. */
struct sl_process *sl_process_put(struct sl_process *process);
/* True once a look by a thread (aside.h) has shown that the process now runs a program without
 * CUDA: its mappings have neither a driver nor our host memory (hostmem.h). Until then false, and
 * each call starts another look. uid: the process's user. */
SL_MUST_CHECK bool sl_process_is_without_cuda(struct sl_process *process, uid_t uid);
/* Ends its client, and takes the root from its workloads. */
void sl_process_died(struct sl_process *process);
/* Frees dead processes; part of settling. */
void sl_process_bury(struct sl_daemon *daemon);

#endif
