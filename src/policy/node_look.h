/*
 * node_look - one look at who lacks memory: what room there is, and whom to move out for whom
 *
 * Those who lack something are gone through in their order (node_turns.c). Each one's room is taken
 * off what is free or on its way, which the look counts once, at its beginning. Who is to leave and
 * cannot be told to just now is counted as leaving until the end of the look. Sizes are bytes on a
 * GPU. For node_turns.c, and nobody else.
 */
#ifndef SL_POLICY_NODE_LOOK_H
#define SL_POLICY_NODE_LOOK_H

#include "policy/node_state.h"

/* One of those who lack memory: a client that wants to come back, or a waiting demand. */
struct sl_node_unit {
	struct sl_turns_place place;
	struct sl_node_client *client;
	struct sl_demand *demand; /* NULL: it wants to come back */
	uint32_t gpus;            /* on which it needs something */
	bool coming;              /* is being restored; only its demands need something */
	bool first; /* its exchange is under way, and is finished before others */
	bool was_helped, was_moving; /* by the last look */
	bool bare; /* what it asks for is left out: there may never be room for it */
};

enum sl_look_outcome {
	SL_LOOK_SERVED, /* it has, or is being given, what it needs */
	SL_LOOK_MOVING, /* what it needs is on its way */
	SL_LOOK_LATER,  /* others may be moved for it later */
	SL_LOOK_BEHIND, /* others are to be helped first */
	SL_LOOK_NEVER   /* nothing that is known of helps */
};

/* One look. free_bytes, coming_bytes: not reserved yet; below 0: reserved from what is coming, or
 * not there. */
struct sl_look {
	struct sl_node *node;
	int64_t free_bytes[SL_NODE_GPUS_MAX], coming_bytes[SL_NODE_GPUS_MAX];
	uint32_t blocked; /* GPUs on which somebody waits until others may be moved */
	uint32_t lacking; /* GPUs of which somebody needs what is on its way */
	uint32_t flowing; /* GPUs of which a part of that has come; see node_pieces.c */
	uint32_t first;   /* GPUs on which somebody comes back before all others */
	uint32_t first_bursts; /* and that one is above its request */
	uint32_t vain;         /* GPUs where nothing helps the head of the queue */
	uint32_t count, choices;
	uint32_t promised; /* of node->promises, until the end of the look */
};

#define sl_look_each_gpu(gpu, mask)                                                  \
	for (uint32_t gpu##_left_ = (mask), gpu;                                     \
		gpu##_left_ && ((gpu = (uint32_t)__builtin_ctz(gpu##_left_)), true); \
		gpu##_left_ &= gpu##_left_ - 1)

/* What the client's waiting demands ask for on the GPU. */
uint64_t sl_look_asks(const struct sl_node_client *client, uint32_t gpu);
/* What the unit needs there, beyond what has its room already. */
uint64_t sl_look_need(const struct sl_node_unit *unit, uint32_t gpu);
/* Fills in free_bytes and coming_bytes. O(clients that swap). */
void sl_look_count_coming(struct sl_look *look);
/* All that it needs, on all its GPUs, in what is free; with_coming: and on its way. */
bool sl_look_fits(
	const struct sl_look *look, const struct sl_node_unit *unit, bool with_coming);
/* Has others moved out for it (MOVING), or says when that may be: LATER, BEHIND or NEVER. place:
 * its own, in the order. Sets node->swap_due. O(clients), for so many units of a look. */
enum sl_look_outcome sl_look_make_room(
	struct sl_look *look, const struct sl_node_unit *unit, uint32_t place);
/* What is counted as leaving was not told to: back to the first `count` of it. */
void sl_look_take_back(struct sl_look *look, uint32_t count);

#endif
