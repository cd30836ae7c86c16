/*
 * sluice softgpu: a box of software GPUs, and CMD inside.
 *
 * This process stays as the parent, and the box ends with it. It is the reaper of everything
 * started inside (PR_SET_CHILD_SUBREAPER): a `sluiced &` or a server that a script leaves behind
 * would otherwise live on without its GPUs. After CMD ends, remaining processes get SIGTERM, and
 * SIGKILL after a grace period.
 *
 * With --lose, --revive or --xid the verb starts nothing: it causes an event in the box around it.
 *
 * Users who kill CMD signal its parent, so this process passes SIGINT, SIGTERM and the like on. The
 * terminal signals the whole process group by itself; such signals are not repeated.
 */
#include "cli/line/cli.h"
#include "cli/verbs/faults.h"
#include "cli/line/program.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/paths.h"
#include "softgpu/link/box.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between SIGTERM and SIGKILL for processes left behind by CMD. */
#define LEFTOVER_GRACE_NS (2 * SL_S)
#define POLL_NS           (10 * SL_MS)

struct settings {
	struct sl_softgpu_config config;
	int64_t lose, revive; /* -1: not given */
	const char *xid;
};

const struct sl_option sl_verb_softgpu_options[] = {
#define SETTING(field, key, preset, lowest, highest, help)                      \
	{key, SL_OPTION_SIZE, "VALUE", offsetof(struct settings, config.field), \
		(int64_t)(lowest), (int64_t)(highest), help, preset, 0},
	SL_SOFTGPU_SETTINGS(SETTING)
#undef SETTING
		SL_OPT_AS("faults", struct settings, config.faults, STRING, "PLAN", 0, 0,
			"Calls that fail or hang: cuMemCreate:3=oom,cuMemMap:@5=hang"),
	SL_OPT_AS("models", struct settings, config.models, STRING, "NAMES", 0, 0,
		"Models of the GPUs, joined by commas; the last one for the rest."),
	SL_OPT_AS("shared", struct settings, config.shared, FLAG, NULL, 0, 0,
		"All users may use these GPUs, and CMD's sluiced; says how."),
	SL_OPT(struct settings, lose, INTEGER, "GPU", 0, SL_SOFTGPU_GPUS_MAX - 1,
		"Inside a box: this GPU falls off the bus (Xid 79)."),
	SL_OPT(struct settings, revive, INTEGER, "GPU", 0, SL_SOFTGPU_GPUS_MAX - 1,
		"Inside a box: a lost GPU works again, for new processes."),
	SL_OPT(struct settings, xid, STRING, "GPU:XID", 0, 0,
		"Inside a box: this GPU reports that Xid and works on."),
	SL_OPT_WORDS("CMD", "The program; its exit status and signals pass through."),
	SL_OPT_END,
};

/* Signals passed on to CMD. */
static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/* Puts the folder of this program first in PATH, so `sluiced` and `sluice` are found. */
static int set_path(void)
{
	const char *old = getenv("PATH");
	sl_cleanup(sl_freep) char *value = NULL;
	char dir[SL_PATH_MAX];
	int r = sl_paths_program_dir(dir, sizeof(dir));

	if (r)
		return r;
	if (asprintf(&value, "%s%s%s", dir, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	return setenv("PATH", value, 1) ? -errno : 0;
}

/* Gives the box a daemon of its own, apart from the system daemon and those of other boxes. The
 * user's own settings stay. */
static int set_daemon_places(const char *dir)
{
	sl_cleanup(sl_freep) char *socket = NULL;
	sl_cleanup(sl_freep) char *state = NULL;

	if (asprintf(&socket, "%s/sluiced.sock", dir) < 0 ||
		asprintf(&state, "%s/state", dir) < 0)
		return -ENOMEM;
	if (setenv("SLUICE_SOCKET", socket, 0) || setenv("SLUICE_STATE", state, 0))
		return -errno;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	/* Best effort: another user's file stays, and the folder with it. */
	if (remove(path) < 0 && errno != ENOENT)
		return 0;
	return 0;
}

static void remove_tree(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* In the child: becomes CMD. */
static int become(char **words, const sigset_t *mask)
{
	int error;

	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(words[0], words);
	error = errno;
	return sl_cli_fail(SL_VERB_softgpu, false,
		error == ENOENT ? SL_EXIT_NOT_FOUND : SL_EXIT_NOT_EXECUTABLE,
		"%.200s: %s", words[0], strerror(error));
}

static bool is_forwarded(int signal)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(forwarded); i++)
		if (forwarded[i] == signal)
			return true;
	return false;
}

/* Reaps ended children. True once CMD is among them, with its wait status; cmd 0: wait for no child
 * in particular. */
static bool reap(pid_t cmd, pid_t server, int *wait_status)
{
	bool ended = false;
	siginfo_t info = {0};
	int status;

	/* sl_softgpu_stop reaps the server, so skip it: WNOWAIT looks first. */
	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
		if (info.si_pid == server)
			break;
		if (waitpid(info.si_pid, &status, 0) == info.si_pid &&
			info.si_pid == cmd) {
			*wait_status = status;
			ended = true;
		}
		info.si_pid = 0;
	}
	/* The server may have ended first; CMD may still be behind it. */
	if (cmd > 0 && !ended && waitpid(cmd, &status, WNOHANG) == cmd) {
		*wait_status = status;
		ended = true;
	}
	return ended;
}

/* Waits for CMD and passes signals on. */
static int wait_for(pid_t cmd, pid_t server, const sigset_t *signals)
{
	int wait_status = 0;
	siginfo_t info;

	while (!reap(cmd, server, &wait_status)) {
		if (sigwaitinfo(signals, &info) < 0)
			continue;
		/* SI_KERNEL: from the terminal, which signals CMD itself. */
		if (is_forwarded(info.si_signo) && info.si_code != SI_KERNEL)
			kill(cmd, info.si_signo);
	}
	return wait_status;
}

/* Sends signal to every child but the server. Returns how many there are. */
static unsigned int signal_children(pid_t server, int signal)
{
	DIR *proc = opendir("/proc");
	unsigned int n = 0;
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0 || pid == server || sl_file_pid_parent(pid) != getpid())
			continue;
		n++;
		kill(pid, signal);
	}
	if (proc)
		closedir(proc);
	return n;
}

/* Ends what CMD left behind. When a parent ends, its children become this process's children. A
 * process that cannot be killed (another user's, or stuck in the kernel) is given up after twice
 * the grace period. */
static void end_leftovers(pid_t server)
{
	sl_ns start = sl_clock_now(), now = start;
	int status;

	while (now < start + 2 * LEFTOVER_GRACE_NS &&
		signal_children(
			server, now < start + LEFTOVER_GRACE_NS ? SIGTERM : SIGKILL)) {
		sl_clock_sleep(POLL_NS);
		reap(0, server, &status);
		now = sl_clock_now();
	}
}

/* Ends as CMD ended: by the same signal, without a core dump of this process. */
static int pass_status(int wait_status)
{
	sigset_t none;
	int signal;

	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	signal = WTERMSIG(wait_status);
	prctl(PR_SET_DUMPABLE, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	raise(signal);
	return 128 + signal;
}

/* Prints the settings with which another user's shell gets into the box. */
static void say_how(void)
{
	static const char *const names[] = {
		SL_SOFTGPU_ENV, "LD_LIBRARY_PATH", "SLUICE_SOCKET"};

	fputs("sluice softgpu: for other users:\n", stderr);
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
		fprintf(stderr, "export %s='%s'\n", names[i], getenv(names[i]));
}

/* Runs CMD in the started box. Returns the exit status; does not return in the child that
 * becomes CMD. */
static int run_in(struct sl_softgpu_box *box, const char *dir, bool shared, char **words)
{
	sigset_t signals, before;
	int wait_status;
	pid_t cmd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < SL_ARRAY_LEN(forwarded); i++)
		sigaddset(&signals, forwarded[i]);
	/* Blocked before the fork, so a signal between fork and wait is not lost. */
	sigprocmask(SIG_BLOCK, &signals, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (sl_softgpu_env(box) || set_path() || set_daemon_places(dir))
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_SYSTEM,
			"cannot set the environment of CMD");
	if (shared)
		say_how();
	cmd = fork();
	if (cmd < 0)
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_SYSTEM,
			"cannot start a process: %s", strerror(errno));
	if (!cmd)
		_exit(become(words, &before));
	wait_status = wait_for(cmd, box->pid, &signals);
	end_leftovers(box->pid);
	remove_tree(dir);
	sl_softgpu_stop(box);
	return pass_status(wait_status);
}

/* "GPU:XID". False: another form. */
static bool read_xid(const char *text, uint32_t *gpu, uint32_t *xid)
{
	char rest;

	return strspn(text, "0123456789:") == strlen(text) && strlen(text) < 16 &&
	       sscanf(text, "%u:%u%c", gpu, xid, &rest) == 2;
}

/* Causes the event. Returns the exit status. */
static int happen(enum sl_softgpu_event event, uint32_t gpu, uint32_t xid)
{
	const char *socket = getenv(SL_SOFTGPU_ENV);
	char why[SL_ERROR_TEXT_MAX];
	int r;

	if (!socket || !*socket)
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_USAGE,
			"there is no box here: run it inside of sluice softgpu -- CMD");
	r = sl_softgpu_event(socket, event, gpu, xid, why, sizeof(why));
	if (!r)
		return SL_EXIT_OK;
	return sl_cli_fail(SL_VERB_softgpu, false,
		r == -EPERM                   ? SL_EXIT_DENIED
		: r == -EINVAL || r == -ENXIO ? SL_EXIT_USAGE
					      : SL_EXIT_SYSTEM,
		"%s", why);
}

/* The exit status, or -1 to start a box. */
static int events(const struct settings *s, bool has_command)
{
	int asked = (s->lose >= 0) + (s->revive >= 0) + (s->xid != NULL);
	uint32_t gpu, xid;

	if (!asked)
		return -1;
	if (asked > 1 || has_command)
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_USAGE,
			"--lose, --revive and --xid stand alone: one of them, no CMD");
	if (s->lose >= 0)
		return happen(SL_SOFTGPU_LOSE, (uint32_t)s->lose, SL_SOFTGPU_XID_LOST);
	if (s->revive >= 0)
		return happen(SL_SOFTGPU_REVIVE, (uint32_t)s->revive, 0);
	if (!read_xid(s->xid, &gpu, &xid))
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_USAGE,
			"--xid '%.64s' is not GPU:XID, as in 0:43", s->xid);
	return happen(SL_SOFTGPU_XID, gpu, xid);
}

int sl_verb_softgpu(int argc, char **argv)
{
	struct settings s = {.lose = -1, .revive = -1};
	struct sl_softgpu_box box;
	struct sl_error err = {0};
	char why[SL_ERROR_TEXT_MAX], dir[sizeof(box.directory) + 8];
	int first, status;

	sl_softgpu_config_init(&s.config);
	status = sl_cli_parse(SL_VERB_softgpu, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	status = events(&s, first < argc);
	if (status >= 0)
		return status;
	if (first == argc)
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_USAGE,
			"no command: sluice softgpu [options] -- CMD [ARG...]");
	if (s.config.faults && sl_faults_check(s.config.faults, &err))
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_USAGE, "%s", err.text);
	if (sl_softgpu_start(&box, &s.config, why, sizeof(why)))
		return sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_INSTALL,
			"cannot start the software GPUs: %s", why);
	snprintf(dir, sizeof(dir), "%s/d", box.directory);
	if (mkdir(dir, 0700) < 0 || (s.config.shared && chmod(dir, 0711) < 0)) {
		status = sl_cli_fail(SL_VERB_softgpu, false, SL_EXIT_SYSTEM,
			"cannot make %s: %s", dir, strerror(errno));
		sl_softgpu_stop(&box);
		return status;
	}
	return run_in(&box, dir, s.config.shared, argv + first);
}
