/*
 * books-test - the daemon's books as tests of the runtime look at them
 *
 * The library may ask ahead, report later and keep a spare grain for the next call. So a look
 * waits until the fake daemon has read everything, and leaves spare grains out.
 */
#ifndef SL_TEST_RUNTIME_BOOKS_TEST_H
#define SL_TEST_RUNTIME_BOOKS_TEST_H

#include "child.h"
#include "fake.h"
#include "stub.h"

#include "runtime/driver/passed.h"
#include "runtime/session/session.h"

/* GPU 0 of the stub. */
static inline struct sl_gpu *books_gpu(void)
{
	uint8_t uuid[16];
	struct sl_gpu *gpu;

	stub_uuid(0, uuid);
	gpu = sl_session_gpu(uuid);
	CHECK(gpu);
	return gpu;
}

/* The daemon has so many bytes in its books, nothing that is granted and not used, and no
 * complaint. */
static inline void check_daemon(uint64_t bytes)
{
	(void)sl_passed_trim();
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	if (!fake_wait_u64(&fake.held_bytes, bytes))
		CHECK_EQ(FAKE(held_bytes), bytes);
	CHECK(!FAKE(protocol_error));
}

#endif
