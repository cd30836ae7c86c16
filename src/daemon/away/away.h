/*
 * away - takes processes off their GPUs whole, contexts included, and brings them back
 *
 * sluice-move (src/move) does it through the driver. Each user and set of capabilities has such a
 * helper, started when an order needs it and ended when it has had none for a minute. An order is
 * repeated once if its helper died or hung, so it may take some minutes; the loop never waits.
 * Loop's thread.
 *
 * Orders of one process are carried out one after another, as they came. Both kinds may be repeated
 * at any time: an AWAY of a process that is away, or a BACK of one that runs, is DONE at once. So a
 * daemon that was restarted orders again what it had ordered.
 */
#ifndef SL_DAEMON_AWAY_AWAY_H
#define SL_DAEMON_AWAY_AWAY_H

#include <systemd/sd-event.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/move.h"

struct sl_away;

struct sl_away_order {
	uint64_t id; /* the caller's; returned in the answer */
	uid_t uid;   /* the owner of the process */
	gid_t gid;
	uint64_t capabilities; /* what the process may have, a bit each */
	pid_t pid;
	/* Of the process; with it another process that gets the number is GONE. 0: not checked. */
	uint64_t start_ticks;
	bool back;
	/* Of an AWAY: how long submitted work may take until it is REFUSED. Above 0. */
	uint32_t lock_ms;
	/* Of a BACK: as in struct sl_move_order. */
	uint32_t pairs;
	bool whole;
	struct sl_move_pair pair[SL_MOVE_GPUS_MAX];
};

struct sl_away_answer {
	uint64_t id;
	enum sl_move_outcome outcome; /* never READY */
	int32_t cuda_result;          /* of the call that failed first, or 0 */
	enum sl_move_call at;         /* that call, or SL_MOVE_NO_CALL */
	sl_ns span; /* that the driver took; 0 if the helper did not answer */
};

/* Called from the loop, exactly once for each order until sl_away_close, never from within a call
 * of this module. It may order, but not close. */
typedef void sl_away_done(void *context, const struct sl_away_answer *answer);

/* 0 or negative errno. */
SL_MUST_CHECK int sl_away_open(
	sd_event *loop, sl_away_done *done, void *context, struct sl_away **out);
/* Ends all helpers. Open orders are not answered; their processes may be locked or away. Accepts
 * NULL. Returns NULL. */
struct sl_away *sl_away_close(struct sl_away *away);
/* 0 or negative errno: then there is no such order. A daemon that is not root is UNABLE to move
 * other users' processes. */
SL_MUST_CHECK int sl_away_order(struct sl_away *away, const struct sl_away_order *order);
/* "cuCheckpointProcessLock"; "" for SL_MOVE_NO_CALL. */
const char *sl_away_call_name(enum sl_move_call call);

/* For tests: other bounds, of orders given from now on. patience: how long a helper may take for an
 * order, lock_ms apart; idle: how long it lives without one. */
void sl_away_set_bounds(struct sl_away *away, sl_ns patience, sl_ns idle);

#endif
