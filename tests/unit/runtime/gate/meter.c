/*
 * meter - a slice lets in as many entries as it has, while it lasts, and not one more
 */
#include "../child.h"

#include "runtime/gate/gate.h"
#include "runtime/gate/meter.h"
#include "runtime/process/futex.h"

#include <pthread.h>

#define THREADS 4
#define SLICES  200
#define FAR     (1000 * SL_S)

static uint32_t stop;
static int64_t let_in, inside; /* atomic */
/* Written while no thread is inside: TSan sees every hole. */
static long guarded;

static struct sl_gate_thread *self(void)
{
	return sl_gate_self ? sl_gate_self : sl_gate_attach();
}

static void *submit(void *arg)
{
	struct sl_gate_thread *me = self();
	long seen = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		sl_gate_enter(me);
		__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&let_in, 1, __ATOMIC_RELAXED);
		seen += guarded;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
		sl_gate_leave(me);
	}
	return arg ? arg : (void *)seen;
}

static void wait_shut(void)
{
	while (!sl_meter_is_shut()) {
		uint32_t bell = __atomic_load_n(&sl_meter_bell, __ATOMIC_ACQUIRE);

		if (!sl_meter_is_shut())
			sl_futex_wait(&sl_meter_bell, bell, SL_NS_NEVER);
	}
}

static void start(pthread_t *threads)
{
	setenv("SLUICE_SOCKET", "/none", 1);
	sl_gate_start(true);
	sl_meter_shut();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, submit, NULL), 0);
}

static void end(pthread_t *threads)
{
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	sl_meter_open();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(sl_gate_word & ~SL_GATE_FENCED, 0);
}

static int64_t count(void)
{
	return __atomic_load_n(&let_in, __ATOMIC_RELAXED);
}

static void body_counts(void)
{
	pthread_t threads[THREADS];

	start(threads);
	for (uint32_t i = 1; i <= SLICES; i++) {
		int64_t before = count();

		sl_meter_run(i, sl_clock_now() + FAR);
		wait_shut();
		sl_meter_shut();
		CHECK(sl_gate_drain(10 * SL_S));
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		guarded++;
		CHECK_EQ(count() - before, i);
		CHECK_EQ(sl_meter_left(), 0);
	}
	end(threads);
}

/* An entry after the slice's time shuts it, whatever is left. */
static void body_ends_in_time(void)
{
	pthread_t threads[THREADS];

	start(threads);
	sl_meter_run(1u << 30, sl_clock_now());
	wait_shut();
	CHECK(sl_gate_drain(10 * SL_S));
	CHECK_EQ(count(), 0);
	end(threads);
}

/* Other closers hold the gate whatever the meter does. */
static void body_is_one_closer(void)
{
	pthread_t threads[THREADS];

	start(threads);
	for (int i = 0; i < SLICES; i++) {
		int64_t before;

		sl_gate_close();
		CHECK(sl_gate_drain(10 * SL_S));
		before = count();
		guarded++;
		sl_meter_run(2, sl_clock_now() + FAR);
		CHECK_EQ(count(), before);
		sl_gate_open();
		wait_shut();
		sl_meter_shut();
		CHECK(sl_gate_drain(10 * SL_S));
		CHECK_EQ(count(), before + 2);
	}
	end(threads);
}

/* Opened and shut at any moment of a slice, it loses no thread. */
static void body_changes_at_any_moment(void)
{
	pthread_t threads[THREADS];

	start(threads);
	for (uint32_t i = 0; i < SLICES; i++) {
		int64_t before = count();

		sl_meter_run(1 + i % 3, sl_clock_now() + FAR);
		if (i % 2)
			sl_meter_open();
		else
			wait_shut();
		while (count() == before)
			sl_futex_pause(SL_US);
		sl_meter_shut();
		CHECK(sl_gate_drain(10 * SL_S));
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		guarded++;
	}
	end(threads);
}

static void body_child_is_not_metered(void)
{
	setenv("SLUICE_SOCKET", "/none", 1);
	sl_gate_start(true);
	sl_meter_shut();
	sl_gate_forget();
	sl_meter_forget();
	CHECK(!sl_meter_is_on());
	sl_gate_enter(self());
	sl_gate_leave(self());
}

static void counts(void **state)
{
	(void)state;
	in_child(body_counts, 60);
}

static void ends_in_time(void **state)
{
	(void)state;
	in_child(body_ends_in_time, 60);
}

static void is_one_closer(void **state)
{
	(void)state;
	in_child(body_is_one_closer, 60);
}

static void changes_at_any_moment(void **state)
{
	(void)state;
	in_child(body_changes_at_any_moment, 60);
}

static void child_is_not_metered(void **state)
{
	(void)state;
	in_child(body_child_is_not_metered, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(ends_in_time),
		cmocka_unit_test(is_one_closer),
		cmocka_unit_test(changes_at_any_moment),
		cmocka_unit_test(child_is_not_metered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
