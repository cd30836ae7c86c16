/*
 * container - one look at /proc when a root dies
 *
 * A line of mountinfo names the file system (major:minor), the folder within it that is mounted,
 * and where. A file system that is mounted as a whole at M shows M/a/b as /a/b. So the folder
 * that is looked for ends with what the line says, and what the line says ends with the part of
 * the path that is ours. Processes in the daemon's own mount namespace are not in a container:
 * their mountinfo is not read.
 */
#include "daemon/workloads/container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

#define RUNS "/runs"
/* A line has about 100 bytes; a host with thousands of mounts has as many lines. */
#define MOUNTS_BYTES_MAX (4u << 20)
#define NAMESPACES_MAX   256

struct place {
	char folder[SL_SOCKET_PATH_MAX];
	size_t own; /* bytes of folder before RUNS */
	dev_t dev;
};

int sl_container_folder(const struct sl_daemon *daemon, uid_t uid, uint64_t id,
	char path[SL_SOCKET_PATH_MAX])
{
	const char *slash = strrchr(daemon->socket_path, '/');
	int n = snprintf(path, SL_SOCKET_PATH_MAX, "%.*s" RUNS "/%u",
		(int)(slash - daemon->socket_path), daemon->socket_path,
		(unsigned int)uid);

	if (id && n < SL_SOCKET_PATH_MAX)
		n += snprintf(
			path + n, (size_t)(SL_SOCKET_PATH_MAX - n), "/%" PRIu64, id);
	return n < SL_SOCKET_PATH_MAX ? 0 : sl_err_origin(-ENAMETOOLONG);
}

static bool place_of(const struct sl_workload *workload, struct place *place)
{
	const struct sl_daemon *daemon = workload->daemon;
	struct stat st = {0};

	if (!workload->entry || workload->is_claimed ||
		sl_container_folder(daemon, workload->uid, workload->id, place->folder) <
			0 ||
		stat(place->folder, &st) < 0)
		return false;
	place->own = (size_t)(strrchr(daemon->socket_path, '/') - daemon->socket_path);
	place->dev = st.st_dev;
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return n <= length && strcmp(text + length - n, end) == 0;
}

static bool is_mounted(const struct place *place, const char *mounts)
{
	for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
		char root[512], at[512];
		unsigned int major, minor;

		line += *line == '\n';
		if (sscanf(line, "%*u %*u %u:%u %511s %511s", &major, &minor, root, at) ==
				4 &&
			strcmp(at, SL_PATHS_CONTAINER) == 0 &&
			makedev(major, minor) == place->dev &&
			ends_with(place->folder, root) &&
			ends_with(root, place->folder + place->own))
			return true;
	}
	return false;
}

/* Number of the process's mount namespace; 0: unknown. pid 0: the daemon's. */
static uint64_t namespace_of(pid_t pid)
{
	char path[32] = "/proc/self/ns/mnt", name[64] = "";
	uint64_t number = 0;

	if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (readlink(path, name, sizeof(name) - 1) > 0)
		(void)sscanf(name, "mnt:[%" SCNu64, &number);
	return number;
}

/* NULL: dead. The caller frees. */
static char *mounts_of(pid_t pid)
{
	char path[32], *text = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	return sl_file_read(path, MOUNTS_BYTES_MAX, &text, NULL) == 0 ? text : NULL;
}

/* Mount namespaces that do not have the place; each is read once, as far as there is room. */
struct others {
	uint64_t number[NAMESPACES_MAX];
	size_t count;
};

static bool is_other(const struct others *others, uint64_t number)
{
	for (size_t i = 0; i < others->count; i++) {
		if (others->number[i] == number)
			return true;
	}
	return false;
}

static void add_other(struct others *others, uint64_t number)
{
	if (number && others->count < NAMESPACES_MAX)
		others->number[others->count++] = number;
}

static bool is_in(const struct place *place, pid_t pid, struct others *others)
{
	sl_cleanup(sl_freep) char *mounts = NULL;
	uint64_t number = namespace_of(pid);

	if (is_other(others, number))
		return false;
	mounts = mounts_of(pid);
	if (mounts && is_mounted(place, mounts))
		return true;
	add_other(others, number);
	return false;
}

static void close_dir(DIR **folder)
{
	if (*folder)
		(void)closedir(*folder);
}

/* The oldest process that has the place mounted: the container's init, if it lives. 0: none. */
static pid_t oldest(const struct place *place, uint64_t *start)
{
	sl_cleanup(close_dir) DIR *folder = opendir("/proc");
	struct others others = {.count = 0};
	const struct dirent *entry;
	pid_t found = 0;

	add_other(&others, namespace_of(0));
	while (folder && (entry = readdir(folder))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct sl_pid_stat stat = {0};

		if (pid <= 0 || sl_file_pid_stat(pid, &stat) < 0 || stat.kernel_thread ||
			stat.state == 'Z' || (found && stat.start_ticks >= *start) ||
			!is_in(place, pid, &others))
			continue;
		found = pid;
		*start = stat.start_ticks;
	}
	return found;
}

bool sl_container_follow(struct sl_workload *workload)
{
	struct sl_daemon *daemon = workload->daemon;
	struct sl_process *process = NULL;
	struct place place;
	uint64_t start = 0;
	int pidfd = -1;
	pid_t pid = place_of(workload, &place) ? oldest(&place, &start) : 0;

	if (!pid || sl_process_get(daemon, pid, &pidfd, start, &process) != SL_PROCESS_OK)
		return false;
	sl_list_unlink(&workload->root_link);
	workload->root = sl_process_put(workload->root);
	sl_workload_set_root(workload, process);
	sl_info("workload %" PRIu64 " (%s) goes on in its container, process %d",
		workload->id, workload->name, (int)pid);
	if (workload->kill_at)
		(void)sl_workload_stop(
			daemon, workload, sl_sub_sat(workload->kill_at, sl_clock_now()));
	sl_commit_soon(daemon);
	return true;
}

struct sl_workload *sl_container_workload(struct sl_daemon *daemon, pid_t pid)
{
	sl_cleanup(sl_freep) char *mounts = NULL;

	if (namespace_of(pid) != namespace_of(0))
		mounts = mounts_of(pid);
	if (!mounts)
		return NULL;
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);
		struct place place;

		if (place_of(workload, &place) && is_mounted(&place, mounts))
			return workload;
	}
	return NULL;
}
