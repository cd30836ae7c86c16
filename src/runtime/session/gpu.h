/*
 * gpu - the figures of one GPU of the workload, as the daemon reports them
 */
#ifndef SL_RUNTIME_SESSION_GPU_H
#define SL_RUNTIME_SESSION_GPU_H

#include "wire/wire.h"

#define SL_GPUS_MAX 64

/* A workload may move to another GPU. Its programs keep names of GPUs from before. */
enum sl_gpu_name {
	SL_GPU_NOW,
	SL_GPU_JOINED, /* when this process joined: the driver still tells its bus id */
	SL_GPU_FIRST,  /* when the workload began: as in its CUDA_VISIBLE_DEVICES */
	SL_GPU_NAMES
};

/* One GPU of the workload. The session's lock guards the fields, but for the ordinal, which stays.
 * The record never moves, whatever the GPU. */
struct sl_gpu {
	uint8_t uuid[SL_GPU_NAMES][SL_WIRE_UUID_BYTES];
	uint32_t ordinal;
	uint32_t number, first_number; /* as in CUDA_VISIBLE_DEVICES */
	uint32_t serial;               /* futex: counts GPU messages */
	uint64_t total_bytes, limit_bytes, request_bytes, others_bytes;
	uint64_t backing_bytes; /* ours, including granted bytes */
	uint64_t evicted_bytes; /* of these: on the host */
	int64_t held_bytes; /* of these: must not be evicted (held.h); briefly below 0 */
	uint64_t told_held_bytes;   /* as last reported to the daemon */
	uint64_t quarantined_bytes; /* of these: a flush would free them; atomic */
	bool has_context;           /* atomic: measured when hidden bytes change */
};

#endif
