/*
 * jobspec - what a job executes, as bytes
 *
 * Entries "key=value", each ended by a NUL, in any order but that of equal keys. From `sluice
 * submit` to the daemon in a sealed memfd, stored with who sent it, and from the daemon to
 * sluice-shim with more entries. Values hold any byte but NUL.
 *
 *	arg    one word of the command, at least one; the first is not empty
 *	env    NAME=VALUE of its environment; of several with the same NAME the last counts
 *	dir    the folder it starts in, absolute, exactly one
 *	umask  octal, at most one; 022 without
 *	preempt-delay  milliseconds that it waits for room before others are stopped for it, at
 *	       most one; 0 without
 * Only from the daemon to the shim:
 *	uid, gid       numbers, exactly one of each
 *	group          numbers, any number of times
 *	limit          "RESOURCE SOFT HARD", numbers of setrlimit(2), at most one of each resource
 *	               that Linux has; those of who submitted
 *	rights         "CAPABILITIES NO_NEW_PRIVS LOGIN", decimal: a bit for each capability that
 *	               the program may ever have, 0 or 1, and the user of the audit trail,
 *	               4294967295 for none; those of the submitter, at most one
 *	task, attempt  numbers, at most one of each, for the shim's name in lists of processes
 *
 * Pure but for the memfds; no locks. libc only.
 */
#ifndef SL_WIRE_JOBSPEC_H
#define SL_WIRE_JOBSPEC_H

#include "base/error.h"
#include "base/sl.h"

#define SL_JOBSPEC_BYTES_MAX   (4u << 20)
#define SL_JOBSPEC_ENTRIES_MAX 65536
/* What the daemon may add to one that is as large as it may be: the groups of a user with
 * NGROUPS_MAX of them, and a few more. */
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

/* Resources that Linux has limits of (RLIM_NLIMITS). */
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

/* Being written, or read whole. Zeroed is empty. */
struct sl_jobspec {
	char *text;
	size_t size, room, entries;
};

enum {
	SL_JOBSPEC_OK = 0,
	SL_JOBSPEC_BAD, /* err names the entry and what is wrong */
};

void sl_jobspec_fini(struct sl_jobspec *spec);
/* -ENOMEM, or -E2BIG beyond what even the daemon may send. Whoever submits uses sl_jobspec_check at
 * the end, which knows the bounds of a submitted one, and says what is wrong. */
SL_MUST_CHECK int sl_jobspec_add(
	struct sl_jobspec *spec, const char *key, const char *value);
/* Bytes of a stranger: every entry known and well-formed, the counts right. from_daemon: uid and so
 * on are there; otherwise none of them may be. */
SL_MUST_CHECK int sl_jobspec_check(
	const char *text, size_t size, bool from_daemon, struct sl_error *err);
/* The value of the next entry of that key at or behind *at (0 at first), or NULL; *at moves behind
 * it. */
const char *sl_jobspec_next(const struct sl_jobspec *spec, const char *key, size_t *at);
/* Of a key that comes once, or fallback. */
uint32_t sl_jobspec_number(
	const struct sl_jobspec *spec, const char *key, uint32_t fallback);
/* Of a value of `limit`; false: it is none. */
SL_MUST_CHECK bool sl_jobspec_limit_parse(
	const char *value, struct sl_jobspec_limit *out);
/* The same of `rights`. */
SL_MUST_CHECK bool sl_jobspec_rights_parse(
	const char *value, struct sl_jobspec_rights *out);
/* All of one key as a NULL-terminated array of pointers into text; NULL without memory. The caller
 * frees the array. */
char **sl_jobspec_all(const struct sl_jobspec *spec, const char *key);
/* The same of env, as execve wants it: of several with the same name the last, in its place. */
char **sl_jobspec_env(const struct sl_jobspec *spec);
/* A sealed memfd of it, close-on-exec; negative errno. */
SL_MUST_CHECK int sl_jobspec_to_fd(const struct sl_jobspec *spec);
/* Takes text and size, which were checked, as a spec; text becomes the spec's. */
void sl_jobspec_take(struct sl_jobspec *spec, char *text, size_t size);
/* Reads one that somebody sent: a sealed memfd of `size` bytes (else SL_JOBSPEC_BAD), checked.
 * *spec was empty, and is so again unless it is SL_JOBSPEC_OK. fd stays the caller's. Negative
 * errno without memory. */
SL_MUST_CHECK int sl_jobspec_from_fd(int fd, size_t size, bool from_daemon,
	struct sl_jobspec *spec, struct sl_error *err);

#endif
