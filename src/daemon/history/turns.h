/*
 * turns - which question about the past is answered next
 *
 * One question is answered at a time, and each may take seconds. So each user may have only a few
 * waiting, and users take turns: a user's second question comes after every user's first. Root and
 * the daemon's user have places of their own, and get every second turn. Pure; the owner locks.
 */
#ifndef SL_DAEMON_HISTORY_TURNS_H
#define SL_DAEMON_HISTORY_TURNS_H

#include "base/list.h"

/* Most questions that wait or are being answered: of one user, of all users, and of admins on
 * top. */
#define SL_HISTORY_WAITS_OF_USER 4
#define SL_HISTORY_WAITS_MAX     64
#define SL_HISTORY_WAITS_ADMIN   16

struct sl_history_turn {
	struct sl_link waiting, there; /* it waits; it counts */
	uint64_t uid, round;
	bool is_admin;
};

/* sl_history_turns_init() first. */
struct sl_history_turns {
	struct sl_link waiting, there;
	uint64_t round; /* of the one taken last */
	bool admin_was; /* the last one taken was an admin's */
};
void sl_history_turns_init(struct sl_history_turns *turns);

enum sl_history_enter {
	SL_HISTORY_ENTERED = 0,
	SL_HISTORY_FULL,      /* all places are taken */
	SL_HISTORY_FULL_USER, /* all places of this user are taken */
};
/* The caller sets uid and is_admin; on all but ENTERED nothing has happened. */
SL_MUST_CHECK enum sl_history_enter sl_history_turns_enter(
	struct sl_history_turns *turns, struct sl_history_turn *turn);
/* The next question, which still counts until it leaves; NULL: none waits. */
struct sl_history_turn *sl_history_turns_next(struct sl_history_turns *turns);
/* It is answered, or was withdrawn. Calling it twice is harmless. */
void sl_history_turns_leave(struct sl_history_turn *turn);

#endif
