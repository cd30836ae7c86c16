/*
 * container - the container that `sluice run` started, found by what its processes have mounted
 *
 * The processes of a container are not children of `podman run` or `docker run`, and outlive it
 * with --detach. But all of them have the folder of their workload's socket mounted at
 * SL_PATHS_CONTAINER, and no other process has. /proc/PID/mountinfo shows that to every user,
 * whichever runtime, namespaces and users the container has. Nothing is polled: the container's
 * oldest process becomes the workload's root when the former root has died. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_CONTAINER_H
#define SL_DAEMON_WORKLOADS_CONTAINER_H

#include "base/paths.h"
#include "daemon/state/daemon.h"
#include "daemon/state/workload.h"

/* Folder of the sockets that workloads of a user have for their containers, and of one of them (id
 * 0: none). 0, or -ENAMETOOLONG. */
SL_MUST_CHECK int sl_container_folder(const struct sl_daemon *daemon, uid_t uid,
	uint64_t id, char path[SL_SOCKET_PATH_MAX]);
/* Makes the oldest living process of the workload's container its root, in place of a dead one,
 * and goes on with stopping it. False if it has no container, or that has no process: nothing
 * changed. */
bool sl_container_follow(struct sl_workload *workload);
/* The workload in whose container this process is, or NULL. */
struct sl_workload *sl_container_workload(struct sl_daemon *daemon, pid_t pid);

#endif
