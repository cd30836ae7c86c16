/*
 * mover-storm - threads that allocate, use and free while memory comes and goes
 *
 * Tests an order's way from the agent to the mover, against a stub driver and a fake daemon. The
 * daemon sends random orders of any size, aborts some, asks for host memory back and adds more.
 * Each thread must find its data whenever it may look, and in the end nothing may be left over.
 */
#include "copy-stub.h"
#include "store-test.h"
#include "../vmm-test.h"

#include "runtime/gate/residency.h"
#include "runtime/link/reclaim.h"
#include "runtime/swap/swap.h"

#include <pthread.h>
#include <string.h>

#define THREADS 3
#define THINGS  16
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ORDERS 20
#else
#define ORDERS 60
#endif

static bool over;      /* atomic */
static uint64_t shown; /* atomic: a handle that is about to end */
static unsigned int checks, made;

struct thing {
	CUdeviceptr at;
	uint64_t bytes, seed;
	CUmemGenericAllocationHandle handle; /* 0: of cuMemAlloc */
};

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void make_mapped(struct thing *thing, uint64_t *state)
{
	thing->bytes = (1 + next_random(state) % 3) * GRAIN;
	thing->handle = create(thing->bytes);
	thing->at = reserve(thing->bytes);
	CHECK_EQ(cuMemMap(thing->at, thing->bytes, 0, thing->handle, 0), CUDA_SUCCESS);
	allow(thing->at, thing->bytes);
}

/* As work would: only while the gate lets it. */
static void use(struct thing *thing, bool fill)
{
	sl_residency_enter();
	if (fill)
		copy_stub_fill(thing->at, thing->bytes, thing->seed);
	else
		CHECK(copy_stub_is(thing->at, thing->bytes, thing->seed));
	sl_residency_leave();
	__atomic_fetch_add(&checks, !fill, __ATOMIC_RELAXED);
}

static void make(struct thing *thing, uint64_t *state)
{
	thing->handle = 0;
	thing->seed = next_random(state);
	if (next_random(state) % 4 == 0) {
		make_mapped(thing, state);
	} else {
		thing->bytes = next_random(state) % 3 ? 1 + next_random(state) % 900000
						      : 1 + next_random(state) % 7000000;
		CHECK_EQ(cuMemAlloc_v2(&thing->at, thing->bytes), CUDA_SUCCESS);
	}
	use(thing, true);
	__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
}

/* Legal at any time. */
static void end_thing(struct thing *thing, uint64_t *state)
{
	if (!thing->handle) {
		CHECK_EQ(cuMemFree_v2(thing->at), CUDA_SUCCESS);
	} else {
		bool release_first = next_random(state) % 2;

		__atomic_store_n(&shown, thing->handle, __ATOMIC_RELAXED);
		if (release_first)
			CHECK_EQ(cuMemRelease(thing->handle), CUDA_SUCCESS);
		if (release_first && next_random(state) % 2)
			use(thing, false);
		CHECK_EQ(cuMemUnmap(thing->at, thing->bytes), CUDA_SUCCESS);
		if (!release_first)
			CHECK_EQ(cuMemRelease(thing->handle), CUDA_SUCCESS);
		CHECK_EQ(cuMemAddressFree(thing->at, thing->bytes), CUDA_SUCCESS);
	}
	thing->at = 0;
}

static void *thread_main(void *arg)
{
	uint64_t state = 77 + *(int *)arg;
	struct thing things[THINGS] = {{0}};

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		struct thing *thing = &things[next_random(&state) % THINGS];

		if (!thing->at)
			make(thing, &state);
		else if (next_random(&state) % 4 == 0)
			end_thing(thing, &state);
		else
			use(thing, false);
		if (next_random(&state) % 16 == 0)
			usleep(200);
	}
	for (size_t i = 0; i < THINGS; i++) {
		if (!things[i].at)
			continue;
		use(&things[i], false);
		end_thing(&things[i], &state);
	}
	return NULL;
}

/* Others may ask for a handle to its very end. */
static void *look_main(void *arg)
{
	CUmemAllocationProp prop;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		for (int i = 0; i < 50; i++)
			(void)cuMemGetAllocationPropertiesFromHandle(
				&prop, __atomic_load_n(&shown, __ATOMIC_RELAXED));
		usleep(50);
	}
	return arg;
}

static void order(enum sl_msg_type type, uint64_t bytes, bool abort_it)
{
	static uint64_t number;
	unsigned int before = FAKE(swappeds);

	fake_send_order(type, ++number, bytes, 5000);
	if (abort_it)
		fake_send_order(SL_MSG_ABORT, number, 0, 0);
	/* A sanitizer on a busy machine makes this slow. */
	for (int i = 0; i < 30 && !fake_wait(&fake.swappeds, before + 1); i++)
		;
	CHECK(FAKE(swappeds) > before);
}

static void body_storm(void)
{
	uint64_t state = 4711;
	pthread_t threads[THREADS], looker;
	int numbers[THREADS];

	setenv("SLUICE_CHUNK_MOST", "2097152", 1);
	start();
	copy_stub_install();
	fake_lock();
	fake.limit_bytes = 4 * SL_GIB;
	fake_unlock();
	give_store(1, 256 * SL_MIB);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK_EQ(pthread_create(&threads[i], NULL, thread_main, &numbers[i]), 0);
	}
	CHECK_EQ(pthread_create(&looker, NULL, look_main, NULL), 0);
	for (uint32_t i = 0; i < ORDERS; i++) {
		uint64_t bytes = next_random(&state) % 3
					 ? next_random(&state) % (64 * SL_MIB)
					 : UINT64_MAX;

		order(SL_MSG_EVICT, bytes, next_random(&state) % 5 == 0);
		if (next_random(&state) % 4 == 0)
			order(SL_MSG_EVICT, UINT64_MAX, false);
		if (next_random(&state) % 4 == 0)
			usleep(next_random(&state) % 3000);
		if (next_random(&state) % 8 == 0)
			give_store(i + 2, 16 * SL_MIB);
		order(SL_MSG_RESTORE, 0, false);
		if (next_random(&state) % 8 == 0)
			take_back(64 * SL_MIB);
		usleep(next_random(&state) % 2000);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(pthread_join(looker, NULL), 0);
	order(SL_MSG_RESTORE, 0, false);
	fprintf(stderr, "%u made, %u looked at, %llu MiB out, %llu MiB back\n", made,
		checks, (unsigned long long)(copy_stub.out_bytes / SL_MIB),
		(unsigned long long)(copy_stub.in_bytes / SL_MIB));
	CHECK(checks > ORDERS);
	CHECK(copy_stub.out_bytes > 0);
	sl_reclaim_spaces(sl_clock_now() + 10 * SL_S);
	finish();
}

static void test_storm(void **state)
{
	(void)state;
	in_child(body_storm, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_storm)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
