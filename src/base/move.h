/*
 * move - the messages between sluiced and sluice-move
 *
 * They share a SOCK_SEQPACKET socket, descriptor 3 of sluice-move. The helper sends an answer with
 * the outcome READY once it has become its user, and then one answer to each order, in any order.
 * Both sides were installed together, so a message of another size is an error.
 */
#ifndef SL_BASE_MOVE_H
#define SL_BASE_MOVE_H

#include "base/sl.h"

#define SL_MOVE_FD 3
/* Orders that a helper carries out at once; it refuses any more. */
#define SL_MOVE_ORDERS_MAX 64
/* How long the driver may take for one order, lock_ms apart, before the helper gives it up; and the
 * daemon the helper, a little later. 80 GB take 15 s. */
#define SL_MOVE_PATIENCE_S 50

enum sl_move_op { SL_MOVE_AWAY, SL_MOVE_BACK, SL_MOVE_OPS };

/* GPUs that a process may see. */
#define SL_MOVE_GPUS_MAX 32

/* By UUID. */
struct sl_move_pair {
	uint8_t from[16], to[16];
};

struct sl_move_order {
	uint64_t order;       /* returned in the answer */
	uint64_t start_ticks; /* of the process, as sl_file_pid_start; 0: not checked */
	int32_t pid;
	uint32_t op;
	uint32_t lock_ms; /* how long Lock may wait for submitted work; 0: for ever */
	/* Of a BACK: to which GPU each GPU of the process leads; 0: all to themselves. The driver
	 * wants all GPUs that it knows in the process: others of this machine are added, unless
	 * the pairs are whole. */
	uint32_t pairs;
	uint32_t whole, unused;
	struct sl_move_pair pair[SL_MOVE_GPUS_MAX];
};

enum sl_move_outcome {
	/* Carried out, or it had been before: an AWAY took the process off its GPUs, a BACK lets
	 * it run on them. */
	SL_MOVE_DONE,
	/* It runs on its GPUs; for an AWAY: as before. A process without CUDA counts so, too. */
	SL_MOVE_REFUSED,
	/* It lives but does not run, or that is not known: order BACK again. After a BACK that
	 * failed, or an AWAY whose failure could not be undone. If a BACK failed at RESTORE, and
	 * not with ILLEGAL_STATE, it changed nothing: the next may name other pairs, or none. Else
	 * an earlier RESTORE may still be under way. */
	SL_MOVE_AWAY_STILL,
	SL_MOVE_BROKEN, /* CUDA of the process is dead for good */
	SL_MOVE_GONE,   /* there is no such process (any more) */
	/* Nothing was tried: no helper for this user, no libcuda, none with cuCheckpointProcess*,
	 * or cuInit failed. The process is as it was. */
	SL_MOVE_UNABLE,
	SL_MOVE_OUTCOMES,
	SL_MOVE_READY = SL_MOVE_OUTCOMES /* of the helper's first message alone */
};

/* SL_MOVE_CALL(NAME, function): the driver's calls, in the order of their use. */
#define SL_MOVE_CALLS(SL_MOVE_CALL)                             \
	SL_MOVE_CALL(INIT, cuInit)                              \
	SL_MOVE_CALL(STATE, cuCheckpointProcessGetState)        \
	SL_MOVE_CALL(LOCK, cuCheckpointProcessLock)             \
	SL_MOVE_CALL(CHECKPOINT, cuCheckpointProcessCheckpoint) \
	SL_MOVE_CALL(VERSION, cuDriverGetVersion)               \
	SL_MOVE_CALL(COUNT, cuDeviceGetCount)                   \
	SL_MOVE_CALL(UUID, cuDeviceGetUuid)                     \
	SL_MOVE_CALL(RESTORE, cuCheckpointProcessRestore)       \
	SL_MOVE_CALL(UNLOCK, cuCheckpointProcessUnlock)

enum sl_move_call {
	SL_MOVE_NO_CALL,
#define SL_MOVE_CALL_ENUM(NAME, function) SL_MOVE_CALL_##NAME,
	SL_MOVE_CALLS(SL_MOVE_CALL_ENUM)
#undef SL_MOVE_CALL_ENUM
		SL_MOVE_CALLS_COUNT
};

struct sl_move_answer {
	uint64_t order;
	uint64_t span_ns; /* from order to answer */
	uint32_t outcome;
	int32_t cuda_result; /* of the first call that failed; 0 if none did */
	uint32_t at;         /* that call, as enum sl_move_call */
	uint32_t unused;
};

#endif
