/*
 * ledger - the software GPU's books, without a process or a socket
 *
 * Bytes are looked at through the memfds, as any process of the box would see them.
 */
#include "../../base/test.h"

#include "base/cuda_types.h"
#include "softgpu/server/ledger.h"

#include <stdlib.h>
#include <unistd.h>

#define GPU_BYTES (64 * SL_MIB)

struct rig {
	struct sl_ledger ledger;
	struct sl_ledger_holder a, b;
};

static struct sl_softgpu_config config(void)
{
	struct sl_softgpu_config c = {.gpus = 2, .memory_bytes = GPU_BYTES};

	return c; /* no reserve, nothing denied, zeros instead of rubbish */
}

static struct rig *rig_new(const struct sl_softgpu_config *c)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	assert_int_equal(sl_ledger_init(&rig->ledger, c), 0);
	sl_ledger_holder_init(&rig->ledger, &rig->a);
	sl_ledger_holder_init(&rig->ledger, &rig->b);
	return rig;
}

static void rig_free(struct rig *rig)
{
	sl_ledger_holder_fini(&rig->ledger, &rig->a);
	sl_ledger_holder_fini(&rig->ledger, &rig->b);
	for (unsigned i = 0; i < rig->ledger.config.gpus; i++) {
		assert_row_u64("used at the end", sl_ledger_used(&rig->ledger, i), 0);
		close(rig->ledger.device[i].memfd);
		free(rig->ledger.device[i].tenant);
		free(rig->ledger.device[i].taken);
	}
	free(rig);
}

static struct sl_ledger_handle *make(
	struct rig *rig, struct sl_ledger_holder *h, uint32_t device, uint64_t bytes)
{
	struct sl_ledger_handle *handle = NULL;

	assert_int_equal(
		sl_ledger_create(&rig->ledger, h, device, bytes, &handle), CUDA_SUCCESS);
	assert_non_null(handle);
	return handle;
}

/* A byte of a handle's first page, read or written the way a process does. */
static unsigned char byte_at(const struct rig *rig, const struct sl_ledger_handle *handle,
	uint64_t offset, int write_instead)
{
	off_t at = (off_t)(handle->extent[0].first * SL_SG_PAGE + offset);
	int fd = rig->ledger.device[handle->device].memfd;
	unsigned char byte = (unsigned char)write_instead;

	if (write_instead)
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	else
		assert_int_equal(pread(fd, &byte, 1, at), 1);
	return byte;
}

static unsigned char first_byte(
	const struct rig *rig, const struct sl_ledger_handle *handle, int write_instead)
{
	return byte_at(rig, handle, 0, write_instead);
}

static void test_capacity(void **state)
{
	struct sl_softgpu_config c = config();
	static const struct {
		const char *name;
		uint64_t bytes;
		int want;
	} rows[] = {
		{"nothing", 0, CUDA_ERROR_INVALID_VALUE},
		{"all", GPU_BYTES, CUDA_SUCCESS},
		{"all less a byte is rounded up", GPU_BYTES - 1, CUDA_SUCCESS},
		{"a byte too much", GPU_BYTES + 1, CUDA_ERROR_OUT_OF_MEMORY},
		{"more than can be counted", UINT64_MAX, CUDA_ERROR_OUT_OF_MEMORY},
		{"one byte is a page", 1, CUDA_SUCCESS},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig *rig = rig_new(&c);
		struct sl_ledger_handle *handle = NULL;
		int r = sl_ledger_create(
			&rig->ledger, &rig->a, 0, rows[i].bytes, &handle);
		uint64_t pages = (rows[i].bytes + SL_SG_PAGE - 1) / SL_SG_PAGE;

		assert_row_u64(rows[i].name, (uint64_t)r, (uint64_t)rows[i].want);
		assert_row_u64(rows[i].name, sl_ledger_used(&rig->ledger, 0),
			r == CUDA_SUCCESS ? pages * SL_SG_PAGE : 0);
		assert_row_u64("the other GPU", sl_ledger_used(&rig->ledger, 1), 0);
		rig_free(rig);
	}
}

static void test_reserve_and_denied(void **state)
{
	struct sl_softgpu_config c = config();
	struct sl_ledger_handle *handle;

	(void)state;
	c.reserve_bytes = 4 * SL_MIB;
	c.deny_mib = 10;
	struct rig *rig = rig_new(&c);
	assert_row_u64("capacity", sl_ledger_capacity(&rig->ledger), 60 * SL_MIB);
	assert_int_equal(sl_ledger_create(&rig->ledger, &rig->a, 0, 52 * SL_MIB, &handle),
		CUDA_ERROR_OUT_OF_MEMORY);
	make(rig, &rig->a, 0, 50 * SL_MIB);
	rig_free(rig);
}

static void test_automatic_sizes(void **state)
{
	struct sl_softgpu_config c = config();

	(void)state;
	c.memory_bytes = 64 * SL_GIB;
	c.reserve_bytes = c.context_bytes = c.launch_bytes = SL_SOFTGPU_AUTO;
	struct rig *rig = rig_new(&c);
	assert_row_u64("reserve", rig->ledger.config.reserve_bytes, 512 * SL_MIB);
	assert_row_u64("context", rig->ledger.config.context_bytes, 256 * SL_MIB);
	assert_row_u64("launch", rig->ledger.config.launch_bytes, 64 * SL_MIB);
	rig_free(rig);
}

/* Every second page is free: no run of two, and yet two pages can be had. */
static void test_scattered_pages(void **state)
{
	struct sl_softgpu_config c = config();
	struct rig *rig = rig_new(&c);
	uint64_t id[GPU_BYTES / SL_SG_PAGE];

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(id); i++)
		id[i] = make(rig, &rig->a, 0, SL_SG_PAGE)->id;
	for (size_t i = 0; i < SL_ARRAY_LEN(id); i += 2)
		assert_int_equal(
			sl_ledger_release(&rig->ledger, &rig->a, id[i]), CUDA_SUCCESS);
	struct sl_ledger_handle *two = make(rig, &rig->b, 0, 2 * SL_SG_PAGE);
	assert_row_u64("extents", two->extent_count, 2);
	assert_int_not_equal(two->extent[0].first, two->extent[1].first);
	make(rig, &rig->b, 0, GPU_BYTES / 2 - 2 * SL_SG_PAGE);
	assert_row_u64("full", sl_ledger_used(&rig->ledger, 0), GPU_BYTES);
	rig_free(rig);
}

static void test_hidden_bytes(void **state)
{
	struct sl_softgpu_config c = config();
	struct rig *rig = rig_new(&c);
	struct sl_ledger *l = &rig->ledger;
	struct sl_ledger_handle *handle;

	(void)state;
	assert_int_equal(
		sl_ledger_hide(l, &rig->a, 0, GPU_BYTES + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(
		sl_ledger_hide(l, &rig->a, 0, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_row_u64("refused ones count nothing", sl_ledger_used(l, 0), 0);
	assert_int_equal(sl_ledger_hide(l, &rig->a, 0, 10 * SL_MIB), CUDA_SUCCESS);
	assert_int_equal(sl_ledger_hide(l, &rig->b, 0, 6 * SL_MIB), CUDA_SUCCESS);
	assert_int_equal(sl_ledger_create(l, &rig->a, 0, 50 * SL_MIB, &handle),
		CUDA_ERROR_OUT_OF_MEMORY);
	make(rig, &rig->a, 0, 48 * SL_MIB);
	assert_row_u64(
		"charged with both", sl_ledger_used_by(l, &rig->a, 0), 58 * SL_MIB);
	assert_row_u64(
		"charged with its own", sl_ledger_used_by(l, &rig->b, 0), 6 * SL_MIB);
	/* No client gives back memory of another. */
	sl_ledger_unhide(l, &rig->b, 0, GPU_BYTES);
	assert_row_u64("after", sl_ledger_used(l, 0), 58 * SL_MIB);
	rig_free(rig);
}

static void test_shared_handle_outlives_its_maker(void **state)
{
	struct sl_softgpu_config c = config();
	struct rig *rig = rig_new(&c);
	struct sl_ledger *l = &rig->ledger;
	struct sl_ledger_handle *handle = make(rig, &rig->a, 0, 4 * SL_MIB);
	uint64_t id = handle->id;

	(void)state;
	assert_null(sl_ledger_find(l, &rig->b, id));
	assert_int_equal(sl_ledger_release(l, &rig->b, id), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(sl_ledger_hold(l, &rig->b, handle), 0);
	assert_int_equal(sl_ledger_hold(l, &rig->b, handle), 0);
	assert_row_u64("the maker pays", sl_ledger_used_by(l, &rig->a, 0), 4 * SL_MIB);
	assert_row_u64("the other does not", sl_ledger_used_by(l, &rig->b, 0), 0);
	sl_ledger_holder_fini(l, &rig->a);
	assert_row_u64("still used", sl_ledger_used(l, 0), 4 * SL_MIB);
	assert_row_u64(
		"now the other pays", sl_ledger_used_by(l, &rig->b, 0), 4 * SL_MIB);
	assert_int_equal(sl_ledger_release(l, &rig->b, id), CUDA_SUCCESS);
	assert_non_null(sl_ledger_find(l, &rig->b, id)); /* held twice */
	assert_int_equal(sl_ledger_release(l, &rig->b, id), CUDA_SUCCESS);
	assert_null(sl_ledger_find(l, NULL, id));
	assert_row_u64("gone", sl_ledger_used(l, 0), 0);
	rig_free(rig);
}

/* The holder of a dead process stays until its teardown is over; then everything comes back. */
static void test_dying_memory(void **state)
{
	struct sl_softgpu_config c = config();
	struct rig *rig = rig_new(&c);
	struct sl_ledger *l = &rig->ledger;
	struct sl_ledger_handle *handle = make(rig, &rig->a, 0, GPU_BYTES - 4 * SL_MIB);

	(void)state;
	assert_int_equal(sl_ledger_hide(l, &rig->a, 0, 4 * SL_MIB), CUDA_SUCCESS);
	assert_int_equal(
		sl_ledger_create(l, &rig->b, 0, 1, &handle), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(sl_ledger_hide(l, &rig->b, 0, 1), CUDA_ERROR_OUT_OF_MEMORY);
	sl_ledger_holder_fini(l, &rig->a);
	assert_row_u64("after teardown", sl_ledger_used(l, 0), 0);
	make(rig, &rig->b, 0, GPU_BYTES);
	rig_free(rig);
}

static void test_bytes_stay_within_a_process(void **state)
{
	struct sl_softgpu_config c = config();

	(void)state;
	c.stale = 1;
	struct rig *rig = rig_new(&c);
	struct sl_ledger *l = &rig->ledger;
	struct sl_ledger_handle *handle = make(rig, &rig->a, 0, GPU_BYTES);
	first_byte(rig, handle, 0x5a);
	byte_at(rig, handle, 1000, 0x5a);
	assert_int_equal(sl_ledger_release(l, &rig->a, handle->id), CUDA_SUCCESS);
	handle = make(rig, &rig->a, 0, GPU_BYTES);
	assert_row_u64("one's own are stale", first_byte(rig, handle, 0), 0x5a);
	assert_int_not_equal(
		byte_at(rig, handle, 1000, 0), 0x5a); /* but not as good as new */
	assert_int_equal(sl_ledger_release(l, &rig->a, handle->id), CUDA_SUCCESS);
	handle = make(rig, &rig->b, 0, GPU_BYTES); /* the first one still lives */
	assert_int_not_equal(first_byte(rig, handle, 0), 0x5a);
	rig_free(rig);
}

static void test_stale(void **state)
{
	struct sl_softgpu_config c = config();

	(void)state;
	struct rig *rig = rig_new(&c);
	assert_row_u64("zeros", first_byte(rig, make(rig, &rig->a, 0, 1), 0), 0);
	rig_free(rig);
	c.stale = 1;
	rig = rig_new(&c);
	assert_int_not_equal(first_byte(rig, make(rig, &rig->a, 0, 1), 0), 0);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_reserve_and_denied),
		cmocka_unit_test(test_automatic_sizes),
		cmocka_unit_test(test_scattered_pages),
		cmocka_unit_test(test_hidden_bytes),
		cmocka_unit_test(test_shared_handle_outlives_its_maker),
		cmocka_unit_test(test_dying_memory),
		cmocka_unit_test(test_bytes_stay_within_a_process),
		cmocka_unit_test(test_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
