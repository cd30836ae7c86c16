/*
 * jobspec - the command, environment and rights of a job, as bytes
 *
 * Entries "key=value", each ended by a NUL. Only entries with the same key depend on their order.
 * `sluice submit` sends them to the daemon in a sealed memfd. The daemon stores them with the
 * submitter's user, and sends them to sluice-shim with more entries. A value holds any byte but
 * NUL.
 *
 *	arg    one word of the command, at least one; the first is not empty
 *	env    NAME=VALUE of its environment; of several with the same NAME the last counts
 *	dir    the folder it starts in, absolute, exactly one
 *	umask  octal, at most one; 022 if absent
 *	preempt-delay  milliseconds that the job waits for free memory before other jobs are
 *	       preempted for it, at most one; 0 if absent
 * Only from the daemon to the shim.
 *	uid, gid       numbers, exactly one of each.
 *	group          numbers, any number of times.
 *	limit          "RESOURCE SOFT HARD", the submitter's limits as numbers of setrlimit(2);
 *	               at most one for each resource that Linux has.
 *	rights         "CAPABILITIES NO_NEW_PRIVS LOGIN", decimal, the submitter's, at most one:
 *	               a bit for each capability that the program may ever have; 0 or 1; and the
 *	               login user of the audit trail, 4294967295 for none.
 *	task, attempt  numbers, at most one of each, shown in the shim's name in process lists.
 *
 * Pure but for the memfds; no locks. libc only.
 */
#ifndef SL_WIRE_JOBSPEC_H
#define SL_WIRE_JOBSPEC_H

#include "base/error.h"
#include "base/sl.h"

#define SL_JOBSPEC_BYTES_MAX   (4u << 20)
#define SL_JOBSPEC_ENTRIES_MAX 65536
/* What the daemon may add to a spec of the largest size: NGROUPS_MAX groups of the user, and a few
 * entries more. */
#define SL_JOBSPEC_MORE_BYTES   (2u << 20)
#define SL_JOBSPEC_MORE_ENTRIES (65536 + 64)

#define SL_JOBSPEC_ARG     "arg"
#define SL_JOBSPEC_ENV     "env"
#define SL_JOBSPEC_DIR     "dir"
#define SL_JOBSPEC_UMASK   "umask"
#define SL_JOBSPEC_DELAY   "preempt-delay"
#define SL_JOBSPEC_UID     "uid"
#define SL_JOBSPEC_GID     "gid"
#define SL_JOBSPEC_GROUP   "group"
#define SL_JOBSPEC_LIMIT   "limit"
#define SL_JOBSPEC_RIGHTS  "rights"
#define SL_JOBSPEC_TASK    "task"
#define SL_JOBSPEC_ATTEMPT "attempt"

/* Number of resources with limits on Linux (RLIM_NLIMITS). */
#define SL_JOBSPEC_LIMITS 16

struct sl_jobspec_limit {
	uint32_t resource;
	uint64_t soft, hard; /* UINT64_MAX: none */
};

struct sl_jobspec_rights {
	uint64_t caps;
	uint32_t login;
	bool no_new_privs;
};

/* A spec that is being written, or was read whole. Zeroed is empty. */
struct sl_jobspec {
	char *text;
	size_t size, room, entries;
};

enum {
	SL_JOBSPEC_OK = 0,
	SL_JOBSPEC_BAD, /* err names the entry and what is wrong */
};

void sl_jobspec_fini(struct sl_jobspec *spec);
/* Fails with -ENOMEM, or with -E2BIG beyond what even the daemon may send. A submitted spec has
 * smaller bounds: the submitting program calls sl_jobspec_check at the end, whose err says what is
 * wrong. */
SL_MUST_CHECK int sl_jobspec_add(
	struct sl_jobspec *spec, const char *key, const char *value);
/* Checks untrusted bytes: every entry known and well-formed, each key as often as allowed. With
 * from_daemon the shim's entries (uid and so on) are required; without it they are refused. */
SL_MUST_CHECK int sl_jobspec_check(
	const char *text, size_t size, bool from_daemon, struct sl_error *err);
/* The value of the next entry with that key at or behind *at (0 at first), or NULL; moves *at
 * behind it. */
const char *sl_jobspec_next(const struct sl_jobspec *spec, const char *key, size_t *at);
/* The number of a key that comes once, or fallback if it is absent. */
uint32_t sl_jobspec_number(
	const struct sl_jobspec *spec, const char *key, uint32_t fallback);
/* Parses a value of `limit`; false: it is not one. */
SL_MUST_CHECK bool sl_jobspec_limit_parse(
	const char *value, struct sl_jobspec_limit *out);
/* Parses a value of `rights`; false: it is not one. */
SL_MUST_CHECK bool sl_jobspec_rights_parse(
	const char *value, struct sl_jobspec_rights *out);
/* All values of one key as a NULL-terminated array of pointers into text; NULL without memory. The
 * caller frees the array. */
char **sl_jobspec_all(const struct sl_jobspec *spec, const char *key);
/* The environment for execve, allocated alike: of several values with one name only the last, in
 * its place. */
char **sl_jobspec_env(const struct sl_jobspec *spec);
/* Puts the spec into a sealed memfd, close-on-exec, and returns it; or negative errno. */
SL_MUST_CHECK int sl_jobspec_to_fd(const struct sl_jobspec *spec);
/* Makes *spec of text and size, which were checked; the spec owns text. */
void sl_jobspec_take(struct sl_jobspec *spec, char *text, size_t size);
/* Reads and checks a spec that a peer sent: a sealed memfd of `size` bytes, else SL_JOBSPEC_BAD.
 * *spec must be empty, and stays empty unless the result is SL_JOBSPEC_OK. fd stays the caller's.
 * Negative errno if memory is out. */
SL_MUST_CHECK int sl_jobspec_from_fd(int fd, size_t size, bool from_daemon,
	struct sl_jobspec *spec, struct sl_error *err);

#endif
