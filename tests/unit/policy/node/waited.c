/*
 * waited - how often and how long a workload waited, by hand
 *
 * A GPU of 100, of which B has 80; W asks beside it.
 */
#include "play.h"

#define WORKLOAD(w, request, limit) \
	EVENT(WORKLOAD_ADD, workload_add, {w, request, limit, 1, 1, 0})

struct counted {
	const char *name;
	uint64_t at_ms;
	struct sl_event event;
	uint64_t waits, waited_ms;
};

static void play_counted(const struct counted *rows, size_t count, uint64_t workload)
{
	struct play p;

	play_open(&p);
	for (size_t i = 0; i < count; i++) {
		struct sl_node_workload_view view;

		(void)play(&p, rows[i].name, rows[i].at_ms, rows[i].event);
		view = sl_node_workload_alone(p.node, workload);
		assert_row_u64(rows[i].name, view.waits, rows[i].waits);
		assert_row_u64(rows[i].name, view.waited / SL_MS, rows[i].waited_ms);
	}
	play_close(&p);
}

static void demands_are_waited_for(void **state)
{
	static const struct counted rows[] = {
		{"settings", 0, SETTINGS(.chain = SL_CHAIN(SL_RESOLVER_WAIT, 0, 0)), 0,
			0},
		{"GPU", 0, GPU(0, 100), 0, 0},
		{"B", 0, WORKLOAD(1, ANY, ANY), 0, 0},
		{"W", 0, WORKLOAD(2, BYTES(0), BYTES(90)), 0, 0},
		{"B joins", 0, JOIN(1, 1), 0, 0},
		{"asks", 0, ASK(1, 1, 0, 80), 0, 0},
		{"has", 0, COMMIT(1, 1, 80), 0, 0},
		{"W joins", 0, JOIN(2, 2), 0, 0},
		{"what fits is not waited for", 100, ASK(2, 1, 0, 10), 0, 0},
		{"has", 150, COMMIT(2, 1, 10), 0, 0},
		{"what does not is", 200, ASK(2, 2, 0, 20), 0, 0},
		{"a second demand waits in the same time", 300, ASK(2, 3, 0, 30), 1, 100},
		{"it goes on", 500, TIME, 1, 300},
		{"above its limit it is denied", 600, ASK(2, 4, 0, 90), 1, 400},
		{"B gives back", 700, FREED(1, 0, 80), 1, 500},
		{"nobody waits", 900, TIME, 1, 500},
	};

	(void)state;
	play_counted(rows, SL_ARRAY_LEN(rows), 2);
}

/* A client on the host waits from when it wants to run. It does not wait while it is parked, but
 * does again while it is resuming. */
static void being_back_is_waited_for(void **state)
{
	static const struct counted rows[] = {
		{"pool", 0,
			SETTINGS(.pool_bytes = 200,
				.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)),
			0, 0},
		{"GPU", 0, GPU(0, 100), 0, 0},
		{"B", 0, WORKLOAD(1, ANY, ANY), 0, 0},
		{"W", 0, WORKLOAD(2, BYTES(50), ANY), 0, 0},
		{"B joins", 0, EVENT(CLIENT_JOIN, client_join, {1, 1, 0, 1}), 0, 0},
		{"asks", 0, ASK(1, 1, 0, 80), 0, 0},
		{"has", 0, COMMIT(1, 1, 80), 0, 0},
		{"W joins", 0, EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}), 0, 0},
		{"has", 0, REPORT(2, 0, 50), 0, 0},
		{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {2, 0, 50}), 0,
			0},
		{"all", 0, EVENT(CLIENT_REPORTED, client_reported, {2}), 0, 0},
		{"made", 0, EVENT(STORE, store, {2, 50}), 0, 0},
		{"wants nothing", 1000, TIME, 0, 0},
		{"wants", 1000, EVENT(WANT, want, {2, 1}), 0, 0},
		{"waits", 1300, TIME, 1, 300},
		{"is parked", 1400, EVENT(WORKLOAD_PARK, workload_park, {2}), 1, 400},
		{"that is no wait", 2000, TIME, 1, 400},
		{"is to come back", 2000, EVENT(WORKLOAD_RESUME, workload_resume, {2}), 1,
			400},
		{"waits again", 2250, TIME, 2, 650},
		{"its process ends", 2300, EVENT(CLIENT_EXIT, client_exit, {2}), 2, 700},
		{"nobody waits", 2900, TIME, 2, 700},
	};

	(void)state;
	play_counted(rows, SL_ARRAY_LEN(rows), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demands_are_waited_for),
		cmocka_unit_test(being_back_is_waited_for),
	};

	return cmocka_run_group_tests_name("waited", tests, NULL, NULL);
}
