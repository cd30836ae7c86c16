/*
 * family - finds all descendants of this process in /proc
 *
 * This process is a subreaper, so processes whose parent died become its children. Everything that
 * its program ever started is therefore its descendant, in any session or group. The kernel reports
 * only parents: read all processes once, and mark those whose parents are marked. A process may end
 * between the read and the signal, and its number be reused: so open it as a pidfd and check it
 * again.
 */
#include "shim/shim.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

struct relative {
	int pid, parent;
	bool ours, stopped;
	uint64_t start_ticks;
};

static int by_pid(const void *left, const void *right)
{
	const struct relative *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* All processes that are not dead, sorted by number; NULL if /proc cannot be read or memory has run
 * out. */
static struct relative *read_all(size_t *count)
{
	sl_cleanup(sl_freep) struct relative *all = NULL;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t room = 0;

	*count = 0;
	while (proc && (entry = readdir(proc))) {
		struct sl_pid_stat stat;
		int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name)
								   : 0;

		if (pid <= 0 || sl_file_pid_stat(pid, &stat) < 0 || stat.state == 'Z' ||
			stat.state == 'X')
			continue;
		if (*count == room) {
			struct relative *grown =
				realloc(all, (2 * room + 64) * sizeof(*all));

			if (!grown)
				break;
			all = grown;
			room = 2 * room + 64;
		}
		all[(*count)++] = (struct relative){.pid = pid,
			.parent = stat.parent,
			.stopped = stat.state == 'T',
			.start_ticks = stat.start_ticks};
	}
	if (proc)
		(void)closedir(proc);
	if (all)
		qsort(all, *count, sizeof(*all), by_pid);
	return sl_steal(&all);
}

static bool is_ours(struct relative *all, size_t count, int pid, int self)
{
	struct relative key = {.pid = pid}, *found;

	if (pid == self)
		return true;
	found = bsearch(&key, all, count, sizeof(*all), by_pid);
	return found && found->ours;
}

/* Repeats until nothing changes: as many rounds as the longest line of descent has members, fewer
 * if children have lower numbers. */
static void mark(struct relative *all, size_t count)
{
	bool changed = true;
	int self = getpid();

	while (changed) {
		changed = false;
		for (size_t i = 0; i < count; i++) {
			if (all[i].ours || !is_ours(all, count, all[i].parent, self))
				continue;
			all[i].ours = true;
			changed = true;
		}
	}
}

static void signal_one(const struct relative *relative, int number)
{
	sl_cleanup(sl_closep) int fd = (int)syscall(SYS_pidfd_open, relative->pid, 0);
	uint64_t start_ticks = 0;

	/* A running program may have its own handler for SIGCONT. */
	if (number == SIGCONT && !relative->stopped)
		return;
	if (fd < 0 || sl_file_pid_start(relative->pid, &start_ticks) < 0 ||
		start_ticks != relative->start_ticks)
		return;
	(void)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

unsigned int sl_shim_family_signal(int number)
{
	size_t count = 0;
	struct relative *all = read_all(&count);
	unsigned int ours = 0;

	if (all)
		mark(all, count);
	for (size_t i = 0; all && i < count; i++) {
		if (!all[i].ours)
			continue;
		ours++;
		signal_one(&all[i], number);
	}
	free(all);
	return ours;
}

void sl_shim_family_tell(void)
{
	size_t count = 0;
	struct relative *all = read_all(&count);

	if (all)
		mark(all, count);
	for (size_t i = 0; all && i < count; i++) {
		if (all[i].ours)
			(void)dprintf(STDERR_FILENO,
				"sluice-shim: process %d does not end and is left "
				"behind\n",
				all[i].pid);
	}
	free(all);
}
