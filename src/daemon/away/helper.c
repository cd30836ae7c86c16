/*
 * helper - see the header
 *
 * sluice-move becomes the user itself. It gets nothing of the daemon's but the socket, and of its
 * environment only what the driver's library is found by.
 */
#include "daemon/away/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/move.h"
#include "daemon/core/program.h"

/* More than are ever set. */
#define VARIABLES_MAX 15

static const struct sl_program program = {
	"sluice-move", "SLUICE_MOVE", "no process leaves its GPU whole"};

/* Where libcuda.so.1 lies, and the box and faults of the software GPU. */
static const char *const starts[] = {"LD_LIBRARY_PATH=", "SLUICE_SOFTGPU"};

static void choose_environment(char *environment[VARIABLES_MAX + 1])
{
	size_t count = 0;

	for (char **at = environ; *at && count < VARIABLES_MAX; at++)
		for (size_t i = 0; i < SL_ARRAY_LEN(starts); i++)
			if (strncmp(*at, starts[i], strlen(starts[i])) == 0)
				environment[count++] = *at;
	environment[count] = NULL;
}

int sl_away_helper_start(const struct sl_away_user *user, pid_t *pid, int *pidfd, int *fd,
	struct sl_error *err)
{
	sl_cleanup(sl_closep) int ours = -1;
	sl_cleanup(sl_closep) int theirs = -1;
	char *environment[VARIABLES_MAX + 1], uid[16], gid[16], capabilities[24];
	char *args[] = {(char *)(uintptr_t)program.name, uid, gid, capabilities, NULL};
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
		fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		sl_error_set(err,
			"no socket for sluice-move: %s; give sluiced more descriptors "
			"(LimitNOFILE)",
			strerror(-r));
		return sl_err_origin(r);
	}
	ours = ends[0];
	theirs = ends[1];
	(void)snprintf(uid, sizeof(uid), "%u", (unsigned int)user->uid);
	(void)snprintf(gid, sizeof(gid), "%u", (unsigned int)user->gid);
	(void)snprintf(
		capabilities, sizeof(capabilities), "%" PRIu64, user->capabilities);
	choose_environment(environment);
	r = sl_program_start(&program,
		&(struct sl_program_start){
			args, environment, (int[]){-1, -1, -1, theirs}, SL_MOVE_FD + 1},
		pid, pidfd, err);
	if (r == 0) {
		*fd = sl_steal_fd(&ours);
	} else if (*pid > 0) {
		/* It has no orders, so it dies within moments. */
		(void)kill(*pid, SIGKILL);
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r;
}
