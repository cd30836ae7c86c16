/*
 * shim - see the header
 *
 * posix_spawn neither copies the daemon's memory, nor returns before the child has its descriptors.
 * Descriptors for the child are moved to high numbers first, so that putting one in its place
 * overwrites no other.
 */
#include "daemon/jobs/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"

#define NAME "sluice-shim"
/* Above all of the child's descriptors. */
#define HIGH 16

/* --- Where it is. --- */

static const char *const places[] = {
	"/" NAME,
	"/../" SL_LIBEXECDIR "/sluice/" NAME,
	"/../libexec/sluice/" NAME,
	"/../lib/sluice/" NAME,
};

static bool is_file(const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

static int refuse_it(const char *path, struct sl_error *err)
{
	bool is_there = is_file(path);

	sl_error_set(err,
		"%.200s %s, and without it no job can run; %s, or set SLUICE_SHIM to "
		"the " NAME " of this installation",
		path, is_there ? "cannot be executed" : "is no file",
		is_there ? "chmod 755 it" : "install Sluice whole");
	return sl_err_origin(is_there ? -EACCES : -ENOENT);
}

int sl_shim_find(char *path, size_t size, struct sl_error *err)
{
	const char *set = getenv("SLUICE_SHIM");
	char dir[SL_PATH_MAX], shut[SL_PATH_MAX] = "";
	int r;

	if (set && set[0]) {
		(void)snprintf(path, size, "%s", set);
		return is_file(path) && access(path, X_OK) == 0 ? 0
								: refuse_it(path, err);
	}
	r = sl_paths_program_dir(dir, sizeof(dir));
	for (size_t i = 0; r == 0 && i < SL_ARRAY_LEN(places); i++) {
		int n = snprintf(path, size, "%s%s", dir, places[i]);

		if (n <= 0 || (size_t)n >= size || !is_file(path))
			continue;
		if (access(path, X_OK) == 0)
			return 0;
		if (!shut[0])
			(void)snprintf(shut, sizeof(shut), "%s", path);
	}
	if (shut[0])
		return refuse_it(shut, err);
	sl_error_set(err,
		"there is no " NAME " beside %.200s, and without it no job can run; "
		"install "
		"Sluice whole, or set SLUICE_SHIM to it",
		r < 0 ? "sluiced" : dir);
	return sl_err_origin(-ENOENT);
}

/* --- Starting. --- */

/* In the order of the child's numbers. */
enum { FD_LOG, FD_SPEC, FD_GO, FD_RECORD, FDS };

struct plan {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char path[SL_PATH_MAX];
	int fds[FDS];
};

static int add_actions(struct plan *plan)
{
	static const struct {
		int fd, to;
	} rows[] = {{FD_LOG, 1}, {FD_LOG, 2}, {FD_SPEC, 3}, {FD_GO, 4}, {FD_RECORD, 5}};
	int r = posix_spawn_file_actions_addopen(
		&plan->actions, 0, "/dev/null", O_RDONLY, 0);

	for (size_t i = 0; r == 0 && i < SL_ARRAY_LEN(rows); i++)
		r = posix_spawn_file_actions_adddup2(
			&plan->actions, plan->fds[rows[i].fd], rows[i].to);
	return r;
}

/* All signals are blocked until the shim handles them itself; none is ignored. */
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

static int spawn(struct plan *plan, const struct sl_jobspec *spec, pid_t *pid)
{
	char *no_environment[] = {NULL};
	size_t at = 0;
	/* For people who read lists of processes. */
	char *args[] = {(char *)(uintptr_t)NAME,
		(char *)(uintptr_t)sl_jobspec_next(spec, SL_JOBSPEC_ARG, &at), NULL};
	int r = posix_spawn_file_actions_init(&plan->actions);

	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&plan->attributes);
	if (r == 0) {
		r = add_actions(plan);
		if (r == 0)
			r = set_attributes(&plan->attributes);
		if (r == 0)
			r = posix_spawn(pid, plan->path, &plan->actions,
				&plan->attributes, args, no_environment);
		(void)posix_spawnattr_destroy(&plan->attributes);
	}
	(void)posix_spawn_file_actions_destroy(&plan->actions);
	return -r;
}

/* A copy of fd above the child's numbers; negative errno. */
static int lift(int fd)
{
	int high = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);

	return high < 0 && fd >= 0 ? -errno : high;
}

/* The spec as a file, the pipe, and the caller's descriptors. 0 or negative errno. */
static int fill(struct plan *plan, const struct sl_shim_start *start, int *go_fd)
{
	sl_cleanup(sl_closep) int spec = sl_jobspec_to_fd(start->spec);
	sl_cleanup(sl_closep) int reading = -1;
	int ends[2], from[FDS];

	if (spec < 0)
		return spec;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return sl_err_origin(-errno);
	reading = ends[0];
	*go_fd = ends[1];
	from[FD_LOG] = start->log_fd;
	from[FD_SPEC] = spec;
	from[FD_GO] = reading;
	from[FD_RECORD] = start->record_fd;
	for (int i = 0; i < FDS; i++) {
		plan->fds[i] = lift(from[i]);
		if (plan->fds[i] < 0)
			return sl_err_origin(plan->fds[i]);
	}
	return 0;
}

static int start_it(struct plan *plan, const struct sl_shim_start *start,
	struct sl_shim *out, struct sl_error *err)
{
	int r = sl_shim_find(plan->path, sizeof(plan->path), err);

	if (r < 0)
		return r;
	r = fill(plan, start, &out->go_fd);
	if (r == 0)
		r = spawn(plan, start->spec, &out->pid);
	if (r < 0) {
		sl_error_set(err,
			"cannot start %.200s: %s; see that it may be executed, and that "
			"sluiced "
			"may have more processes and descriptors",
			plan->path, strerror(-r));
		return sl_err_origin(r);
	}
	/* The child is not reaped yet, so the pid is still its own. */
	out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
	if (out->pidfd >= 0)
		return 0;
	r = -errno;
	sl_error_set(err,
		"cannot watch the " NAME " that was started: %s; give sluiced more "
		"descriptors (LimitNOFILE)",
		strerror(-r));
	return sl_err_origin(r);
}

int sl_shim_start(
	const struct sl_shim_start *start, struct sl_shim *out, struct sl_error *err)
{
	struct plan plan;
	int r;

	*out = (struct sl_shim){.pid = -1, .pidfd = -1, .go_fd = -1};
	for (int i = 0; i < FDS; i++)
		plan.fds[i] = -1;
	r = start_it(&plan, start, out, err);
	for (int i = 0; i < FDS; i++)
		sl_closep(&plan.fds[i]);
	if (r < 0)
		sl_shim_forget(out);
	return r;
}

void sl_shim_go(struct sl_shim *shim)
{
	/* SIGPIPE is ignored: the pidfd tells if the shim is dead. */
	if (shim->go_fd >= 0 && write(shim->go_fd, "g", 1) < 0)
		sl_debug("the shim %d did not hear that it may go: %s", (int)shim->pid,
			strerror(errno));
	sl_closep(&shim->go_fd);
}

/* Before its go the shim has begun nothing and is an unreaped child of ours. So its pid is its own,
 * and it dies within moments. */
void sl_shim_forget(struct sl_shim *shim)
{
	if (shim->pid > 0 && shim->go_fd >= 0) {
		(void)kill(shim->pid, SIGKILL);
		while (waitpid(shim->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	sl_closep(&shim->go_fd);
	sl_closep(&shim->pidfd);
	shim->pid = -1;
}

void sl_shim_reap(pid_t pid)
{
	if (pid > 0)
		(void)waitpid(pid, NULL, WNOHANG);
}

/* --- The record. --- */

/* Parses a number that ends with `end`; moves *at behind that. */
static bool take_number(const char **at, uint64_t most, char end, uint64_t *out)
{
	uint64_t number = 0;
	const char *c = *at;

	for (; *c >= '0' && *c <= '9'; c++) {
		uint64_t digit = (uint64_t)(*c - '0');

		if (number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (c == *at || *c != end)
		return false;
	*at = c + 1;
	*out = number;
	return true;
}

static bool take_word(const char **at, const char *word)
{
	size_t size = strlen(word);

	if (strncmp(*at, word, size) != 0)
		return false;
	*at += size;
	return true;
}

static bool parse_exit(const char *at, struct sl_shim_record *record)
{
	uint64_t status = 0;

	if (!take_word(&at, "exit ") || !take_number(&at, UINT32_MAX, ' ', &status) ||
		!take_word(&at, "started ") ||
		!take_number(&at, UINT64_MAX, ' ', &record->started_ms) ||
		!take_word(&at, "ended ") ||
		!take_number(&at, UINT64_MAX, '\n', &record->ended_ms) || *at)
		return false;
	record->status = (uint32_t)status;
	record->ending = SL_SHIM_EXITED;
	return true;
}

/* Moves *at behind the line, if the line is complete. */
static bool take_begun(const char **at, struct sl_shim_record *record)
{
	const char *c = *at;

	if (!take_word(&c, "begun ") ||
		!take_number(&c, UINT64_MAX, '\n', &record->started_ms))
		return false;
	record->ending = SL_SHIM_BEGUN;
	*at = c;
	return true;
}

static bool parse_error(const char *at, struct sl_shim_record *record)
{
	uint64_t error = 0;
	size_t size;

	if (!take_word(&at, "error ") || !take_number(&at, INT32_MAX, ' ', &error))
		return false;
	size = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
	if (size == 0 || size >= sizeof(record->what) || strcmp(at + size, "\n") != 0)
		return false;
	memcpy(record->what, at, size);
	record->error = (int)error;
	record->ending = SL_SHIM_ERROR;
	return true;
}

struct sl_shim_record sl_shim_record_parse(const char *text, size_t size)
{
	struct sl_shim_record record = {0};
	char line[128] = "";

	if (size == 0)
		return record;
	if (size < sizeof(line) && !memchr(text, '\0', size)) {
		const char *at = line;

		memcpy(line, text, size);
		if (take_begun(&at, &record) &&
			(!*at || parse_exit(at, &record) || parse_error(at, &record)))
			return record;
	}
	return (struct sl_shim_record){.ending = SL_SHIM_BAD};
}
