/*
 * become - from the daemon's user to the task's
 *
 * Root may become any user, and gives up everything of root: groups, both user ids, capabilities
 * that the submitter lacks, keys, and protection from the out-of-memory killer. Any other user's
 * daemon runs tasks of that user only, with the daemon's own groups.
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

/* The default of most systems: above it select(2) writes beyond its sets. A program may raise it to
 * the hard limit. */
#define DESCRIPTORS_SOFT 1024

/* The kernel kills the daemon among the last when memory runs out; tasks must not inherit that. Any
 * process may raise its own score; if even that fails the program runs all the same. */
static void be_killed_like_others(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		(void)0;
	(void)close(fd);
}

/* The program gets the submitter's hard limits. Only root can raise limits above the daemon's, and
 * this process gives root up soon. The soft limits of this process stay, since it must be able to
 * write the record, whatever limits the program has. */
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

/* For a job without limits of its own. */
static void have_limits_like_others(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS_SOFT)
		return;
	limit.rlim_cur = DESCRIPTORS_SOFT;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A program may open its output by name (/dev/stderr, /proc/self/fd/1). For that the user needs
 * rights to the file, not only the open descriptor. The folder stays closed to the user. */
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

/* Drops capabilities that a program would get by inheritance alone. */
static bool drop_inherited(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	/* Linux before 4.3 has no ambient capabilities. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	data[0].inheritable = data[1].inheritable = 0;
	return syscall(SYS_capset, &header, data) == 0;
}

/* False: a capability that the program must not get cannot be dropped. */
static bool drop_bounding(uint64_t caps)
{
	bool all = true;

	for (int cap = 0; cap < CAPS_MAX; cap++) {
		if (!(caps >> cap & 1) && prctl(PR_CAPBSET_READ, cap) == 1)
			all = prctl(PR_CAPBSET_DROP, cap) == 0 && all;
	}
	return all;
}

/* Sets the login user of the audit trail, which needs root if it is set already. It stays the
 * daemon's if the kernel has no audit trail, or allows the change only once. */
static void set_login(uint32_t login)
{
	int fd = open("/proc/self/loginuid", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && dprintf(fd, "%u", (unsigned int)login) < 0)
		(void)0;
	sl_closep(&fd);
}

/* Called while this process still has the daemon's rights. If the daemon is not root it cannot drop
 * the capabilities that its tasks must not get. A task could get those only by executing a
 * set-user-ID program, so no_new_privs is set: such programs then give no rights. */
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
	/* Each execve gives root's programs all remaining capabilities. */
	if (!dropped && geteuid() == 0)
		return sl_shim_fail(failure, EPERM, "capabilities");
	return SL_SHIM_OK;
}

/* Gives the task a new keyring, since tasks of all users would share the daemon's. If the kernel
 * has no keys, or a container forbids them here, the program cannot use any either. */
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
	/* A container with a single user forbids setting groups, and does not need it. */
	if (r < 0 && !(r == -EPERM && uid == 0))
		return sl_shim_fail(failure, -r, "setgroups");
	if (setresgid(gid, gid, gid) < 0)
		return sl_shim_fail(failure, errno, "setgid");
	if (setresuid(uid, uid, uid) < 0)
		return sl_shim_fail(failure, errno, "setuid");
	/* The change is final; the user can neither trace this process nor take its descriptors. */
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
	/* Now as the user, who owns the keyring. */
	return r == SL_SHIM_OK ? have_own_keys(failure) : r;
}
