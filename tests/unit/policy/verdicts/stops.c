#include "../../base/test.h"

#include "policy/verdicts/stops.h"

#define MIN (60 * SL_S)

/*
 * Each row: up to four clients, as {workload, priority, held, of its workload, request, limit,
 * idle, proven}; the demand (priority 5, or as told; stop_idle 10 min); and the numbers of the
 * clients to be stopped, first to last, each with the letter of its reason: o(ver limit),
 * i(dle), p(riority). Client i has the number i + 1.
 */
struct who {
	uint32_t workload;
	int32_t priority;
	uint64_t held, use, request, limit;
	sl_ns idle;
	bool proven;
	bool lends; /* the demand may use the part of its request that it leaves */
};

static const struct row {
	const char *name;
	struct who who[4];
	uint64_t missing;
	bool entitled;
	const char *taken, *prove;
} rows[] = {
	{"nobody there", {{0}}, 10, true, "", ""},
	{"nothing is missing", {{0, 0, 50, 50, 0, 90, 0, false}}, 0, true, "", ""},
	{"lower priority", {{0, 4, 50, 50, 0, 90, 0, false}}, 50, true, "1p", ""},
	{"equal priority is not lower", {{0, 5, 50, 50, 0, 90, 0, false}}, 50, true, "",
		""},
	{"what falls within the request is kept for its owner",
		{{0, 4, 50, 50, 30, 90, 0, false}}, 21, false, "", ""},
	{"unless the demand may stand on it", {{0, 4, 50, 50, 30, 90, 0, false, true}},
		50, false, "1p", ""},
	{"too little", {{0, 4, 50, 50, 0, 90, 0, false}}, 51, true, "", ""},
	{"idle for long, and proven", {{0, 9, 50, 50, 0, 90, 10 * MIN, true}}, 50, false,
		"1i", ""},
	{"idle for long, not proven", {{0, 9, 50, 50, 0, 90, 10 * MIN, false}}, 50, false,
		"", "1"},
	{"idle, not for long", {{0, 9, 50, 50, 0, 90, 10 * MIN - 1, true}}, 50, false, "",
		""},
	{"a proof that would not suffice is not asked for",
		{{0, 9, 50, 50, 0, 90, 10 * MIN, false}}, 60, false, "", ""},
	{"one proof, where the other is in vain",
		{{0, 9, 50, 50, 0, 90, 11 * MIN, false},
			{1, 9, 20, 20, 0, 90, 10 * MIN, false}},
		50, false, "", "1"},
	{"no proof where priority is enough",
		{{0, 9, 50, 50, 0, 90, 11 * MIN, false}, {1, 0, 50, 50, 0, 90, 0, false}},
		50, false, "2p", ""},
	{"above the limit, whatever its priority", {{0, 9, 50, 91, 0, 90, 0, false}}, 50,
		true, "1o", ""},
	{"at the limit is not above", {{0, 9, 50, 90, 0, 90, 0, false}}, 50, true, "",
		""},
	{"above the limit first",
		{{0, 0, 50, 50, 0, 90, 20 * MIN, true}, {1, 4, 50, 50, 0, 49, 0, false}},
		50, true, "2o", ""},
	{"idle longest first",
		{{0, 0, 50, 50, 0, 90, 11 * MIN, true},
			{1, 4, 50, 50, 0, 90, 12 * MIN, true}},
		50, true, "2i", ""},
	{"moments between kernels do not count",
		{{0, 0, 50, 50, 0, 90, 0, false}, {1, 4, 50, 50, 0, 90, SL_S - 1, false}},
		50, true, "1p", ""},
	{"then lower priority",
		{{0, 2, 50, 50, 0, 90, 0, false}, {1, 1, 50, 50, 0, 90, 0, false}}, 50,
		true, "2p", ""},
	{"then larger burst",
		{{0, 1, 50, 60, 0, 90, 0, false}, {1, 1, 50, 70, 0, 90, 0, false}}, 50,
		true, "2p", ""},
	{"then the younger",
		{{0, 1, 50, 60, 0, 90, 0, false}, {1, 1, 50, 60, 0, 90, 0, false}}, 50,
		true, "2p", ""},
	{"all that are needed, in order",
		{{0, 2, 20, 20, 0, 90, 0, false}, {1, 1, 20, 20, 0, 90, 0, false},
			{2, 0, 20, 20, 0, 90, 0, false}},
		60, true, "3p2p1p", ""},
	{"none that is not needed",
		{{0, 2, 20, 20, 0, 90, 0, false}, {1, 1, 20, 20, 0, 90, 0, false},
			{2, 0, 20, 20, 0, 90, 0, false}},
		40, true, "3p2p", ""},
	{"a late large one makes early small ones needless",
		{{0, 0, 10, 10, 0, 90, 0, false}, {1, 1, 5, 5, 0, 90, 0, false},
			{2, 2, 70, 70, 0, 90, 0, false}},
		60, true, "3p", ""},
	{"never within its request",
		{{0, 0, 50, 50, 50, 90, 20 * MIN, true}, {1, 1, 20, 20, 0, 90, 0, false}},
		20, true, "2p", ""},
	{"not one more once it is within its request",
		{{0, 0, 30, 60, 30, 90, 0, false}, {0, 0, 30, 60, 30, 90, 0, false}}, 40,
		true, "", ""},
	{"the last one may take it below",
		{{0, 0, 30, 60, 40, 90, 0, false}, {0, 0, 30, 60, 40, 90, 0, false}}, 30,
		true, "2p", ""},
	{"what falls within the request is nothing to a burst",
		{{0, 0, 60, 60, 40, 90, 0, false}}, 30, false, "", ""},
	{"and all of it to an entitled one", {{0, 0, 60, 60, 40, 90, 0, false}}, 30, true,
		"1p", ""},
	{"siblings give their burst together",
		{{0, 0, 30, 60, 20, 90, 0, false}, {0, 0, 30, 60, 20, 90, 0, false}}, 40,
		false, "2p1p", ""},
	{"whom the others' going makes safe is let off",
		{{0, 0, 30, 100, 50, 200, 0, false}, {0, 1, 60, 100, 50, 200, 0, false}},
		60, true, "2p", ""},
	{"also if it is not enough then",
		{{0, 0, 30, 100, 50, 200, 0, false}, {0, 1, 60, 100, 50, 200, 0, false}},
		70, true, "", ""},
	{"one brings it back to its limit",
		{{0, 9, 30, 100, 0, 90, 0, false}, {0, 9, 30, 100, 0, 90, 0, false}}, 20,
		true, "2o", ""},
	{"and no more go for it",
		{{0, 9, 30, 100, 0, 90, 0, false}, {0, 9, 30, 100, 0, 90, 0, false}}, 50,
		true, "", ""},
	{"unless it is still above",
		{{0, 9, 30, 140, 0, 90, 0, false}, {0, 9, 30, 140, 0, 90, 0, false}}, 50,
		true, "2o1o", ""},
	{"or there is another reason",
		{{0, 0, 30, 100, 0, 90, 0, false}, {0, 0, 30, 100, 0, 90, 0, false}}, 50,
		true, "2p1p", ""},
	{"holds nothing here", {{0, 0, 0, 60, 20, 90, 0, false}}, 1, true, "", ""},
};

/* What the test's fits() works on: the bytes that each workload has lost, and the bytes that the
 * demand may use. If the demand is a burst, bytes that fall within a request are not for it. */
struct box {
	const struct row *row;
	uint64_t gone[4];
};

static void move(void *context, const struct sl_stop *stop, bool gone)
{
	struct box *box = context;

	box->gone[stop->workload] += gone ? stop->held_bytes : -stop->held_bytes;
}

static bool fits(void *context)
{
	const struct box *box = context;
	bool seen[4] = {false};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < 4; i++) {
		const struct who *who = &box->row->who[i];
		uint64_t gone = box->gone[who->workload];

		if (!who->use || seen[who->workload])
			continue;
		seen[who->workload] = true;
		bytes += box->row->entitled || who->lends
				 ? gone
				 : sl_min_u64(gone, sl_sub_sat(who->use, who->request));
	}
	return bytes >= box->row->missing;
}

static void fill(const struct row *row, struct sl_stop victim[4], uint32_t *count)
{
	for (*count = 0; *count < 4; (*count)++) {
		const struct who *who = &row->who[*count];

		if (!who->use)
			break;
		victim[*count] = (struct sl_stop){.client = *count + 1,
			.workload = who->workload,
			.priority = who->priority,
			.held_bytes = who->held,
			.workload_bytes = who->use,
			.request_bytes = who->request,
			.limit_bytes = who->limit,
			.idle = who->idle,
			.proven = who->proven};
	}
}

static void chooses(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct box box = {.row = &rows[i]};
		const struct sl_stops_ask ask = {.priority = 5,
			.stop_idle = 10 * MIN,
			.context = &box,
			.move = move,
			.fits = fits};
		char taken[16] = "", prove[8] = "";
		struct sl_stop victim[4];
		uint32_t count, number, told;

		fill(&rows[i], victim, &count);
		told = sl_stops_choose(victim, count, &ask);
		number = 0;
		for (uint32_t v = 0; v < count; v++) {
			char who[4] = {(char)('0' + victim[v].client)};

			if (victim[v].prove)
				strcat(prove, who);
			if (!victim[v].taken)
				continue;
			number++;
			who[1] = victim[v].reason == SL_REASON_STOP_OVER_LIMIT ? 'o'
				 : victim[v].reason == SL_REASON_STOP_IDLE     ? 'i'
				 : victim[v].reason == SL_REASON_STOP_PRIORITY ? 'p'
									       : '?';
			strcat(taken, who);
		}
		assert_row_text(rows[i].name, taken, rows[i].taken);
		assert_row_text(rows[i].name, prove, rows[i].prove);
		assert_row_u64(rows[i].name, told, number);
		for (uint32_t w = 0; w < 4; w++)
			assert_row_u64(rows[i].name, box.gone[w], 0);
	}
}

/* stop_idle 0: idleness alone stops no process, and none is asked for a proof. */
static void idleness_may_not_count(void **state)
{
	static const struct row row = {
		.who = {{.use = 50}}, .missing = 10, .entitled = true};
	struct box box = {.row = &row};
	struct sl_stops_ask ask = {
		.priority = 5, .context = &box, .move = move, .fits = fits};
	struct sl_stop victim = {.client = 1,
		.priority = 5,
		.held_bytes = 50,
		.workload_bytes = 50,
		.limit_bytes = 90,
		.idle = 3600 * SL_S};

	assert_row_u64("unproven", sl_stops_choose(&victim, 1, &ask), 0);
	assert_false(victim.prove);
	victim.proven = true;
	assert_row_u64("proven", sl_stops_choose(&victim, 1, &ask), 0);
	ask.stop_idle = 1;
	assert_row_u64("where it counts", sl_stops_choose(&victim, 1, &ask), 1);
}

/* A process that was told to end before is chosen first, and still has to end if no other does
 * instead. */
static void told_ones_go_first(void **state)
{
	static const struct row row = {
		.who = {{0, 4, 50, 50, 0, 90, 0, false}, {1, 0, 50, 50, 0, 90, 0, false}},
		.missing = 50,
		.entitled = true};
	struct box box = {.row = &row};
	const struct sl_stops_ask ask = {
		.priority = 5, .context = &box, .move = move, .fits = fits};
	struct sl_stop stop[4];
	uint32_t count;

	fill(&row, stop, &count);
	assert_row_u64("the lower priority", sl_stops_choose(stop, count, &ask), 1);
	assert_row_u64("goes first", stop[0].client, 2);
	fill(&row, stop, &count);
	stop[0].told = true;
	assert_row_u64("but for one", sl_stops_choose(stop, count, &ask), 1);
	assert_row_u64("that was told", stop[0].client, 1);
	assert_true(stop[0].taken);
}

/* The last resort asks for no reason. */
static void any_may_be_stopped(void **state)
{
	static const struct row row = {.who = {{0, 9, 50, 50, 0, 90, 0, false}},
		.missing = 50,
		.entitled = true};
	struct box box = {.row = &row};
	const struct sl_stops_ask ask = {
		.priority = 5, .any = true, .context = &box, .move = move, .fits = fits};
	struct sl_stop stop[4];
	uint32_t count;

	fill(&row, stop, &count);
	assert_row_u64("taken", sl_stops_choose(stop, count, &ask), 1);
	assert_true(stop[0].reason == SL_REASON_STOP_LAST_RESORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses),
		cmocka_unit_test(idleness_may_not_count),
		cmocka_unit_test(told_ones_go_first),
		cmocka_unit_test(any_may_be_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
