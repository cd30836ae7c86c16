#include "../../base/test.h"

#include "../books.h"

/* The bytes on GPU 0 after each step of one story. */
struct row {
	const char *name;
	void (*act)(struct books *b);
	uint64_t free, unclaimed, claims, overlap, use; /* use: of workload 0 */
	bool degraded;
};

static void bind_two(struct books *b)
{
	books_bind(b, 0, 1, 40, 100);
	books_bind(b, 1, 3, 30, 60);
}

static void grant(struct books *b)
{
	sl_ledger_grant(&b->ledger, &b->holding[0], 0, 50);
}

static void commit_less(struct books *b)
{
	sl_ledger_commit(&b->ledger, &b->holding[0], 0, 50, 45);
}

static void measure(struct books *b)
{
	sl_ledger_set_hidden(&b->ledger, &b->holding[1], 0, 45);
}

static void free_some(struct books *b)
{
	assert_row_u64("free 10", sl_ledger_free(&b->ledger, &b->holding[0], 0, 10), 10);
}

static void free_too_much(struct books *b)
{
	assert_row_u64(
		"free 99 of 35", sl_ledger_free(&b->ledger, &b->holding[0], 0, 99), 35);
}

static void report(struct books *b)
{
	sl_ledger_set_backing(&b->ledger, &b->holding[0], 0, 70);
}

static void crowd_out(struct books *b)
{
	sl_ledger_set_unmanaged(&b->ledger, 0, 10);
}

static void hide_more(struct books *b)
{
	sl_ledger_set_hidden(&b->ledger, &b->holding[1], 0, 55);
	sl_ledger_set_held(&b->ledger, &b->holding[0], 0, 55);
}

static void raise_the_request(struct books *b)
{
	sl_ledger_change(&b->ledger, &b->account[0], 50, 80);
}

static void lower_it_to_the_limit(struct books *b)
{
	sl_ledger_change(&b->ledger, &b->account[0], 40, 40);
	assert_row_u64("burstable", b->ledger.gpu[0].burstable, 1);
	assert_row_u64("workloads", b->ledger.gpu[0].workloads, 2);
}

static void let_go(struct books *b)
{
	sl_ledger_set_unmanaged(&b->ledger, 0, 0);
	sl_ledger_set_hidden(&b->ledger, &b->holding[1], 0, 0);
	sl_ledger_set_held(&b->ledger, &b->holding[0], 0, 0);
}

static void grant_and_die(struct books *b)
{
	sl_ledger_grant(&b->ledger, &b->holding[0], 0, 20);
	sl_ledger_set_hidden(&b->ledger, &b->holding[0], 0, 15);
	sl_ledger_die(&b->ledger, &b->holding[0]);
}

static void release_more(struct books *b)
{
	sl_ledger_release(&b->ledger, &b->holding[0], 0, 1000);
}

static void release_most(struct books *b)
{
	sl_ledger_release(&b->ledger, &b->holding[0], 0, 35);
}

static void unbind(struct books *b)
{
	sl_ledger_unbind(&b->ledger, &b->account[0]);
}

static void release_all(struct books *b)
{
	sl_ledger_release(&b->ledger, &b->holding[0], 0, 0);
}

static void huge(struct books *b)
{
	sl_ledger_set_hidden(&b->ledger, &b->holding[0], 0, UINT64_MAX);
	sl_ledger_set_hidden(&b->ledger, &b->holding[1], 0, UINT64_MAX);
	sl_ledger_set_unmanaged(&b->ledger, 0, UINT64_MAX);
}

static const struct row story[] = {
	{"requests are unclaimed", bind_two, 100, 70, 70, 0, 0, false},
	{"a grant counts at once", grant, 50, 30, 70, 0, 50, false},
	{"the rest of a grant goes back", commit_less, 55, 30, 70, 0, 45, false},
	{"hidden above the request claims", measure, 20, 0, 75, 0, 45, false},
	{"freed below the request is unclaimed again", free_some, 30, 5, 75, 0, 35,
		false},
	{"freeing too much stops at 0", free_too_much, 65, 40, 75, 0, 0, false},
	{"a report sets: too much is there, and can be taken back", report, 0, 0, 75, 5,
		70, false},
	{"more unmanaged", crowd_out, 0, 0, 75, 15, 70, false},
	{"claims are not covered", hide_more, 0, 0, 100, 25, 70, true},
	{"measured away", let_go, 30, 30, 70, 0, 70, false},
	{"all of the dead is dying", grant_and_die, 5, 70, 70, 65, 0, false},
	{"a release never adds", release_more, 5, 70, 70, 65, 0, false},
	{"a larger request", raise_the_request, 5, 80, 80, 75, 0, false},
	{"a request that is the limit", lower_it_to_the_limit, 5, 70, 70, 65, 0, false},
	{"part of it is gone", release_most, 75, 70, 70, 0, 0, false},
	{"a removed workload claims nothing", unbind, 75, 30, 30, 0, 0, false},
	{"all is gone", release_all, 100, 30, 30, 0, 0, false},
	{"absurd measurements are cut", huge, 0, 0, 2 * SL_LEDGER_BYTES_MAX - 10,
		2 * SL_LEDGER_BYTES_MAX - 10, SL_LEDGER_BYTES_MAX - 10, true},
};

static void keeps_every_sum(void **state)
{
	struct books b;

	books_open(&b);
	for (size_t i = 0; i < SL_ARRAY_LEN(story); i++) {
		const struct row *row = &story[i];
		struct sl_error err = {0};

		row->act(&b);
		assert_row_u64(row->name, sl_ledger_free_bytes(&b.ledger, 0), row->free);
		assert_row_u64(
			row->name, b.ledger.gpu[0].unclaimed_bytes, row->unclaimed);
		assert_row_u64(row->name, b.ledger.gpu[0].claims_bytes, row->claims);
		assert_row_u64(row->name, sl_ledger_overlap(&b.ledger, 0), row->overlap);
		assert_row_u64(row->name, sl_ledger_use(&b.account[0], 0), row->use);
		assert_row_u64(
			row->name, sl_ledger_is_degraded(&b.ledger, 0), row->degraded);
		if (books_audit(&b, &err))
			fail_msg("row '%s': %s", row->name, err.text);
	}
}

static void other_gpus_are_apart(void **state)
{
	struct books b;

	books_open(&b);
	bind_two(&b);
	books_hold(&b, 1, 1, 20);
	assert_row_u64("GPU 0", sl_ledger_free_bytes(&b.ledger, 0), 100);
	assert_row_u64("GPU 1", sl_ledger_free_bytes(&b.ledger, 1), 180);
	assert_row_u64("unclaimed on GPU 1", b.ledger.gpu[1].unclaimed_bytes, 10);
	assert_row_u64("workloads on GPU 0", b.ledger.gpu[0].workloads, 2);
	assert_row_u64("workloads on GPU 1", b.ledger.gpu[1].workloads, 1);
	assert_row_u64(
		"request outside the mask", sl_ledger_request(&b.account[0], 1), 0);
}

/* All that a client has on the host goes to another GPU; what a dead one has stays. */
static void moves_to_another_gpu(void **state)
{
	struct books b;
	struct sl_error err = {0};
	const struct sl_ledger_cell *cell = b.account[0].cell;

	books_open(&b);
	books_bind(&b, 0, 1, 40, 100);
	b.holding[1].account = &b.account[0];
	books_hold(&b, 0, 0, 50);
	books_hold(&b, 0, 1, 5);
	books_hold(&b, 1, 0, 7);
	sl_ledger_set_evicted(&b.ledger, &b.holding[0], 0, 49);
	assert_false(sl_ledger_is_gone(&b.holding[0].cell[0]));
	sl_ledger_set_evicted(&b.ledger, &b.holding[0], 0, 50);
	sl_ledger_set_away(&b.ledger, &b.holding[0], 0, 3);
	assert_true(sl_ledger_is_gone(&b.holding[0].cell[0]));
	sl_ledger_die(&b.ledger, &b.holding[1]);
	sl_ledger_move(&b.ledger, &b.holding[0], 0, 1);
	assert_row_u64("backing", cell[1].backing_bytes, 55);
	assert_row_u64("on the host", cell[1].evicted_bytes, 50);
	assert_row_u64("away", b.ledger.gpu[1].sum.away_bytes, 3);
	assert_row_u64("left behind", cell[0].backing_bytes + cell[0].away_bytes, 0);
	assert_row_u64("dying", b.ledger.gpu[0].sum.dying_bytes, 7);
	assert_row_u64("of all GPUs", b.ledger.evicted_bytes, 50);
	assert_row_u64("touched while it dies", b.account[0].touched, 3);
	sl_ledger_release(&b.ledger, &b.holding[1], 0, 0);
	sl_ledger_move(&b.ledger, &b.holding[0], 1, 0);
	assert_row_u64("touched", b.account[0].touched, 1);
	assert_true(sl_ledger_holds(&b.account[0], 1));
	/* Reports of what is not there. */
	sl_ledger_set_hidden(&b.ledger, &b.holding[0], 1, 0);
	sl_ledger_release(&b.ledger, &b.holding[1], 1, 0);
	assert_row_u64("reports of nothing", b.account[0].touched, 1);
	sl_ledger_set_hidden(&b.ledger, &b.holding[0], 1, 9);
	assert_row_u64("a context", b.account[0].touched, 3);
	assert_false(sl_ledger_holds(&b.account[0], 2));
	sl_ledger_set_hidden(&b.ledger, &b.holding[0], 1, 0);
	assert_row_u64("a context that went", b.account[0].touched, 1);
	b.holding[1].account = &b.account[1];
	if (books_audit(&b, &err))
		fail_msg("%s", err.text);
}

/* The audit is what the simulation relies on: it must find a number that is off by one. */
static void the_audit_finds_each_lie(void **state)
{
	static const char *const names[] = {"backing", "granted", "hidden", "paid",
		"dying", "requests", "unclaimed", "claims", "workloads", "burstable",
		"account"};

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		struct sl_error err = {0};
		struct books b;
		struct sl_ledger_gpu *g = &b.ledger.gpu[0];

		books_open(&b);
		bind_two(&b);
		books_hold(&b, 0, 0, 50);
		assert_row_u64("before", (uint64_t)books_audit(&b, &err), 0);
		switch (i) {
		case 0: g->sum.backing_bytes++; break;
		case 1: g->sum.granted_bytes++; break;
		case 2: g->sum.hidden_bytes++; break;
		case 3: g->sum.paid_bytes++; break;
		case 4: g->sum.dying_bytes++; break;
		case 5: g->requests_bytes++; break;
		case 6: g->unclaimed_bytes++; break;
		case 7: g->claims_bytes++; break;
		case 8: g->workloads++; break;
		case 9: g->burstable++; break;
		default: b.account[0].cell[0].backing_bytes++;
		}
		assert_row_u64(names[i], (uint64_t)books_audit(&b, &err), 1);
		assert_row_contains(names[i], err.text, names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_every_sum),
		cmocka_unit_test(other_gpus_are_apart),
		cmocka_unit_test(moves_to_another_gpu),
		cmocka_unit_test(the_audit_finds_each_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
