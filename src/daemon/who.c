/*
 * who - see the header
 */
#include "daemon/who.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* since Linux 4.13 */
#endif

static struct sl_who *who_new(uid_t uid, const uint32_t *gids, size_t count)
{
	struct sl_who *who = malloc(sizeof(*who) + count * sizeof(who->gids[0]));

	if (!who)
		return NULL;
	*who = (struct sl_who){.uid = uid, .gid_count = (uint32_t)count};
	memcpy(who->gids, gids, count * sizeof(gids[0]));
	return who;
}

struct sl_who *sl_who_self(void)
{
	uint32_t gids[1] = {getegid()};

	return who_new(geteuid(), gids, 1);
}

size_t sl_who_groups_of_socket(int fd, uint32_t gids[SL_WHO_GROUPS_MAX])
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	size_t count = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0)
		gids[count++] = cred.gid;
	size = (SL_WHO_GROUPS_MAX - 1) * sizeof(gids[0]);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + count, &size) == 0)
		count += size / sizeof(gids[0]);
	return count;
}

struct sl_who *sl_who_of_socket(int fd)
{
	uint32_t gids[SL_WHO_GROUPS_MAX];
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return NULL;
	return who_new(cred.uid, gids, sl_who_groups_of_socket(fd, gids));
}

/* Who has gone may have left its number to somebody else, so it is looked at afterwards. */
void sl_who_ask_limits(struct sl_who *who, pid_t pid, int pidfd)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};

	who->has_limits = false;
	for (unsigned int i = 0; i < RLIM_NLIMITS; i++) {
		if (prlimit(pid, (enum __rlimit_resource)i, NULL, &who->limits[i]) < 0)
			return;
	}
	who->has_limits = pidfd >= 0 && poll(&death, 1, 0) == 0;
}

struct sl_who *sl_who_copy(const struct sl_who *who)
{
	struct sl_who *copy = who_new(who->uid, who->gids, who->gid_count);

	if (!copy)
		return NULL;
	copy->contained = who->contained;
	copy->has_limits = who->has_limits;
	memcpy(copy->limits, who->limits, sizeof(copy->limits));
	return copy;
}

struct sl_who *sl_who_free(struct sl_who *who)
{
	free(who);
	return NULL;
}
