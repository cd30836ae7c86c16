/*
 * pids - numbers of processes, inside and outside
 *
 * NSpid of a process's status lists its numbers, one per nested namespace. To find its number in
 * the asker's namespace, we go outwards from the process's own namespace until we meet the asker's,
 * and count the levels. A process that is not below the asker's namespace has no number there, just
 * as `ps` inside does not show it. Usually the asker is in the daemon's own namespace. That costs
 * one look at its status, and no look at other processes.
 */
#include "daemon/link/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/state/client.h"
#include "daemon/state/workload.h"

/* The kernel nests no deeper. */
#define LEVELS_MAX 32

struct space {
	dev_t device;
	ino_t inode;
};

static bool is_same(const struct space *a, const struct space *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* From an open descriptor of a namespace. */
static bool space_of(int fd, struct space *out)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	*out = (struct space){st.st_dev, st.st_ino};
	return true;
}

static int open_kind(pid_t pid, const char *kind)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_space(pid_t pid)
{
	return open_kind(pid, "pid");
}

static bool space_of_pid(pid_t pid, struct space *out)
{
	sl_cleanup(sl_closep) int fd = open_space(pid);

	return space_of(fd, out);
}

/* Are both in the same namespace of that kind? */
static bool share_kind(pid_t a, pid_t b, const char *kind)
{
	sl_cleanup(sl_closep) int fd_a = open_kind(a, kind), fd_b = open_kind(b, kind);
	struct space space_a, space_b;

	return space_of(fd_a, &space_a) && space_of(fd_b, &space_b) &&
	       is_same(&space_a, &space_b);
}

/* Do both call the same folder "/"? */
static bool share_root(pid_t a, pid_t b)
{
	char path_a[32], path_b[32];
	struct stat st_a, st_b;

	(void)snprintf(path_a, sizeof(path_a), "/proc/%d/root", (int)a);
	(void)snprintf(path_b, sizeof(path_b), "/proc/%d/root", (int)b);
	return stat(path_a, &st_a) == 0 && stat(path_b, &st_b) == 0 &&
	       st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

const char *sl_pids_apart(pid_t pid, uint64_t start_ticks)
{
	const char *apart = NULL;
	uint64_t start = 0;

	if (!share_kind(pid, getpid(), "user") || !share_kind(pid, getpid(), "pid") ||
		(!share_kind(pid, getpid(), "mnt") && !share_kind(pid, 1, "mnt")))
		apart = SL_PIDS_CONTAINED;
	else if (!share_root(pid, getpid()))
		apart = "is in a chroot (its root directory is not sluiced's)";
	else if (!share_kind(pid, getpid(), "net") || !share_kind(pid, getpid(), "ipc"))
		apart = "is in another network or IPC namespace than sluiced";
	/* Checked last: it proves that the checks above looked at this process. */
	return apart || (sl_file_pid_start(pid, &start) == 0 && start == start_ticks)
		       ? apart
		       : SL_PIDS_CONTAINED;
}

uint32_t sl_pids_levels(const char *status, pid_t *out, uint32_t room)
{
	const char *line = strstr(status, "\nNSpid:");
	uint32_t count = 0;
	char *end;

	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	for (;; line = end) {
		long number;

		line += strspn(line, " \t");
		number = strtol(line, &end, 10);
		if (end == line)
			return count;
		if (count < room)
			out[count] = (pid_t)number;
		count++;
	}
}

static uint32_t levels_of(pid_t pid, pid_t out[LEVELS_MAX])
{
	char path[64], status[4096];
	sl_cleanup(sl_closep) int fd = -1;
	ssize_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (size <= 0)
		return 0;
	status[size] = '\0';
	return sl_pids_levels(status, out, LEVELS_MAX);
}

/* The number of levels from the process's own namespace outwards to `space`; -1: it is not below
 * `space`, or we may not look. */
static int depth_below(pid_t pid, const struct space *space)
{
	sl_cleanup(sl_closep) int fd = open_space(pid);
	struct space at;

	for (int depth = 0; depth < LEVELS_MAX && space_of(fd, &at); depth++) {
		int parent;

		if (is_same(&at, space))
			return depth;
		parent = ioctl(fd, NS_GET_PARENT);
		(void)close(fd);
		fd = parent;
	}
	return -1;
}

static pid_t inside(pid_t pid, const struct space *space)
{
	int depth = depth_below(pid, space);
	pid_t levels[LEVELS_MAX];
	uint32_t count;

	if (depth < 0)
		return 0;
	count = levels_of(pid, levels);
	return (uint32_t)depth < count && count <= LEVELS_MAX
		       ? levels[count - 1 - (uint32_t)depth]
		       : 0;
}

pid_t sl_pids_inside(pid_t pid, pid_t asker)
{
	struct space space;

	return space_of_pid(asker, &space) ? inside(pid, &space) : 0;
}

/* --- the answer --------------------------------------------------------------------------- */

struct answer {
	struct sl_peer *peer;
	union sl_msg msg;
	uint32_t told;
	bool same;          /* the asker is in the daemon's namespace */
	struct space space; /* the asker's */
};

static void send_rows(struct answer *answer, bool last)
{
	struct sl_msg_pids_rows *rows = &answer->msg.pids_rows;

	rows->flags = (last ? SL_PIDS_LAST : 0) | (answer->same ? SL_PIDS_SAME : 0);
	sl_peer_send(answer->peer, &answer->msg);
	rows->count = 0;
	memset(rows->rows, 0, sizeof(rows->rows));
}

static void add_row(struct answer *answer, pid_t pid, uint64_t used_bytes)
{
	struct sl_msg_pids_rows *rows = &answer->msg.pids_rows;
	struct sl_wire_pid row = {.pid = (uint32_t)pid, .used_bytes = used_bytes};

	if (rows->count == SL_PIDS_ROWS_MAX)
		send_rows(answer, false);
	memcpy(rows->rows + rows->count * sizeof(row), &row, sizeof(row));
	rows->count++;
	answer->told++;
}

/* NVML lists processes that have a context; a client that only asks NVML has none. */
static bool uses(const struct sl_client *client, uint32_t ordinal, uint64_t used_bytes)
{
	return used_bytes > 0 || client->gpus[ordinal].listed_bytes > 0;
}

static void look_at(
	struct answer *answer, const struct sl_client *client, uint32_t ordinal)
{
	struct sl_node_use_view use = sl_node_client_use(
		client->daemon->node, client->id, client->gpu_numbers[ordinal]);
	uint64_t used_bytes = use.backing_bytes + use.hidden_bytes + use.paid_bytes;
	pid_t pid;

	if (!uses(client, ordinal, used_bytes))
		return;
	pid = answer->same ? client->pid : inside(client->pid, &answer->space);
	if (pid > 0)
		add_row(answer, pid, used_bytes);
}

void sl_pids_tell(struct sl_peer *peer, const struct sl_msg_pids *ask)
{
	struct sl_workload *workload = peer->client->workload;
	struct answer answer = {.peer = peer};
	pid_t levels[LEVELS_MAX];

	if (ask->ordinal >= peer->client->gpu_count) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "GPU ordinal %u of %u",
			ask->ordinal, peer->client->gpu_count);
		return;
	}
	/* A process with one number only has it in the namespace of our /proc. */
	answer.same = levels_of(peer->pid, levels) == 1;
	/* If we may not look at the asker's namespace, it sees no processes. */
	if (!answer.same)
		(void)space_of_pid(peer->pid, &answer.space);
	sl_wire_init(&answer.msg, SL_MSG_PIDS_ROWS);
	answer.msg.pids_rows.ask = ask->ask;
	sl_list_foreach (link, &workload->clients) {
		if (answer.told == SL_PIDS_MAX)
			break;
		look_at(&answer, SL_LIST_ENTRY(link, struct sl_client, link),
			ask->ordinal);
	}
	send_rows(&answer, true);
}
