/*
 * objects - the table of what we remember about the driver's things
 */
#include "../child.h"

#include "runtime/driver/objects.h"

#include <pthread.h>

#define CONTEXT(n) ((CUcontext)(uintptr_t)(0x1000 + 16 * (n)))

static struct sl_object object(enum sl_object_kind kind, uint64_t key)
{
	return (struct sl_object){
		.kind = kind, .key = key, .ctx = CONTEXT(key % 3), .bytes = key + kind};
}

static void body_put_and_take(void)
{
	struct sl_object a = object(SL_OBJECT_ARRAY, 0x7f0000001000), out;

	CHECK(!sl_objects_take(SL_OBJECT_ARRAY, a.key, &out));
	CHECK(!sl_objects_get(SL_OBJECT_ARRAY, a.key, &out));
	CHECK(sl_objects_put(&a));
	/* Kinds keep keys apart. */
	CHECK(!sl_objects_get(SL_OBJECT_POOL, a.key, &out));
	CHECK(sl_objects_get(SL_OBJECT_ARRAY, a.key, &out));
	CHECK_EQ(out.bytes, a.bytes);
	a.bytes = 9;
	CHECK(sl_objects_put(&a));
	CHECK(sl_objects_take(SL_OBJECT_ARRAY, a.key, &out));
	CHECK_EQ(out.bytes, 9);
	CHECK(!sl_objects_take(SL_OBJECT_ARRAY, a.key, &out));
}

enum { MANY = 20000 };

/* The table grows meanwhile, and nothing gets lost. */
static void body_many(void)
{
	struct sl_object out;

	for (uint64_t key = 0; key < MANY; key++) {
		struct sl_object a = object(1 + key % 5, key * 4096);

		CHECK(sl_objects_put(&a));
	}
	for (uint64_t key = 0; key < MANY; key++) {
		CHECK(sl_objects_get(1 + key % 5, key * 4096, &out));
		CHECK_EQ(out.key, key * 4096);
	}
	for (uint64_t key = 0; key < MANY; key += 2)
		CHECK(sl_objects_take(1 + key % 5, key * 4096, &out));
	for (uint64_t key = 0; key < MANY; key++)
		CHECK_EQ(sl_objects_get(1 + key % 5, key * 4096, &out), key & 1);
}

static unsigned int dropped;

static void on_drop(const struct sl_object *gone)
{
	struct sl_object out;

	CHECK(gone->ctx == CONTEXT(1));
	CHECK(!sl_objects_get(gone->kind, gone->key, &out));
	dropped++;
}

static void body_drop_context(void)
{
	struct sl_object out, lasting = object(SL_OBJECT_POOL, 1);

	for (uint64_t key = 0; key < 300; key++) {
		struct sl_object a = object(SL_OBJECT_ARRAY, key);

		CHECK(sl_objects_put(&a));
	}
	/* Without a context it outlives them all. */
	lasting.ctx = NULL;
	CHECK(sl_objects_put(&lasting));
	sl_objects_drop_context(NULL, on_drop);
	CHECK_EQ(dropped, 0);
	sl_objects_drop_context(CONTEXT(1), on_drop);
	CHECK_EQ(dropped, 100);
	sl_objects_drop_context(CONTEXT(1), on_drop);
	CHECK_EQ(dropped, 100);
	CHECK(sl_objects_get(SL_OBJECT_POOL, 1, &out));
	CHECK(sl_objects_get(SL_OBJECT_ARRAY, 3, &out));
	sl_objects_forget();
	CHECK(!sl_objects_get(SL_OBJECT_ARRAY, 3, &out));
	CHECK(sl_objects_put(&lasting));
}

static void *churn(void *arg)
{
	uint64_t from = (uint64_t)(uintptr_t)arg << 32;

	for (uint64_t i = 0; i < 20000; i++) {
		struct sl_object a = object(SL_OBJECT_MANAGED, from + i % 100), out;

		CHECK(sl_objects_put(&a));
		CHECK(sl_objects_take(SL_OBJECT_MANAGED, a.key, &out));
		CHECK_EQ(out.bytes, a.bytes);
	}
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

#define TEST(name, limit_s)                       \
	static void test_##name(void **state)     \
	{                                         \
		in_child(body_##name, (limit_s)); \
	}
TEST(put_and_take, 20)
TEST(many, 60)
TEST(drop_context, 20)
TEST(threads, 60)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_and_take),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_drop_context),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
