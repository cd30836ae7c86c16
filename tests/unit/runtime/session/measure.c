/*
 * measure - when the daemon is asked to measure, and that no wish for it is lost
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/gate/gate.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
}

static void submit(void)
{
	CHECK_EQ(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_SUCCESS);
}

/* A context was found, without a question for figures: measured all the same, and a burst only
 * once or twice. */
static void body_burst(void)
{
	unsigned int measures;

	start();
	for (int i = 0; i < 10000; i++)
		sl_measure_soon();
	CHECK(fake_wait(&fake.measures, 1));
	measures = FAKE(measures);
	CHECK(measures < 5);
	/* The next wish is heard as well, also while one is being served. */
	sl_measure_soon();
	CHECK(fake_wait(&fake.measures, measures + 1));
	fake_stop();
}

/* Code is loaded when it is first launched, and no hook sees that. */
static void body_work(void)
{
	unsigned int measures;

	start();
	submit(); /* the thread is known from now on, so later work touches nothing */
	sl_measure_soon();
	CHECK(fake_wait(&fake.measures, 1));
	measures = FAKE(measures);
	submit();
	CHECK(fake_wait(&fake.measures, measures + 1));
	fake_stop();
}

/* Wished for while there is no daemon: told to the next. */
static void body_daemon_dies(void)
{
	unsigned int measures;

	start();
	fake_die();
	measures = FAKE(measures);
	sl_measure_soon();
	fake_listen();
	CHECK(fake_wait(&fake.measures, measures + 1));
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X) X(burst) X(work) X(daemon_dies)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
