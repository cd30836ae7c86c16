/*
 * strangers - unmanaged processes on managed GPUs, one by one
 *
 * Each has an id that is never reused, found by its number and start time. Its memory goes to the
 * policy as STRANGER, so that the process can be stopped if the administrator wants that;
 * reconcile.c reports the sum (UNMANAGED). A process is reported only after it has been seen for a
 * while, and none soon after the daemon's start: a client that is just connecting must never be
 * taken for a stranger. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_STRANGERS_H
#define SL_DAEMON_WORKLOADS_STRANGERS_H

#include "daemon/state/daemon.h"

/* More are only counted in the sum; so long a list is not trusted anyway. */
#define SL_STRANGERS_MAX 1024
/* The policy hears of it after it has been seen this long. */
#define SL_STRANGERS_PATIENCE_NS (1 * SL_S)

struct sl_stranger {
	struct sl_link link; /* sl_strangers.all */
	uint64_t id;
	pid_t pid;
	uint64_t start_ticks; /* 0: no process here has this number; never signalled */
	sl_ns since;
	uint32_t round; /* last sample that showed it */
	uint64_t seen_bytes[SL_NODE_GPUS_MAX];
	uint64_t told_bytes[SL_NODE_GPUS_MAX]; /* reported to the policy */
	uint64_t warned_bytes
		[SL_NODE_GPUS_MAX]; /* in its last event; the next comes at twice that */
};

struct sl_strangers {
	struct sl_map by_pid;
	struct sl_link all;
	uint64_t last_id;
	uint32_t count, round;
};

/* One full sample of a GPU: begin, each process that is not ours, end. Steps the policy. */
void sl_strangers_begin(struct sl_daemon *daemon);
void sl_strangers_seen(
	struct sl_daemon *daemon, uint32_t gpu, uint32_t pid, uint64_t bytes);
void sl_strangers_end(struct sl_daemon *daemon, uint32_t gpu);
/* The policy forgets the strangers of this GPU. */
void sl_strangers_lost(struct sl_daemon *daemon, uint32_t gpu);
/* The stranger with this id, or NULL. */
struct sl_stranger *sl_strangers_find(struct sl_daemon *daemon, uint64_t id);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_strangers_open(struct sl_daemon *daemon);
void sl_strangers_close(struct sl_daemon *daemon);

#endif
