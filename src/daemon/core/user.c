/*
 * user - see the header
 */
#include "daemon/core/user.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* since Linux 4.13 */
#endif

static struct sl_user *who_new(uid_t uid, const uint32_t *gids, size_t count)
{
	struct sl_user *who = malloc(sizeof(*who) + count * sizeof(who->gids[0]));

	if (!who)
		return NULL;
	*who = (struct sl_user){.uid = uid, .gid_count = (uint32_t)count};
	memcpy(who->gids, gids, count * sizeof(gids[0]));
	return who;
}

/* --- Rights. --- */

/* The line of a user's groups may be long. */
#define STATUS_BYTES_MAX (2u << 20)

static bool number_of(const char *status, const char *line, int base, uint64_t *out)
{
	const char *at = strstr(status, line);
	char *end = NULL;

	if (!at)
		return false;
	at += strlen(line);
	*out = strtoull(at, &end, base);
	return end != at;
}

/* Before Linux 5.9 the kernel does not tell the number: a filter counts as one. */
static uint64_t filters_in(const char *status)
{
	uint64_t mode = 0, filters = 0;

	if (!number_of(status, "\nSeccomp:\t", 10, &mode) || mode == 0)
		return 0;
	return number_of(status, "\nSeccomp_filters:\t", 10, &filters) && filters
		       ? filters
		       : 1;
}

bool sl_user_rights_parse(
	const char *status, uint64_t common_filters, struct sl_user_rights *out)
{
	uint64_t uid = 0, bounding = 0, permitted = 0, no_new_privs = 0;

	if (!number_of(status, "\nUid:\t", 10, &uid) ||
		!number_of(status, "\nCapBnd:\t", 16, &bounding) ||
		!number_of(status, "\nCapPrm:\t", 16, &permitted) ||
		!number_of(status, "\nNoNewPrivs:\t", 10, &no_new_privs))
		return false;
	/* On execve root regains its whole bounding set, unless it has given this up for good,
	 * which the status does not show. So capabilities that root lacks now count as given up. */
	out->caps = uid == 0 ? bounding & permitted : bounding;
	out->no_new_privs = no_new_privs != 0;
	out->filtered = filters_in(status) > common_filters;
	return true;
}

static char *status_of(pid_t pid)
{
	char path[32], *text = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return sl_file_read(path, STATUS_BYTES_MAX, &text, NULL) < 0 ? NULL : text;
}

/* A kernel without an audit trail has no login users. */
static uint32_t login_of(pid_t pid)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/loginuid", (int)pid);
	return sl_file_read(path, 32, &text, NULL) < 0
		       ? UINT32_MAX
		       : (uint32_t)strtoul(text, NULL, 10);
}

/* "unlimited", or a number. */
static bool take_limit(const char *word, rlim_t *out)
{
	char *end = NULL;

	*out = strcmp(word, "unlimited") == 0 ? RLIM_INFINITY
					      : (rlim_t)strtoull(word, &end, 10);
	return !end || (end != word && !*end);
}

/* After a header, a line for each limit in the order of their numbers: its name in a column of
 * fixed width, soft, hard. */
static bool parse_limits(const char *text, struct rlimit limits[RLIM_NLIMITS])
{
	enum { COLUMN = 26 };
	char soft[32], hard[32];

	for (unsigned int i = 0; i < RLIM_NLIMITS; i++) {
		text = strchr(text, '\n');
		if (!text || strcspn(++text, "\n") < COLUMN ||
			sscanf(text + COLUMN, "%31s %31s", soft, hard) != 2 ||
			!take_limit(soft, &limits[i].rlim_cur) ||
			!take_limit(hard, &limits[i].rlim_max))
			return false;
	}
	return true;
}

/* prlimit needs CAP_SYS_RESOURCE for processes of other users, so /proc is read. */
static bool limits_of(pid_t pid, struct rlimit limits[RLIM_NLIMITS])
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	return sl_file_read(path, 1 << 14, &text, NULL) >= 0 &&
	       parse_limits(text, limits);
}

static bool ask(pid_t pid, struct sl_user_rights *out)
{
	/* In a container all processes have its filters, and so has this daemon. */
	sl_cleanup(sl_freep) char *first = status_of(1);
	sl_cleanup(sl_freep) char *status = status_of(pid);

	out->login = login_of(pid);
	return limits_of(pid, out->limits) && status &&
	       sl_user_rights_parse(status, first ? filters_in(first) : 0, out);
}

struct sl_user *sl_user_self(void)
{
	uint32_t gids[1] = {getegid()};
	struct sl_user *who = who_new(geteuid(), gids, 1);

	if (who)
		who->has_rights = ask(getpid(), &who->rights);
	return who;
}

size_t sl_user_groups_of_socket(int fd, uint32_t gids[SL_USER_GROUPS_MAX])
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	size_t count = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0)
		gids[count++] = cred.gid;
	size = (SL_USER_GROUPS_MAX - 1) * sizeof(gids[0]);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + count, &size) == 0)
		count += size / sizeof(gids[0]);
	return count;
}

struct sl_user *sl_user_of_socket(int fd)
{
	uint32_t gids[SL_USER_GROUPS_MAX];
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return NULL;
	return who_new(cred.uid, gids, sl_user_groups_of_socket(fd, gids));
}

/* If the process has gone, another may have its number. So pidfd is checked after the reads. */
void sl_user_ask_rights(struct sl_user *who, pid_t pid, int pidfd)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};

	who->has_rights = ask(pid, &who->rights) && pidfd >= 0 && poll(&death, 1, 0) == 0;
}

struct sl_user *sl_user_copy(const struct sl_user *who)
{
	struct sl_user *copy = who_new(who->uid, who->gids, who->gid_count);

	if (!copy)
		return NULL;
	copy->contained = who->contained;
	copy->has_rights = who->has_rights;
	copy->rights = who->rights;
	return copy;
}

struct sl_user *sl_user_free(struct sl_user *who)
{
	free(who);
	return NULL;
}
