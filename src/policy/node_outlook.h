/*
 * node_outlook - what a GPU will have once all that goes is gone
 *
 * Dying memory, what leaves for the host, and what was told to end counts as free already. Whoever
 * is served of it takes his bytes out (sl_outlook_reserve); whoever is told to end puts his in
 * (sl_outlook_let_go). One outlook at a time: what it knows of a workload stands in the workload
 * (seen_in). Sizes are bytes. For node_resolve.c, and nobody else.
 */
#ifndef SL_POLICY_NODE_OUTLOOK_H
#define SL_POLICY_NODE_OUTLOOK_H

#include "policy/node_state.h"

/* Killed, and still there after this long: it hangs in the kernel, and nobody counts on it. */
#define SL_OUTLOOK_STUBBORN_AFTER (10 * SL_S)

struct sl_outlook {
	struct sl_node *node;
	const struct sl_node_client *without; /* stays, whatever it was told; or NULL */
	uint32_t gpu;
	int64_t free_bytes;      /* below 0: more is there than can be shared */
	int64_t unclaimed_bytes; /* of all workloads */
	int64_t reserved_bytes;  /* for demands already looked at */
	/* Of those of higher priority than this, once it was asked for. */
	int32_t lent_priority;
	bool lent_known;
	int64_t lent_bytes;
	uint32_t choices; /* of victims, that were made so far */
};

/* without: NULL, or one that stays whatever it was told. is_return: for those that want to come
 * back, so that nothing of what leaves is left to them. O(workloads + stops + clients that
 * swap). */
struct sl_outlook sl_outlook_look(struct sl_node *node, uint32_t gpu,
	const struct sl_node_client *without, bool is_return);
/* What the workload will hold of what it has of the GPU. */
uint64_t sl_outlook_use(
	const struct sl_outlook *outlook, const struct sl_node_member *member);
/* Entitled now, and still so when those before it have what they are to get: of siblings that are
 * within the request one by one, some may be bursts together. */
bool sl_outlook_is_entitled(
	const struct sl_outlook *outlook, const struct sl_demand *demand);
/* Bytes that the demand would get of the outlook; below 0 too. INT64_MIN: none, whatever ends. */
int64_t sl_outlook_room(struct sl_outlook *outlook, const struct sl_demand *demand);
void sl_outlook_reserve(struct sl_outlook *outlook, const struct sl_demand *demand);
/* The workload loses so much. */
void sl_outlook_let_go(
	struct sl_outlook *outlook, struct sl_node_member *member, uint64_t bytes);

/* Somebody with memory on the GPU was told to end or to leave, or has ended. */
bool sl_outlook_is_coming(const struct sl_outlook *outlook);

/* What is above requests on the GPU, by whether it can be made to come back. */
struct sl_outlook_borrowed {
	uint64_t takeable_bytes, untakeable_bytes;
	uint64_t most_bytes; /* the largest of the untakeable, and whose */
	const struct sl_node_member *most;
};

/* Of all but the demand's own workload. O(clients). */
struct sl_outlook_borrowed sl_outlook_borrowers(
	const struct sl_outlook *outlook, const struct sl_demand *demand);

/* Lists in node->victims those of other workloads that hold something above their request, or, if
 * it is not NULL, this one of them; returns how many. Sets resolve_at of the queue to when time
 * alone may add one. */
uint32_t sl_outlook_list_victims(const struct sl_outlook *outlook,
	const struct sl_demand *demand, const struct sl_node_client *only);
/* Of these, who is to end for what the demand lacks; returns how many, 0 if all do not suffice. */
uint32_t sl_outlook_choose(const struct sl_outlook *outlook,
	const struct sl_demand *demand, uint64_t missing, uint32_t count);

/* Told to end by a person; not for ever, if the kill did nothing. */
bool sl_node_workload_is_going(const struct sl_node_member *member);

#endif
