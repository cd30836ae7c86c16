/*
 * shim - starting the supervisor of a task, and what it left behind
 *
 * sluice-shim (src/shim) is a child of the daemon only until the daemon dies: it has its own
 * session, reaps what its program leaves, and writes the exit record itself, so that the daemon may
 * be killed and started again in between. It gets:
 *
 *	fd 3   the spec (jobspec.h, with the daemon's entries), to be read to its end
 *	fd 4   a pipe: one byte says go. Without it (the daemon died before it had written down who
 *	       runs) the shim leaves without having started anything, and without a record.
 *	fd 5   the exit record, empty, opened for writing
 *	fd 1, 2  the log of the task, opened for appending; fd 0 /dev/null
 *
 * It becomes the user (root becomes anybody, everybody else only himself, with the groups he has;
 * the log becomes the user's, too), starts the program in its folder, with the resource limits of
 * who submitted it, a session and process group of its own, and waits. SIGTERM, SIGINT and SIGHUP
 * are passed on to the whole group; SIGUSR1 kills the program and all that descends from it at
 * once. When the program has ended, what is left of its descendants gets SIGTERM, after 2 s
 * SIGKILL. The record has two lines, each written by one write(2):
 *
 *	begun MS\n                             it was told to go, and has started nothing yet; MS of
 *	                                       the real-time clock
 * and then, fsynced, one of
 *	exit STATUS started MS ended MS\n      STATUS as of wait(2), decimal
 *	error ERRNO WHAT\n                     the program could not be started (WHAT: chdir, exec,
 *	                                       setuid, ...)
 *
 * From its start to its end the shim holds a lock on the record (F_SETLK, the whole file), so that
 * the kernel says which process it is, or that it is gone.
 *
 * While it lives it has its output open a second time, so that the program gets no lease on the
 * file, which the daemon opens to bound it.
 *
 * So whoever finds it empty, while the machine has not been down, knows that nothing was started: a
 * shim that cannot write the first line leaves without having started anything.
 *
 * What not even SIGKILL ends is left behind after 10 s more, and named in the log. A record for
 * which there is no room is tried again for 10 s.
 *
 * A shim that is killed takes its program with it (PR_SET_PDEATHSIG) and leaves the first line
 * alone; what else descended from it is the daemon's to find (jobs/left.c).
 *
 * It is the file sluice-shim beside the daemon's own or where it is installed; SLUICE_SHIM in the
 * daemon's environment names another.
 */
#ifndef SL_DAEMON_JOBS_SHIM_H
#define SL_DAEMON_JOBS_SHIM_H

#include <sys/types.h>

#include "base/error.h"
#include "wire/jobspec.h"

struct sl_shim_start {
	const struct sl_jobspec *spec; /* with the daemon's entries */
	int log_fd, record_fd;         /* stay the caller's */
};

struct sl_shim {
	pid_t pid;
	int pidfd, go_fd; /* the caller's */
};

/* Where it is. 0, or negative errno: there is none that could be executed, and err says the
 * remedy. */
SL_MUST_CHECK int sl_shim_find(char *path, size_t size, struct sl_error *err);

/* Starts it, waiting for `go`. Never blocks for long (posix_spawn or vfork). 0 or negative errno;
 * err says what and the remedy. */
SL_MUST_CHECK int sl_shim_start(
	const struct sl_shim_start *start, struct sl_shim *out, struct sl_error *err);
/* The program starts now. Closes go_fd. A shim that is dead by now is found out by its pidfd. */
void sl_shim_go(struct sl_shim *shim);
/* One that was not told to go is dead when this returns, without having started; one that was runs
 * on. Closes everything. */
void sl_shim_forget(struct sl_shim *shim);
/* Once it is dead: takes the zombie away. Not a child of this daemon's, or not above 0: nothing
 * happens. */
void sl_shim_reap(pid_t pid);

enum sl_shim_ending {
	SL_SHIM_NONE = 0, /* nothing: it has not started its program */
	SL_SHIM_BEGUN,    /* it runs, or was killed */
	SL_SHIM_EXITED,
	SL_SHIM_ERROR, /* never started; error and what */
	SL_SHIM_BAD    /* something else stands there */
};

struct sl_shim_record {
	enum sl_shim_ending ending;
	uint32_t status;               /* of wait(2) */
	uint64_t started_ms, ended_ms; /* started: of BEGUN and EXITED */
	int error;
	char what[32];
};

/* Of the text of a record; total, whatever it holds. */
struct sl_shim_record sl_shim_record_parse(const char *text, size_t size);

#endif
