/* The state is a word in a file, which root may write at any time. */
#include "slurm/freezer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define TEXT_BYTES_MAX 65536
#define MOUNT          "/sys/fs/cgroup/freezer"

bool sl_freezer_folder(pid_t pid, char *path, size_t size)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char file[64], *at, *end;
	size_t bytes = 0;

	(void)snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	if (sl_file_read(file, TEXT_BYTES_MAX, &text, &bytes) < 0)
		return false;
	at = strstr(text, ":freezer:");
	if (!at)
		return false;
	at += strlen(":freezer:");
	end = strchr(at, '\n');
	if (end)
		*end = '\0';
	return (size_t)snprintf(path, size, MOUNT "%s", at) < size;
}

bool sl_freezer_job(pid_t pid, char *path, size_t size)
{
	char *job, *end;

	if (!sl_freezer_folder(pid, path, size))
		return false;
	job = strstr(path, "/job_");
	end = job ? strchr(job + 1, '/') : NULL;
	if (end)
		end[1] = '\0';
	return end;
}

static void write_state(const char *path, const char *state)
{
	sl_cleanup(sl_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	/* A step that has ended meanwhile has no cgroup. */
	if (fd >= 0)
		(void)!write(fd, state, strlen(state));
}

static bool is_frozen(const char *path)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t bytes = 0;

	return sl_file_read(path, TEXT_BYTES_MAX, &text, &bytes) == 0 &&
	       strncmp(text, "THAWED", 6) != 0;
}

void sl_freezer_thaw(struct sl_freezer *freezer, pid_t pid)
{
	char path[SL_FREEZER_PATH_MAX];
	size_t i = 0;

	if (!sl_freezer_folder(pid, path, sizeof(path) - sizeof("/freezer.state")))
		return;
	strcat(path, "/freezer.state");
	if (!*freezer->within ||
		strncmp(path, freezer->within, strlen(freezer->within)) != 0 ||
		!is_frozen(path))
		return;
	while (i < freezer->count && strcmp(freezer->paths[i], path) != 0)
		i++;
	if (i == SL_FREEZER_GROUPS_MAX)
		return;
	if (i == freezer->count)
		strcpy(freezer->paths[freezer->count++], path);
	write_state(path, "THAWED");
}

void sl_freezer_freeze(struct sl_freezer *freezer)
{
	for (size_t i = 0; i < freezer->count; i++)
		write_state(freezer->paths[i], "FROZEN");
}

void sl_freezer_release(struct sl_freezer *freezer)
{
	for (size_t i = 0; i < freezer->count; i++)
		write_state(freezer->paths[i], "THAWED");
	freezer->count = 0;
}
