/*
 * room_judge - plays all orders in which clients can answer, and looks at bytes only
 *
 * A small world: up to 3 clients on up to 2 GPUs of ROOM_SHAREABLE units. Bodies and demands with a
 * seat are given. In every order, every unit that may leave leaves, every granted demand is
 * created, and returning units fill free memory. The judge knows no sum of room(): it takes the
 * largest that it meets.
 */
#ifndef SL_TESTS_ROOM_JUDGE_H
#define SL_TESTS_ROOM_JUDGE_H

#include "base/sl.h"

#define ROOM_CLIENTS   3
#define ROOM_GPUS      2
#define ROOM_SHAREABLE 4

enum room_mode {
	ROOM_MOVES,
	ROOM_STAYS,   /* resident units cannot leave */
	ROOM_RETURNS, /* evicted units have memory kept on the GPU, by an open RESTORE */
	ROOM_LEAVES,  /* resident units were told to leave */
	ROOM_MODES
};

struct room_client {
	uint32_t workload;
	enum room_mode mode;
	uint32_t there[ROOM_GPUS], out[ROOM_GPUS];
	bool runs;
	uint32_t asks, asks_gpu; /* units of its demand, 0: none */
	bool asks_stays;         /* they will be held */
};

struct room_world {
	uint32_t gpus, clients, workloads;
	uint32_t pool, slack;
	uint32_t request[ROOM_CLIENTS]; /* of a workload, on each GPU */
	uint32_t part[ROOM_CLIENTS];    /* of the pool; 0: no bound */
	struct room_client client[ROOM_CLIENTS];
};

/* The seats; and, over all orders, the largest number of units. */
struct room_play {
	const struct room_world *world;
	bool body[ROOM_CLIENTS], demand[ROOM_CLIENTS];
	/* Of a demand: it is granted beside all that others have not claimed. */
	bool beside_requests[ROOM_CLIENTS];
	int held;               /* by the pool */
	int lent;               /* what I2 bounds */
	int overlap[ROOM_GPUS]; /* of that, what stands on requests */
	int back; /* in the pool, with the client that has most to bring back on its way */
	int moved; /* that left */
	int owed;  /* requests that bursts could not make room for within their parts */
	int fixed; /* that cannot be moved, with all requests, beyond what there is: I1 */
	bool stuck; /* in no order do the seats get all they lack */
};

/* Fills in what follows from the seats. */
void room_judge(struct room_play *play);
/* Positions that were looked at so far. */
uint64_t room_judge_positions(void);

/* Units of a workload on a GPU, or of that GPU on the host, before anything moves. */
uint32_t room_use(const struct room_world *world, uint32_t workload, uint32_t gpu);
/* Is a workload with a part on both GPUs? Leaving one uses up the part for the other, which
 * room() does not see. */
bool room_parts_span(const struct room_world *world);

#endif
