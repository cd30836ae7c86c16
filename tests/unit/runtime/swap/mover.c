/*
 * mover - chunks between the GPU and the host, against a stub driver and a fake daemon
 *
 * After every scene the books agree with the driver, and reads give what was written.
 */
#include "mover-test.h"

#include "runtime/store/internal.h"

static void body_whole(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	CHECK_EQ(sl_mover_evictable(gpu), ALL_BYTES);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(moved.left_bytes, ALL_BYTES);
	CHECK_EQ(moved.moved_bytes, ALL_BYTES);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES);
	CHECK_EQ(VMM(device_bytes), 0);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(sl_mover_evictable(gpu), 0);
	CHECK_EQ(evict(UINT64_MAX).cause, SL_WIRE_SWAP_NOTHING);
	CHECK(copy_stub.most > 2);
	CHECK_EQ(copy_stub.pageable, 0);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(moved.left_bytes, ALL_BYTES);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	CHECK_EQ(restore().left_bytes, 0);
	end();
}

static uint64_t left_then;
static unsigned int lefts;

static void note_left(const struct sl_gpu *of, const struct sl_moved *moved)
{
	CHECK(of == gpu);
	CHECK(moved->left_bytes > left_then);
	CHECK(moved->left_bytes < ALL_BYTES);
	CHECK_EQ(sl_session_evicted_bytes(gpu), moved->left_bytes);
	/* Reported bytes have been given back. */
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - moved->left_bytes);
	left_then = moved->left_bytes;
	lefts++;
}

/* As many whole chunks come back as fit; the rest later, and all of it unchanged. */
static void body_parts(void)
{
	uint64_t out, back = 0, part;

	begin(32 * SL_MIB, true);
	sl_mover_on_left = note_left;
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK(lefts > 1);
	sl_mover_on_left = NULL;
	CHECK_EQ(restore_part(SL_MIB).left_bytes, 0);
	CHECK_EQ(restore_part(SL_MIB).cause, SL_WIRE_SWAP_NO_CAUSE);
	for (uint64_t most = 2 * SL_MIB; back < ALL_BYTES; most += 2 * SL_MIB) {
		struct sl_moved moved = restore_part(most);

		CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
		part = moved.left_bytes;
		CHECK(part <= most);
		back += part;
		out = sl_session_evicted_bytes(gpu);
		CHECK_EQ(out, ALL_BYTES - back);
		CHECK_EQ(VMM(device_bytes), back);
		CHECK(most <= ALL_BYTES);
	}
	/* Half-way it may leave again. */
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	part = restore_part(ALL_BYTES / 2).left_bytes;
	CHECK(part && part <= ALL_BYTES / 2);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, part);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	end();
}

/* Nothing is pinned: through the ring, or as the driver does it. */
static void body_ring(void)
{
	begin(0, true);
	sl_store_begin(); /* the background pins nothing now */
	give_store(1, 32 * SL_MIB);
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub.pageable, 0);
	end();
}

static void body_unpinnable(void)
{
	begin(32 * SL_MIB, false);
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK(copy_stub.pageable > 0);
	/* It is asked again: the driver may have had no memory for it. */
	copy_stub_let_pin(UINT64_MAX);
	for (int i = 0; i < 60 && sl_store_count().pinned_bytes != 32 * SL_MIB; i++)
		usleep(100000);
	wait_pinned(32 * SL_MIB);
	copy_stub.pageable = 0;
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub.pageable, 0);
	end();
}

/* Places in several files, and larger chunks than any hole. */
static void body_scattered(void)
{
	begin(0, true);
	for (uint32_t i = 0; i < ALL_BYTES / SL_STORE_GRAIN; i++)
		give_store(i + 1, SL_STORE_GRAIN);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(sl_store_count().free_bytes, 0);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	/* The copies' room serves again. */
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	end();
}

static void body_no_host(void)
{
	struct sl_moved moved;

	begin(6 * SL_MIB, true);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_HOST);
	CHECK_EQ(moved.left_bytes, 6 * SL_MIB);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 6 * SL_MIB);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 6 * SL_MIB);
	CHECK_EQ(restore().left_bytes, 6 * SL_MIB);
	end();
}

static void body_no_room(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	vmm_stub.no_memory = 1;
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_ROOM);
	CHECK_EQ(moved.driver_result, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - moved.left_bytes);
	CHECK_EQ(VMM(device_bytes), moved.left_bytes);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	end();
}

/* Freed while it is on the host: never comes back, and the daemon knows which bytes. */
static void body_freed(void)
{
	begin(32 * SL_MIB, true);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	/* What SWAPPED would have told it. */
	fake_lock();
	fake.evicted_bytes = ALL_BYTES;
	fake_unlock();
	CHECK_EQ(cuMemFree_v2(things[0].at), CUDA_SUCCESS);
	things[0].at = 0;
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - 6 * SL_MIB);
	CHECK(fake_wait_u64(&fake.held_bytes, ALL_BYTES - 6 * SL_MIB));
	CHECK_EQ(cuMemFree_v2(things[4].at), CUDA_SUCCESS);
	things[4].at = 0;
	sl_reclaim_spaces(sl_clock_now() + 10 * SL_S);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - 8 * SL_MIB);
	CHECK(fake_wait_u64(&fake.held_bytes, ALL_BYTES - 8 * SL_MIB));
	CHECK_EQ(FAKE(evicted_bytes), ALL_BYTES - 8 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES - 8 * SL_MIB);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 8 * SL_MIB);
	end();
}

static void *free_first(void *arg)
{
	(void)arg;
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(things[0].at), CUDA_SUCCESS);
	return NULL;
}

/* A thread that frees may be held up for any time: the memory it frees comes back all the same. */
static void body_freed_slowly(void)
{
	pthread_t thread;

	begin(32 * SL_MIB, true);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	__atomic_store_n(&copy_stub_hold, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&thread, NULL, free_first, NULL), 0);
	usleep(50000);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	__atomic_store_n(&copy_stub_hold, 0, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	things[0].at = 0;
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 6 * SL_MIB);
	end();
}

/* Freed memory that waits, and empty slabs, go before anything is copied. */
static void body_quarantined(void)
{
	begin(32 * SL_MIB, true);
	CHECK_EQ(cuMemFree_v2(things[4].at), CUDA_SUCCESS);
	things[4].at = 0;
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	CHECK_EQ(evict(2 * SL_MIB).left_bytes, 0);
	CHECK_EQ(copy_stub.out_bytes, 0);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 2 * SL_MIB);
	end();
}

/* Memory that another device may use stays; on its way from the host, it is for that device,
 * too. */
static void body_peers(void)
{
	CUcontext popped;

	begin(32 * SL_MIB, true);
	stub_make_current(1);
	CHECK_EQ(cuCtxEnablePeerAccess(ctx, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_mover_evictable(gpu), 0);
	CHECK_EQ(evict(UINT64_MAX).cause, SL_WIRE_SWAP_NOTHING);
	CHECK_EQ(cuCtxDisablePeerAccess(ctx), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
	CHECK_EQ(sl_mover_evictable(gpu), ALL_BYTES);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	sl_books_lock();
	sl_pagemap_get(things[0].at)->backing.allowed = 2;
	sl_books_unlock();
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK_EQ(vmm_stub_access(things[0].at, 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK_EQ(vmm_stub_access(things[1].at, 1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
	end();
}

static void body_stopped(void)
{
	struct sl_moved moved;
	uint32_t stop = 1;

	begin(32 * SL_MIB, true);
	CHECK(sl_control_close(SL_S));
	sl_mover_evict(gpu, UINT64_MAX, &stop, &moved);
	sl_control_open();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_ABORTED);
	CHECK_EQ(moved.left_bytes, 0);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	end();
}

static void body_broken(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	copy_stub.broken = CUDA_ERROR_ILLEGAL_ADDRESS;
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_BROKEN);
	CHECK_EQ(moved.driver_result, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(moved.left_bytes, 0);
	copy_stub.broken = CUDA_SUCCESS;
	end();
}

/* --- hashes: of the stub's memory, by the definition for CPUs --------------------------------- */

static unsigned int hashed, runs;
static bool hash_fails;
/* At the first and at the last run since runs was 0: which chunk was being hashed, and which copies
 * had begun. */
static uint64_t first_hashed_bytes, last_hashed_bytes, first_out_bytes, last_out_bytes;

static bool hasher_ready(CUdevice dev, CUcontext *out)
{
	CHECK_EQ(dev, 0);
	*out = ctx;
	return true;
}

static CUresult hasher_run(CUcontext in, struct sl_hash_item *items, uint32_t count)
{
	CHECK(in == ctx);
	if (hash_fails)
		return CUDA_ERROR_LAUNCH_FAILED;
	vmm_stub_lock();
	last_out_bytes = copy_stub.out_bytes;
	last_hashed_bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		last_hashed_bytes += items[i].bytes;
	if (!runs++) {
		first_hashed_bytes = last_hashed_bytes;
		first_out_bytes = last_out_bytes;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = items[i].bytes;
		unsigned char *data = vmm_stub_data(items[i].address, 0, &bytes);

		CHECK(data);
		CHECK_EQ(bytes, items[i].bytes);
		sl_hash_bytes(sl_hash_own_key(), data, bytes, &items[i].out);
		hashed++;
	}
	vmm_stub_unlock();
	return CUDA_SUCCESS;
}

static void begin_hashed(void)
{
	begin(32 * SL_MIB, true);
	sl_piece_hasher.ready = hasher_ready;
	sl_piece_hasher.run = hasher_run;
}

static void body_clean(void)
{
	struct sl_moved moved;

	begin_hashed();
	copy_stub_clear(things[0].at, 4 * SL_MIB);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.zero_bytes, 4 * SL_MIB);
	CHECK_EQ(moved.clean_bytes, 0);
	CHECK_EQ(moved.moved_bytes, ALL_BYTES - 4 * SL_MIB);
	CHECK_EQ(sl_store_count().free_bytes, 32 * SL_MIB - moved.moved_bytes);
	CHECK_EQ(restore().zero_bytes, 4 * SL_MIB);
	/* Nothing has changed, so nothing is copied. */
	copy_stub.out_bytes = 0;
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.left_bytes, ALL_BYTES);
	CHECK_EQ(moved.clean_bytes, ALL_BYTES - 4 * SL_MIB);
	CHECK_EQ(copy_stub.out_bytes, 0);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES - 4 * SL_MIB);
	/* One word of one chunk: as little as can change. */
	copy_stub_fill(things[0].at, 1, 1);
	copy_stub_clear(things[0].at + 1, 8);
	copy_stub_fill(things[1].at, 1, 99);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.moved_bytes, 4 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK(copy_stub_is(things[1].at, 1, 99));
	for (size_t i = 0; i < THINGS; i++)
		copy_stub_fill(things[i].at, things[i].bytes, i + 1);
	end();
}

/* Hashing fails: everything is taken for changed. */
static void body_hash_fails(void)
{
	begin_hashed();
	copy_stub_clear(things[0].at, 2 * SL_MIB);
	copy_stub_fill(things[0].at, things[0].bytes, 1);
	hash_fails = true;
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	hash_fails = false;
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK_EQ(evict(UINT64_MAX).clean_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	end();
}

/* There and back, with another chunk's worth of contents if it is to change. Returns the bytes
 * copied. */
static uint64_t trip(unsigned int seed, bool changes)
{
	uint64_t before = copy_stub.out_bytes;

	if (changes)
		copy_stub_fill(things[0].at, 2 * SL_MIB, seed);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK(copy_stub_is(things[0].at, 2 * SL_MIB, seed));
	return copy_stub.out_bytes - before;
}

/* A chunk that changed some times in a row and no longer does is not copied any more, as often as
 * it moves. */
static void body_settles(void)
{
	unsigned int seed = 100;

	begin_hashed();
	(void)trip(++seed, true);
	for (unsigned int changes = 1; changes < 8; changes += 2) {
		for (unsigned int i = 0; i < changes; i++)
			CHECK_EQ(trip(++seed, true), 2 * SL_MIB);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(trip(seed, false), 0);
	}
	copy_stub_fill(things[0].at, things[0].bytes, 1);
	end();
}

/* What changes every time is not looked at every time; and once it does so no longer, little is
 * copied in vain. */
static void body_always_dirty(void)
{
	unsigned int before, skipped = 0, vain = 0;

	begin_hashed();
	for (unsigned int round = 0; round < DIRTY_TRIPS; round++) {
		before = hashed;
		CHECK_EQ(trip(100 + round, true), round ? 2 * SL_MIB : ALL_BYTES);
		CHECK(hashed - before >= 7);
		skipped += 8 - (hashed - before);
	}
	CHECK(skipped >= DIRTY_TRIPS / 6);
	CHECK(skipped <= DIRTY_TRIPS / 2);
	while (trip(100 + DIRTY_TRIPS - 1, false) && vain < DIRTY_TRIPS)
		vain++;
	CHECK(vain <= DIRTY_TRIPS / 8);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(trip(100 + DIRTY_TRIPS - 1, false), 0);
	copy_stub_fill(things[0].at, things[0].bytes, 1);
	end();
}

static void fill_all(uint64_t seed)
{
	for (size_t i = 0; i < THINGS; i++)
		copy_stub_fill(things[i].at, things[i].bytes, i + seed);
}

static uint64_t left_first;

static void note_first_left(const struct sl_gpu *of, const struct sl_moved *moved)
{
	(void)of;
	left_first = left_first ? left_first : moved->left_bytes;
}

/* Evicts all of it, from the first run of the hasher on. */
static struct sl_moved evict_from_first(void)
{
	runs = 0;
	copy_stub.out_bytes = 0;
	return evict(UINT64_MAX);
}

/* While all but one are hashed, that one is already being copied: the one that changed last time,
 * too. */
static void body_hashed_meanwhile(void)
{
	begin_hashed();
	for (unsigned int round = 0; round < 3; round++) {
		CHECK_EQ(evict_from_first().moved_bytes, round ? 2 * SL_MIB : ALL_BYTES);
		CHECK_EQ(runs, 2);
		CHECK_EQ(first_hashed_bytes, 2 * SL_MIB);
		CHECK_EQ(first_out_bytes, 0);
		CHECK_EQ(last_hashed_bytes, ALL_BYTES - 2 * SL_MIB);
		/* In the second round it is not known yet which one it will be. */
		if (round != 1)
			CHECK_EQ(last_out_bytes, 2 * SL_MIB);
		CHECK_EQ(restore().left_bytes, ALL_BYTES);
		copy_stub_fill(things[1].at + 2 * SL_MIB, SL_MIB, 100 + round);
	}
	/* A clean chunk waits for no copy. */
	sl_mover_on_left = note_first_left;
	CHECK_EQ(evict_from_first().moved_bytes, 2 * SL_MIB);
	CHECK_EQ(last_out_bytes, 2 * SL_MIB);
	CHECK_EQ(left_first, ALL_BYTES - 2 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	sl_mover_on_left = NULL;
	/* Chunks that change every time are not hashed, so nothing delays their copy. */
	sl_backing_host_copy(&sl_pagemap_get(things[0].at)->backing, 1)->rest = 2;
	copy_stub_fill(things[0].at + 2 * SL_MIB, SL_MIB, 200);
	CHECK_EQ(evict_from_first().moved_bytes, 2 * SL_MIB);
	CHECK_EQ(runs, 1);
	CHECK_EQ(first_out_bytes, 2 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	/* Of which a part is to leave is not known before. */
	fill_all(300);
	runs = 0;
	copy_stub.out_bytes = 0;
	CHECK_EQ(evict(ALL_BYTES - 2 * SL_MIB).left_bytes, ALL_BYTES - 2 * SL_MIB);
	CHECK_EQ(runs, 1);
	CHECK_EQ(first_out_bytes, 0);
	CHECK_EQ(restore().left_bytes, ALL_BYTES - 2 * SL_MIB);
	fill_all(1);
	end();
}

/* A changed chunk that needs space on the host takes it only from a chunk whose copy is known to be
 * useless. */
static void body_keeps_copies(void)
{
	struct sl_host_copy others = {.where = SL_EVICTED}, *host;
	struct sl_moved moved;

	begin_hashed();
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	host = sl_backing_host_copy(&sl_pagemap_get(things[0].at)->backing, 1);
	sl_store_give(host);
	host->dirty = 9;
	host->rest = 1;
	CHECK(sl_store_take(32 * SL_MIB - (ALL_BYTES - 2 * SL_MIB), 0, &others));
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_HOST);
	CHECK_EQ(moved.clean_bytes, ALL_BYTES - 2 * SL_MIB);
	CHECK_EQ(moved.left_bytes, ALL_BYTES - 2 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES - 2 * SL_MIB);
	sl_store_give(&others);
	end();
}

/* --- near which GPU --------------------------------------------------------------------------- */

static uint64_t used_of(uint32_t number)
{
	uint64_t used = 0;

	sl_store_lock();
	sl_list_foreach (link, &sl_store.files) {
		struct sl_store_file *file =
			SL_LIST_ENTRY(link, struct sl_store_file, link);

		if (file->number == number)
			used = (file->grains - file->free) * SL_STORE_GRAIN;
	}
	sl_store_unlock();
	return used;
}

static uint32_t taken_from(uint32_t ordinal, struct sl_host_copy *host)
{
	CHECK(sl_store_take(2 * SL_MIB, ordinal, host));
	CHECK_EQ(host->places.count, 1);
	return host->places.at[0].file->number;
}

/* Files on the GPU's node are filled first, in whatever order they came; then the others. */
static void body_near(void)
{
	struct sl_host_copy mine = {0}, others = {0};

	begin(0, true);
	give_store_near(1, 16 * SL_MIB, 1u << 1);
	give_store_near(2, 10 * SL_MIB, 1u << 0);
	CHECK_EQ(evict(6 * SL_MIB).left_bytes, 6 * SL_MIB);
	CHECK_EQ(used_of(1), 0);
	CHECK_EQ(used_of(2), 6 * SL_MIB);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES - 6 * SL_MIB);
	CHECK_EQ(used_of(1), ALL_BYTES - 10 * SL_MIB);
	CHECK_EQ(used_of(2), 10 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	/* Another GPU's chunks do not go into files near this one while others have space. */
	CHECK_EQ(taken_from(1, &others), 1);
	/* Once all is taken, copies of resident chunks give way, near ones first. */
	sl_store_give(&others);
	CHECK(sl_store_take(10 * SL_MIB, 1, &others));
	CHECK_EQ(used_of(1), 16 * SL_MIB);
	CHECK_EQ(taken_from(0, &mine), 2);
	sl_store_give(&mine);
	sl_store_give(&others);
	end();
}

/* --- how much leaves -------------------------------------------------------------------------- */

static void body_partial(void)
{
	struct sl_moved moved;

	begin_hashed();
	moved = evict(1);
	CHECK_EQ(moved.left_bytes, 2 * SL_MIB);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	moved = evict(5 * SL_MIB);
	CHECK_EQ(moved.left_bytes, 6 * SL_MIB);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 8 * SL_MIB);
	CHECK_EQ(restore().left_bytes, 8 * SL_MIB);
	/* What costs nothing goes first: clean chunks before others. */
	copy_stub.out_bytes = 0;
	moved = evict(8 * SL_MIB);
	CHECK_EQ(moved.clean_bytes, 8 * SL_MIB);
	CHECK_EQ(copy_stub.out_bytes, 0);
	CHECK_EQ(restore().left_bytes, 8 * SL_MIB);
	copy_stub_clear(things[1].at, 2 * SL_MIB);
	moved = evict(2 * SL_MIB);
	CHECK_EQ(moved.zero_bytes, 2 * SL_MIB);
	CHECK_EQ(restore().left_bytes, 2 * SL_MIB);
	copy_stub_fill(things[1].at, things[1].bytes, 2);
	end();
}

static void choose(uint64_t wanted_bytes, const uint64_t *sizes, const uint8_t *classes,
	size_t count, uint64_t want_sum, size_t want_count)
{
	static const struct sl_piece_kind kind;
	struct sl_pieces pieces = {0};

	for (size_t i = 0; i < count; i++) {
		struct sl_piece piece = {
			.kind = &kind, .bytes = sizes[i] * SL_MIB, .class = classes[i]};

		sl_pieces_add(&pieces, &piece);
	}
	sl_pieces_choose(&pieces, wanted_bytes);
	CHECK_EQ(sl_pieces_bytes(&pieces) / SL_MIB, want_sum);
	CHECK_EQ(pieces.count, want_count);
	free(pieces.at);
}

/* Copies that have begun are waited for first, in the order in which they began. */
static void check_begun_first(void)
{
	static const struct sl_piece_kind kind;
	struct sl_pieces pieces = {0};

	for (unsigned int i = 0; i < 6; i++) {
		struct sl_piece piece = {.kind = &kind,
			.bytes = (i == 1 ? 64 : 2 + i) * SL_MIB,
			.class = i ? SL_PIECE_DIRTY : SL_PIECE_CLEAN,
			.begun = i >= 3,
			.ticket = i};

		sl_pieces_add(&pieces, &piece);
	}
	sl_pieces_choose(&pieces, UINT64_MAX);
	CHECK_EQ(pieces.count, 6);
	CHECK_EQ(pieces.at[0].class, SL_PIECE_CLEAN);
	for (unsigned int i = 1; i < 4; i++) {
		CHECK(pieces.at[i].begun);
		CHECK_EQ(pieces.at[i].ticket, i + 2);
	}
	CHECK_EQ(pieces.at[4].bytes, 64 * SL_MIB);
	free(pieces.at);
}

static void body_choice(void)
{
	static const uint64_t sizes[] = {2, 256, 2, 64, 256, 2, 128};
	static const uint8_t dirty[] = {2, 2, 2, 2, 2, 2, 2},
			     mixed[] = {2, 2, 2, 0, 1, 2, 2};

	choose(0, sizes, dirty, 7, 0, 0);
	choose(1, sizes, dirty, 7, 2, 1);
	choose(2 * SL_MIB, sizes, dirty, 7, 2, 1);
	choose(255 * SL_MIB, sizes, dirty, 7, 256, 1);
	choose(300 * SL_MIB, sizes, dirty, 7, 320, 2);
	choose(512 * SL_MIB, sizes, dirty, 7, 512, 2);
	choose(5 * SL_MIB, sizes, dirty, 7, 6, 3);
	choose(UINT64_MAX, sizes, dirty, 7, 710, 7);
	choose(64 * SL_MIB, sizes, mixed, 7, 64, 1);
	choose(100 * SL_MIB, sizes, mixed, 7, 256, 1);
	choose(320 * SL_MIB, sizes, mixed, 7, 320, 2);
	choose(400 * SL_MIB, sizes, mixed, 7, 64 + 256 + 128, 3);
	check_begun_first();
}

/* Copies of resident chunks go when they are wanted back, and only those. */
static void body_trim(void)
{
	const struct sl_msg_trim all = {.bytes = 32 * SL_MIB};

	begin_hashed();
	give_store(2, 4 * SL_MIB);
	CHECK_EQ(evict(4 * SL_MIB).left_bytes, 4 * SL_MIB);
	CHECK_EQ(sl_store_count().files, 2);
	take_back(4 * SL_MIB);
	for (int i = 0; i < 2000 && sl_store_count().files == 2; i++)
		usleep(1000);
	/* The first holds evicted chunks. */
	CHECK_EQ(sl_store_count().files, 1);
	CHECK_EQ(sl_store_count().bytes, 32 * SL_MIB);
	CHECK_EQ(restore().left_bytes, 4 * SL_MIB);
	/* A report names it until it is said that it has gone, whatever becomes of the line: the
	 * session's lock. */
	sl_session_lock();
	sl_store_on_trim(&all);
	usleep(50000);
	CHECK_EQ(sl_store_count().files, 1);
	sl_session_unlock();
	for (int i = 0; i < 2000 && sl_store_count().files; i++)
		usleep(1000);
	CHECK_EQ(sl_store_count().files, 0);
	CHECK_EQ(copy_stub_pinned(), 0);
	CHECK(fake_wait(&fake.stores_back, 2));
	give_store(3, 16 * SL_MIB);
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	end();
}

/* A TRIM names all that is wanted, also while nothing can be given back yet: repeating it gives no
 * more. */
static void body_trims_say_all(void)
{
	begin(0, true);
	for (uint32_t i = 1; i <= 3; i++)
		give_store(i, 16 * SL_MIB);
	sl_store_begin();
	take_back(16 * SL_MIB);
	take_back(32 * SL_MIB);
	take_back(32 * SL_MIB);
	usleep(20000);
	CHECK_EQ(sl_store_count().files, 3);
	sl_store_end();
	for (int i = 0; i < 2000 && sl_store_count().files > 1; i++)
		usleep(1000);
	usleep(20000);
	CHECK_EQ(sl_store_count().files, 1);
	CHECK(fake_wait(&fake.stores_back, 2));
	end();
}

/* What the driver forgot is pinned again before the next move, and what it kept stays so. */
static void body_pins_lost(void)
{
	begin(0, true);
	give_store(1, 32 * SL_MIB);
	wait_pinned(32 * SL_MIB);
	copy_stub_unpin_all();
	sl_store_doubt();
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub_pinned(), 32 * SL_MIB);
	CHECK_EQ(copy_stub.pageable, 0);
	/* Each piece once. */
	copy_stub_unpin_all();
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub_pinned(), 0);
	sl_store_doubt();
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub_pinned(), 32 * SL_MIB);
	sl_store_doubt();
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub_pinned(), 32 * SL_MIB);
	CHECK_EQ(sl_store_count().pinned_bytes, 32 * SL_MIB);
	/* A driver that refuses: as if it had never been pinned. */
	copy_stub_unpin_all();
	copy_stub_let_pin(0);
	sl_store_doubt();
	sl_store_begin();
	CHECK_EQ(sl_store_count().pinned_bytes, 0);
	copy_stub_let_pin(UINT64_MAX);
	sl_store_end();
	wait_pinned(32 * SL_MIB);
	end();
}

/* Memory pinned in a context that ends is pinned anew in another; memory moves meanwhile, too. */
static void body_context_ends(void)
{
	CUcontext other, popped;

	begin(0, true);
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
	give_store(1, 32 * SL_MIB);
	wait_pinned(32 * SL_MIB);
	sl_store_begin();
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(sl_store_count().pinned_bytes, 0);
	CHECK_EQ(copy_stub_pinned(), 0);
	sl_store_end();
	wait_pinned(32 * SL_MIB);
	ctx = other;
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	check_books(0);
	for (size_t i = 0; i < THINGS; i++) {
		CHECK_EQ(cuMemAlloc_v2(&things[i].at, things[i].bytes), CUDA_SUCCESS);
		copy_stub_fill(things[i].at, things[i].bytes, i + 1);
	}
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub.pageable, 0);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	/* A context that ends while its memory is on the host. */
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	CHECK_EQ(sl_store_count().free_bytes, 32 * SL_MIB);
	CHECK_EQ(VMM(live), 0);
	fake_stop();
}

/* A file that could be cut short under us is never used. */
static void body_bad_store(void)
{
	struct sl_wire_fds fds = {.count = 1};
	union sl_msg msg;

	begin(0, true);
	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = 1;
	msg.store.bytes = 32 * SL_MIB;
	for (int i = 0; i < 3; i++) {
		fds.count = 1;
		fds.fd[0] = memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		/* Not sealed; sealed but short; nothing at all. */
		CHECK_EQ(ftruncate(fds.fd[0], (i == 0 ? 32 : 16) * (off_t)SL_MIB), 0);
		if (i)
			CHECK_EQ(fcntl(fds.fd[0], F_ADD_SEALS, F_SEAL_SHRINK), 0);
		if (i == 2) {
			close(fds.fd[0]);
			fds.count = 0;
		}
		sl_session_lock();
		sl_store_on_store(&msg.store, &fds);
		sl_session_unlock();
		CHECK_EQ(fds.count, 0);
	}
	CHECK_EQ(sl_store_count().files, 0);
	CHECK(fake_wait(&fake.stores_back, 3));
	CHECK_EQ(evict(UINT64_MAX).cause, SL_WIRE_SWAP_NO_HOST);
	end();
}

static void body_faults(void)
{
	begin(32 * SL_MIB, true);
	fail_each(0, ALL_BYTES, check_contents);
	end();
}

static void body_faults_ring(void)
{
	begin(0, false);
	/* The ring and no more. */
	copy_stub_let_pin(16 * SL_MIB);
	give_store(1, 32 * SL_MIB);
	fail_each(0, ALL_BYTES, check_contents);
	end();
}

/* A failed copy is no copy, not even of an earlier version: contents that come again are
 * copied again. */
static void body_faults_clean(void)
{
	bool failed = true;

	begin_hashed();
	for (unsigned int call = 1; failed; call += CALL_STEP) {
		fill_all(1);
		CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
		CHECK_EQ(restore().left_bytes, ALL_BYTES);
		fill_all(50);
		vmm_stub_lock();
		vmm_stub.fault_at = vmm_stub.calls + call;
		vmm_stub_unlock();
		(void)evict(UINT64_MAX);
		vmm_stub_lock();
		failed = vmm_stub.fault_at <= vmm_stub.calls;
		vmm_stub.fault_at = 0;
		vmm_stub_unlock();
		CHECK_EQ(restore().cause, SL_WIRE_SWAP_NO_CAUSE);
		fill_all(1);
		CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
		CHECK_EQ(restore().left_bytes, ALL_BYTES);
		check_contents();
	}
	end();
}

static void body_faults_twice(void)
{
	begin(32 * SL_MIB, true);
	for (unsigned int gap = 1; gap <= 3; gap++)
		fail_each(gap, ALL_BYTES, check_contents);
	end();
}

/* The driver does not say whether a copy has ended: memory that it may still write to is not
 * used again. */
static void body_end_unknown(void)
{
	uint64_t bytes = 64 * SL_MIB;

	begin(bytes, true);
	vmm_stub_row = 3;
	for (unsigned int call = 1; sl_store_count().free_bytes == bytes; call++) {
		CHECK(fail_once(call, false, CUDA_ERROR_INVALID_VALUE, ALL_BYTES,
			check_contents));
		take_back(UINT64_MAX);
		usleep(1000);
		if (sl_store_count().files == 0)
			give_store(1 + call, bytes);
	}
	vmm_stub_row = 0;
	take_back(UINT64_MAX);
	usleep(50000);
	CHECK_EQ(sl_store_count().files, 1);
	CHECK(sl_store_count().free_bytes < bytes);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	check_contents();
	fake_stop();
}

TEST(whole)
TEST(parts)
TEST(ring)
TEST(unpinnable)
TEST(pins_lost)
TEST(scattered)
TEST(no_host)
TEST(no_room)
TEST(freed)
TEST(freed_slowly)
TEST(quarantined)
TEST(peers)
TEST(stopped)
TEST(broken)
TEST(clean)
TEST(hash_fails)
TEST(settles)
TEST(always_dirty)
TEST(hashed_meanwhile)
TEST(keeps_copies)
TEST(near)
TEST(partial)
TEST(choice)
TEST(trim)
TEST(trims_say_all)
TEST(bad_store)
TEST(context_ends)
TEST(faults)
TEST(faults_ring)
TEST(faults_clean)
TEST(faults_twice)
TEST(end_unknown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_unpinnable),
		cmocka_unit_test(test_pins_lost),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_no_host),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_freed_slowly),
		cmocka_unit_test(test_quarantined),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_hash_fails),
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_always_dirty),
		cmocka_unit_test(test_hashed_meanwhile),
		cmocka_unit_test(test_keeps_copies),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_trims_say_all),
		cmocka_unit_test(test_bad_store),
		cmocka_unit_test(test_context_ends),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_faults_ring),
		cmocka_unit_test(test_faults_clean),
		cmocka_unit_test(test_faults_twice),
		cmocka_unit_test(test_end_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
