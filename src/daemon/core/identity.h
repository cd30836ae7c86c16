/*
 * identity - which process is at the other end of a connected Unix socket
 *
 * The kernel names the user. Its process number is not enough: a process may queue messages, leave
 * the socket to a child and exit, and the number then belongs to an unrelated process. Linux 6.5
 * and later hand out a pidfd of the process itself. On older kernels the process must prove itself:
 * it answers a nonce sent after its pidfd was opened, and the kernel names the sender. No locks.
 */
#ifndef SL_DAEMON_CORE_IDENTITY_H
#define SL_DAEMON_CORE_IDENTITY_H

#include <sys/types.h>

#include "base/sl.h"

#define SL_IDENTITY_NONCE_BYTES 16

struct sl_identity {
	pid_t pid;
	uid_t uid;            /* as at connect(2) */
	int pidfd;            /* owned by the caller */
	uint64_t start_ticks; /* 0: /proc does not show it */
	/* False: pidfd and start_ticks belong to the process that has the number now. */
	bool proven;
};

enum {
	SL_IDENTITY_OK = 0,
	SL_IDENTITY_GONE, /* dead, or in a namespace that the daemon cannot see */
	SL_IDENTITY_OTHER, /* another process answered, or the process has changed its user */
};

/* *out is set only with SL_IDENTITY_OK. Negative errno: no descriptors or memory. */
SL_MUST_CHECK int sl_identity_of_socket(int fd, struct sl_identity *out);

/* While this is true, the process still has its pid and start time. */
bool sl_identity_is_alive(int pidfd);

/* Makes the nonce for a process that is not proven yet. From now on the kernel names the sender of
 * each message on fd. 0 or negative errno. */
SL_MUST_CHECK int sl_identity_ask(int fd, uint8_t nonce[SL_IDENTITY_NONCE_BYTES]);
/* The kernel stops naming senders. Harmless if it never did. */
void sl_identity_asked(int fd);
/* The nonce came back in a message from `sender`. Is the sender process pid, to which pidfd has
 * referred since before the nonce was sent, and is its user still uid? OK, GONE, OTHER; negative
 * errno: no descriptors or memory. */
SL_MUST_CHECK int sl_identity_prove(pid_t sender, pid_t pid, int pidfd, uid_t uid);

#endif
