/*
 * ask - the bench as a peer of the daemon
 *
 * As CONTROL the bench reads lists; as CLIENT it plays programs. Every function blocks, at most 30
 * s per message, and dies (bench_die) on an unexpected answer.
 */
#ifndef SL_TESTS_BENCH_ASK_H
#define SL_TESTS_BENCH_ASK_H

#include "bench.h"

#include <jansson.h>

#include "base/clock.h"
#include "wire/wire.h"

/* Opens a connection; welcome (may be NULL) gets the daemon's answer. As CLIENT the GPU messages
 * are read too, but REPORTED is not sent. The caller closes the connection. */
int bench_dial(enum sl_role role, const uint8_t token[SL_WIRE_TOKEN_BYTES],
	struct sl_msg_welcome *welcome);
void bench_send(int fd, const union sl_msg *msg);
/* The next message of this type; others are passed over. */
void bench_receive(int fd, enum sl_msg_type type, union sl_msg *msg);
/* Tells the daemon that this client holds nothing. */
void bench_reported(int fd);

/* Demands memory; bench_collect waits until it is granted and says how much of it was used. */
void bench_ask(int fd, uint64_t ask, uint64_t bytes);
void bench_collect(int fd, uint64_t ask, uint64_t used_bytes);

/* Registers the calling process as a workload without request. */
void bench_register(int fd, const char *name, uint64_t limit_bytes, int32_t priority,
	uint8_t token[SL_WIRE_TOKEN_BYTES]);

/* All that the daemon knows of itself; the caller decrefs. */
json_t *bench_dump(void);
/* A figure of its turns, in ms; none where there were too few turns to tell. */
void bench_emit_turn(enum bench_row_id id, const char *variant, const json_t *us);
/* The daemon's status, the first GPU, and the row of a workload (false: no such workload). */
void bench_status(int fd, struct sl_msg_status_row *out);
void bench_gpu(int fd, struct sl_msg_gpu_row *out);
SL_MUST_CHECK bool bench_use(int fd, const char *name, struct sl_msg_use_row *out);

/* Of a workload on its first GPU; false: no such workload. */
/* Parks the workload, or resumes it, and waits until all of its memory has moved. Returns how long
 * that took. */
sl_ns bench_park(int fd, const char *name, bool parked);
/* Moves it to that GPU, and waits until all of it is there. Likewise. */
sl_ns bench_move(int fd, const char *name, uint32_t gpu);
/* Resumes it and does not wait. */
void bench_resume(int fd, const char *name);
/* Waits until none of it is on the host. */
void bench_until_resident(int fd, const char *name);

#endif
