/* Units of GPU memory: their names, the key of a container's, and which ones are chosen. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/kubernetes/claims/units.h"

#define A "GPU-fef8089b-4820-abfc-e83e-94318197576e"
#define B "GPU-00000000-4820-abfc-e83e-94318197576e"

static void add(struct sl_units *units, const char *uuid, uint32_t from, uint32_t count)
{
	char id[SL_UNITS_ID_MAX];

	for (uint32_t i = from; i < from + count; i++) {
		(void)sl_units_id(uuid, i, id);
		assert_true(strlen(id) < 64); /* what the kubelet takes */
		assert_true(sl_units_add(units, id, strlen(id)));
	}
}

static void names(void **state)
{
	static const char *const bad[] = {"", "-", "-1", "GPU-", A "-", A "-01", A "-1x",
		A "-4096", A "-99999", A "a-1", "GPU"};
	struct sl_units units = {0};
	char id[SL_UNITS_ID_MAX];

	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++)
		assert_false(sl_units_add(&units, bad[i], strlen(bad[i])));
	assert_int_equal(units.gpu_count, 0);
	assert_string_equal(sl_units_id(A, 4095, id), A "-4095");
	assert_true(sl_units_add(&units, id, strlen(id)));
	assert_true(sl_units_add(&units, id, strlen(id)));
	/* Not all of the bytes are the name's. */
	assert_true(sl_units_add(&units, B "-77", strlen(B) + 2));
	assert_int_equal(units.gpu_count, 2);
	assert_int_equal(units.gpus[0].count, 1);
	assert_true(units.gpus[0].has[4095] && units.gpus[1].has[7]);
	assert_int_equal(sl_units_count(&units), 2);
	sl_units_fini(&units);
}

static void keys(void **state)
{
	struct sl_units units = {0};
	struct sl_error err = {0};
	char key[SL_UNITS_KEY_MAX];

	assert_null(sl_units_one_gpu(&units, &err));
	assert_non_null(strstr(err.text, "at least sluice.dev/memory: 1"));
	add(&units, A, 4000, 3);
	add(&units, A, 12, 1);
	assert_string_equal(sl_units_key(sl_units_one_gpu(&units, &err), key),
		"m-fef8089b4820abfce83e94318197576e-12-4");
	assert_true(sl_units_is_key(key));
	assert_false(sl_units_is_key("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"));
	add(&units, B, 1, 1);
	assert_null(sl_units_one_gpu(&units, &err));
	assert_non_null(strstr(err.text, "2 GPUs"));
	sl_units_fini(&units);
}

static void choosing(void **state)
{
	static const struct {
		uint32_t a, b; /* available, from 10 on */
		uint32_t must_b;
		uint32_t count;
		const char *want; /* NULL: none */
	} rows[] = {
		{4, 6, 0, 4, "m-000000004820abfce83e94318197576e-10-4"},
		{6, 4, 0, 4, "m-fef8089b4820abfce83e94318197576e-10-4"},
		{4, 4, 0, 4, "m-fef8089b4820abfce83e94318197576e-10-4"},
		{3, 3, 0, 4, NULL}, /* enough together */
		{0, 0, 0, 1, NULL},
		/* What an init container had goes on. */
		{9, 4, 2, 4, "m-000000004820abfce83e94318197576e-10-4"},
		{9, 4, 2, 5, NULL},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_units available = {0}, must = {0}, out = {0};
		struct sl_error err = {0};
		char key[SL_UNITS_KEY_MAX];
		int r;

		add(&available, A, 10, rows[i].a);
		add(&available, B, 10, rows[i].b);
		add(&must, B, 12, rows[i].must_b);
		r = sl_units_choose(&available, &must, rows[i].count, &out, &err);
		assert_int_equal(r, rows[i].want ? 0 : -ENOSPC);
		if (rows[i].want)
			assert_string_equal(
				sl_units_key(sl_units_one_gpu(&out, &err), key),
				rows[i].want);
		else
			assert_non_null(strstr(err.text, "ask for fewer"));
		if (rows[i].want && rows[i].must_b)
			assert_true(out.gpus[0].has[12] && out.gpus[0].has[13]);
		sl_units_fini(&available);
		sl_units_fini(&must);
		sl_units_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(keys),
		cmocka_unit_test(choosing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
