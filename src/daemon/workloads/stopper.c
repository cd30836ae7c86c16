/*
 * stopper - signals through pidfds
 *
 * A client's pidfd was opened when it was known to be this process, and refers to it whatever
 * happens to the number. A stranger has no such history: its pidfd is opened first, and facts read
 * from /proc afterwards count only while the pidfd shows the process alive.
 */
#include "daemon/workloads/stopper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/core/aside.h"
#include "daemon/report/events.h"
#include "daemon/state/client.h"
#include "daemon/state/drive.h"
#include "daemon/state/process.h"
#include "daemon/workloads/strangers.h"
#include "daemon/workloads/workload.h"

/* A process maps a few thousand files at most; a look gives up beyond this. */
#define MAPS_BYTES_MAX (16u << 20)

static void tell_failure(struct sl_daemon *daemon, const struct sl_node_because *because,
	pid_t pid, const char *why)
{
	sl_warning("process %d cannot be signalled: %s", (int)pid, why);
	sl_events_add_of(daemon, because, pid);
}

/* Demands must not wait for this stop. The policy may stop another process. */
static void open_stop_failed(struct sl_letter *letter)
{
	struct sl_client *client = SL_CONTAINER_OF(letter, struct sl_client, stop_failed);

	sl_drive(client->daemon, &(struct sl_event){.type = SL_EVENT_STOP_FAILED,
					 .stop_failed = {client->id}});
}

static int send_signal(int pidfd, int number)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

/* 0, or a negative errno. A process that is already dead counts as signalled. */
static int signal_process(int pidfd, pid_t pid, int number)
{
	struct sl_pid_stat stat = {0};

	if (send_signal(pidfd, number) < 0)
		return errno == ESRCH ? 0 : -errno;
	/* In a stopped process every signal but SIGKILL would stay pending. A running program does
	 * not get SIGCONT: it may use that signal itself. */
	if (number != SIGKILL && sl_file_pid_stat((int)pid, &stat) == 0 &&
		stat.state == 'T')
		(void)send_signal(pidfd, SIGCONT);
	sl_info("SIG%s to process %d", sigabbrev_np(number), (int)pid);
	return 0;
}

static int number_of(uint32_t stage)
{
	return stage == SL_STOP_KILL ? SIGKILL : SIGTERM;
}

static void stop_process(struct sl_daemon *daemon, const struct sl_process *process,
	struct sl_client *client, int number, const struct sl_action *action)
{
	int r;

	if (!process || process->dead)
		return;
	r = signal_process(process->pidfd, process->pid, number);
	if (r == 0)
		return;
	tell_failure(daemon,
		&(struct sl_node_because){.reason = SL_REASON_STOP_FAILED,
			.gpu = action->stop.gpu,
			.workload = action->stop.workload,
			.other = action->stop.other,
			.client = client ? client->id : 0,
			.bytes = action->stop.bytes},
		process->pid, strerror(-r));
	if (client)
		sl_drive_post(daemon, &client->stop_failed, open_stop_failed);
}

/*
 * The root of a job's task is its shim, which passes SIGTERM on to the program and its group; so
 * the clients get none from here. To kill, clients get SIGKILL, but the shim gets SIGUSR1 and kills
 * all the program's processes. SIGKILL would end the shim before it records the outcome, and leave
 * these processes alive.
 */
static void stop_workload(struct sl_daemon *daemon, struct sl_workload *workload,
	const struct sl_action *action)
{
	int number = number_of(action->stop.stage), root = number;

	if (workload->has_shim && number == SIGKILL)
		root = SIGUSR1;
	if (!workload->has_shim || number == SIGKILL) {
		sl_list_foreach (link, &workload->clients) {
			struct sl_client *client =
				SL_LIST_ENTRY(link, struct sl_client, link);

			stop_process(daemon, client->process, client, number, action);
		}
	}
	/* A root that is a client was signalled as one. */
	if (workload->root &&
		(!workload->root->client || workload->root->client->workload != workload))
		stop_process(daemon, workload->root, NULL, root, action);
}

void sl_stopper_stop(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_client *client = sl_map_get(&daemon->clients, action->stop.client);
	struct sl_workload *workload =
		sl_map_get(&daemon->workloads, action->stop.workload);

	sl_step(D_STOP_BOOKED);
	if (action->stop.client) {
		if (client)
			stop_process(daemon, client->process, client,
				number_of(action->stop.stage), action);
		return;
	}
	if (!workload)
		return;
	stop_workload(daemon, workload, action);
	sl_step(D_STOP_SENT);
}

/* --- strangers ---------------------------------------------------------------------------- */

static bool names_gpu(const char *path)
{
	return strncmp(path, "/dev/nvidia", 11) == 0 || strstr(path, "/libcuda.so") ||
	       strstr(path, "/libnvidia-");
}

static bool has_device_open(pid_t pid)
{
	char folder[32], path[300], target[256];
	bool found = false;
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	while (dir && !found && (entry = readdir(dir))) {
		ssize_t n;

		(void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		found = names_gpu(target);
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

static bool maps_library(pid_t pid)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (sl_file_read(path, MAPS_BYTES_MAX, &text, NULL) < 0)
		return false;
	return strstr(text, " /dev/nvidia") || strstr(text, "/libcuda.so") ||
	       strstr(text, "/libnvidia-");
}

/* Shared with the thread that looks; the last one frees it. */
struct look {
	atomic_uint users;
	sem_t done;
	pid_t pid;
	atomic_bool shows_gpu; /* valid once done */
};

static void look_unref(struct look *look)
{
	if (atomic_fetch_sub(&look->users, 1) != 1)
		return;
	(void)sem_destroy(&look->done);
	free(look);
}

static void look_at(void *work)
{
	struct look *look = work;

	look->shows_gpu = has_device_open(look->pid) || maps_library(look->pid);
	(void)sem_post(&look->done);
	look_unref(look);
}

/* Longest wait for a look: the process may make it hang. */
#define LOOK_NS SL_S

static const char *look_for_gpu(pid_t pid, uid_t uid)
{
	struct look *look = calloc(1, sizeof(*look));
	sl_ns end = sl_clock_now() + LOOK_NS;
	struct timespec until = {
		.tv_sec = (time_t)(end / SL_S), .tv_nsec = (long)(end % SL_S)};
	const char *why = "it does not let itself be looked at";

	if (!look)
		return why;
	atomic_store(&look->users, 2);
	(void)sem_init(&look->done, 0, 0);
	look->pid = pid;
	if (!sl_aside(uid, look_at, look))
		look_unref(look);
	else if (sem_clockwait(&look->done, CLOCK_MONOTONIC, &until) == 0)
		why = look->shows_gpu ? NULL
				      : "it shows no sign of using a GPU; the driver "
					"may count pids of another namespace";
	look_unref(look);
	return why;
}

/* Why this process must not be signalled, or NULL. The pidfd is already open. */
static const char *objection(
	struct sl_daemon *daemon, const struct sl_stranger *stranger, int pidfd)
{
	struct sl_process *process =
		sl_map_get(&daemon->processes, (uint64_t)stranger->pid);
	struct pollfd death = {.fd = pidfd, .events = POLLIN};
	struct sl_pid_stat now = {0};
	struct stat owner = {0};
	const char *why;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)stranger->pid);
	if (stranger->pid <= 1 || stranger->pid == getpid())
		return "it is not one that anybody may stop";
	if (process && !process->dead &&
		(process->client || !sl_list_is_empty(&process->roots)))
		return "it belongs to a workload";
	if (!stranger->start_ticks || sl_file_pid_stat((int)stranger->pid, &now) < 0 ||
		now.start_ticks != stranger->start_ticks || stat(path, &owner) < 0)
		return "its number is another process's now";
	if (now.kernel_thread)
		return "it is the kernel's";
	if (geteuid() != 0 && owner.st_uid != geteuid())
		return "it is another user's, and sluiced does not run as root";
	why = look_for_gpu(stranger->pid, owner.st_uid);
	return why || poll(&death, 1, 0) == 0 ? why : "it is dead";
}

void sl_stopper_stranger(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_stranger *stranger =
		sl_strangers_find(daemon, action->stop_stranger.stranger);
	struct sl_node_because because = {.reason = SL_REASON_STOP_UNMANAGED,
		.gpu = action->stop_stranger.gpu,
		.bytes = action->stop_stranger.bytes};
	sl_cleanup(sl_closep) int pidfd = -1;
	const char *why;
	int r = 0;

	if (!stranger)
		return;
	pidfd = (int)syscall(SYS_pidfd_open, stranger->pid, 0);
	if (pidfd < 0)
		return; /* dead: the next sample will show it */
	why = objection(daemon, stranger, pidfd);
	if (!why) {
		r = signal_process(
			pidfd, stranger->pid, number_of(action->stop_stranger.stage));
		why = r < 0 ? strerror(-r) : NULL;
	}
	if (why) {
		because.reason = SL_REASON_STOP_FAILED_UNMANAGED;
		tell_failure(daemon, &because, stranger->pid, why);
	} else if (action->stop_stranger.stage == SL_STOP_TERM) {
		sl_events_add_of(daemon, &because, stranger->pid);
	}
}
