/*
 * identity - which process is at the other end of a connected Unix socket
 *
 * The user is the kernel's word. The number is not enough: a process may queue messages, leave
 * the socket to a child and exit, and its number then belongs to a stranger. Linux 6.5 and later
 * hand out the process itself. On older kernels the process must prove itself: it answers a nonce
 * that was sent after its pidfd was opened, and the kernel says who answered. No locks.
 */
#ifndef SL_DAEMON_CORE_IDENTITY_H
#define SL_DAEMON_CORE_IDENTITY_H

#include <sys/types.h>

#include "base/sl.h"

#define SL_IDENTITY_NONCE_BYTES 16

struct sl_identity {
	pid_t pid;
	uid_t uid;            /* of connect(2) */
	int pidfd;            /* the caller's */
	uint64_t start_ticks; /* 0: /proc does not show it */
	/* False: pidfd and start are of the process that has the number now. */
	bool proven;
};

enum {
	SL_IDENTITY_OK = 0,
	SL_IDENTITY_GONE,  /* dead, or in a namespace that we cannot see */
	SL_IDENTITY_OTHER, /* another process answered, or one of another user by now */
};

/* *out is set on SL_IDENTITY_OK alone. Negative errno: no descriptors or memory. */
SL_MUST_CHECK int sl_identity_of_socket(int fd, struct sl_identity *out);

/* As long as that is so, pid and start are its own. */
bool sl_identity_is_alive(int pidfd);

/* Makes the nonce for a process that is not proven yet, and has the kernel name the sender of each
 * message on fd from now on. 0 or negative errno. */
SL_MUST_CHECK int sl_identity_ask(int fd, uint8_t nonce[SL_IDENTITY_NONCE_BYTES]);
/* The kernel names the senders no more. Harmless where it did not. */
void sl_identity_asked(int fd);
/* The nonce came back in a message of `sender`: is this the process that pidfd has stood for
 * since before the nonce was sent, and still of user uid? OK, GONE, OTHER; negative errno: no
 * descriptors or memory. */
SL_MUST_CHECK int sl_identity_prove(pid_t sender, pid_t pid, int pidfd, uid_t uid);

#endif
