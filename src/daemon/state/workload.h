/*
 * workload - the unit that shares, and its settings
 *
 * The loop owns it. workloads/workload.h makes and buries it; the policy accounts for what it
 * holds.
 */
#ifndef SL_DAEMON_STATE_WORKLOAD_H
#define SL_DAEMON_STATE_WORKLOAD_H

#include <sys/types.h>

#include "base/amount.h"
#include "base/clock.h"
#include "base/list.h"
#include "daemon/state/drive.h"
#include "daemon/state/gpu.h"
#include "daemon/store/journal.h"
#include "policy/compute/compute.h"
#include "policy/node.h"
#include "wire/wire.h"

struct sl_entry;
struct sl_job_task;
struct sl_process;

struct sl_workload {
	struct sl_link link; /* sl_daemon.workload_list, by id */
	struct sl_daemon *daemon;
	uint64_t id;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	uid_t uid;
	pid_t root_pid;
	uint64_t root_start;
	struct sl_process *root; /* NULL once dead */
	struct sl_link root_link;
	struct sl_entry *entry; /* entry.c; NULL: no socket of its own, or closed */
	bool is_claimed;        /* lives until ENTRY_END, with or without processes */
	/* Its processes connect through that socket; their user numbers mean nothing. */
	bool is_contained;
	/* If contained: the GPUs whose device nodes its containers have, a bit each; 0: of its
	 * first GPUs alone. */
	uint32_t reach;
	char name[64], project[64], command[128];
	struct sl_amount request, limit;
	uint64_t request_bytes, limit_bytes;
	uint64_t
		former_limit_bytes; /* an earlier, larger one that its memory may be of; 0: none */
	struct sl_compute_workload compute; /* its shares, and meters.c */
	int32_t priority;
	uint32_t flags;     /* SL_WORKLOAD_* */
	sl_ns wait_max;     /* its own longest wait; 0: the configured one */
	sl_ns warm_after;   /* 0: never */
	sl_ns detach_after; /* 0: never */
	sl_ns idle_grace;   /* 0: moves for bursts as soon as it is proven idle */
	enum sl_park_state park;
	/* jobs/moving.c: where to once it is off its GPUs, a bit each; sl_jobs.moving */
	uint32_t move_to;
	sl_ns move_by; /* or it stays; 0: its task sees to that */
	struct sl_link move_link;
	sl_ns went_at;         /* jobs/guests.c: when a move of it ended last; 0: never */
	sl_ns stays_until;     /* if that came to nothing: when it may be tried again */
	struct sl_letter idle; /* parking.c */
	bool stays;            /* it should be detached and cannot; that was told */
	bool calls;            /* what the letter is about: it calls, or it is to leave */
	struct sl_moved moved[SL_NODE_GPUS_MAX]; /* by ordinal */
	/* The user who asked to stop it, plus 1, as {user} travels; 0: unknown after a restart. */
	uint64_t stop_asker;
	sl_ns kill_at;       /* `sluice stop`: when SIGKILL follows; 0: not stopped */
	sl_ns events_second; /* events.c: second and number of its last events */
	uint32_t events_count;
	uint64_t denials; /* denied demands */
	uint32_t gpu_count;
	uint8_t gpus
		[SL_NODE_GPUS_MAX]; /* GPU numbers by rank: the CUDA ordinals of its processes */
	/* The same when it began: its processes were told these. */
	uint8_t first[SL_NODE_GPUS_MAX];
	sl_ns born;
	struct sl_link clients; /* living ones */
	bool over;
	struct sl_job_task
		*task; /* jobs/queue.c; NULL: a `sluice run` without a request */
	bool has_shim; /* its root is our shim, not the program */
	bool by_queue; /* from the journal: parked for other workloads, not by a person */
	bool leaving;  /* likewise, but still leaving */
	/* views.c */
	uint32_t view_mask; /* bit per ordinal */
	sl_ns view_sent;
	struct sl_link view_link;
	struct sl_link grave;
};

#endif
