/* Hanging looks keep only their own user waiting. */
#include "../../base/test.h"

#include <semaphore.h>

#include "base/clock.h"
#include "daemon/core/aside.h"

static sem_t begun, release;

static void hang(void *work)
{
	unsigned int *count = work;

	(void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	(void)sem_post(&begun);
	(void)sem_wait(&release);
}

static bool one_more(uid_t uid, unsigned int *count)
{
	if (!sl_aside(uid, hang, count))
		return false;
	(void)sem_wait(&begun);
	return true;
}

static void test_bounds(void **state)
{
	unsigned int count = 0;
	bool freed = false;

	(void)state;
	assert_int_equal(sem_init(&begun, 0, 0), 0);
	assert_int_equal(sem_init(&release, 0, 0), 0);
	for (int i = 0; i < SL_ASIDE_EACH; i++)
		assert_true(one_more(7, &count));
	assert_false(one_more(7, &count));
	for (uid_t uid = 8; count < SL_ASIDE_MOST; uid++)
		assert_true(one_more(uid, &count));
	assert_false(one_more(100, &count));
	/* One of them answers after all, whichever. */
	(void)sem_post(&release);
	for (int i = 0; i < 2000 && !freed; i++) {
		freed = one_more(100, &count);
		sl_clock_sleep(5 * SL_MS);
	}
	assert_true(freed);
	assert_int_equal(count, SL_ASIDE_MOST + 1);
	/* The end waits for none of the others. */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
