/*
 * shim - see the header
 */
#include "daemon/jobs/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/program.h"

static const struct sl_program program = {"sluice-shim", "SLUICE_SHIM", "no job can run"};

int sl_shim_find(char *path, size_t size, struct sl_error *err)
{
	return sl_program_find(&program, path, size, err);
}

/* Makes the spec a file, and the pipe for the go. */
static int start_it(
	const struct sl_shim_start *start, struct sl_shim *out, struct sl_error *err)
{
	sl_cleanup(sl_closep) int spec = sl_jobspec_to_fd(start->spec);
	sl_cleanup(sl_closep) int reading = -1;
	char *no_environment[] = {NULL};
	size_t at = 0;
	/* For people who read lists of processes. */
	char *args[] = {(char *)(uintptr_t)program.name,
		(char *)(uintptr_t)sl_jobspec_next(start->spec, SL_JOBSPEC_ARG, &at),
		NULL};
	int fds[] = {-1, start->log_fd, start->log_fd, spec, -1, start->record_fd};
	int ends[2], r = spec;

	if (r >= 0)
		r = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
	if (r < 0) {
		sl_error_set(err,
			"cannot start a task's sluice-shim: %s; give sluiced more "
			"descriptors (LimitNOFILE)",
			strerror(-r));
		return sl_err_origin(r);
	}
	fds[4] = reading = ends[0];
	out->go_fd = ends[1];
	return sl_program_start(&program,
		&(struct sl_program_start){args, no_environment, fds, SL_ARRAY_LEN(fds)},
		&out->pid, &out->pidfd, err);
}

int sl_shim_start(
	const struct sl_shim_start *start, struct sl_shim *out, struct sl_error *err)
{
	int r;

	*out = (struct sl_shim){.pid = -1, .pidfd = -1, .go_fd = -1};
	r = start_it(start, out, err);
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
