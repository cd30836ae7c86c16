/*
 * sharing - messages of clients that share memory by way of the daemon, for tests
 *
 * A number, which is in its key, names a piece of memory; the descriptors of one piece are copies
 * of one file. The calls assert that the daemon answers as said.
 */
#ifndef SL_TESTS_DAEMON_SHARING_H
#define SL_TESTS_DAEMON_SHARING_H

#include "../rig.h"

void key_of(uint8_t key[16], unsigned int number);
/* Of `count` chunks of 2 MiB, the last one not full. */
void offer(const struct rig_peer *peer, unsigned int key, uint32_t count);
/* Its descriptors: copies of fd. */
void give(const struct rig_peer *peer, unsigned int key, uint32_t count, int fd);
/* The daemon's answer to offer and give. */
void offered(const struct rig_peer *peer, unsigned int key, uint32_t reason);
/* The three of them, answered by yes. */
void share(const struct rig_peer *peer, unsigned int key, uint32_t count, int fd);
/* A message that has the key and nothing else; SETTLED has none. */
void say(const struct rig_peer *peer, enum sl_msg_type type, unsigned int key);
/* To open it. */
void ask(const struct rig_peer *peer, unsigned int key);

/* Descriptors that the daemon has. */
unsigned int daemon_fds(const struct rig *rig);
/* Without the file that it opens for a moment to read it. */
unsigned int daemon_fds_at_rest(const struct rig *rig);

#endif
