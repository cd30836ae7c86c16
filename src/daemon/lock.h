/*
 * lock - one daemon per socket, one daemon per GPU
 *
 * flock(2): the kernel drops it with its holder, so there is nothing stale to clean up. The
 * holder's pid is written into the file for the message only.
 */
#ifndef SL_DAEMON_LOCK_H
#define SL_DAEMON_LOCK_H

#include "base/error.h"

enum {
	SL_LOCK_OK = 0,
	SL_LOCK_BUSY, /* another process has it; *holder is its pid, or 0 if unknown */
};

/* Locks path, which is made if missing (mode 0644). *fd is set on SL_LOCK_OK and keeps the
 * lock until it is closed. Negative errno: the file cannot be had. */
SL_MUST_CHECK int sl_lock_take(const char *path, int *fd, int *holder);
/* Removes the file if it may be removed, and unlocks. *fd -1 is fine; *fd becomes -1. */
void sl_lock_drop(const char *path, int *fd);

/*
 * Locks the GPU with this UUID ("GPU-...") for this daemon. All users' daemons must meet on one
 * file, so every folder of dirs (NULL-terminated; NULL: /run/lock and /tmp) that can be used is
 * used: busy in one is busy; at least one must do. fds has room for SL_LOCK_DIRS_MAX.
 */
#define SL_LOCK_DIRS_MAX 2
SL_MUST_CHECK int sl_lock_gpu(const char *const *dirs, const char *uuid_text,
	int fds[SL_LOCK_DIRS_MAX], int *holder);
/* Drops what sl_lock_gpu took. */
void sl_lock_gpu_drop(
	const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX]);

#endif
