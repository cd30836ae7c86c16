/*
 * slurmstepd has threads, so the child calls nothing but the system before it executes a program.
 * Both have to be children of slurmstepd in the cgroup of the tasks: then Slurm signals and kills
 * them with the tasks.
 */
#include <stdint.h>

#include "slurm/start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "slurm/freezer.h"
#include "slurm/options.h"
#include "slurm/page.h"

/* --wait --name NAME --, and the end */
#define OWN_WORDS  6
#define SOCKET_MAX 256
/* Longest wait for the clerk. */
#define CLERK_MS  3000
#define SAY(text) (void)!write(STDERR_FILENO, text, sizeof(text) - 1)

struct child {
	const char *program;
	char procs[SL_FREEZER_PATH_MAX]; /* of a cgroup to join; "": none */
	char cwd[64];
	const char **argv, **environment;
	gid_t gid, *groups;
	uid_t uid;                         /* 0: it stays root */
	int group_count, page_fd, said_fd; /* -1: it has none */
	pid_t parent;
};

/* What Slurm sends to the tasks is not meant for these. They take what they wait for. */
static void block_signals(void)
{
	sigset_t all;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static bool become_user(const struct child *child)
{
	return syscall(SYS_setgroups, child->group_count, child->groups) == 0 &&
	       syscall(SYS_setresgid, child->gid, child->gid, child->gid) == 0 &&
	       syscall(SYS_setresuid, child->uid, child->uid, child->uid) == 0;
}

static void join_cgroup(const struct child *child)
{
	int fd = child->procs[0] ? open(child->procs, O_WRONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)!write(fd, "0", 1);
		(void)close(fd);
	}
}

static void arrange_descriptors(const struct child *child)
{
	int null = open("/dev/null", O_RDWR);
	/* Out of the way of their places. */
	int page = fcntl(child->page_fd >= 0 ? child->page_fd : null, F_DUPFD, 10);
	int said = fcntl(child->said_fd >= 0 ? child->said_fd : null, F_DUPFD, 10);

	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(said, STDERR_FILENO);
	(void)dup2(page, SL_SLURM_PAGE_FD);
	(void)syscall(SYS_close_range, SL_SLURM_PAGE_FD + 1, ~0u, 0);
}

_Noreturn static void become(const struct child *child)
{
	block_signals();
	join_cgroup(child);
	/* While it may look into the task. */
	(void)!chdir(child->cwd[0] ? child->cwd : "/");
	arrange_descriptors(child);
	if (child->uid && !become_user(child)) {
		SAY("sluice: cannot become the job's user\n");
		_exit(EXIT_FAILURE);
	}
	/* After the change of the user, which would reset it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != child->parent)
		_exit(EXIT_FAILURE);
	(void)execve(child->program, (char *const *)child->argv,
		(char *const *)child->environment);
	SAY("sluice: cannot execute the keeper, sluice-slurm; install Sluice whole on "
	    "this node, or name it in plugstack.conf (keeper=PATH)\n");
	_exit(EXIT_FAILURE);
}

/* The caller frees the array, not the words. NULL: no memory. */
static const char **make_argv(
	spank_t spank, const struct sl_start_settings *settings, const char *name)
{
	char **words = NULL;
	int count = 0;
	const char **argv;
	size_t used = 0;

	(void)spank_get_item(spank, S_JOB_ARGV, &count, &words);
	argv = calloc((size_t)count + SL_OPTIONS_WORDS + OWN_WORDS, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[used++] = "sluice-slurm";
	if (settings->waits)
		argv[used++] = "--wait";
	argv[used++] = "--name";
	argv[used++] = name;
	used += sl_options_words(argv + used);
	argv[used++] = "--";
	for (int i = 0; i < count; i++)
		argv[used++] = words[i];
	return argv;
}

const char *sl_start_own_gpus(const char *gpus, const char *changed)
{
	size_t length = gpus ? strlen(gpus) : 0;

	if (!gpus || !changed || strncmp(changed, gpus, length) != 0 ||
		changed[length] != '=')
		return gpus;
	return changed + length + 1;
}

static bool is_variable(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && word[length] == '=';
}

static const char *value_of(char *const *environment, const char *name)
{
	for (; *environment; environment++) {
		if (is_variable(*environment, name))
			return *environment + strlen(name) + 1;
	}
	return NULL;
}

/* The job's, but for the socket and the GPUs. The caller frees the array and both words. */
static const char **make_environment(spank_t spank,
	const struct sl_start_settings *settings, char **socket, char **visible)
{
	static char *none[] = {NULL};
	char **all = none;
	const char *gpus, *own;
	const char **out;
	size_t count = 0, used = 0;

	(void)spank_get_item(spank, S_JOB_ENV, &all);
	gpus = value_of(all, SL_START_GPUS);
	own = sl_start_own_gpus(gpus, value_of(all, SL_START_CHANGED));
	while (all[count])
		count++;
	out = calloc(count + 3, sizeof(*out));
	if (!out ||
		(settings->socket &&
			asprintf(socket, "SLUICE_SOCKET=%s", settings->socket) < 0) ||
		(own != gpus && *own &&
			asprintf(visible, SL_START_GPUS "=%s", own) < 0)) {
		free(out);
		return NULL;
	}
	if (settings->socket)
		out[used++] = *socket;
	if (*visible)
		out[used++] = *visible;
	for (size_t i = 0; i < count; i++) {
		if ((!settings->socket || !is_variable(all[i], "SLUICE_SOCKET")) &&
			(own == gpus || !is_variable(all[i], SL_START_GPUS)))
			out[used++] = all[i];
	}
	return out;
}

/* A pidfd, or negative errno. */
static int start(spank_t spank, struct child *child)
{
	pid_t pid, task = 0;
	int pidfd;

	if (spank_get_item(spank, S_TASK_PID, &task))
		return -EINVAL;
	/* The keeper may look up CMD there. */
	if (child->page_fd >= 0)
		(void)snprintf(child->cwd, sizeof(child->cwd), "/proc/%d/cwd", (int)task);
	if (sl_freezer_folder(
		    task, child->procs, sizeof(child->procs) - sizeof("/cgroup.procs")))
		strcat(child->procs, "/cgroup.procs");
	else
		child->procs[0] = '\0';
	child->parent = getpid();
	pid = fork();
	if (pid == 0)
		become(child);
	if (pid < 0)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

int sl_start_keeper(spank_t spank, const struct sl_start_settings *settings,
	const char *name, int page_fd, int said_fd)
{
	sl_cleanup(sl_freep) char *socket = NULL;
	sl_cleanup(sl_freep) char *visible = NULL;
	sl_cleanup(sl_freep) const char **argv = make_argv(spank, settings, name);
	sl_cleanup(sl_freep) const char **environment =
		make_environment(spank, settings, &socket, &visible);
	struct child child = {.program = settings->keeper,
		.argv = argv,
		.environment = environment,
		.page_fd = page_fd,
		.said_fd = said_fd};

	if (!argv || !environment)
		return -ENOMEM;
	if (spank_get_item(spank, S_JOB_UID, &child.uid) ||
		spank_get_item(spank, S_JOB_GID, &child.gid) ||
		spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &child.groups,
			&child.group_count))
		return -EINVAL;
	return start(spank, &child);
}

int sl_start_porter(
	spank_t spank, const struct sl_start_settings *settings, const char *name)
{
	sl_cleanup(sl_freep) char *socket = NULL;
	char user[16];
	const char *argv[] = {"sluice-slurm", SL_SLURM_PORTER, name, user, NULL};
	/* It is root: nothing of the job's environment. */
	const char *environment[] = {NULL, NULL};
	struct child child = {.program = settings->keeper,
		.argv = argv,
		.environment = environment,
		.page_fd = -1,
		.said_fd = -1};
	uid_t uid = 0;

	if (spank_get_item(spank, S_JOB_UID, &uid))
		return -EINVAL;
	(void)snprintf(user, sizeof(user), "%u", (unsigned int)uid);
	if (settings->socket) {
		if (asprintf(&socket, "SLUICE_SOCKET=%s", settings->socket) < 0)
			return -ENOMEM;
		environment[0] = socket;
	}
	return start(spank, &child);
}

void sl_start_clerk(struct spank_handle *spank, const struct sl_start_settings *settings,
	const char *name, uint64_t since)
{
	char user[16], number[32], seconds[24], socket[SOCKET_MAX];
	const char *argv[] = {
		"sluice-slurm", SL_SLURM_CLERK, name, user, number, seconds, NULL};
	uint32_t job = 0, array = 0, index = 0;
	uid_t uid = 0;
	int status = 0;
	sl_cleanup(sl_freep) const char **environment = NULL;
	size_t count = 0;
	struct pollfd done = {.events = POLLIN};
	pid_t pid;

	/* slurmd's own: scontrol needs it. */
	while (environ[count])
		count++;
	environment = calloc(count + 2, sizeof(*environment));
	if (!environment)
		return;
	if (spank_get_item(spank, S_JOB_UID, &uid) ||
		spank_get_item(spank, S_JOB_ID, &job))
		return;
	(void)snprintf(user, sizeof(user), "%u", (unsigned int)uid);
	(void)spank_get_item(spank, S_JOB_ARRAY_ID, &array);
	(void)spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &index);
	/* The number of one task of an array names all of it. */
	if (array && index != NO_VAL)
		(void)snprintf(
			number, sizeof(number), "%" PRIu32 "_%" PRIu32, array, index);
	else
		(void)snprintf(number, sizeof(number), "%" PRIu32, job);
	(void)snprintf(seconds, sizeof(seconds), "%" PRIu64, since);
	(void)snprintf(socket, sizeof(socket), "SLUICE_SOCKET=%s",
		settings->socket ? settings->socket : "");
	/* The first of a name counts. */
	if (settings->socket)
		environment[0] = socket;
	memcpy(environment + (settings->socket ? 1 : 0), environ,
		count * sizeof(*environment));
	pid = fork();
	if (pid == 0) {
		/* What it has to say is not for the job's output. */
		arrange_descriptors(&(struct child){.page_fd = -1, .said_fd = -1});
		(void)execve(settings->keeper, (char *const *)argv,
			(char *const *)environment);
		_exit(EXIT_FAILURE);
	}
	done.fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (done.fd < 0)
		return;
	/* slurmctld or the daemon may be down. */
	if (poll(&done, 1, CLERK_MS) <= 0)
		sl_start_kill(done.fd);
	(void)waitpid(pid, &status, 0);
	(void)close(done.fd);
	if (status)
		slurm_info(
			"sluice: what %s used is not in the accounting: the daemon or "
			"slurmctld does not answer, or scontrol is not in slurmd's PATH",
			name);
}

void sl_start_kill(int pidfd)
{
	if (pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}
