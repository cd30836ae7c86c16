/*
 * share: the longest turns of each kind
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "daemon/link/share.h"
#include "daemon/state/daemon.h"

static void check(const struct sl_daemon *daemon, enum sl_share_kind kind, sl_ns longest,
	sl_ns fourth)
{
	assert_int_equal(sl_share_longest_ns(daemon, kind), longest);
	assert_int_equal(sl_share_long_ns(daemon, kind), fourth);
}

/* In whatever order they come, and equal ones count each. */
static void the_fourth_longest_is_told(void **state)
{
	static const struct {
		sl_ns spent, longest, fourth;
	} turns[] = {
		{30, 30, 0},
		{900, 900, 0},
		{10, 900, 0},
		{20, 900, 10},
		{5, 900, 10},
		{15, 900, 15},
		{30, 900, 20},
		{30, 900, 30},
		{1000, 1000, 30},
		{40, 1000, 30},
		{50, 1000, 40},
	};
	struct sl_daemon daemon = {0};

	(void)state;
	check(&daemon, SL_SHARE_METRICS, 0, 0);
	assert_true(sd_event_new(&daemon.loop) >= 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(turns); i++) {
		sl_share_note_ns(&daemon, SL_SHARE_METRICS, turns[i].spent);
		check(&daemon, SL_SHARE_METRICS, turns[i].longest, turns[i].fourth);
		check(&daemon, SL_SHARE_CONTROL, 0, 0);
		check(&daemon, SL_SHARE_JOURNAL, 0, 0);
	}
	sl_share_fini(&daemon);
	daemon.loop = sd_event_unref(daemon.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fourth_longest_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
