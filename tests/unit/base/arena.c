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

/* With small requests and ones of a block of their own, on both sides of the image. */
static void test_image_is_put_back(void **state)
{
	static const size_t sizes[] = {16, 70000, 4000, 200000, 65000, 32};
	unsigned char *old[SL_ARRAY_LEN(sizes)];
	struct sl_arena *arena = sl_arena_new();
	struct sl_arena_image *image;
	size_t used;

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++) {
		old[i] = sl_arena_take(arena, sizes[i]);
		memset(old[i], (int)i + 1, sizes[i]);
	}
	used = sl_arena_used_bytes(arena);
	for (int round = 0; round < 3; round++) {
		image = sl_arena_save(arena);
		for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++) {
			memset(old[i], 0xee, sizes[i]);
			memset(sl_arena_take(arena, sizes[i]), 0xff, sizes[i]);
		}
		/* Once and for all, or to be put back again. */
		sl_arena_put_back(arena, image);
		memset(old[0], 0xee, sizes[0]);
		memset(sl_arena_take(arena, sizes[3]), 0xff, sizes[3]);
		sl_arena_restore(arena, image);
		assert_int_equal(sl_arena_used_bytes(arena), used);
		for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++) {
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(old[i][k], i + 1);
		}
	}
	/* Memory taken meanwhile is free again, and zero. */
	for (int i = 0; i < 40; i++) {
		unsigned char *got = sl_arena_take(arena, 1000);

		for (size_t k = 0; k < 1000; k++)
			assert_int_equal(got[k], 0);
		memset(got, 0xff, 1000);
	}
	assert_int_equal(old[4][64999], 5);
	assert_null(sl_arena_free(arena));
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
		cmocka_unit_test(test_image_is_put_back),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
