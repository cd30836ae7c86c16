/*
 * inside - how a thread of sluiced talks to the loop: with the command line's messages
 *
 * The loop owns all state of the daemon. A thread that reads or changes state sends the messages of
 * the command line over a socket pair. The loop treats the other end as a CONTROL peer of a given
 * user. So permissions, bounds, fairness and texts are those of the command line. RUN is refused,
 * because its sender becomes the program. Any role but CONTROL is refused, too.
 *
 * Calls block, with a deadline per message. Any number of struct sl_inside may be open, each used
 * by one thread at a time. The loop's thread makes and ends the door. Once the door has ended,
 * every call fails at once with SL_INSIDE_GONE, even one that waits, and so does opening. Threads
 * must then end and be joined before sl_inside_door_free().
 */
#ifndef SL_DAEMON_LINK_INSIDE_H
#define SL_DAEMON_LINK_INSIDE_H

#include "base/list.h"
#include "daemon/core/user.h"
#include "wire/wire.h"

struct sl_daemon;
struct sl_inside_door;

#define SL_INSIDE_TIMEOUT_MS 10000

struct sl_inside {
	struct sl_link link; /* of the door */
	struct sl_inside_door *door;
	int fd; /* -1: not open */
	struct sl_msg_welcome welcome;
	enum sl_reject rejected; /* after SL_INSIDE_REFUSED */
};

enum sl_inside_outcome {
	SL_INSIDE_OK = 0,
	SL_INSIDE_END,   /* rows are over: LIST_END came */
	SL_INSIDE_AGAIN, /* no message in time; err says so */
	/* the daemon's REJECT, with its text in err; close the connection */
	SL_INSIDE_REFUSED,
	SL_INSIDE_GONE, /* the daemon is ending, or the connection is lost; err says so */
	SL_INSIDE_SYSTEM /* no descriptors or memory; err says which */
};

/* --- a thread's; err may be NULL -------------------------------------------------------------- */

/* Connects as that user (copied); NULL: as the daemon's own. *inside may be uninitialised, and may
 * be closed after every outcome. OK, GONE, AGAIN, REFUSED, SYSTEM. */
SL_MUST_CHECK int sl_inside_open(struct sl_inside *inside, struct sl_inside_door *door,
	const struct sl_user *who, struct sl_error *err);
/* Safe to call twice. */
void sl_inside_close(struct sl_inside *inside);
/* The longest wait of each call, at least 1; SL_INSIDE_TIMEOUT_MS unless set. */
void sl_inside_set_timeout(struct sl_inside *inside, uint64_t ms);

/* Sends *ask and waits for an answer of type want. OK, AGAIN, REFUSED, GONE, SYSTEM. Close the
 * connection after any outcome but OK: a late answer would be taken for the next one. */
SL_MUST_CHECK int sl_inside_call(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t want, union sl_msg *answer, struct sl_error *err);
/* Likewise, and sends the descriptor file along, which stays the caller's. */
SL_MUST_CHECK int sl_inside_call_giving(struct sl_inside *inside, const union sl_msg *ask,
	int file, uint32_t want, union sl_msg *answer, struct sl_error *err);
/* Likewise, for an answer of type want with a descriptor, which becomes the caller's, or one of
 * type else_want without one (*file is -1). */
SL_MUST_CHECK int sl_inside_call_taking(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t want, uint32_t else_want, union sl_msg *answer, int *file,
	struct sl_error *err);

typedef void (*sl_inside_row_fn)(void *context, const union sl_msg *row);
/* Sends *ask and hands out the rows of row_type up to LIST_END. Outcomes as of sl_inside_call; rows
 * may have been handed out before a failure. */
SL_MUST_CHECK int sl_inside_rows(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t row_type, sl_inside_row_fn fn, void *context, struct sl_error *err);
/* The rows of LIST of `what`. */
SL_MUST_CHECK int sl_inside_list(struct sl_inside *inside, enum sl_list_what what,
	uint32_t row_type, sl_inside_row_fn fn, void *context, struct sl_error *err);

/* Sends *msg without awaiting an answer. OK, AGAIN, GONE, SYSTEM. */
SL_MUST_CHECK int sl_inside_send(
	struct sl_inside *inside, const union sl_msg *msg, struct sl_error *err);
/* The next row of row_type; END at LIST_END. After AGAIN a follower can go on. */
SL_MUST_CHECK int sl_inside_next(struct sl_inside *inside, uint32_t row_type,
	union sl_msg *row, struct sl_error *err);

/* --- the loop's ------------------------------------------------------------------------------- */

/* 0 or negative errno. */
SL_MUST_CHECK int sl_inside_door_new(
	struct sl_daemon *daemon, struct sl_inside_door **out);
/* Closes the door: no thread gets in, and waiting calls return GONE. Accepts NULL. */
void sl_inside_door_end(struct sl_inside_door *door);
/* Every struct sl_inside must be closed before. Returns NULL. */
struct sl_inside_door *sl_inside_door_free(struct sl_inside_door *door);

#endif
