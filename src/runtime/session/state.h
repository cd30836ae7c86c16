/*
 * state - the session as the modules see it that speak to the daemon themselves
 *
 * The session's table and its lock; messages to the daemon under that lock. A message is dropped
 * while we are not welcomed: what counts is told anew on the next line.
 */
#ifndef SL_RUNTIME_SESSION_STATE_H
#define SL_RUNTIME_SESSION_STATE_H

#include "base/paths.h"
#include "runtime/session/session.h"

#include <pthread.h>

enum sl_session_state {
	SL_SESSION_IDLE = 0,
	SL_SESSION_JOINING,
	SL_SESSION_STARVED, /* as JOINING, but the process had no descriptor for it */
	SL_SESSION_JOINED,
	SL_SESSION_REFUSED,
};

struct sl_session {
	pthread_mutex_t lock;
	uint32_t state; /* futex, enum sl_session_state */
	CUresult rejection;
	struct sl_line line;
	bool welcomed; /* reported on this line: messages may flow */
	uint32_t
		version; /* of the protocol: what we speak, or what an older daemon does */
	bool older;      /* the next HELLO is for that older daemon */
	bool forked;     /* this process came from a fork of a client */
	bool rdma; /* atomic: memory is made so that other devices can register it */
	uint32_t generation;
	uint64_t daemon_epoch;
	uint8_t token[SL_WIRE_TOKEN_BYTES]; /* zeros if the environment lost it */
	char path[SL_SOCKET_PATH_MAX];
	uint32_t gpus_expected, gpus_seen, gpu_count;
	struct sl_gpu gpus[SL_GPUS_MAX];
	struct sl_link demands;
	uint64_t chunk_bytes; /* the largest that was ever to be moved as a whole */
	uint64_t last_number;
	sl_ns work_sent_ns;
	uint64_t work_sent;
};

extern struct sl_session sl_session;

void sl_session_lock(void);
void sl_session_unlock(void);

/* All under the lock. */
void sl_session_say(union sl_msg *msg);
/* The daemon that we speak with, or spoke with last, takes HELD and ASK.flags. */
bool sl_session_knows_held(void);
/* With descriptors, which it takes in every case. */
void sl_session_say_fds(union sl_msg *msg, const int *fds, uint32_t count);
/* flags: SL_FREED_* of wire.h. */
void sl_session_say_freed(const struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);
/* The daemon that we speak with takes what is about memory on the host. */
bool sl_session_knows_swap(void);

/* Asks again for everything that is waited for. */
void sl_demand_ask_again(void);
/* Nobody gets anything any more. */
void sl_demand_refuse_all(void);
void sl_demand_on_grant(const struct sl_msg_grant *msg);
void sl_demand_on_deny(const struct sl_msg_deny *msg);

#endif
