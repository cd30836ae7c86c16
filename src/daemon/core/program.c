/*
 * program - see the header
 *
 * posix_spawn neither copies the daemon's memory, nor returns before the child has its descriptors.
 * Descriptors for the child are moved to high numbers first, so that putting one in its place
 * overwrites no other.
 */
#include "daemon/core/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/paths.h"

/* Above all of the child's descriptors. */
#define HIGH 16

/* --- Where it is. --- */

/* From the daemon's folder; the name follows. */
static const char *const places[] = {
	"",
	"/../" SL_LIBEXECDIR "/sluice",
	"/../libexec/sluice",
	"/../lib/sluice",
};

static bool is_file(const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

static int refuse_it(
	const struct sl_program *program, const char *path, struct sl_error *err)
{
	bool is_there = is_file(path);

	sl_error_set(err,
		"%.200s %s, and without it %s; %s, or set %s to the %s of this "
		"installation",
		path, is_there ? "cannot be executed" : "is no file", program->loss,
		is_there ? "chmod 755 it" : "install Sluice whole", program->variable,
		program->name);
	return sl_err_origin(is_there ? -EACCES : -ENOENT);
}

int sl_program_find(
	const struct sl_program *program, char *path, size_t size, struct sl_error *err)
{
	const char *set = getenv(program->variable);
	char dir[SL_PATH_MAX], shut[SL_PATH_MAX] = "";
	int r;

	if (set && set[0]) {
		(void)snprintf(path, size, "%s", set);
		return is_file(path) && access(path, X_OK) == 0
			       ? 0
			       : refuse_it(program, path, err);
	}
	r = sl_paths_program_dir(dir, sizeof(dir));
	for (size_t i = 0; r == 0 && i < SL_ARRAY_LEN(places); i++) {
		int n = snprintf(path, size, "%s%s/%s", dir, places[i], program->name);

		if (n <= 0 || (size_t)n >= size || !is_file(path))
			continue;
		if (access(path, X_OK) == 0)
			return 0;
		if (!shut[0])
			(void)snprintf(shut, sizeof(shut), "%s", path);
	}
	if (shut[0])
		return refuse_it(program, shut, err);
	sl_error_set(err,
		"there is no %s beside %.200s, and without it %s; install Sluice whole, "
		"or set %s to it",
		program->name, r < 0 ? "sluiced" : dir, program->loss, program->variable);
	return sl_err_origin(-ENOENT);
}

/* --- Starting. --- */

struct plan {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char path[SL_PATH_MAX];
	int fds[SL_PROGRAM_FDS_MAX]; /* copies; -1: none */
};

static int add_actions(struct plan *plan, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = plan->fds[i] < 0 ? posix_spawn_file_actions_addopen(&plan->actions,
					       (int)i, "/dev/null", O_RDWR, 0)
				     : posix_spawn_file_actions_adddup2(
					       &plan->actions, plan->fds[i], (int)i);
	return r;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all;
	int r;

	(void)sigfillset(&all);
	r = posix_spawnattr_setsigmask(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	return r ? r
		 : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID |
								POSIX_SPAWN_SETSIGMASK |
								POSIX_SPAWN_SETSIGDEF);
}

static int spawn(struct plan *plan, const struct sl_program_start *start, pid_t *pid)
{
	int r = posix_spawn_file_actions_init(&plan->actions);

	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&plan->attributes);
	if (r == 0) {
		r = add_actions(plan, start->fd_count);
		if (r == 0)
			r = set_attributes(&plan->attributes);
		if (r == 0)
			r = posix_spawn(pid, plan->path, &plan->actions,
				&plan->attributes, start->args, start->environment);
		(void)posix_spawnattr_destroy(&plan->attributes);
	}
	(void)posix_spawn_file_actions_destroy(&plan->actions);
	return -r;
}

static int lift_and_spawn(
	struct plan *plan, const struct sl_program_start *start, pid_t *pid)
{
	int r = 0;

	for (size_t i = 0; i < SL_PROGRAM_FDS_MAX; i++)
		plan->fds[i] = -1;
	for (size_t i = 0; r == 0 && i < start->fd_count; i++) {
		if (start->fds[i] < 0)
			continue;
		plan->fds[i] = fcntl(start->fds[i], F_DUPFD_CLOEXEC, HIGH);
		r = plan->fds[i] < 0 ? -errno : 0;
	}
	if (r == 0)
		r = spawn(plan, start, pid);
	for (size_t i = 0; i < SL_PROGRAM_FDS_MAX; i++)
		sl_closep(&plan->fds[i]);
	return r;
}

int sl_program_start(const struct sl_program *program,
	const struct sl_program_start *start, pid_t *pid, int *pidfd,
	struct sl_error *err)
{
	struct plan plan;
	int r = sl_program_find(program, plan.path, sizeof(plan.path), err);

	*pid = *pidfd = -1;
	if (r < 0)
		return r;
	r = lift_and_spawn(&plan, start, pid);
	if (r < 0) {
		*pid = -1;
		sl_error_set(err,
			"cannot start %.200s: %s; see that it may be executed, and that "
			"sluiced may have more processes and descriptors",
			plan.path, strerror(-r));
		return sl_err_origin(r);
	}
	/* The child is not reaped yet, so the pid is still its own. */
	*pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
	if (*pidfd >= 0)
		return 0;
	r = -errno;
	sl_error_set(err,
		"cannot watch the %s that was started: %s; give sluiced more descriptors "
		"(LimitNOFILE)",
		program->name, strerror(-r));
	return sl_err_origin(r);
}
