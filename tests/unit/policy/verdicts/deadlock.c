#include "../../base/test.h"

#include "../books.h"
#include "policy/verdicts/deadlock.h"

/*
 * Each row: up to four clients, each of its own workload. For each: its bytes on GPU 0 (100
 * to share) and GPU 1 (200), whether it counts as waiting, and its demand on each (0: none).
 * Demands arrive in the order of the clients, GPU 0 before GPU 1.
 */
struct who {
	uint64_t request, held[2], asks[2];
	bool waits;
};

static const struct row {
	const char *name;
	struct who who[4];
	uint32_t degraded_mask, hopeless;
	int victim; /* client, or -1 */
} rows[] = {
	{"nobody waits", {{0, {50, 0}, {0, 0}, false}}, 0, 0, -1},
	{"free is enough", {{0, {50, 0}, {50, 0}, true}}, 0, 0, -1},
	{"one cannot give to itself", {{0, {50, 0}, {51, 0}, true}}, 0, 1, 0},
	{"two embrace", {{0, {50, 0}, {30, 0}, true}, {0, {40, 0}, {30, 0}, true}}, 0, 2,
		1},
	{"one of them still works",
		{{0, {50, 0}, {30, 0}, true}, {0, {40, 0}, {30, 0}, false}}, 0, 0, -1},
	{"a third could give enough",
		{{0, {40, 0}, {30, 0}, true}, {0, {30, 0}, {30, 0}, true},
			{0, {30, 0}, {0, 0}, false}},
		0, 0, -1},
	{"a third could give too little",
		{{0, {40, 0}, {30, 0}, true}, {0, {35, 0}, {30, 0}, true},
			{0, {25, 0}, {0, 0}, false}},
		0, 2, 1},
	{"a chain: each served one saves the next",
		{{0, {30, 0}, {70, 0}, true}, {0, {30, 0}, {40, 0}, true},
			{0, {30, 0}, {10, 0}, true}},
		0, 0, -1},
	{"over two GPUs", {{0, {100, 0}, {0, 150}, true}, {0, {0, 100}, {50, 0}, true}},
		0, 2, 1},
	{"waits on both, only one can be had",
		{{0, {40, 0}, {10, 150}, true}, {0, {0, 100}, {70, 0}, true}}, 0, 2, 1},
	{"an entitled one is no victim",
		{{0, {80, 0}, {30, 0}, true}, {50, {0, 0}, {50, 0}, true}}, 0, 2, 0},
	{"an entitled one is served by what nobody holds",
		{{0, {0, 0}, {0, 0}, false}, {60, {0, 0}, {60, 0}, true}}, 0, 0, -1},
	{"the unclaimed request of a waiter is kept",
		{{50, {0, 0}, {80, 0}, true}, {0, {30, 0}, {30, 0}, true}}, 0, 2, 1},
	{"that of one who works could go",
		{{50, {0, 0}, {0, 0}, false}, {0, {30, 0}, {70, 0}, true}}, 0, 0, -1},
	{"its own request is its own", {{50, {0, 0}, {100, 0}, true}}, 0, 0, -1},
	{"a younger one that holds nothing is no use",
		{{0, {50, 0}, {30, 0}, true}, {0, {40, 0}, {30, 0}, true},
			{0, {0, 0}, {20, 0}, true}},
		0, 3, 1},
	{"nor one that holds too little",
		{{0, {50, 0}, {35, 0}, true}, {0, {40, 0}, {35, 0}, true},
			{0, {5, 0}, {20, 0}, true}},
		0, 3, 1},
	{"nor one that holds elsewhere",
		{{0, {50, 0}, {35, 0}, true}, {0, {40, 0}, {35, 0}, true},
			{0, {0, 150}, {20, 0}, true}},
		0, 3, 1},
	{"if none alone is of use, the youngest",
		{{0, {35, 0}, {70, 0}, true}, {0, {33, 0}, {70, 0}, true},
			{0, {32, 0}, {70, 0}, true}},
		0, 3, 2},
	{"degraded: anything may change",
		{{0, {50, 0}, {30, 0}, true}, {0, {50, 0}, {30, 0}, true}}, 1, 0, -1},
};

struct stage {
	struct books books;
	struct sl_deadlock_claim claim[4];
	struct sl_deadlock_party party[4];
	struct sl_deadlock_demand demand[4][2];
	struct sl_link parties;
	uint64_t lend[SL_LEDGER_GPUS_MAX];
	struct sl_deadlock_scene scene;
};

static void set(struct stage *s, const struct row *row)
{
	memset(s, 0, sizeof(*s));
	books_open(&s->books);
	sl_list_init(&s->parties);
	s->scene = (struct sl_deadlock_scene){.parties = &s->parties,
		.ledger = &s->books.ledger,
		.lend_bytes = s->lend,
		.degraded_mask = row->degraded_mask};
	for (uint32_t i = 0; i < 4; i++) {
		const struct who *who = &row->who[i];
		struct sl_deadlock_party *p = &s->party[i];

		books_bind(&s->books, i, 3, who->request, 200);
		sl_list_init(&p->demands);
		p->holding = &s->books.holding[i];
		p->claim = &s->claim[i];
		p->waits = who->waits;
		for (uint32_t gpu = 0; gpu < 2; gpu++) {
			struct sl_deadlock_demand *d = &s->demand[i][gpu];

			books_hold(&s->books, i, gpu, who->held[gpu]);
			*d = (struct sl_deadlock_demand){.sequence = 1 + 2 * i + gpu,
				.gpu = gpu,
				.bytes = who->asks[gpu]};
			if (!d->bytes)
				continue;
			d->entitled =
				sl_ledger_use(p->holding->account, gpu) + d->bytes <=
				sl_ledger_request(p->holding->account, gpu);
			sl_list_push_tail(&p->demands, &d->of_client);
		}
		if (!sl_list_is_empty(&p->demands))
			sl_list_push_tail(&s->parties, &p->link);
	}
}

static void finds(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_deadlock_plan plan;
		struct stage s;
		int victim = -1;

		set(&s, &rows[i]);
		plan = sl_deadlock_find(&s.scene);
		if (plan.victim)
			victim = (int)(plan.victim->sequence - 1) / 2;
		assert_row_u64(rows[i].name, plan.hopeless, rows[i].hopeless);
		if (victim != rows[i].victim)
			fail_msg("row '%s': the victim is %d, wanted %d", rows[i].name,
				victim, rows[i].victim);
	}
}

/* A burst of lower priority stands on the request of a waiter; of equal priority it does not. */
static void some_stand_on_requests(void **state)
{
	static const struct row row = {
		"", {{50, {0, 0}, {80, 0}, true}, {0, {30, 0}, {30, 0}, true}}, 0, 2, 1};
	struct stage s;

	set(&s, &row);
	assert_row_u64("nobody stands", sl_deadlock_find(&s.scene).hopeless, 2);
	s.claim[0].priority = 1;
	assert_row_u64("it may not", sl_deadlock_find(&s.scene).hopeless, 2);
	s.claim[1].stands = true;
	assert_row_u64("it may", sl_deadlock_find(&s.scene).hopeless, 0);
	s.claim[0].priority = 0;
	assert_row_u64("not on its equals", sl_deadlock_find(&s.scene).hopeless, 2);
}

/* Of a client's two demands the one that could be had anyway is not denied. */
static void the_victim_is_one_that_does_not_fit(void **state)
{
	static const struct row row = {"",
		{{0, {90, 0}, {0, 150}, true}, {0, {0, 100}, {20, 50}, true}}, 0, 2, 1};
	struct sl_deadlock_plan plan;
	struct stage s;

	set(&s, &row);
	plan = sl_deadlock_find(&s.scene);
	assert_row_u64("hopeless", plan.hopeless, 2);
	assert_non_null(plan.victim);
	assert_row_u64("GPU of the victim", plan.victim->gpu, 0);
}

static const struct {
	struct row row;
	bool helps[4];
} helpers[] = {
	{{"who works serves the head",
		 {{0, {30, 0}, {60, 0}, true}, {0, {40, 0}, {10, 0}, false}}, 0, 0, -1},
		{false, false}},
	{{"who waits must be let past",
		 {{0, {30, 0}, {60, 0}, true}, {0, {40, 0}, {10, 0}, true}}, 0, 0, -1},
		{false, true}},
	{{"not if it holds nothing",
		 {{0, {30, 0}, {80, 0}, true}, {0, {0, 0}, {10, 0}, true},
			 {0, {40, 0}, {5, 0}, true}},
		 0, 0, -1},
		{false, false, true}},
	{{"not if it does not fit itself",
		 {{0, {30, 0}, {60, 0}, true}, {0, {40, 0}, {71, 0}, true}}, 0, 0, -1},
		{false, false}},
	{{"the owner never helps itself", {{0, {70, 0}, {60, 10}, true}}, 0, 0, -1},
		{false}},
};

static void finds_helpers(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(helpers); i++) {
		struct stage s;

		set(&s, &helpers[i].row);
		sl_deadlock_helpers(&s.scene, &s.demand[0][0], &s.party[0]);
		for (uint32_t who = 0; who < 4; who++)
			assert_row_u64(helpers[i].row.name, s.party[who].helps,
				helpers[i].helps[who]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(the_victim_is_one_that_does_not_fit),
		cmocka_unit_test(some_stand_on_requests),
		cmocka_unit_test(finds_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
