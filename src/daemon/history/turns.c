/* history_turns - see the header */
#include "daemon/history/turns.h"

void sl_history_turns_init(struct sl_history_turns *turns)
{
	*turns = (struct sl_history_turns){0};
	sl_list_init(&turns->waiting);
	sl_list_init(&turns->there);
}

static struct sl_history_turn *turn_of(struct sl_link *there)
{
	return SL_LIST_ENTRY(there, struct sl_history_turn, there);
}

enum sl_history_enter sl_history_turns_enter(
	struct sl_history_turns *turns, struct sl_history_turn *turn)
{
	unsigned int all = 0, mine = 0,
		     most = SL_HISTORY_WAITS_MAX +
			    (turn->is_admin ? SL_HISTORY_WAITS_ADMIN : 0);

	turn->round = turns->round;
	sl_list_foreach (link, &turns->there) {
		const struct sl_history_turn *other = turn_of(link);

		all++;
		if (other->uid != turn->uid)
			continue;
		mine++;
		/* One round after the user's last question. */
		turn->round = sl_max_u64(turn->round, other->round + 1);
	}
	if (mine >= SL_HISTORY_WAITS_OF_USER)
		return SL_HISTORY_FULL_USER;
	if (all >= most)
		return SL_HISTORY_FULL;
	sl_list_push_tail(&turns->waiting, &turn->waiting);
	sl_list_push_tail(&turns->there, &turn->there);
	return SL_HISTORY_ENTERED;
}

/* The first of the lowest round. */
static struct sl_history_turn *first_of(struct sl_history_turns *turns, bool is_admin)
{
	struct sl_history_turn *first = NULL;

	sl_list_foreach (link, &turns->waiting) {
		struct sl_history_turn *turn =
			SL_LIST_ENTRY(link, struct sl_history_turn, waiting);

		if (turn->is_admin == is_admin && (!first || turn->round < first->round))
			first = turn;
	}
	return first;
}

struct sl_history_turn *sl_history_turns_next(struct sl_history_turns *turns)
{
	struct sl_history_turn *admin = first_of(turns, true);
	struct sl_history_turn *turn = first_of(turns, false);

	if (admin && (!turn || !turns->admin_was))
		turn = admin;
	if (!turn)
		return NULL;
	turns->admin_was = turn->is_admin;
	turns->round = sl_max_u64(turns->round, turn->round);
	sl_list_unlink(&turn->waiting);
	return turn;
}

void sl_history_turns_leave(struct sl_history_turn *turn)
{
	sl_list_unlink(&turn->waiting);
	sl_list_unlink(&turn->there);
}
