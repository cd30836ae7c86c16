/*
 * lock - one daemon per socket, one daemon per GPU
 *
 * flock(2): the kernel drops it with its holder, so there is nothing stale to clean up. Whoever
 * can open a file can lock it, so the files are their user's alone (mode 0600), and those of GPUs
 * lie in a folder of the user's own. Another user's file is no lock. The holder's pid is written
 * into the file for the message only.
 */
#ifndef SL_DAEMON_CORE_LOCK_H
#define SL_DAEMON_CORE_LOCK_H

#include "base/error.h"

enum {
	SL_LOCK_OK = 0,
	SL_LOCK_BUSY,    /* another process has it; *holder is its pid, or 0 if unknown */
	SL_LOCK_FOREIGN, /* what is there is another user's, or no file: it locks nothing */
};

/* Locks path, which is made if missing (mode 0600). *fd is set on SL_LOCK_OK and keeps the
 * lock until it is closed. Negative errno: the file cannot be had. */
SL_MUST_CHECK int sl_lock_take(const char *path, int *fd, int *holder);
/* Removes the file if it may be removed, and unlocks. *fd -1 is fine; *fd becomes -1. */
void sl_lock_drop(const char *path, int *fd);

/*
 * Locks the GPU with this UUID ("GPU-...") for this daemon, against others of the same user. Every
 * folder of dirs (NULL-terminated; NULL: the user's own, /run/sluice for root, /run/user/UID/sluice
 * and /tmp/sluice-UID) that can be used is
 * used: busy in one is busy; at least one must do. A folder in which others may write is left out,
 * and the log says so. With dirs NULL the system daemon's lock counts for every user, too.
 * fds has room for SL_LOCK_DIRS_MAX.
 */
#define SL_LOCK_DIRS_MAX 2
SL_MUST_CHECK int sl_lock_gpu(const char *const *dirs, const char *uuid_text,
	int fds[SL_LOCK_DIRS_MAX], int *holder);
/* Drops what sl_lock_gpu took. */
void sl_lock_gpu_drop(
	const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX]);

/* --- for tests ------------------------------------------------------------------------------- */

/* The pid that holds a flock on this file, by the text of /proc/locks; 0: none does. */
SL_MUST_CHECK int sl_lock_holder_in(const char *locks, uint64_t device, uint64_t inode);

#endif
