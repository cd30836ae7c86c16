/*
 * who - the user behind a connection, with groups
 *
 * By the kernel's word (SO_PEERCRED, SO_PEERGROUPS, prlimit), so no name service is ever asked. A
 * value on the heap: it may outlive the connection that it was read from, as the right that a token
 * stands for does. No locks.
 */
#ifndef SL_DAEMON_WHO_H
#define SL_DAEMON_WHO_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/sl.h"

/* A user may be in 65,536 groups; more than this many are not looked at. */
#define SL_WHO_GROUPS_MAX 4096

struct sl_who {
	uid_t uid;
	bool contained; /* in a container: may use what it is given, and start nothing out here */
	/* With which it runs; what it starts is to have no others. False: they are not known. */
	bool has_limits;
	struct rlimit limits[RLIM_NLIMITS];
	uint32_t gid_count;
	uint32_t gids[]; /* the first is the primary group */
};

/* The daemon's own user. NULL: no memory. */
SL_MUST_CHECK struct sl_who *sl_who_self(void);
/* Whoever is at the other end of a connected Unix socket; contained is for the caller to set. NULL:
 * no memory, or the kernel does not say. */
SL_MUST_CHECK struct sl_who *sl_who_of_socket(int fd);
SL_MUST_CHECK struct sl_who *sl_who_copy(const struct sl_who *who);
/* Takes NULL, too. Returns NULL. */
struct sl_who *sl_who_free(struct sl_who *who);
/* Asks for the limits of a process, which pidfd shows alive meanwhile. */
void sl_who_ask_limits(struct sl_who *who, pid_t pid, int pidfd);
/* The groups of who is at the other end of fd; the first is the primary one. How many. */
size_t sl_who_groups_of_socket(int fd, uint32_t gids[SL_WHO_GROUPS_MAX]);

#endif
