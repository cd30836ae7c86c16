/*
 * The supervisor of a task, started as the daemon does it: the fate of its program and of all
 * descendants, and what it leaves behind. A program reports its own state in its log.
 */
#include "shim_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* --- Ends. --- */

static void test_ends(void **state)
{
	static const struct {
		const char *name, *script;
		uint32_t status;
		const char *says;
	} rows[] = {
		{"success", "echo fine", 0, "fine\n"},
		{"a status", "echo wrong >&2; exit 7", 7 << 8, "wrong\n"},
		{"a signal", "kill -9 $$", 9, ""},
		{"its own TERM", "kill $$; sleep 100", 15, ""},
		{"one that closes its output", "exec >&- 2>&-; exit 3", 3 << 8, ""},
		{"an end of input at once", "cat; echo read", 0, "read\n"},
		/* Its output is opened anew by name. */
		{"by name", "echo a >>/dev/stdout; echo b >>/proc/self/fd/2", 0,
			"a\nb\n"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct job job = going(shell(rows[i].script));
		struct sl_shim_record record = over(&job);

		assert_row_u64(rows[i].name, record.ending, SL_SHIM_EXITED);
		assert_row_u64(rows[i].name, record.status & ~0x80u, rows[i].status);
		assert_row_text(rows[i].name, said(&job), rows[i].says);
		assert_true(record.started_ms <= record.ended_ms);
		assert_true(record.started_ms > 1500000000000ull);
	}
}

static void test_not_started(void **state)
{
	const char *const none[] = {"sluice-no-such-program", NULL};
	const char *const no_program[] = {"/etc/passwd", NULL};
	const char *const is_folder[] = {"/tmp", NULL};
	const char *const good[] = {"true", NULL};
	struct {
		const char *name;
		const char *const *words;
		const char *dir;
		int error;
		const char *what;
	} rows[] = {
		{"no such program", none, "/", ENOENT, "exec"},
		{"not executable", no_program, "/", EACCES, "exec"},
		{"a folder", is_folder, "/", EACCES, "exec"},
		{"no such folder", good, "/nonexistent/folder", ENOENT, "chdir"},
		{"a file as folder", good, "/etc/passwd", ENOTDIR, "chdir"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_jobspec spec = {0};
		struct sl_shim_record record;
		struct job job;

		add(&spec, SL_JOBSPEC_ARG, rows[i].words[0]);
		add(&spec, SL_JOBSPEC_DIR, rows[i].dir);
		add_user(&spec, geteuid(), getegid());
		job = going(spec);
		record = over(&job);
		assert_row_u64(rows[i].name, record.ending, SL_SHIM_ERROR);
		assert_row_text(rows[i].name, record.what, rows[i].what);
		assert_row_u64(
			rows[i].name, (uint64_t)record.error, (uint64_t)rows[i].error);
	}
}

/* PATH and the rest of the environment are the job's, not the daemon's. Of variables with the same
 * name, the last counts. */
static void test_environment(void **state)
{
	const char *const words[] = {"sluice-test-program", NULL};
	struct sl_jobspec spec = spec_of(words);
	char path[64], variable[80];
	struct job job;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/sluice-test-program", folder);
	assert_int_equal(
		sl_file_replace(path, "#!/bin/sh\necho $A-$HOME-$B; umask; pwd",
			strlen("#!/bin/sh\necho $A-$HOME-$B; umask; pwd"), false),
		0);
	assert_int_equal(chmod(path, 0755), 0);
	(void)snprintf(variable, sizeof(variable), "PATH=/none:%s:/usr/bin", folder);
	add(&spec, SL_JOBSPEC_ENV, "A=1");
	add(&spec, SL_JOBSPEC_ENV, variable);
	add(&spec, SL_JOBSPEC_ENV, "A=two");
	add(&spec, SL_JOBSPEC_UMASK, "071");
	assert_int_equal(setenv("B", "daemon's", 1), 0);
	job = going(spec);
	assert_int_equal(over(&job).status, 0);
	assert_string_equal(said(&job), "two--\n0071\n/\n");
	assert_int_equal(unsetenv("B"), 0);
}

/* --- How a program is set up. --- */

/* The program has no descriptor but 0 to 2, no signal ignored or blocked, a session of its own, and
 * limits and risks like any process. */
static void test_setup(void **state)
{
	static const char script[] =
		"exec 9</proc/self/status; ls /proc/self/fd | tr '\\n' ' '; echo; "
		"grep -E 'Sig(Blk|Ign)' <&9 | tr -d '\\t\\n'; echo; "
		"cut -d' ' -f6 /proc/$$/stat; echo $$; "
		"cat /proc/self/oom_score_adj; ulimit -S -n";
	struct rlimit before, many;
	struct sl_jobspec spec;
	struct job job;
	char *line, *text, *rest = NULL;
	uint64_t blocked, ignored;
	char session[16];
	int leak[40];

	(void)state;
	/* As many as a daemon may have, and some of them left open. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	many = before;
	many.rlim_cur = sl_min_u64(many.rlim_max, 4096);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &many), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(leak); i++)
		leak[i] = open("/dev/null", O_RDONLY);
	(void)signal(SIGUSR2, SIG_IGN);
	spec = shell(script);
	job = going(spec);
	assert_int_equal(over(&job).status, 0);
	(void)signal(SIGUSR2, SIG_DFL);
	for (size_t i = 0; i < SL_ARRAY_LEN(leak); i++)
		close(leak[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

	text = strdup(said(&job));
	/* 9 is the shell's own, 3 that of ls, which reads the folder with it. */
	assert_string_equal(strtok_r(text, "\n", &rest), "0 1 2 3 9 ");
	line = strtok_r(NULL, "\n", &rest);
	assert_int_equal(
		sscanf(line, "SigBlk:%" SCNx64 "SigIgn:%" SCNx64, &blocked, &ignored), 2);
	assert_int_equal(blocked, 0);
	/* But for the two that libc keeps for itself and that cannot be changed. */
	assert_int_equal(ignored & ~0x180000000u, 0);
	line = strtok_r(NULL, "\n", &rest);
	(void)snprintf(session, sizeof(session), "%s", line);
	assert_string_equal(session, strtok_r(NULL, "\n", &rest));
	assert_string_equal(strtok_r(NULL, "\n", &rest), "0");
	line = strtok_r(NULL, "\n", &rest);
	assert_true(strtoul(line, NULL, 10) <= 1024);
	free(text);
}

/* --- The word. --- */

static void test_no_word(void **state)
{
	struct sl_jobspec spec = shell("echo started");
	struct job job = started(&spec);
	struct sl_shim_record record;

	(void)state;
	/* The daemon dies before it says so. */
	assert_false(ends_within(job.shim.pidfd, 50));
	sl_closep(&job.shim.go_fd);
	record = over(&job);
	assert_int_equal(record.ending, SL_SHIM_NONE);
	assert_string_equal(said(&job), "");

	spec = shell("echo started");
	job = started(&spec);
	sl_shim_forget(&job.shim);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(record_of(&job).ending, SL_SHIM_NONE);
	assert_string_equal(said(&job), "");
}

/* --- Signals. --- */

static void test_signals(void **state)
{
	static const struct {
		const char *name, *script;
		int number;
		uint32_t status;
	} rows[] = {
		{"TERM", "echo up; exec sleep 1000", SIGTERM, SIGTERM},
		{"INT", "trap 'exit 4' INT; echo up; sleep 1000 & wait", SIGINT, 4 << 8},
		{"HUP, to all of the group", "echo up; sleep 1000; exit 3", SIGHUP,
			SIGHUP},
		{"TERM, though it is stopped", "echo up; kill -STOP $$; exit 3", SIGTERM,
			SIGTERM},
		{"USR1, though TERM is ignored",
			"trap '' TERM; echo up; while :; do sleep 1; done", SIGUSR1,
			SIGKILL},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct job job = going(shell(rows[i].script));
		struct sl_shim_record record;

		(void)hear(&job);
		assert_int_equal(kill(job.shim.pid, rows[i].number), 0);
		record = over(&job);
		assert_row_u64(rows[i].name, record.ending, SL_SHIM_EXITED);
		assert_row_u64(rows[i].name, record.status & ~0x80u, rows[i].status);
	}
}

/* The program's file does not open as long as a lease on it holds. */
static void test_exec_hangs(void **state)
{
	static const int numbers[] = {SIGTERM, SIGUSR1};

	(void)signal(SIGIO, SIG_IGN);
	for (size_t i = 0; i < SL_ARRAY_LEN(numbers); i++) {
		const char *words[] = {NULL, NULL};
		char path[64];
		int fd = open_new(path, sizeof(path), "slow", O_WRONLY);
		sl_ns before = sl_clock_now();
		struct sl_shim_record record;
		struct job job;

		assert_int_equal(fchmod(fd, 0755), 0);
		close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
		words[0] = path;
		job = going(spec_of(words));
		assert_false(ends_within(job.shim.pidfd, i == 0 ? 300 : 0));
		assert_int_equal(kill(job.shim.pid, numbers[i]), 0);
		record = over(&job);
		assert_int_equal(record.ending, SL_SHIM_EXITED);
		assert_int_equal(
			record.status, numbers[i] == SIGTERM ? SIGTERM : SIGKILL);
		assert_true(sl_clock_now() - before < 20 * SL_S); /* of 45 s */
		close(fd);
	}
}

/* A lease on the output would keep the daemon from opening it, and so from bounding it. */
static void test_output_has_no_lease(void **state)
{
	struct job job = going(shell("echo up; exec sleep 1000"));
	int fd;

	(void)state;
	(void)hear(&job);
	fd = (int)syscall(SYS_pidfd_getfd, job.shim.pidfd, STDOUT_FILENO, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
	assert_int_equal(kill(job.shim.pid, SIGUSR1), 0);
	assert_int_equal(over(&job).ending, SL_SHIM_EXITED);
}

/* It goes on, and the sender of the signal decides what comes next. */
static void test_term_is_ignored(void **state)
{
	struct job job = going(shell("trap 'echo heard' TERM; echo up; "
				     "while :; do sleep 0.05; done"));
	struct sl_shim_record record;

	(void)state;
	(void)hear(&job);
	assert_int_equal(kill(job.shim.pid, SIGTERM), 0);
	for (int i = 0; i < PATIENCE_MS / 5 && !strstr(said(&job), "heard"); i++)
		sl_clock_sleep(5 * SL_MS);
	assert_non_null(strstr(said(&job), "heard"));
	assert_false(ends_within(job.shim.pidfd, 100));
	assert_int_equal(kill(job.shim.pid, SIGUSR1), 0);
	record = over(&job);
	assert_int_equal(record.status, SIGKILL);
}

/* Its log has no reader any more, and neither has its terminal. */
static void test_log_without_reader(void **state)
{
	struct sl_jobspec spec = shell("while echo more; do :; done; exit 5");
	struct sl_error err = {{0}};
	struct sl_shim_start start = {.spec = &spec};
	struct job job = {0};
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	job.record =
		open_new(job.record_path, sizeof(job.record_path), "record", O_WRONLY);
	start.log_fd = ends[1];
	start.record_fd = job.record;
	assert_int_equal(sl_shim_start(&start, &job.shim, &err), 0);
	sl_jobspec_fini(&spec);
	close(ends[1]);
	close(job.record);
	sl_shim_go(&job.shim);
	assert_int_equal(over(&job).status, SIGPIPE);
}

/* --- The family. --- */

/* A child of the program in another session, whose parent is gone, ends with the program: it gets
 * SIGTERM first, and is killed if it ignores that. */
static void test_daemonized(void **state)
{
	static const char *const scripts[] = {
		"setsid sh -c 'echo $$; exec sleep 1000' & "
		"while ! test -s %s; do sleep 0.05; done; exit 6",
		"setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & "
		"while ! test -s %s; do sleep 0.05; done; exit 6",
		"setsid sh -c '(echo $$; kill -STOP $$; sleep 1000)' & "
		"while ! test -s %s; do sleep 0.05; done; exit 6",
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(scripts); i++) {
		char script[256];
		struct job job;
		struct sl_shim_record record;

		(void)snprintf(script, sizeof(script), scripts[i], "/proc/self/fd/1");
		job = going(shell(script));
		record = over(&job);
		assert_int_equal(record.ending, SL_SHIM_EXITED);
		assert_int_equal(record.status, 6 << 8);
		/* The end of the program, not that of the last of its children. */
		assert_true(record.ended_ms >= record.started_ms);
		assert_true(is_gone((pid_t)strtol(said(&job), NULL, 10)));
	}
}

/* All descendants end in the middle of their life: a tree of eleven processes in four sessions,
 * some of which ignore signals. */
static void test_tree(void **state)
{
	struct job job = going(shell(
		"for i in 1 2 3; do setsid sh -c '"
		"trap \"\" TERM HUP; (sleep 1000 & echo $!; sleep 1000 & echo $!; wait) "
		"& "
		"echo $$; wait' & done; sleep 1; echo; exec sleep 1000"));
	char *text, *rest = NULL;
	unsigned int count = 0;

	(void)state;
	for (int i = 0; i < PATIENCE_MS / 5 && !strstr(said(&job), "\n\n"); i++)
		sl_clock_sleep(5 * SL_MS);
	assert_int_equal(kill(job.shim.pid, SIGUSR1), 0);
	assert_int_equal(over(&job).status, SIGKILL);
	text = strdup(said(&job));
	for (char *line = strtok_r(text, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest), count++)
		assert_true(is_gone((pid_t)strtol(line, NULL, 10)));
	assert_int_equal(count, 9);
	free(text);
}

/* Processes that lose their parent are reaped while the program runs: a program that makes many
 * leaves no zombies. */
static void test_orphans_are_reaped(void **state)
{
	struct job job = going(shell(
		"for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'exit 0' &) ; done; echo done; "
		"exec sleep 1000"));
	unsigned int zombies = 1;

	(void)state;
	(void)hear(&job);
	for (int i = 0; i < PATIENCE_MS / 5 && zombies > 0; i++) {
		DIR *proc = opendir("/proc");
		struct dirent *entry;

		zombies = 0;
		while ((entry = readdir(proc))) {
			struct sl_pid_stat stat;
			int pid = atoi(entry->d_name);

			if (pid > 0 && sl_file_pid_stat(pid, &stat) == 0)
				zombies +=
					stat.parent == job.shim.pid && stat.state == 'Z';
		}
		closedir(proc);
		sl_clock_sleep(5 * SL_MS);
	}
	assert_int_equal(zombies, 0);
	assert_int_equal(kill(job.shim.pid, SIGTERM), 0);
	assert_int_equal(over(&job).status, SIGTERM);
}

/* --- Deaths. --- */

static void test_shim_is_killed(void **state)
{
	struct job job = going(shell("echo $$; exec sleep 1000"));
	pid_t program = (pid_t)strtol(hear(&job), NULL, 10);

	(void)state;
	assert_false(is_gone(program));
	assert_int_equal(kill(job.shim.pid, SIGKILL), 0);
	assert_int_equal(over(&job).ending, SL_SHIM_BEGUN);
	await_end_of(program);
}

/* A process in the daemon's place starts the shim, says go, and is killed. The program goes on, and
 * its end is recorded. */
static void test_daemon_is_killed(void **state)
{
	int ends[2], pidfd, status;
	struct job job;
	pid_t daemon, pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		job = going(shell("echo up; sleep 0.3; exit 9"));
		if (write(ends[1], &job, sizeof(job)) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ends[0], &job, sizeof(job)), sizeof(job));
	(void)hear(&job);
	pid = job.shim.pid;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(kill(daemon, SIGKILL), 0);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_true(ends_within(pidfd, PATIENCE_MS));
	/* Not a child of this one: nothing happens. */
	sl_shim_reap(pid);
	close(pidfd);
	assert_int_equal(record_of(&job).ending, SL_SHIM_EXITED);
	assert_int_equal(record_of(&job).status, 9 << 8);
	/* And one that dies before it said so. */
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		struct sl_jobspec spec = shell("echo up");

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		job = started(&spec);
		if (write(ends[1], &job, sizeof(job)) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ends[0], &job, sizeof(job)), sizeof(job));
	assert_int_equal(kill(daemon, SIGKILL), 0);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	await_end_of(job.shim.pid);
	assert_string_equal(said(&job), "");
	close(ends[0]);
	close(ends[1]);
}

/* --- Many. --- */

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void test_many(void **state)
{
	enum { MANY = 200 };
	static struct job jobs[MANY];
	unsigned int before = open_fds();

	(void)state;
	for (int i = 0; i < MANY; i++) {
		char script[64];

		(void)snprintf(
			script, sizeof(script), "echo %d; exit %d", i, i % 100 + 1);
		jobs[i] = going(shell(script));
	}
	for (int i = 0; i < MANY; i++) {
		struct sl_shim_record record = over(&jobs[i]);

		assert_int_equal(record.ending, SL_SHIM_EXITED);
		assert_int_equal(record.status, (uint32_t)(i % 100 + 1) << 8);
		assert_int_equal(strtol(said(&jobs[i]), NULL, 10), i);
	}
	assert_int_equal(open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Without descriptors nothing is started, and nothing is left. */
static void test_no_descriptors(void **state)
{
	struct sl_jobspec spec = shell("echo started");
	struct sl_error err = {{0}};
	struct rlimit before, few;
	char log_path[64], record_path[64];
	struct sl_shim_start start = {.spec = &spec};
	unsigned int open_before, started_with = 0;
	struct sl_shim shim;
	int lowest;

	(void)state;
	start.log_fd = open_new(log_path, sizeof(log_path), "log", O_WRONLY | O_APPEND);
	start.record_fd = open_new(record_path, sizeof(record_path), "record", O_WRONLY);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	lowest = start.record_fd;
	for (int i = 1; i < 24; i++) {
		few = before;
		few.rlim_cur = (rlim_t)(lowest + i);
		open_before = open_fds();
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		if (sl_shim_start(&start, &shim, &err) == 0) {
			started_with++;
			sl_shim_forget(&shim);
		} else {
			assert_non_null(strstr(err.text, "descriptors"));
		}
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(open_fds(), open_before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
	assert_true(started_with > 0 && started_with < 23);
	close(start.log_fd);
	close(start.record_fd);
	sl_jobspec_fini(&spec);
}

static void test_no_shim(void **state)
{
	struct sl_jobspec spec = shell("echo started");
	struct sl_shim_start start = {.spec = &spec, .log_fd = 2, .record_fd = 2};
	char *path = strdup(getenv("SLUICE_SHIM"));
	struct sl_error err = {{0}};
	struct sl_shim shim;

	(void)state;
	assert_int_equal(setenv("SLUICE_SHIM", "/nonexistent/shim", 1), 0);
	assert_int_equal(sl_shim_start(&start, &shim, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/shim"));
	assert_int_equal(unsetenv("SLUICE_SHIM"), 0);
	/* Nor beside this program. */
	assert_int_equal(sl_shim_start(&start, &shim, &err), -ENOENT);
	assert_non_null(strstr(err.text, "SLUICE_SHIM"));
	assert_int_equal(setenv("SLUICE_SHIM", path, 1), 0);
	free(path);
	sl_jobspec_fini(&spec);
}

/* --- Users. --- */

static void test_another_user(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");
	static const char script[] =
		"id -u; id -g; id -G; echo again >>/dev/stderr; "
		"ls %s 2>/dev/null && echo reads the folder; "
		"touch %s/x 2>/dev/null && echo writes the folder; "
		"cat /proc/$PPID/environ >/dev/null 2>&1 && echo reads the shim; "
		"ls /proc/$PPID/fd >/dev/null 2>&1 && echo sees its descriptors; "
		"setpriv --reuid 0 true 2>/dev/null && echo is root; true";
	struct sl_jobspec spec = {0};
	struct sl_shim_record record;
	char text[512], wanted[128];
	struct job job;

	(void)state;
	if (geteuid() != 0 || !nobody)
		skip();
	(void)snprintf(text, sizeof(text), script, folder, folder);
	add(&spec, SL_JOBSPEC_ARG, "sh");
	add(&spec, SL_JOBSPEC_ARG, "-c");
	add(&spec, SL_JOBSPEC_ARG, text);
	add(&spec, SL_JOBSPEC_DIR, "/");
	add(&spec, SL_JOBSPEC_GROUP, "12345");
	add(&spec, SL_JOBSPEC_GROUP, "54321");
	add_user(&spec, nobody->pw_uid, nobody->pw_gid);
	job = going(spec);
	record = over(&job);
	assert_int_equal(record.ending, SL_SHIM_EXITED);
	assert_int_equal(record.status, 0);
	(void)snprintf(wanted, sizeof(wanted), "%u\n%u\n%u 12345 54321\nagain\n",
		nobody->pw_uid, nobody->pw_gid, nobody->pw_gid);
	assert_string_equal(said(&job), wanted);
}

/* --- Rights. --- */

static uint64_t status_number(const struct job *job, const char *line, int base)
{
	const char *at = strstr(said(job), line);

	if (!at)
		fail_msg("no %s in %s", line, said(job));
	return strtoull(at + strlen(line), NULL, base);
}

/* The job does not have rights that the submitter has given up, even if it runs as another user. */
static void test_rights(void **state)
{
	static const struct {
		const char *name;
		uint64_t without;
		int no_new_privs;
	} rows[] = {
		{"all", 0, 0},
		{"without some", 1 << CAP_CHOWN | 1 << CAP_NET_RAW, 0},
		{"nothing new", 1 << CAP_KILL, 1},
	};
	uint64_t own;
	struct job job;

	if (geteuid() != 0)
		skip();
	job = going(shell("cat /proc/$$/status"));
	assert_int_equal(over(&job).status, 0);
	own = status_number(&job, "\nCapBnd:\t", 16);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_jobspec spec = shell(
			"cat /proc/$$/status; echo Login: $(cat /proc/$$/loginuid)");
		uint64_t caps = own & ~rows[i].without;
		char text[64];

		(void)snprintf(text, sizeof(text), "%" PRIu64 " %d 4711", caps,
			rows[i].no_new_privs);
		add(&spec, SL_JOBSPEC_RIGHTS, text);
		job = going(spec);
		assert_int_equal(over(&job).status, 0);
		assert_row_u64(
			rows[i].name, status_number(&job, "\nCapBnd:\t", 16), caps);
		assert_row_u64(
			rows[i].name, status_number(&job, "\nCapEff:\t", 16), caps);
		assert_row_u64(rows[i].name, status_number(&job, "\nCapInh:\t", 16), 0);
		assert_row_u64(rows[i].name, status_number(&job, "\nNoNewPrivs:\t", 10),
			(uint64_t)rows[i].no_new_privs);
		if (access("/proc/self/loginuid", W_OK) == 0)
			assert_row_u64(
				rows[i].name, status_number(&job, "Login: ", 10), 4711);
	}
}

static bool finds_key(void)
{
	return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
		       "sluice-test", 0) >= 0;
}

/* As a program of a job: hides a secret where it finds itself, or looks for it there. */
static int use_keys(const char *verb)
{
	bool hides = strcmp(verb, "hide") == 0;

	if (hides && syscall(SYS_add_key, "user", "sluice-test", "secret", 6,
			     KEY_SPEC_SESSION_KEYRING) < 0)
		return 2;
	(void)puts(hides ? "hidden" : finds_key() ? "found" : "nothing");
	(void)fflush(stdout);
	return hides ? pause() : 0;
}

static struct job with_keys(const char *verb)
{
	struct sl_jobspec spec = {0};
	sl_cleanup(sl_freep) char *self = realpath("/proc/self/exe", NULL);

	add(&spec, SL_JOBSPEC_ARG, self);
	add(&spec, SL_JOBSPEC_ARG, verb);
	add(&spec, SL_JOBSPEC_DIR, "/");
	add_user(&spec, geteuid(), getegid());
	return going(spec);
}

/* Whatever keyring the daemon was started with, tasks do not meet in it. */
static void test_keys(void **state)
{
	struct job job, other;

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		skip();
	job = with_keys("hide");
	assert_string_equal(hear(&job), "hidden\n");
	other = with_keys("seek");
	assert_int_equal(over(&other).status, 0);
	assert_string_equal(said(&other), "nothing\n");
	assert_false(finds_key());
	assert_int_equal(kill(job.shim.pid, SIGTERM), 0);
	assert_int_equal(over(&job).status, SIGTERM);
}

/* A program that root may execute and the user may not; a folder likewise. */
static void test_user_may_not(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");
	struct sl_jobspec spec = {0};
	struct sl_shim_record record;
	struct job job;

	(void)state;
	if (geteuid() != 0 || !nobody)
		skip();
	add(&spec, SL_JOBSPEC_ARG, "true");
	add(&spec, SL_JOBSPEC_DIR, folder);
	add_user(&spec, nobody->pw_uid, nobody->pw_gid);
	job = going(spec);
	record = over(&job);
	assert_int_equal(record.ending, SL_SHIM_ERROR);
	assert_int_equal(record.error, EACCES);
	assert_string_equal(record.what, "chdir");
}

/* A daemon that is not root's does no other user's work. */
static void test_not_root(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");
	static const struct {
		uint32_t uid;
		int ending;
	} rows[] = {{0, SL_SHIM_ERROR}, {1, SL_SHIM_ERROR}, {UINT32_MAX, SL_SHIM_EXITED}};

	(void)state;
	if (geteuid() != 0 || !nobody)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_jobspec spec = {0};
		struct sl_shim_record record;
		int ends[2], status;
		struct job job;
		pid_t pid;

		add(&spec, SL_JOBSPEC_ARG, "true");
		add(&spec, SL_JOBSPEC_DIR, "/");
		add_user(&spec, rows[i].uid == UINT32_MAX ? nobody->pw_uid : rows[i].uid,
			nobody->pw_gid);
		job.log = open_new(
			job.log_path, sizeof(job.log_path), "log", O_WRONLY | O_APPEND);
		job.record = open_new(
			job.record_path, sizeof(job.record_path), "record", O_WRONLY);
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct sl_shim_start start = {
				.spec = &spec,
				.log_fd = job.log,
				.record_fd = job.record,
			};

			if (setgid(nobody->pw_gid) < 0 || setuid(nobody->pw_uid) < 0 ||
				sl_shim_start(&start, &job.shim, NULL) != 0)
				_exit(1);
			sl_shim_go(&job.shim);
			_exit(ends_within(job.shim.pidfd, PATIENCE_MS) ? 0 : 2);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(job.log);
		close(job.record);
		close(ends[0]);
		close(ends[1]);
		sl_jobspec_fini(&spec);
		record = record_of(&job);
		assert_int_equal(record.ending, rows[i].ending);
		if (record.ending == SL_SHIM_ERROR) {
			assert_string_equal(record.what, "setuid");
			assert_int_equal(record.error, EPERM);
		}
	}
}

/* By hand it says whose it is, and does nothing. */
static void test_by_hand(void **state)
{
	char command[256];
	int status;

	(void)state;
	(void)snprintf(command, sizeof(command), "%s 3<&- 4<&- 5<&- 2>%s/by-hand",
		getenv("SLUICE_SHIM"), folder);
	status = system(command);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 64);
}

static int make_folder(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_not_started),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_no_word),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_exec_hangs),
		cmocka_unit_test(test_output_has_no_lease),
		cmocka_unit_test(test_term_is_ignored),
		cmocka_unit_test(test_log_without_reader),
		cmocka_unit_test(test_daemonized),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_orphans_are_reaped),
		cmocka_unit_test(test_shim_is_killed),
		cmocka_unit_test(test_daemon_is_killed),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_no_shim),
		cmocka_unit_test(test_another_user),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_user_may_not),
		cmocka_unit_test(test_not_root),
		cmocka_unit_test(test_by_hand),
	};

	if (argc > 1)
		return use_keys(argv[1]);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
