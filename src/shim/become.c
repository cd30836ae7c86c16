/*
 * become - from the daemon's user to the task's
 *
 * Root may become anybody, and everything of root is given up: groups, both user ids, capabilities
 * that the submitter does not have, keys, what the kernel would kill last. Any other user's daemon
 * runs tasks of that user only, with the groups it has itself.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

/* More than Linux has. */
#define CAPS_MAX 64

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

/* --- Rights. --- */

/* Capabilities that a program would have by inheritance alone. */
static bool drop_inherited(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	/* Linux before 4.3 knows no ambient ones. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	data[0].inheritable = data[1].inheritable = 0;
	return syscall(SYS_capset, &header, data) == 0;
}

/* False: one of those that the program must not get cannot be given up. */
static bool drop_bounding(uint64_t caps)
{
	bool all = true;

	for (int cap = 0; cap < CAPS_MAX; cap++) {
		if (!(caps >> cap & 1) && prctl(PR_CAPBSET_READ, cap) == 1)
			all = prctl(PR_CAPBSET_DROP, cap) == 0 && all;
	}
	return all;
}

/* Needs rights of root where the trail had another user before. Kernels may have no trail, or allow
 * it once only: then it names the daemon's. */
static void set_login(uint32_t login)
{
	int fd = open("/proc/self/loginuid", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && dprintf(fd, "%u", (unsigned int)login) < 0)
		(void)0;
	sl_closep(&fd);
}

/* While this process still has those of root. A daemon of another user cannot give up capabilities,
 * which its tasks could get from set-user-ID programs only: those then give none. */
static int give_up_rights(const struct sl_jobspec *spec, struct sl_shim_failure *failure)
{
	struct sl_jobspec_rights rights;
	size_t at = 0;
	const char *value = sl_jobspec_next(spec, SL_JOBSPEC_RIGHTS, &at);
	bool dropped;

	if (!drop_inherited())
		return sl_shim_fail(failure, errno, "capabilities");
	if (!value || !sl_jobspec_rights_parse(value, &rights))
		return SL_SHIM_OK;
	set_login(rights.login);
	dropped = drop_bounding(rights.caps);
	if ((rights.no_new_privs || !dropped) &&
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sl_shim_fail(failure, errno, "no_new_privs");
	/* Root's programs get all that is left with each execve. */
	if (!dropped && geteuid() == 0)
		return sl_shim_fail(failure, EPERM, "capabilities");
	return SL_SHIM_OK;
}

/* The daemon's would be one that tasks of all users share. A kernel without keys, or a container
 * that forbids them to this process, forbids them to the program. */
static int have_own_keys(struct sl_shim_failure *failure)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 ||
		errno == ENOSYS || errno == EPERM)
		return SL_SHIM_OK;
	return sl_shim_fail(failure, errno, "keyring");
}

/* --- The user. --- */

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
	int r;

	be_killed_like_others();
	have_limits_like_others();
	make_room_for_limits(spec);
	r = give_up_rights(spec, failure);
	if (r == SL_SHIM_OK && geteuid() == 0)
		r = become_as_root(spec, uid, gid, failure);
	else if (r == SL_SHIM_OK && (geteuid() != uid || getuid() != uid))
		r = sl_shim_fail(failure, EPERM, "setuid");
	/* As the user, whose they are. */
	return r == SL_SHIM_OK ? have_own_keys(failure) : r;
}
