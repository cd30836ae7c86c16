/*
 * sharing - see the header
 */
#include "sharing.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void key_of(uint8_t key[16], unsigned int number)
{
	memset(key, 0x5a, 16);
	memcpy(key, &number, sizeof(number));
}

void offer(const struct rig_peer *peer, unsigned int key, uint32_t count)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OFFER);
	key_of(msg.ipc_offer.key, key);
	msg.ipc_offer.bytes = count * (2ull << 20) - 1;
	msg.ipc_offer.chunk_bytes = 2 << 20;
	msg.ipc_offer.count = count;
	rig_send(peer, &msg);
}

/* Copies of fd. */
void give(const struct rig_peer *peer, unsigned int key, uint32_t count, int fd)
{
	union sl_msg msg;
	int fds[SL_WIRE_FDS_MAX];

	while (count) {
		uint32_t now = (uint32_t)sl_min_u64(count, SL_WIRE_FDS_MAX);

		for (uint32_t i = 0; i < now; i++)
			fds[i] = fd;
		sl_wire_init(&msg, SL_MSG_IPC_GIVE);
		key_of(msg.ipc_give.key, key);
		msg.ipc_give.fds = now;
		assert_int_equal(sl_wire_send_fds(peer->fd, &msg, fds, now), SL_WIRE_OK);
		count -= now;
	}
}

void offered(const struct rig_peer *peer, unsigned int key, uint32_t reason)
{
	uint8_t bytes[16];
	union sl_msg msg;

	rig_expect(peer, SL_MSG_IPC_OFFERED, &msg);
	key_of(bytes, key);
	assert_memory_equal(msg.ipc_offered.key, bytes, 16);
	assert_int_equal(msg.ipc_offered.reason, reason);
}

void share(const struct rig_peer *peer, unsigned int key, uint32_t count, int fd)
{
	offer(peer, key, count);
	give(peer, key, count, fd);
	offered(peer, key, SL_IPC_OK);
}

void say(const struct rig_peer *peer, enum sl_msg_type type, unsigned int key)
{
	union sl_msg msg;

	sl_wire_init(&msg, type);
	if (type == SL_MSG_IPC_WITHDRAW)
		key_of(msg.ipc_withdraw.key, key);
	rig_send(peer, &msg);
}

void ask(const struct rig_peer *peer, unsigned int key)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_IPC_OPEN);
	key_of(msg.ipc_open.key, key);
	msg.ipc_open.ask = 1000 + key;
	rig_send(peer, &msg);
}

unsigned int daemon_fds(const struct rig *rig)
{
	unsigned int count = 0;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)rig->daemon);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

unsigned int daemon_fds_at_rest(const struct rig *rig)
{
	unsigned int least = UINT32_MAX;

	for (int i = 0; i < 10; i++) {
		unsigned int count = daemon_fds(rig);

		least = count < least ? count : least;
		sl_clock_sleep(5 * SL_MS);
	}
	return least;
}
