/*
 * moving - a client whose memory is moved, for tests of the daemon's orders
 *
 * Orders are handed in as the policy's; the client is the test.
 */
#ifndef SL_TESTS_DAEMON_MOVING_H
#define SL_TESTS_DAEMON_MOVING_H

#include "../inside.h"

#include "daemon/swap/swap.h"

#define MIB SL_MIB
/* Beyond the ids that the policy of this daemon gives out by itself. */
#define FIRST_ORDER (1ull << 40)

struct holder {
	struct rig_peer run, peer;
};

struct given {
	uint32_t number;
	int fd;
	uint64_t bytes;
	uint32_t near;
};

/* The id of the next order. */
extern uint64_t next_order;

int moving_setup(void **state);
int moving_teardown(void **state);
struct holder holder_of(struct inside *inside, uint64_t bytes);
void holder_end(struct inside *inside, struct holder *holder);
uint64_t order_evict(struct inside *inside, const struct holder *holder, uint64_t bytes);
uint64_t order_restore(
	struct inside *inside, const struct holder *holder, uint64_t bytes);
void abort_order(struct inside *inside, const struct holder *holder, uint64_t order);
struct sl_client *client_of(struct inside *inside, const struct holder *holder);
struct given expect_store(struct inside *inside, const struct rig_peer *peer);
void send_held(const struct rig_peer *peer, const struct given *given);
void send_back(const struct rig_peer *peer, uint32_t number);
void send_swapped(
	const struct rig_peer *peer, uint64_t order, uint32_t outcome, uint64_t evicted);
void expect_evict(const struct rig_peer *peer, uint64_t order, uint64_t bytes);
uint64_t of_cause(const struct inside *inside, uint32_t cause);
uint64_t causes(const struct inside *inside);
void expect_over(struct inside *inside, uint64_t before, enum sl_swap_cause cause,
	uint64_t of_before);
void expect_rejected(
	struct inside *inside, const struct rig_peer *peer, const char *text);

#define BEGIN(cause)                     \
	uint64_t over_ = causes(inside); \
	uint64_t of_ = of_cause(inside, SL_SWAP_##cause)
#define OVER(cause) expect_over(inside, over_, SL_SWAP_##cause, of_)

#endif
