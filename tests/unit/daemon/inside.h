/*
 * inside - the daemon in the test's own process, its loop turned by the test
 *
 * For cases that only an action of the policy can cause (signals, probes): the test itself hands
 * the action in. It still speaks to the daemon through sockets of real processes (rig.h); while it
 * waits for a message, it turns the loop.
 */
#ifndef SL_TESTS_DAEMON_INSIDE_H
#define SL_TESTS_DAEMON_INSIDE_H

#include "rig.h"

#include "daemon/clients/client.h"
#include "daemon/state/daemon.h"

struct inside {
	struct rig rig;
	struct sl_daemon daemon;
};

/* A daemon of one GPU of 16 GiB, of which 1 GiB is the driver's, with this configuration. */
void inside_init(struct inside *inside, const char *config);
/* Of so many GPUs. */
void inside_init_with(struct inside *inside, unsigned int gpus, const char *config);
void inside_fini(struct inside *inside);
/* The daemon alone ends, as when it is told to, and the next one finds what it left. */
void inside_end(struct inside *inside);
void inside_begin(struct inside *inside);
/* Turns the loop until nothing happens for a moment. */
void inside_turn(struct inside *inside);
/* Turns it until the condition holds, for 20 s at most. */
#define inside_until(inside, condition)                                      \
	do {                                                                 \
		sl_ns inside_end_ = sl_clock_now() + 20 * SL_S;              \
		while (!(condition)) {                                       \
			inside_turn(inside);                                 \
			if (sl_clock_now() > inside_end_)                    \
				fail_msg("not within 20 s: %s", #condition); \
		}                                                            \
	} while (0)
struct sl_client *inside_client(struct inside *inside, const struct rig_peer *peer);

#endif
