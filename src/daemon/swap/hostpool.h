/*
 * hostpool - the host memory that clients have, and how much more they may get
 *
 * There is one list of files per client, numbered from 1; a number is never reused. hostmem.h makes
 * the files; this module knows which client has which, adds them up, and tells the policy: STORE
 * per client, POOL_SIZE when the host has less than the configuration allows. The pool's bytes are
 * for evicted memory; clean copies that a client keeps count, too. Loop's thread; nothing blocks.
 *
 * hostpool_ahead.h makes files ahead of need.
 */
#ifndef SL_DAEMON_SWAP_HOSTPOOL_H
#define SL_DAEMON_SWAP_HOSTPOOL_H

#include "daemon/core/host_budget.h"
#include "daemon/state/daemon.h"

struct sl_client;

/* A file counts as new for this long: its pages are still being mapped and pinned, which is no part
 * of the cost of moving. */
#define SL_HOSTPOOL_NEW_NS (2 * SL_S)
/* Pause of making ahead after a failure, and for a client that had to give files back. */
#define SL_HOSTPOOL_REST_NS (30 * SL_S)
/* Most files of all clients; fewer where descriptors are few. */
#define SL_HOSTPOOL_FILES_MAX 8192
/* How often to measure the host while the policy knows of less than was configured. */
#define SL_HOSTPOOL_LOOK_NS (5 * SL_S)
/* A client moves whole chunks of at most this size. */
#define SL_HOSTPOOL_CHUNK_MAX (256 * SL_MIB)

struct sl_hostpool {
	struct sl_hostmem *hostmem;
	void (*ready)(struct sl_client *client, bool ok);
	sd_event_source *io, *timer, *ahead_timer;
	uint64_t ahead_workload; /* the last one that was examined */
	sl_ns ahead_not_before;
	uint64_t configured_bytes; /* most that may be used; 0: swapping is off */
	uint64_t pool_bytes;       /* as the policy knows */
	uint64_t made_bytes, making_bytes, huge_bytes;
	uint32_t files, making, files_max;
	uint64_t failures; /* files that could not be made */
	struct sl_host_budget room, at_start;
	uint64_t
		found_bytes; /* that clients still had from an earlier daemon at the start */
	struct sl_map inodes; /* of the files, by hostpool.c's key */
};

enum sl_hostpool_outcome {
	SL_HOSTPOOL_HAS = 0, /* the client has that much already */
	SL_HOSTPOOL_MAKING,  /* `ready` follows */
	SL_HOSTPOOL_FULL     /* not available */
};

/* Measures the host and starts the thread. root: as in core/host_budget.h. ready: called once all
 * files being made for a client are there, or have failed. 0 or negative errno. */
SL_MUST_CHECK int sl_hostpool_open(struct sl_daemon *daemon, const char *root,
	void (*ready)(struct sl_client *client, bool ok));
void sl_hostpool_close(struct sl_daemon *daemon);
/* Is `swap` among the resolvers, and is there host memory for it? */
SL_MUST_CHECK bool sl_hostpool_swap_is_on(const struct sl_daemon *daemon);
/* The pool size for CONFIG, from the configuration and what the host had at the start. */
uint64_t sl_hostpool_configure(struct sl_daemon *daemon);

/* Most host memory of one workload, in whole grains; 0: no bound. */
SL_MUST_CHECK uint64_t sl_hostpool_bound(const struct sl_daemon *daemon);
/* How much may still be made for this client: limited by the pool, and by its workload's bound plus
 * beyond_bytes. */
SL_MUST_CHECK uint64_t sl_hostpool_left(
	const struct sl_client *client, uint64_t beyond_bytes);
/* What the host still has, as the policy knows. A need may try for more; files made ahead may
 * not. */
SL_MUST_CHECK uint64_t sl_hostpool_at_hand(const struct sl_hostpool *pool);
/* The client's GPUs to which host memory near this ordinal is near, one bit per ordinal: those on
 * the same NUMA node, and those whose node is unknown. */
SL_MUST_CHECK uint32_t sl_hostpool_near(const struct sl_client *client, uint32_t ordinal);
/* Makes files until the client has `bytes` in all and, as far as the pool allows, near_bytes near
 * the GPU of that ordinal. Legal inside an action. */
SL_MUST_CHECK enum sl_hostpool_outcome sl_hostpool_want(
	struct sl_client *client, uint64_t bytes, uint64_t near_bytes, uint32_t ordinal);
/* Makes one more file near that GPU, whatever the client has. False: limit reached, or no
 * memory. */
SL_MUST_CHECK bool sl_hostpool_make(
	struct sl_client *client, uint64_t bytes, uint32_t ordinal);
/* A message of its peer; may reject it. */
void sl_hostpool_on_store_back(struct sl_peer *peer, const struct sl_msg_store_back *msg);
/* Checks the descriptor, and takes it out of fds if the pool keeps it. */
void sl_hostpool_on_store_held(struct sl_peer *peer, const struct sl_msg_store_held *msg,
	struct sl_wire_fds *fds);
/* The client is back on a new connection, and has reported nothing yet. */
void sl_hostpool_reconnected(struct sl_client *client);
/* The client has reported all its files: the pool drops those that it did not name. */
void sl_hostpool_reported(struct sl_client *client);
/* The client was told to give files back. */
void sl_hostpool_trimmed(struct sl_client *client);
/* The client is dead: its files are emptied. */
void sl_hostpool_gone(struct sl_client *client);
/* The daemon ends and the client lives on: the files stay the client's. */
void sl_hostpool_leave(struct sl_client *client);

#endif
