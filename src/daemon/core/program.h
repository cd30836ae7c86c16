/*
 * program - finds and starts the programs of this installation that only the daemon starts
 *
 * Each lies beside sluiced in a build folder, else in libexec/sluice of its prefix; a variable of
 * the environment names another. No locks.
 */
#ifndef SL_DAEMON_CORE_PROGRAM_H
#define SL_DAEMON_CORE_PROGRAM_H

#include <sys/types.h>

#include "base/error.h"

struct sl_program {
	const char *name;
	const char *variable; /* of the environment */
	const char *loss;     /* completes "without it ..." */
};

/* 0, or negative errno: none can be executed, and err names the remedy. */
SL_MUST_CHECK int sl_program_find(
	const struct sl_program *program, char *path, size_t size, struct sl_error *err);

struct sl_program_start {
	char *const
		*args; /* of main(), NULL at the end; the first is the program's name */
	char *const *environment;
	/* The child's descriptors from 0 on; -1 is /dev/null. They stay the caller's. */
	const int *fds;
	size_t fd_count; /* at most SL_PROGRAM_FDS_MAX */
};
#define SL_PROGRAM_FDS_MAX 8

/* Starts it in a session of its own. All signals have their defaults, and are blocked until the
 * program sets its own mask. Never blocks for long (posix_spawn or vfork). 0 or negative errno; err
 * says what failed, and the remedy. *pid stays a child to be reaped, also after an error if it is
 * above 0: then it runs but cannot be watched. */
SL_MUST_CHECK int sl_program_start(const struct sl_program *program,
	const struct sl_program_start *start, pid_t *pid, int *pidfd,
	struct sl_error *err);

#endif
