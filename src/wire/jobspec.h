/*
 * jobspec - what a job executes, as bytes
 *
 * Entries "key=value", each ended by a NUL, in any order but that of equal keys. From `sluice submit` to the
 * daemon in a sealed memfd, stored as it came, and from the daemon to sluice-shim with more entries. Values hold any byte but NUL.
 *
 *	arg    one word of the command, at least one
 *	env    NAME=VALUE of its environment
 *	dir    the folder it starts in, absolute, exactly one
 *	umask  octal
 * Only from the daemon to the shim:
 *	uid, gid, group   numbers; group any number of times
 *	task, attempt     numbers, for the record
 *
 * Pure; no locks. libc only.
 */
#ifndef SL_WIRE_JOBSPEC_H
#define SL_WIRE_JOBSPEC_H

#include "base/error.h"
#include "base/sl.h"

#define SL_JOBSPEC_BYTES_MAX   (4u << 20)
#define SL_JOBSPEC_ENTRIES_MAX 65536

#define SL_JOBSPEC_ARG     "arg"
#define SL_JOBSPEC_ENV     "env"
#define SL_JOBSPEC_DIR     "dir"
#define SL_JOBSPEC_UMASK   "umask"
#define SL_JOBSPEC_UID     "uid"
#define SL_JOBSPEC_GID     "gid"
#define SL_JOBSPEC_GROUP   "group"
#define SL_JOBSPEC_TASK    "task"
#define SL_JOBSPEC_ATTEMPT "attempt"

/* Being written, or read whole. Zeroed is empty. */
struct sl_jobspec {
	char *text;
	size_t size, room;
};

enum {
	SL_JOBSPEC_OK = 0,
	SL_JOBSPEC_BAD, /* err names the entry and what is wrong */
};

void sl_jobspec_fini(struct sl_jobspec *spec);
/* -ENOMEM, or -E2BIG beyond the bounds. */
SL_MUST_CHECK int sl_jobspec_add(
	struct sl_jobspec *spec, const char *key, const char *value);
/* Bytes of a stranger: every entry known and well-formed, the counts right. from_daemon: uid and so on may be there. */
SL_MUST_CHECK int sl_jobspec_check(
	const char *text, size_t size, bool from_daemon, struct sl_error *err);
/* The value of the next entry of that key at or behind *at (0 at first), or NULL; *at moves behind it. */
const char *sl_jobspec_next(const struct sl_jobspec *spec, const char *key, size_t *at);
/* All of one key as a NULL-terminated array of pointers into text; NULL without memory. The caller frees the array. */
char **sl_jobspec_all(const struct sl_jobspec *spec, const char *key);
/* A sealed memfd of it, close-on-exec; negative errno. */
SL_MUST_CHECK int sl_jobspec_to_fd(const struct sl_jobspec *spec);
/* Reads one that somebody sent: a sealed memfd of `size` bytes (else SL_JOBSPEC_BAD), checked. *spec was empty. Negative errno without memory. */
SL_MUST_CHECK int sl_jobspec_from_fd(int fd, size_t size, bool from_daemon,
	struct sl_jobspec *spec, struct sl_error *err);

#endif
