/*
 * inside - how a thread of sluiced talks with its loop: as `sluice` does
 *
 * The loop owns everything that the daemon knows, so a thread that wants to know or to change
 * something says so in the messages of the command line, over a pair of sockets whose one end the
 * loop treats as a CONTROL peer of the user it is opened for. Permissions, bounds, fairness and
 * texts are thereby the command line's, and there is no second door. RUN is refused (it makes the
 * sender the program), and no other role than CONTROL.
 *
 * Blocking, with a deadline per message. One thread per struct sl_inside at a time; any number of
 * them. The door is made and ended by the loop's thread: once it has ended every call fails at once
 * with SL_INSIDE_GONE, also one that waits, and so does opening; threads are to end then, and to be
 * joined before sl_inside_door_free().
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
	SL_INSIDE_END,   /* of rows: LIST_END came */
	SL_INSIDE_AGAIN, /* nothing came in time; err says so */
	/* The daemon's REJECT, whose text is in err; the line is of no more use */
	SL_INSIDE_REFUSED,
	SL_INSIDE_GONE,  /* the daemon is ending, or the line is lost; err says so */
	SL_INSIDE_SYSTEM /* no descriptors or memory left; err says which */
};

/* --- a thread's; err may be NULL -------------------------------------------------------------- */

/* Connects as that user (copied), NULL: as the daemon's own. *inside need not be initialised, and
 * may be closed after every outcome. OK, GONE, AGAIN, REFUSED, SYSTEM. */
SL_MUST_CHECK int sl_inside_open(struct sl_inside *inside, struct sl_inside_door *door,
	const struct sl_user *who, struct sl_error *err);
/* Safe to call twice. */
void sl_inside_close(struct sl_inside *inside);
/* What each call waits at most; SL_INSIDE_TIMEOUT_MS until said otherwise. At least 1. */
void sl_inside_set_timeout(struct sl_inside *inside, uint64_t ms);

/* Sends *ask and waits for an answer of type want. OK, AGAIN, REFUSED, GONE, SYSTEM; after all but
 * OK the line is to be closed, for an answer that came late would be taken for the next one. */
SL_MUST_CHECK int sl_inside_call(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t want, union sl_msg *answer, struct sl_error *err);
/* The same, and the descriptor file goes along; it stays the caller's. */
SL_MUST_CHECK int sl_inside_call_giving(struct sl_inside *inside, const union sl_msg *ask,
	int file, uint32_t want, union sl_msg *answer, struct sl_error *err);
/* The same, for an answer of type want with a descriptor, which becomes the caller's, or one of
 * type else_want without (*file is -1). */
SL_MUST_CHECK int sl_inside_call_taking(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t want, uint32_t else_want, union sl_msg *answer, int *file,
	struct sl_error *err);

typedef void (*sl_inside_row_fn)(void *context, const union sl_msg *row);
/* Sends *ask and hands out the rows of row_type before LIST_END. Outcomes as of sl_inside_call;
 * rows may have been handed out before a failure. */
SL_MUST_CHECK int sl_inside_rows(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t row_type, sl_inside_row_fn fn, void *context, struct sl_error *err);
/* The rows of LIST of `what`. */
SL_MUST_CHECK int sl_inside_list(struct sl_inside *inside, enum sl_list_what what,
	uint32_t row_type, sl_inside_row_fn fn, void *context, struct sl_error *err);

/* Sends *msg alone. OK, AGAIN, GONE, SYSTEM. */
SL_MUST_CHECK int sl_inside_send(
	struct sl_inside *inside, const union sl_msg *msg, struct sl_error *err);
/* The next row of row_type; END at LIST_END; AGAIN leaves the line as it was, so that one who
 * follows goes on. */
SL_MUST_CHECK int sl_inside_next(struct sl_inside *inside, uint32_t row_type,
	union sl_msg *row, struct sl_error *err);

/* --- the loop's ------------------------------------------------------------------------------- */

/* 0 or negative errno. */
SL_MUST_CHECK int sl_inside_door_new(
	struct sl_daemon *daemon, struct sl_inside_door **out);
/* Nobody gets in any more, and who waits goes on with GONE. Takes NULL, too. */
void sl_inside_door_end(struct sl_inside_door *door);
/* Everybody is out. Returns NULL. */
struct sl_inside_door *sl_inside_door_free(struct sl_inside_door *door);

#endif
