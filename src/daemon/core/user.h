/*
 * user - the user behind a connection, with groups
 *
 * By the kernel's word (SO_PEERCRED, SO_PEERGROUPS, prlimit, /proc), so no name service is ever
 * asked. A value on the heap: it may outlive the connection that it was read from, as the right
 * that a token stands for does. No locks.
 */
#ifndef SL_DAEMON_CORE_USER_H
#define SL_DAEMON_CORE_USER_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/sl.h"

/* A user may be in 65,536 groups; more than this many are not looked at. */
#define SL_USER_GROUPS_MAX 4096

/* With what a process runs; what is started for it must not have more. */
struct sl_user_rights {
	struct rlimit limits[RLIM_NLIMITS];
	uint64_t
		caps; /* bit per capability: what a program that it executes can have at most */
	uint32_t
		login; /* whose session it is of, for the audit trail; UINT32_MAX: of none */
	bool no_new_privs;
	/* By seccomp, with filters that the machine's first process does not have: nobody can give
	 * those to another process. */
	bool filtered;
};

struct sl_user {
	uid_t uid;
	/* NULL, or why it may use what it is given, and start nothing out here: "is in a container"
	 * (pids.h) */
	const char *contained;
	bool has_rights;
	struct sl_user_rights rights;
	uint32_t gid_count;
	uint32_t gids[]; /* the first is the primary group */
};

/* The daemon's own user, with the daemon's rights. NULL: no memory. */
SL_MUST_CHECK struct sl_user *sl_user_self(void);
/* Whoever is at the other end of a connected Unix socket; contained is for the caller to set. NULL:
 * no memory, or the kernel does not say. */
SL_MUST_CHECK struct sl_user *sl_user_of_socket(int fd);
SL_MUST_CHECK struct sl_user *sl_user_copy(const struct sl_user *who);
/* Takes NULL, too. Returns NULL. */
struct sl_user *sl_user_free(struct sl_user *who);
/* Asks for the rights of a process, which pidfd shows alive meanwhile; has_rights is false where it
 * is not, or the kernel does not say. */
void sl_user_ask_rights(struct sl_user *who, pid_t pid, int pidfd);
/* Of the text of a /proc/PID/status, and the number of seccomp filters that do not count. False: a
 * line is missing. Limits and login stay as they are. */
SL_MUST_CHECK bool sl_user_rights_parse(
	const char *status, uint64_t common_filters, struct sl_user_rights *out);
/* The groups of who is at the other end of fd; the first is the primary one. How many. */
size_t sl_user_groups_of_socket(int fd, uint32_t gids[SL_USER_GROUPS_MAX]);

#endif
