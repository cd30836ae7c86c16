/*
 * lock - one daemon per socket, one daemon per GPU
 *
 * The kernel drops a flock(2) with its holder, so a dead daemon leaves no stale lock. Any process
 * that can open a file can lock it. So only the daemon's user can open its lock files (mode 0600),
 * and those of GPUs are in a folder of that user. A file of another user does not count as a lock.
 * The holder's pid is written into the file only for the message.
 */
#ifndef SL_DAEMON_CORE_LOCK_H
#define SL_DAEMON_CORE_LOCK_H

#include "base/error.h"

enum {
	SL_LOCK_OK = 0,
	SL_LOCK_BUSY,    /* another process has it; *holder is its pid, or 0 if unknown */
	SL_LOCK_FOREIGN, /* another user's file, or not a regular file: it does not lock */
};

/* Locks path, and makes it if missing (mode 0600). *fd is set on SL_LOCK_OK and keeps the lock
 * until it is closed. Negative errno: the file cannot be opened. */
SL_MUST_CHECK int sl_lock_take(const char *path, int *fd, int *holder);
/* Removes the file if permitted, and unlocks. *fd may be -1; *fd becomes -1. */
void sl_lock_drop(const char *path, int *fd);

/*
 * Locks the GPU with this UUID ("GPU-...") for this daemon, against other daemons of the same user.
 * dirs ends with NULL; dirs itself NULL means the user's own folders: /run/sluice for root, else
 * /run/user/UID/sluice and /tmp/sluice-UID.
 *
 * The lock is taken in every usable folder: BUSY in one is BUSY, and at least one must succeed. A
 * folder in which others may write is left out, and the log says so. With dirs NULL the system
 * daemon's lock also counts for every user. fds has room for SL_LOCK_DIRS_MAX.
 */
#define SL_LOCK_DIRS_MAX 2
SL_MUST_CHECK int sl_lock_gpu(const char *const *dirs, const char *uuid_text,
	int fds[SL_LOCK_DIRS_MAX], int *holder);
/* Drops the locks that sl_lock_gpu took. */
void sl_lock_gpu_drop(
	const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX]);

/* --- for tests ------------------------------------------------------------------------------- */

/* The pid that holds a flock on this file, from the text of /proc/locks; 0: no process does. */
SL_MUST_CHECK int sl_lock_holder_in(const char *locks, uint64_t device, uint64_t inode);

#endif
