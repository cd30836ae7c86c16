/*
 * guests - workloads that run beside the GPUs that they were given
 *
 * Another scheduler (Kubernetes) gives a workload its GPUs, its home, and counts its request there.
 * The node may let it run on other GPUs meanwhile: there it is a guest. The requests of all
 * workloads fit at their homes, so a guest can always go home, once the guests at its home have
 * gone home themselves. It must when a workload at home needs the room.
 *
 * Pure: facts in, choice out. Sizes are bytes per GPU, GPUs are bits. The ledger has the last word.
 */
#ifndef SL_POLICY_PLACEMENT_GUESTS_H
#define SL_POLICY_PLACEMENT_GUESTS_H

#include "base/clock.h"
#include "base/sl.h"

/* A workload that was moved stays at least as long. */
#define SL_GUESTS_STAY (60 * SL_S)

struct sl_guest {
	uint32_t home, at; /* equally many GPUs */
	uint32_t reach;    /* GPUs that its processes can use, home among them */
	uint64_t request_bytes;
	uint32_t compute_pm; /* its compute request, thousandths of a GPU's time */
	bool claims; /* its requests count at `at`: it is not parked, nor about to leave */
	bool returns; /* it is, or comes back by itself, so that its home is kept for it */
	bool bursts;  /* its limit is above its request */
	bool moves;   /* it can be moved now */
	sl_ns moved;  /* when it was moved last; 0: never */
	bool goes;    /* out */
};

struct sl_guests_gpu {
	uint64_t shareable_bytes;
	uint64_t requests_bytes; /* of all workloads there, guests or not */
	uint32_t compute_pm;     /* so are these */
	uint32_t users;          /* such workloads, also without request */
	bool works;
};

enum sl_guests_outcome {
	SL_GUESTS_GO = 0, /* those with `goes` go home */
	SL_GUESTS_NONE,   /* no guest is there */
	SL_GUESTS_STUCK   /* *stuck cannot go home, so none does */
};

/* Which guests must go home so that none is left on the GPUs `wanted`. Each has room at home then.
 */
SL_MUST_CHECK enum sl_guests_outcome sl_guests_leave(const struct sl_guests_gpu gpus[],
	struct sl_guest guests[], size_t count, uint32_t wanted, size_t *stuck);

/* A workload that shares its GPU, and a GPU that it can use and no workload does or is about to:
 * *gpu. The index, or count: none. Of several the one moved longest ago, then the first. */
SL_MUST_CHECK size_t sl_guests_spread(const struct sl_guests_gpu gpus[],
	const struct sl_guest guests[], size_t count, sl_ns now, uint32_t *gpu);

#endif
