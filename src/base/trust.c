/*
 * trust - the listener's user, the folder's owner, and user namespaces
 *
 * The kernel reports the listener's user (SO_PEERCRED, as of listen(2)). The folder's owner matters
 * because the owner chooses its contents, for example a link to another socket.
 *
 * In a user namespace every user without a number there shows as 65534. Processes of the namespace
 * cannot make such a listener or folder, unless the namespace has a user 65534. So a listener that
 * shows as 65534 is outside if the namespace has no such user, or if the listener is also in
 * another pid namespace. We cannot see its user outside, so the folder decides: the owner of the
 * namespace chose which outside folders it shows. Folders that all users may write to (/tmp), and
 * folders in these, are not trusted: there a stranger could have put a socket.
 */
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* The kernel's default; few systems change it. */
#define OVERFLOW_UID 65534u
#define ALL_UIDS     4294967295ull

bool sl_trust_parse_map(const char *map, uid_t uid, bool *has_uid)
{
	bool is_whole = false;

	*has_uid = false;
	while (*map) {
		char *end;
		unsigned long long inside = strtoull(map, &end, 10);
		unsigned long long outside = strtoull(end, &end, 10);
		unsigned long long count = strtoull(end, &end, 10);

		if (end == map)
			break;
		*has_uid |= uid >= inside && uid - inside < count;
		is_whole |= inside == 0 && outside == 0 && count == ALL_UIDS;
		map = end + strspn(end, " \n");
	}
	return !is_whole;
}

/* False without /proc: then no listener outside is trusted. */
static bool in_user_namespace(bool *has_overflow_uid)
{
	char map[4096] = "";
	long fd =
		syscall(SYS_openat, AT_FDCWD, "/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	long size = fd < 0 ? -1 : syscall(SYS_read, fd, map, sizeof(map) - 1);

	if (fd >= 0)
		(void)syscall(SYS_close, fd);
	*has_overflow_uid = false;
	return size > 0 && sl_trust_parse_map(map, OVERFLOW_UID, has_overflow_uid);
}

static bool look(const char *path, struct stat *out)
{
	return syscall(SYS_newfstatat, AT_FDCWD, path, out, 0) == 0;
}

static bool is_root_or_us(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Cuts the last name off the path. "/" stays. */
static void cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
}

bool sl_trust_folder(const char *path, uid_t *owner)
{
	char above[PATH_MAX];
	struct stat info;
	bool ignored;

	*owner = (uid_t)-1;
	if (strlen(path) >= sizeof(above) || !look(path, &info))
		return false;
	*owner = info.st_uid;
	if (is_root_or_us(info.st_uid))
		return true;
	memcpy(above, path, strlen(path) + 1);
	cut(above);
	return info.st_uid == OVERFLOW_UID && in_user_namespace(&ignored) &&
	       !(info.st_mode & S_IWOTH) && look(above, &info) &&
	       !(info.st_mode & S_IWOTH);
}

bool sl_trust_is_own(const char *path)
{
	struct stat info;

	return look(path, &info) && info.st_uid == geteuid();
}

static bool is_believed(const struct ucred *peer)
{
	bool has_overflow_uid;

	return is_root_or_us(peer->uid) ||
	       (peer->uid == OVERFLOW_UID && in_user_namespace(&has_overflow_uid) &&
		       (!has_overflow_uid || peer->pid == 0));
}

int sl_trust_daemon(int fd, const char *path, struct sl_error *err)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uid_t owner;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		!is_believed(&peer)) {
		sl_error_set(err,
			"the daemon at %.108s runs as user %u, neither root nor you, and "
			"is not trusted. Check SLUICE_SOCKET, or start a daemon of your "
			"own",
			path, (unsigned int)peer.uid);
		return SL_TRUST_NO;
	}
	if (strlen(path) >= sizeof(folder))
		return SL_TRUST_NO;
	memcpy(folder, path, strlen(path) + 1);
	cut(folder);
	if (sl_trust_folder(folder, &owner))
		return SL_TRUST_OK;
	sl_error_set(err,
		"the folder of %.108s belongs to user %u, neither root nor you, who "
		"could replace the socket; it is not trusted. Set SLUICE_SOCKET to a "
		"socket in a folder of root's or your own",
		path, (unsigned int)owner);
	return SL_TRUST_NO;
}
