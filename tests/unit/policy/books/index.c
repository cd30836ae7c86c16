#include "../../base/test.h"

#include "policy/books/index.h"

#define OBJECTS 1000

static struct sl_index_node objects[OBJECTS];

static void finds_what_is_in_it(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_index index;
	uint32_t seen = 0;

	sl_index_init(&index, arena);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		objects[i].id = i * i; /* neighbours and far ones */
		sl_index_add(&index, &objects[i]);
	}
	for (uint64_t i = 0; i < OBJECTS; i += 2)
		sl_index_remove(&index, &objects[i]);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		struct sl_index_node *wanted = i % 2 ? &objects[i] : NULL;

		if (sl_index_find(&index, i * i) != wanted)
			fail_msg("id %" PRIu64 ": found %p, wanted %p", i * i,
				(void *)sl_index_find(&index, i * i), (void *)wanted);
	}
	for (struct sl_index_node *at = sl_index_next(&index, NULL); at;
		at = sl_index_next(&index, at))
		seen++;
	assert_row_u64("walk", seen, OBJECTS / 2);
	assert_row_u64("count", index.count, OBJECTS / 2);
	sl_arena_free(arena);
}

static void a_steady_population_takes_no_memory(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_index index;
	size_t used;

	sl_index_init(&index, arena);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		objects[i].id = i;
		sl_index_add(&index, &objects[i]);
	}
	used = sl_arena_used_bytes(arena);
	for (uint64_t i = 0; i < 100 * OBJECTS; i++) {
		struct sl_index_node *node = &objects[i % OBJECTS];

		sl_index_remove(&index, node);
		node->id = OBJECTS + i;
		sl_index_add(&index, node);
	}
	assert_row_u64("arena", sl_arena_used_bytes(arena), used);
	sl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_in_it),
		cmocka_unit_test(a_steady_population_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
