/* Questions about the past: which is next, and how many bytes of answers there may be. */
#include "../../base/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/history/text.h"
#include "daemon/history/turns.h"

#define MANY 100

static struct sl_history_turns turns;
static struct sl_history_turn places[MANY];

static int begin(void **state)
{
	memset(places, 0, sizeof(places));
	sl_history_turns_init(&turns);
	return 0;
}

static enum sl_history_enter enter(int place, uint64_t uid)
{
	places[place].uid = uid;
	places[place].is_admin = uid == 0;
	return sl_history_turns_enter(&turns, &places[place]);
}

static int next(void)
{
	struct sl_history_turn *turn = sl_history_turns_next(&turns);

	if (!turn)
		return -1;
	sl_history_turns_leave(turn);
	return (int)(turn - places);
}

static void expect_order(const char *row, const int *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int got = next();

		if (got != wanted[i])
			fail_msg("row '%s': turn %zu is of %d, wanted %d", row, i, got,
				wanted[i]);
	}
	assert_int_equal(next(), -1);
}

static void users_take_turns(void **state)
{
	static const int wanted[] = {0, 4, 1, 5, 2, 3};

	for (int i = 0; i < 4; i++)
		assert_int_equal(enter(i, 1000), SL_HISTORY_ENTERED);
	for (int i = 4; i < 6; i++)
		assert_int_equal(enter(i, 1001), SL_HISTORY_ENTERED);
	expect_order("two users", wanted, SL_ARRAY_LEN(wanted));
}

/* A newcomer does not wait for all questions of another user, and a user who was just answered does
 * not go before others. */
static void a_round_is_not_made_up_for(void **state)
{
	static const int wanted[] = {2, 1, 3};

	assert_int_equal(enter(0, 1000), SL_HISTORY_ENTERED);
	assert_int_equal(enter(1, 1000), SL_HISTORY_ENTERED);
	assert_int_equal(next(), 0);
	assert_int_equal(enter(2, 1001), SL_HISTORY_ENTERED);
	assert_int_equal(enter(3, 1000), SL_HISTORY_ENTERED);
	expect_order("late", wanted, SL_ARRAY_LEN(wanted));
}

static void admins_have_every_other_turn(void **state)
{
	static const int wanted[] = {10, 0, 11, 1, 12, 2, 3};

	for (int i = 0; i < 4; i++)
		assert_int_equal(enter(i, 1000 + (uint64_t)i), SL_HISTORY_ENTERED);
	for (int i = 10; i < 13; i++)
		assert_int_equal(enter(i, 0), SL_HISTORY_ENTERED);
	expect_order("admins", wanted, SL_ARRAY_LEN(wanted));
}

static void nobody_takes_all_places(void **state)
{
	for (int i = 0; i < SL_HISTORY_WAITS_OF_USER; i++)
		assert_int_equal(enter(i, 1000), SL_HISTORY_ENTERED);
	assert_int_equal(enter(50, 1000), SL_HISTORY_FULL_USER);
	for (int i = SL_HISTORY_WAITS_OF_USER; i < SL_HISTORY_WAITS_MAX; i++)
		assert_int_equal(enter(i, 2000 + (uint64_t)i), SL_HISTORY_ENTERED);
	assert_int_equal(enter(90, 3000), SL_HISTORY_FULL);
	assert_int_equal(enter(90, 0), SL_HISTORY_ENTERED);
	assert_int_equal(next(), 90);
	/* A question whose asker is gone gives its place up. */
	sl_history_turns_leave(&places[0]);
	assert_int_equal(enter(91, 1000), SL_HISTORY_ENTERED);
}

/* --- bytes -------------------------------------------------------------------------------- */

static struct sl_history_budget room;

/* mib of them; NULL: they do not fit. */
static struct sl_history_text *text_of(uint64_t key, unsigned int mib)
{
	static const char line[1 << 20];
	struct sl_error err = {0};
	FILE *out = NULL;
	struct sl_history_text *text = sl_history_text_new(&room, key, &out);

	assert_non_null(text);
	for (unsigned int i = 0; i < mib; i++)
		(void)fwrite(line, 1, sizeof(line), out);
	if (sl_history_text_end(text, &out, &err))
		return text;
	assert_row_contains("room", err.text, "try again");
	return sl_history_text_free(text);
}

static void answers_have_room_together(void **state)
{
	struct sl_history_text *texts[3];

	sl_history_budget_init(&room);
	texts[0] = text_of(1, 40);
	assert_non_null(texts[0]);
	assert_int_equal(texts[0]->size, 40 << 20);
	/* Of one key so much, of all twice as much. */
	assert_null(text_of(1, 30));
	texts[1] = text_of(2, 60);
	texts[2] = text_of(1, 1);
	assert_non_null(texts[1]);
	assert_non_null(texts[2]);
	assert_null(text_of(3, 40));
	for (int i = 0; i < 3; i++)
		texts[i] = sl_history_text_free(texts[i]);
	assert_int_equal(room.taken, 0);
	texts[0] = text_of(3, 60);
	assert_non_null(texts[0]);
	(void)sl_history_text_free(texts[0]);
	sl_history_budget_fini(&room);
}

/* A reader cannot change what others read, nor keep the daemon's memory by keeping a descriptor. */
static void a_file_is_taken_back(void **state)
{
	struct sl_history_text *text;
	struct stat before, after;
	int kept;

	sl_history_budget_init(&room);
	text = text_of(1, 3);
	assert_non_null(text);
	kept = dup(text->fd);
	assert_int_equal(fstat(kept, &before), 0);
	assert_int_equal(before.st_size, 3 << 20);
	assert_int_equal(pwrite(kept, "x", 1, 0), -1);
	assert_int_equal(ftruncate(kept, 4 << 20), -1);
	assert_int_equal(fcntl(kept, F_ADD_SEALS, F_SEAL_SHRINK), -1);
	(void)sl_history_text_free(text);
	assert_int_equal(fstat(kept, &after), 0);
	assert_int_equal(after.st_size, 0);
	assert_int_equal(after.st_blocks, 0);
	(void)close(kept);
	assert_int_equal(room.taken, 0);
	sl_history_budget_fini(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(users_take_turns, begin),
		cmocka_unit_test_setup(a_round_is_not_made_up_for, begin),
		cmocka_unit_test_setup(admins_have_every_other_turn, begin),
		cmocka_unit_test_setup(nobody_takes_all_places, begin),
		cmocka_unit_test(answers_have_room_together),
		cmocka_unit_test(a_file_is_taken_back),
	};

	return cmocka_run_group_tests_name("history_asks", tests, NULL, NULL);
}
