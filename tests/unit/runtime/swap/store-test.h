/*
 * store-test - host memory as the daemon would hand it over
 */
#ifndef SL_TEST_RUNTIME_STORE_TEST_H
#define SL_TEST_RUNTIME_STORE_TEST_H

#include "../child.h"

#include "runtime/session/state.h"
#include "runtime/store/store.h"

#include <fcntl.h>
#include <sys/mman.h>

/* near: a bit for each ordinal. */
static inline void give_store_near(uint32_t number, uint64_t bytes, uint32_t near)
{
	struct sl_wire_fds fds = {.count = 1};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = number;
	msg.store.bytes = bytes;
	msg.store.near = near;
	fds.fd[0] = memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_EQ(ftruncate(fds.fd[0], (off_t)bytes), 0);
	CHECK_EQ(fcntl(fds.fd[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	sl_session_lock();
	sl_store_on_store(&msg.store, &fds);
	sl_session_unlock();
	CHECK_EQ(fds.count, 0);
}

static inline void give_store(uint32_t number, uint64_t bytes)
{
	give_store_near(number, bytes, 1);
}

static inline void wait_pinned(uint64_t bytes)
{
	for (int i = 0; i < 2000 && sl_store_count().pinned_bytes != bytes; i++)
		usleep(1000);
	CHECK_EQ(sl_store_count().pinned_bytes, bytes);
}

static inline void take_back(uint64_t bytes)
{
	struct sl_msg_trim trim = {.bytes = bytes};

	sl_session_lock();
	sl_store_on_trim(&trim);
	sl_session_unlock();
}

#endif
