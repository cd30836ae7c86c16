#include "../base/test.h"

#include "books.h"
#include "policy/verdicts/demand.h"

/* GPU 0: 100 to share; workload 0 requests 40 and holds `held`, workload 1 requests 30. */
static const struct {
	const char *name;
	uint64_t held, other_held, bytes, lend;
	bool degraded, entitled, over_limit;
	enum sl_demand_fit fit;
} rows[] = {
	{"within the request", 0, 0, 40, 0, false, true, false, SL_DEMAND_FITS},
	{"a byte above it", 0, 0, 41, 0, false, false, false, SL_DEMAND_FITS},
	{"all but the other's request", 0, 0, 70, 0, false, false, false, SL_DEMAND_FITS},
	{"into the other's request", 0, 0, 71, 0, false, false, false, SL_DEMAND_WAITS},
	{"lent by the pool", 0, 0, 71, 1, false, false, false, SL_DEMAND_FITS},
	{"lent by the pool, but not there", 0, 60, 41, 50, false, false, false,
		SL_DEMAND_WAITS},
	{"the other has claimed its own", 0, 30, 70, 0, false, false, false,
		SL_DEMAND_FITS},
	{"what is held counts", 30, 0, 10, 0, false, true, false, SL_DEMAND_FITS},
	{"held above the request", 41, 0, 1, 0, false, false, false, SL_DEMAND_FITS},
	{"entitled, but not there", 0, 70, 31, 0, false, true, false, SL_DEMAND_WAITS},
	{"entitled, exactly there", 0, 70, 30, 0, false, true, false, SL_DEMAND_FITS},
	{"degraded: entitled", 0, 0, 40, 0, true, true, false, SL_DEMAND_FITS},
	{"degraded: burst", 0, 0, 41, 0, true, false, false, SL_DEMAND_WAITS},
	{"all but the other's request, bursting", 50, 0, 20, 0, false, false, false,
		SL_DEMAND_FITS},
	{"the last free byte", 60, 30, 10, 0, false, false, false, SL_DEMAND_FITS},
	{"all but the other's request, holding some", 65, 0, 5, 0, false, false, false,
		SL_DEMAND_FITS},
	{"a byte above the limit, and not there", 65, 30, 26, 0, false, false, true,
		SL_DEMAND_OVER_LIMIT},
	{"no sum may wrap", 0, 0, UINT64_MAX, 0, false, false, true,
		SL_DEMAND_OVER_LIMIT},
};

static void fits(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_demand d = {0};
		struct books b;

		books_open(&b);
		books_bind(&b, 0, 1, 40, 90);
		books_bind(&b, 1, 1, 30, 100);
		books_hold(&b, 0, 0, rows[i].held);
		books_hold(&b, 1, 0, rows[i].other_held);
		d.holding = &b.holding[0];
		d.bytes = rows[i].bytes;
		assert_row_u64(rows[i].name, sl_demand_is_entitled(&d), rows[i].entitled);
		assert_row_u64(
			rows[i].name, sl_demand_is_over_limit(&d), rows[i].over_limit);
		assert_row_u64(rows[i].name,
			sl_demand_fits(&d, &b.ledger, rows[i].lend, rows[i].degraded),
			rows[i].fit);
	}
}

static void the_limit_is_looked_at_first(void **state)
{
	struct sl_demand d = {.bytes = 20};
	struct books b;

	books_open(&b);
	books_bind(&b, 0, 1, 0, 50);
	books_hold(&b, 0, 0, 31);
	d.holding = &b.holding[0];
	assert_row_u64(
		"there", sl_demand_fits(&d, &b.ledger, 0, false), SL_DEMAND_OVER_LIMIT);
	books_bind(&b, 1, 1, 0, 100);
	books_hold(&b, 1, 0, 60);
	assert_row_u64("not there", sl_demand_fits(&d, &b.ledger, 0, false),
		SL_DEMAND_OVER_LIMIT);
}

static void orders(void **state)
{
	/* In the order they belong. */
	struct sl_demand d[] = {
		{.entitled = true, .priority = 1, .sequence = 9},
		{.entitled = true, .priority = 0, .sequence = 3},
		{.entitled = true, .priority = 0, .sequence = 4},
		{.entitled = false, .priority = 7, .sequence = 8},
		{.entitled = false, .priority = -2, .sequence = 1},
		{.entitled = false, .priority = -2, .sequence = 2},
	};
	static const size_t arrivals[][6] = {
		{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}};

	for (size_t a = 0; a < SL_ARRAY_LEN(arrivals); a++) {
		struct sl_link queue;
		size_t at = 0;

		sl_list_init(&queue);
		for (size_t i = 0; i < SL_ARRAY_LEN(d); i++)
			sl_demand_enqueue(&queue, &d[arrivals[a][i]]);
		sl_list_foreach (link, &queue)
			assert_ptr_equal(
				SL_LIST_ENTRY(link, struct sl_demand, queue), &d[at++]);
		assert_row_u64("all", at, SL_ARRAY_LEN(d));
	}
}

static void refreshes(void **state)
{
	struct sl_demand burst = {.bytes = 10, .sequence = 1, .entitled = false};
	struct sl_demand was = {.bytes = 30, .sequence = 2, .entitled = true};
	struct sl_link queue;
	bool fell = false;
	struct books b;

	books_open(&b);
	books_bind(&b, 0, 1, 40, 100);
	books_bind(&b, 1, 1, 0, 100);
	books_hold(&b, 0, 0, 20);
	was.holding = &b.holding[0];
	burst.holding = &b.holding[1];
	sl_list_init(&queue);
	sl_demand_enqueue(&queue, &burst);
	sl_demand_enqueue(&queue, &was);
	assert_ptr_equal(queue.next, &was.queue);
	assert_true(sl_demand_refresh(&queue, 77, &fell));
	assert_true(fell);
	assert_row_u64("burst since", was.burst_since, 77);
	assert_ptr_equal(queue.next, &burst.queue);
	fell = false;
	assert_false(sl_demand_refresh(&queue, 78, &fell));
	assert_row_u64("free", sl_ledger_free(&b.ledger, &b.holding[0], 0, 20), 20);
	assert_true(sl_demand_refresh(&queue, 79, &fell));
	assert_false(fell);
	assert_ptr_equal(queue.next, &was.queue);
}

/* Three burst demands of 50, 20 and 10, with 30 free. */
struct trio {
	struct books books;
	struct sl_demand demand[3];
	struct sl_link queue;
	struct sl_demand_scan scan;
};

static void set_trio(struct trio *t, sl_ns now)
{
	static const uint64_t bytes[3] = {50, 20, 10};

	memset(t, 0, sizeof(*t));
	books_open(&t->books);
	books_bind(&t->books, 0, 1, 0, 100);
	books_hold(&t->books, 0, 0, 70);
	sl_list_init(&t->queue);
	for (uint32_t i = 0; i < 3; i++) {
		books_bind(&t->books, i + 1, 1, 0, 100);
		t->demand[i].holding = &t->books.holding[i + 1];
		t->demand[i].bytes = bytes[i];
		t->demand[i].sequence = i + 1;
		sl_demand_enqueue(&t->queue, &t->demand[i]);
	}
	t->scan = (struct sl_demand_scan){.queue = &t->queue,
		.ledger = &t->books.ledger,
		.now = now,
		.head_pass = 1000};
}

static void grant(struct trio *t, struct sl_demand *d)
{
	sl_ledger_grant(&t->books.ledger, d->holding, 0, d->bytes);
	sl_list_unlink(&d->queue);
}

static void those_that_fit_pass_a_new_head(void **state)
{
	struct sl_demand *out;
	struct trio t;

	set_trio(&t, 5000);
	assert_row_u64(
		"first", sl_demand_scan_next(&t.scan, NULL, &out), SL_DEMAND_GRANT);
	assert_ptr_equal(out, &t.demand[1]);
	grant(&t, out);
	assert_row_u64(
		"second", sl_demand_scan_next(&t.scan, NULL, &out), SL_DEMAND_GRANT);
	assert_ptr_equal(out, &t.demand[2]);
	grant(&t, out);
	assert_row_u64("end", sl_demand_scan_next(&t.scan, NULL, &out), SL_DEMAND_END);
	sl_demand_crown(&t.scan, NULL);
	assert_ptr_equal(t.scan.head, &t.demand[0]);
	assert_row_u64("head since", t.demand[0].head_since, 5000);
}

static void none_passes_an_old_head(void **state)
{
	struct sl_demand *out;
	struct trio t;

	for (sl_ns age = 999; age <= 1000; age++) {
		enum sl_demand_step wanted =
			age < 1000 ? SL_DEMAND_GRANT : SL_DEMAND_KEPT;

		set_trio(&t, 5000);
		t.demand[0].head_since = 5000 - age;
		assert_row_u64("passing",
			sl_demand_scan_next(&t.scan, &t.demand[0], &out), wanted);
	}
	assert_row_u64(
		"next", sl_demand_scan_next(&t.scan, &t.demand[0], &out), SL_DEMAND_KEPT);
	assert_ptr_equal(out, &t.demand[2]);
	assert_row_u64(
		"end", sl_demand_scan_next(&t.scan, &t.demand[0], &out), SL_DEMAND_END);
}

static void one_that_backs_off_is_the_head(void **state)
{
	struct sl_demand *out;
	struct trio t;

	set_trio(&t, 5000);
	t.demand[0].bytes = 10; /* fits */
	t.demand[0].retry_at = 5001;
	t.demand[0].refusals = 1;
	t.demand[0].head_since = 4000;
	/* Its time as the head went on while it was granted. */
	assert_row_u64("kept", sl_demand_scan_next(&t.scan, NULL, &out), SL_DEMAND_KEPT);
	assert_ptr_equal(t.scan.head, &t.demand[0]);
	set_trio(&t, 5001);
	t.demand[0].bytes = 10;
	t.demand[0].retry_at = 5001;
	assert_row_u64("due", sl_demand_scan_next(&t.scan, NULL, &out), SL_DEMAND_GRANT);
	assert_ptr_equal(out, &t.demand[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits),
		cmocka_unit_test(the_limit_is_looked_at_first),
		cmocka_unit_test(orders),
		cmocka_unit_test(refreshes),
		cmocka_unit_test(those_that_fit_pass_a_new_head),
		cmocka_unit_test(none_passes_an_old_head),
		cmocka_unit_test(one_that_backs_off_is_the_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
