/*
 * turns - whose question about the past is next
 *
 * One is answered at a time, and each may take seconds. So of one user only a few wait, and users
 * take turns: a second question of somebody comes after the first of everybody. Root and the
 * daemon's user have places of their own, and every other turn. Pure; the owner locks.
 */
#ifndef SL_DAEMON_HISTORY_TURNS_H
#define SL_DAEMON_HISTORY_TURNS_H

#include "base/list.h"

/* Questions that wait or are being answered: of one user, of all users, and beyond those of
 * admins. */
#define SL_HISTORY_WAITS_OF_USER 4
#define SL_HISTORY_WAITS_MAX     64
#define SL_HISTORY_WAITS_ADMIN   16

struct sl_history_turn {
	struct sl_link waiting, there; /* it waits for its turn; it counts */
	uint64_t uid, round;
	bool is_admin;
};

/* sl_history_turns_init() first. */
struct sl_history_turns {
	struct sl_link waiting, there;
	uint64_t round; /* of the one that was taken last */
	bool admin_was; /* the last one was an admin's */
};
void sl_history_turns_init(struct sl_history_turns *turns);

enum sl_history_enter {
	SL_HISTORY_ENTERED = 0,
	SL_HISTORY_FULL,      /* everybody's places */
	SL_HISTORY_FULL_USER, /* this user's */
};
/* uid and is_admin are set; on all but ENTERED nothing has happened. */
SL_MUST_CHECK enum sl_history_enter sl_history_turns_enter(
	struct sl_history_turns *turns, struct sl_history_turn *turn);
/* The next, which still counts until it leaves; NULL: none waits. */
struct sl_history_turn *sl_history_turns_next(struct sl_history_turns *turns);
/* It is answered, or nobody wants that any more. Twice is harmless. */
void sl_history_turns_leave(struct sl_history_turn *turn);

#endif
