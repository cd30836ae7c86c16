/*
 * hostpool - the host memory that clients have, and how much more there may be
 *
 * One list of files per client, numbered from 1 and never again. hostmem.h makes them; here is who
 * has which, what all of them are together, and what the policy is told of it: STORE per client,
 * POOL_SIZE when the host has less than the configuration allows. The pool's bytes are those that
 * evicted memory may have; what a client keeps besides are copies, which count here all the same.
 * Loop's thread; nothing blocks.
 *
 * Who needs files soon is given them ahead of need: hostpool_ahead.h.
 */
#ifndef SL_DAEMON_SWAP_HOSTPOOL_H
#define SL_DAEMON_SWAP_HOSTPOOL_H

#include "daemon/core/host_budget.h"
#include "daemon/state/daemon.h"

struct sl_client;

/* A file is new for so long: pages are mapped and pinned meanwhile, which is no part of what moving
 * costs. */
#define SL_HOSTPOOL_NEW_NS (2 * SL_S)
/* Nothing is made ahead for so long where it failed, or for who had to give some back. */
#define SL_HOSTPOOL_REST_NS (30 * SL_S)
/* Files of all clients, at most; fewer where there are few descriptors. */
#define SL_HOSTPOOL_FILES_MAX 8192
/* How often the host is looked at while the policy knows of less than was configured. */
#define SL_HOSTPOOL_LOOK_NS (5 * SL_S)
/* A client moves whole chunks, of so much at most. */
#define SL_HOSTPOOL_CHUNK_MAX (256 * SL_MIB)

struct sl_hostpool {
	struct sl_hostmem *hostmem;
	void (*ready)(struct sl_client *client, bool ok);
	sd_event_source *io, *timer, *ahead_timer;
	uint64_t ahead_workload; /* the last one that was looked at */
	sl_ns ahead_not_before;
	uint64_t configured_bytes; /* what may be had; 0: swapping is off */
	uint64_t pool_bytes;       /* as the policy knows */
	uint64_t made_bytes, making_bytes, huge_bytes;
	uint32_t files, making, files_max;
	uint64_t failures; /* files that could not be made */
	struct sl_host_budget room, at_start;
	uint64_t found_bytes; /* that clients had of a former daemon at the start */
	struct sl_map inodes; /* of the files, by hostpool.c's key */
};

enum sl_hostpool_outcome {
	SL_HOSTPOOL_HAS = 0, /* the client has so much already */
	SL_HOSTPOOL_MAKING,  /* `ready` follows */
	SL_HOSTPOOL_FULL     /* no */
};

/* Looks at the host and starts the thread. root: as in core/host_budget.h. ready: called once all
 * that was being made for a client is there, or could not be. 0 or negative errno. */
SL_MUST_CHECK int sl_hostpool_open(struct sl_daemon *daemon, const char *root,
	void (*ready)(struct sl_client *client, bool ok));
void sl_hostpool_close(struct sl_daemon *daemon);
/* Is `swap` among the resolvers, and is there host memory for it? */
SL_MUST_CHECK bool sl_hostpool_swap_is_on(const struct sl_daemon *daemon);
/* What CONFIG is to say, by the configuration and what the host had at the start. */
uint64_t sl_hostpool_configure(struct sl_daemon *daemon);

/* The most that is made for one workload, whole grains; 0: no bound. */
SL_MUST_CHECK uint64_t sl_hostpool_bound(const struct sl_daemon *daemon);
/* What may still be made for this client: of the pool, and of what its workload may have, which is
 * as much as its bound says and these bytes. */
SL_MUST_CHECK uint64_t sl_hostpool_left(
	const struct sl_client *client, uint64_t beyond_bytes);
/* What the policy knows that the host still has, of what may be made. More may be tried; what is
 * only better to have is not. */
SL_MUST_CHECK uint64_t sl_hostpool_at_hand(const struct sl_hostpool *pool);
/* The ordinals of the client's GPUs that memory near the one of this ordinal is near to, a bit
 * each: those of its NUMA node, and those whose node nobody knows. */
SL_MUST_CHECK uint32_t sl_hostpool_near(const struct sl_client *client, uint32_t ordinal);
/* The client is to have at least bytes, and near_bytes of its files near the GPU of that ordinal as
 * far as there may be so much more; what lacks is made there. Legal inside an action. */
SL_MUST_CHECK enum sl_hostpool_outcome sl_hostpool_want(
	struct sl_client *client, uint64_t bytes, uint64_t near_bytes, uint32_t ordinal);
/* One file more, whatever it has, near that GPU. False: there may be no more, or no memory. */
SL_MUST_CHECK bool sl_hostpool_make(
	struct sl_client *client, uint64_t bytes, uint32_t ordinal);
/* A message of its peer; may reject it. */
void sl_hostpool_on_store_back(struct sl_peer *peer, const struct sl_msg_store_back *msg);
/* Looks at the descriptor, and takes it out of fds if it is wanted. */
void sl_hostpool_on_store_held(struct sl_peer *peer, const struct sl_msg_store_held *msg,
	struct sl_wire_fds *fds);
/* It is back on a new line, and has said nothing yet. */
void sl_hostpool_reconnected(struct sl_client *client);
/* It has said all: what it has not named it does not have. */
void sl_hostpool_reported(struct sl_client *client);
/* It was told to give some back. */
void sl_hostpool_trimmed(struct sl_client *client);
/* It is dead: its files are emptied. */
void sl_hostpool_gone(struct sl_client *client);
/* We end, and it lives on: its files are its own. */
void sl_hostpool_leave(struct sl_client *client);

#endif
