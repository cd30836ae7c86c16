/* Which workloads the history takes for known ones: a new daemon, and workloads with numbers
 * that the file has already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/history/scribe.h"

#define NOW   1700000000000ull
#define BEGUN (NOW - 3600000ull)

/* What the file says of the workload with number 7; the daemon's row differs from that in one thing
 * at a time. */
static const struct {
	const char *what;
	uint64_t number;
	uint32_t uid, pid;
	uint64_t age_ms;
	int64_t id; /* as it was written */
	bool known;
} rows[] = {
	{"the same", 7, 1000, 42, 3600000, 5, true},
	{"as far as two looks tell it", 7, 1000, 42, 3609999, 5, true},
	{"on the other side, too", 7, 1000, 42, 3590001, 5, true},
	{"another number", 8, 1000, 42, 3600000, 5, false},
	{"another user", 7, 1001, 42, 3600000, 5, false},
	{"another process", 7, 1000, 43, 3600000, 5, false},
	{"one that began later", 7, 1000, 42, 60000, 5, false},
	{"one that began before", 7, 1000, 42, 7200000, 5, false},
};

/* One that the file has without an end. */
static struct sl_history_scribe *scribe_new(int64_t id)
{
	struct sl_history_scribe *scribe = sl_history_scribe_new("/nowhere", NULL, 0);

	assert_non_null(scribe);
	scribe->former = calloc(1, sizeof(*scribe->former));
	assert_non_null(scribe->former);
	*scribe->former = (struct sl_history_workload){
		.id = id, .number = 7, .uid = 1000, .pid = 42, .begun_ms = BEGUN};
	scribe->former_count = 1;
	scribe->next_workload = 100;
	return scribe;
}

static void who_was_known_goes_on(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_history_scribe *scribe = scribe_new(rows[i].id);
		struct sl_msg_use_row row = {.workload = rows[i].number,
			.uid = rows[i].uid,
			.pid = rows[i].pid,
			.age_ms = rows[i].age_ms,
			.name = "name",
			.command = "program"};
		const struct sl_history_living *living;
		int64_t id = rows[i].known ? rows[i].id : 100;
		uint64_t begun = rows[i].known ? BEGUN : NOW - rows[i].age_ms;

		living = sl_history_ids_living(scribe, &row, NOW);
		assert_non_null(living);
		if (living->row.id != id || living->row.begun_ms != begun)
			fail_msg("%s: number %lld, begun %llu, not %lld, %llu",
				rows[i].what, (long long)living->row.id,
				(unsigned long long)living->row.begun_ms, (long long)id,
				(unsigned long long)begun);
		(void)sl_history_scribe_free(scribe);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(who_was_known_goes_on)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
