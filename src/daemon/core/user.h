/*
 * user - the user behind a connection, with groups
 *
 * Read from the kernel (SO_PEERCRED, SO_PEERGROUPS, prlimit, /proc), so no name service is ever
 * asked. Allocated on the heap, because it may outlive the connection that it was read from: the
 * page's tokens keep a copy. No locks.
 */
#ifndef SL_DAEMON_CORE_USER_H
#define SL_DAEMON_CORE_USER_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/sl.h"

/* A user may be in 65,536 groups; only this many are looked at. */
#define SL_USER_GROUPS_MAX 4096

/* The rights that a process runs with. A program started for it must not have more. */
struct sl_user_rights {
	struct rlimit limits[RLIM_NLIMITS];
	uint64_t
		caps; /* bit per capability: the most that a program it executes can have */
	uint32_t
		login; /* user of its login session, for the audit trail; UINT32_MAX: none */
	bool no_new_privs;
	/* It has seccomp filters that the machine's first process lacks. The daemon cannot give
	 * them to another process. */
	bool filtered;
};

struct sl_user {
	uid_t uid;
	/* Why the daemon must start nothing for this user outside the user's container: "is in a
	 * container" (pids.h); NULL: it may. Other requests are not affected. */
	const char *contained;
	bool has_rights;
	struct sl_user_rights rights;
	uint32_t gid_count;
	uint32_t gids[]; /* the first is the primary group */
};

/* The daemon's own user, with the daemon's rights. NULL: no memory. */
SL_MUST_CHECK struct sl_user *sl_user_self(void);
/* The user at the other end of a connected Unix socket; the caller sets contained. NULL: no memory,
 * or the kernel does not say. */
SL_MUST_CHECK struct sl_user *sl_user_of_socket(int fd);
SL_MUST_CHECK struct sl_user *sl_user_copy(const struct sl_user *who);
/* Accepts NULL. Returns NULL. */
struct sl_user *sl_user_free(struct sl_user *who);
/* Reads the rights of a process that pidfd shows alive. has_rights is false if the process is gone
 * or the kernel does not say. */
void sl_user_ask_rights(struct sl_user *who, pid_t pid, int pidfd);
/* Parses the text of a /proc/PID/status. The process counts as filtered if it has more seccomp
 * filters than common_filters. False: a line is missing. Does not set limits and login in *out. */
SL_MUST_CHECK bool sl_user_rights_parse(
	const char *status, uint64_t common_filters, struct sl_user_rights *out);
/* Reads the groups of the user at the other end of fd, the primary one first. Returns how many. */
size_t sl_user_groups_of_socket(int fd, uint32_t gids[SL_USER_GROUPS_MAX]);

#endif
