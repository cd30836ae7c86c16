/*
 * gpu - the figures of one GPU of the workload, as the daemon reports them
 */
#ifndef SL_RUNTIME_SESSION_GPU_H
#define SL_RUNTIME_SESSION_GPU_H

#include "wire/wire.h"

#define SL_GPUS_MAX 64

/* One GPU of the workload. The session's lock guards the fields. Never moves. */
struct sl_gpu {
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	uint32_t ordinal;
	uint32_t serial; /* futex: counts GPU messages */
	uint64_t total_bytes, limit_bytes, request_bytes, others_bytes;
	uint64_t backing_bytes; /* ours, including granted bytes */
	uint64_t evicted_bytes; /* of these: on the host */
	int64_t held_bytes; /* of these: must not be evicted (held.h); briefly below 0 */
	uint64_t told_held_bytes;   /* as last reported to the daemon */
	uint64_t quarantined_bytes; /* of these: a flush would free them; atomic */
	bool has_context;           /* atomic: measured when hidden bytes change */
};

#endif
