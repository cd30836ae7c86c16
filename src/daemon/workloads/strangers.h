/*
 * strangers - processes that use a managed GPU without us, one by one
 *
 * Each has an id that is never reused, found by its number and start time. What it holds goes to
 * the policy as STRANGER, so that it can be stopped where the administrator wants that; the sum
 * of them (UNMANAGED) is reconcile.c's. A process is told about only after it has been seen for
 * a while, and none shortly after a start: one of ours that is just connecting must never be
 * taken for one. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_STRANGERS_H
#define SL_DAEMON_WORKLOADS_STRANGERS_H

#include "daemon/state/daemon.h"

/* More are counted in the sum alone; a list of so many is not believed anyway. */
#define SL_STRANGERS_MAX 1024
/* Seen for so long before the policy hears of it. */
#define SL_STRANGERS_PATIENCE_NS (1 * SL_S)

struct sl_stranger {
	struct sl_link link; /* sl_strangers.all */
	uint64_t id;
	pid_t pid;
	uint64_t start_ticks; /* 0: nobody has this number here; never signalled */
	sl_ns since;
	uint32_t round; /* of the sample that showed it last */
	uint64_t seen_bytes[SL_NODE_GPUS_MAX];
	uint64_t told_bytes[SL_NODE_GPUS_MAX]; /* to the policy */
	uint64_t warned_bytes
		[SL_NODE_GPUS_MAX]; /* of the last event; the next tells of twice that */
};

struct sl_strangers {
	struct sl_map by_pid;
	struct sl_link all;
	uint64_t last_id;
	uint32_t count, round;
};

/* One full sample of a GPU: begin, then each process that is not ours, then end. Steps the
 * policy. */
void sl_strangers_begin(struct sl_daemon *daemon);
void sl_strangers_seen(
	struct sl_daemon *daemon, uint32_t gpu, uint32_t pid, uint64_t bytes);
void sl_strangers_end(struct sl_daemon *daemon, uint32_t gpu);
/* The policy forgets what it knew of this GPU. */
void sl_strangers_lost(struct sl_daemon *daemon, uint32_t gpu);
/* The stranger with this id, or NULL. */
struct sl_stranger *sl_strangers_find(struct sl_daemon *daemon, uint64_t id);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_strangers_open(struct sl_daemon *daemon);
void sl_strangers_close(struct sl_daemon *daemon);

#endif
