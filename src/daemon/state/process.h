/*
 * process - one process that the daemon watches
 *
 * The loop owns it. workloads/process.h makes, counts and buries it.
 */
#ifndef SL_DAEMON_STATE_PROCESS_H
#define SL_DAEMON_STATE_PROCESS_H

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/list.h"

struct sl_client;
struct sl_daemon;
struct sl_process_look;

/* A living process: a client's, or the root of a workload. */
struct sl_process {
	struct sl_daemon *daemon;
	pid_t pid;
	uint64_t start_ticks;
	int pidfd;
	sd_event_source *source;
	unsigned int users;
	bool dead;
	struct sl_client *client;     /* the living one, or NULL */
	struct sl_link roots;         /* workloads */
	struct sl_process_look *look; /* a look at its mappings; process.c */
	struct sl_link grave;
};

#endif
