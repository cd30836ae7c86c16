/*
 * become - from the daemon's user to the task's
 *
 * Root may become anybody, and everything of root is given up: groups, both user ids, what the
 * kernel would kill last. Any other user's daemon runs tasks of that user only, with the groups it
 * has itself.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What programs are used to; above it select(2) writes behind its sets. Each may raise it to the
 * hard limit. */
#define DESCRIPTORS_SOFT 1024

/* The daemon is one of the last that the kernel kills for memory; what it starts is like any other
 * program. To more than that anybody may set it; where even that fails the program runs all the
 * same. */
static void be_killed_like_others(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		(void)0;
	(void)close(fd);
}

/* The program gets those of who submitted it; where they are higher than the daemon's only root can
 * raise them, which this process is not much longer. Its own soft ones stay: a record has to be
 * written whatever the program may. */
static void make_room_for_limits(const struct sl_jobspec *spec)
{
	const char *value;
	size_t at = 0;

	while ((value = sl_jobspec_next(spec, SL_JOBSPEC_LIMIT, &at))) {
		struct sl_jobspec_limit wanted;
		struct rlimit now;

		if (!sl_jobspec_limit_parse(value, &wanted) ||
			getrlimit((enum __rlimit_resource)wanted.resource, &now) < 0 ||
			now.rlim_max >= wanted.hard)
			continue;
		now.rlim_max = wanted.hard;
		(void)setrlimit((enum __rlimit_resource)wanted.resource, &now);
	}
}

/* Whoever's limits nobody knows. */
static void have_limits_like_others(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS_SOFT)
		return;
	limit.rlim_cur = DESCRIPTORS_SOFT;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A program may open its output again by name (/dev/stderr, /proc/self/fd/1), which asks for rights
 * that the descriptor has already. The folder stays shut to the user. */
static void give_log(uid_t uid, gid_t gid)
{
	struct stat stat;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
			stat.st_uid == geteuid() && fchown(fd, uid, gid) < 0)
			continue;
	}
}

static int set_groups(const struct sl_jobspec *spec)
{
	gid_t *groups = calloc(spec->entries, sizeof(*groups));
	size_t count = 0, at = 0;
	const char *value;
	int r;

	if (!groups)
		return -ENOMEM;
	while ((value = sl_jobspec_next(spec, SL_JOBSPEC_GROUP, &at)))
		groups[count++] = (gid_t)strtoul(value, NULL, 10);
	r = setgroups(count, groups) < 0 ? -errno : 0;
	free(groups);
	return r;
}

static int become_as_root(const struct sl_jobspec *spec, uid_t uid, gid_t gid,
	struct sl_shim_failure *failure)
{
	int r;

	give_log(uid, gid);
	r = set_groups(spec);
	/* Where a container has one user only, nobody may set groups, and nobody needs to. */
	if (r < 0 && !(r == -EPERM && uid == 0))
		return sl_shim_fail(failure, -r, "setgroups");
	if (setresgid(gid, gid, gid) < 0)
		return sl_shim_fail(failure, errno, "setgid");
	if (setresuid(uid, uid, uid) < 0)
		return sl_shim_fail(failure, errno, "setuid");
	/* There is no way back, and the user can neither trace this process nor take its
	 * descriptors. */
	if (uid != 0 && (setuid(0) == 0 || geteuid() != uid))
		return sl_shim_fail(failure, EPERM, "setuid");
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return sl_shim_fail(failure, errno, "dumpable");
	return SL_SHIM_OK;
}

int sl_shim_become(const struct sl_jobspec *spec, struct sl_shim_failure *failure)
{
	uid_t uid = sl_jobspec_number(spec, SL_JOBSPEC_UID, UINT32_MAX);
	gid_t gid = sl_jobspec_number(spec, SL_JOBSPEC_GID, UINT32_MAX);

	be_killed_like_others();
	have_limits_like_others();
	make_room_for_limits(spec);
	if (geteuid() == 0)
		return become_as_root(spec, uid, gid, failure);
	return geteuid() == uid && getuid() == uid
		       ? SL_SHIM_OK
		       : sl_shim_fail(failure, EPERM, "setuid");
}
