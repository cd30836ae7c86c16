#include "test.h"

#include "base/arena.h"
#include "base/list.h"

static void test_takes_are_apart_and_zero(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	unsigned char *last = NULL;

	(void)state;
	/* Sizes around the block size too, so that blocks of their own come in between. */
	for (size_t i = 0; i < 500; i++) {
		size_t size = i % 7 == 0 ? 70000 : 1 + i * 13 % 300;
		unsigned char *got = sl_arena_take(arena, size);

		assert_int_equal((uintptr_t)got % 16, 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(got[k], 0);
		memset(got, 0xff, size);
		assert_true(got != last);
		last = got;
	}
	assert_true(sl_arena_used_bytes(arena) > 72 * 70000);
	assert_null(sl_arena_free(arena));
	assert_null(sl_arena_free(NULL));
}

struct item {
	int value;
	struct sl_link link;
};

static void test_list(void **state)
{
	struct sl_link head = SL_LIST_INIT(head);
	struct item items[4];
	int sum = 0, order = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		items[i].value = i;
		sl_list_init(&items[i].link);
		assert_false(sl_list_is_linked(&items[i].link));
	}
	sl_list_push_tail(&head, &items[1].link);
	sl_list_push_tail(&head, &items[2].link);
	sl_list_push_head(&head, &items[0].link);
	sl_list_push_tail(&head, &items[3].link);
	sl_list_foreach (link, &head)
		assert_int_equal(SL_LIST_ENTRY(link, struct item, link)->value, order++);
	sl_list_foreach_safe (link, &head) {
		struct item *item = SL_LIST_ENTRY(link, struct item, link);

		sum += item->value;
		sl_list_unlink(&item->link);
		sl_list_unlink(&item->link);
	}
	assert_int_equal(sum, 6);
	assert_true(sl_list_is_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_are_apart_and_zero),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
