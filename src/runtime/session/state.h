/*
 * state - the session as seen by the modules that talk to the daemon themselves
 *
 * The session's table and its lock; messages to the daemon under that lock. A message is dropped
 * until the daemon has welcomed us: whatever matters is reported anew on the next connection.
 */
#ifndef SL_RUNTIME_SESSION_STATE_H
#define SL_RUNTIME_SESSION_STATE_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "base/list.h"
#include "base/paths.h"
#include "runtime/session/gpu.h"
#include "runtime/session/line.h"

#include <pthread.h>

enum sl_session_state {
	SL_SESSION_IDLE = 0,
	SL_SESSION_JOINING,
	SL_SESSION_STARVED, /* JOINING, but no file descriptor was left */
	SL_SESSION_JOINED,
	SL_SESSION_REFUSED,
};

struct sl_session {
	pthread_mutex_t lock;
	uint32_t state; /* futex, enum sl_session_state */
	CUresult rejection;
	struct sl_line line;
	bool welcomed; /* reported on this line: messages may flow */
	bool forked;   /* this process came from a fork of a client */
	bool rdma;     /* atomic: memory is made so that other devices can register it */
	uint32_t generation;
	uint64_t daemon_epoch;
	uint8_t token[SL_WIRE_TOKEN_BYTES]; /* zeros if the environment has none */
	char path[SL_SOCKET_PATH_MAX];
	uint32_t gpus_expected, gpus_seen, gpu_count;
	struct sl_gpu gpus[SL_GPUS_MAX];
	struct sl_link demands;
	uint64_t chunk_bytes; /* the largest piece that ever moved as a whole */
	uint64_t last_number;
	sl_ns work_sent_ns;
	uint64_t work_sent;
};

extern struct sl_session sl_session;

void sl_session_lock(void);
void sl_session_unlock(void);

/* All under the lock. */
void sl_session_say(union sl_msg *msg);
/* With descriptors, which it takes over, also on failure. */
void sl_session_say_fds(union sl_msg *msg, const int *fds, uint32_t count);
/* flags: SL_FREED_* of wire.h. */
void sl_session_say_freed(const struct sl_gpu *gpu, uint64_t bytes, uint32_t flags);

/* Never below 0: of two threads sharing bytes, one may drop them before the other has added
 * them. */
static inline uint64_t sl_session_held_bytes(const struct sl_gpu *gpu)
{
	return gpu->held_bytes > 0 ? (uint64_t)gpu->held_bytes : 0;
}
/* Reports changed held bytes; everything: all of them. */
void sl_session_say_held(bool everything);
/* Reports the largest piece that moves as a whole, if there is any. */
void sl_session_say_chunk(void);
/* Wakes all threads that wait to join. */
void sl_session_set_state(enum sl_session_state state);

/* --- for the agent's thread, not under the lock --- */

/* The process has no descriptor left for a connection. Calls that wait for the first connection
 * fail, as the driver's would, instead of waiting on; the next call tries again. */
void sl_session_starve(void);
/* Reads into *out; outcomes of sl_line_recv. */
SL_MUST_CHECK int sl_session_recv(union sl_msg *out, struct sl_wire_fds *fds);
bool sl_session_send(union sl_msg *msg);
/* Sends kept messages. False: the line is lost. */
bool sl_session_flush(void);
bool sl_session_has_kept(void);
/* See sl_line_is_crowded(). */
bool sl_session_is_crowded(void);
void sl_session_drop_line(void);
int sl_session_fd(void);

/* In the child of a fork: clears the session without touching anything of the parent's. */
void sl_session_forget(void);

#endif
