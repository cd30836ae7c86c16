/*
 * spank_sluice.so - Slurm's door to Sluice: a plugin of srun, sbatch, salloc and slurmstepd
 *
 * A step that asks for GPU memory becomes a workload of its node's sluiced. slurmstepd starts a
 * keeper for it (keeper.c), which does what `sluice run` does, as the job's user. The tasks wait
 * for it between fork and exec, and take over the environment that it gets. slurmstepd itself never
 * talks to the daemon and waits for nothing but the clerk (clerk.c), at the end; a task that waits
 * can be cancelled like any other.
 *
 * The steps that a batch script starts on its own node join the script's workload: they inherit its
 * environment, and asking for the same again changes nothing.
 *
 * One line of plugstack.conf: required spank_sluice.so [keeper=PATH] [socket=PATH] [wait=SECONDS]
 * [without] [account]. wait: how long a step waits for room (60); 0: it is refused at once.
 * without: where no daemon answers, the step runs without Sluice. account: what it used goes to
 * Slurm's accounting.
 */
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "slurm/options.h"
#include "slurm/page.h"
#include "slurm/start.h"

/* NOLINTNEXTLINE: the macro is Slurm's. */
SPANK_PLUGIN(sluice, 1);

#define EXIT_NO_DAEMON 69
#define EXIT_SOFTWARE  70
#define EXIT_REFUSED   75

#define KEEPER           "sluice-slurm"
#define WAIT_SECONDS     60
#define WAIT_SECONDS_MAX 86400
#define GPUS_MAX         1024 /* bytes of a list of UUIDs */
#define LOOK_MS          50
/* Names the workload that a step's environment is of. */
#define MARK "SLUICE_STEP"

static struct {
	struct sl_slurm_page *page;   /* NULL: nothing to do for this step */
	int page_fd, said[2];         /* said: what the keeper says, a pipe */
	char name[SL_SLURM_NAME_MAX]; /* of the workload */
	char mark[256];
	int keeper, porter; /* pidfds; -1: none */
	uint32_t tasks;
	uint64_t since; /* its start, in seconds since 1970 */
} step = {.page_fd = -1, .said = {-1, -1}, .keeper = -1, .porter = -1};

static struct sl_start_settings settings;
static unsigned int wait_seconds = WAIT_SECONDS;
static bool runs_without, accounts;

static int read_wait(const char *value)
{
	char *end = NULL;
	unsigned long seconds = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || seconds > WAIT_SECONDS_MAX) {
		slurm_error("spank_sluice.so: wait= takes seconds, 0 to %d, not '%s'",
			WAIT_SECONDS_MAX, value);
		return -1;
	}
	wait_seconds = (unsigned int)seconds;
	settings.waits = seconds > 0;
	return 0;
}

static int read_line(int argc, char **argv)
{
	int r = 0;

	settings.waits = true;
	for (int i = 0; i < argc && !r; i++) {
		const char *value = strchr(argv[i], '=');

		value = value ? value + 1 : "";
		if (strncmp(argv[i], "keeper=", 7) == 0)
			settings.keeper = value;
		else if (strncmp(argv[i], "socket=", 7) == 0)
			settings.socket = value;
		else if (strncmp(argv[i], "wait=", 5) == 0)
			r = read_wait(value);
		else if (strcmp(argv[i], "without") == 0)
			runs_without = true;
		else if (strcmp(argv[i], "account") == 0)
			accounts = true;
		else {
			slurm_error("spank_sluice.so does not know '%s'; its options are "
				    "keeper=, socket=, wait=, without and account",
				argv[i]);
			r = -1;
		}
	}
	return r;
}

/* It lies beside the plugin, wherever that was installed. */
static const char *find_keeper(void)
{
	static char path[PATH_MAX + sizeof(KEEPER)];
	Dl_info plugin;

	if (!dladdr(&settings, &plugin) || !realpath(plugin.dli_fname, path))
		return KEEPER;
	strcpy(strrchr(path, '/') + 1, KEEPER);
	return path;
}

/* sbatch and salloc in a job: the new one is not the old one's. The first word of LD_PRELOAD is
 * what `sluice run` has put there. */
static void forget_outer_job(void)
{
	static const char *const set[] = {
		MARK, SL_START_CHANGED, "SLUICE_SOCKET", "SLUICE_WORKLOAD"};
	const char *preload = getenv("LD_PRELOAD"), *rest = preload;
	const char *gpus =
		sl_start_own_gpus(getenv(SL_START_GPUS), getenv(SL_START_CHANGED));

	sl_options_forget_outer();
	if (!getenv(MARK))
		return;
	if (gpus && *gpus)
		(void)setenv(SL_START_GPUS, gpus, 1);
	else
		(void)unsetenv(SL_START_GPUS);
	rest += preload ? strcspn(preload, ": ") : 0;
	if (preload && *rest)
		(void)setenv("LD_PRELOAD", rest + 1, 1);
	else
		(void)unsetenv("LD_PRELOAD");
	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++)
		(void)unsetenv(set[i]);
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	if (spank_context() == S_CTX_ALLOCATOR)
		forget_outer_job();
	settings.keeper = find_keeper();
	if (read_line(argc, argv) < 0)
		return -1;
	return sl_options_register(spank);
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	return spank_context() == S_CTX_REMOTE ? 0 : sl_options_check();
}

/* --- slurmstepd --------------------------------------------------------------------------- */

/* One for a job's script and one for each step beside it; further nodes have a number, too. */
static void name_workload(spank_t spank, char *name)
{
	uint32_t job = 0, id = 0, node = 0;
	char tail[32] = "";
	int used = 0;

	(void)spank_get_item(spank, S_JOB_ID, &job);
	(void)spank_get_item(spank, S_JOB_STEPID, &id);
	(void)spank_get_item(spank, S_JOB_NODEID, &node);
	if (id <= SLURM_MAX_NORMAL_STEP_ID)
		used = snprintf(tail, sizeof(tail), ".%u", id);
	if (node)
		(void)snprintf(tail + used, sizeof(tail) - (size_t)used, "-%u", node);
	(void)snprintf(name, SL_SLURM_NAME_MAX, "slurm-%u%s", job, tail);
}

/* The same job on the same host, with the same options. */
static void make_mark(spank_t spank)
{
	char options[128], node[64] = "";
	uint32_t job = 0;

	(void)spank_get_item(spank, S_JOB_ID, &job);
	(void)gethostname(node, sizeof(node) - 1);
	sl_options_print(options, sizeof(options));
	(void)snprintf(step.mark, sizeof(step.mark), "%u:%s:%s", job, node, options);
}

static bool joins(spank_t spank)
{
	char mark[sizeof(step.mark)] = "";

	return spank_getenv(spank, MARK, mark, sizeof(mark)) == ESPANK_SUCCESS &&
	       strcmp(mark, step.mark) == 0;
}

static void close_step(void)
{
	int *fds[] = {&step.page_fd, &step.said[0], &step.said[1]};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Before the tasks are forked. */
int slurm_spank_user_init(spank_t spank, int argc, char **argv)
{
	struct sl_slurm_page *page;
	uint32_t id = 0;

	(void)spank_get_item(spank, S_JOB_STEPID, &id);
	if (!sl_options_given() || id == SLURM_EXTERN_CONT)
		return 0;
	make_mark(spank);
	if (joins(spank))
		return 0;
	step.page_fd = memfd_create("sluice-step", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (step.page_fd < 0 || ftruncate(step.page_fd, sizeof(*page)) < 0 ||
		fcntl(step.page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
		pipe2(step.said, O_CLOEXEC) < 0) {
		slurm_error("sluice: no descriptor or memory for the step: %s",
			strerror(errno));
		close_step();
		return -1;
	}
	page = mmap(
		NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, step.page_fd, 0);
	if (page == MAP_FAILED) {
		slurm_error("sluice: no memory for the step: %s", strerror(errno));
		close_step();
		return -1;
	}
	name_workload(spank, step.name);
	step.since = (uint64_t)time(NULL);
	step.page = page;
	return 0;
}

/* In slurmstepd, after all tasks are forked; they wait for slurmstepd before they go on. */
int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv)
{
	if (!step.page || step.page_fd < 0)
		return 0;
	step.keeper =
		sl_start_keeper(spank, &settings, step.name, step.page_fd, step.said[1]);
	if (step.keeper < 0) {
		slurm_error("sluice: cannot start the keeper of %s: %s", step.name,
			strerror(-step.keeper));
		atomic_store(&step.page->status, EXIT_SOFTWARE);
		atomic_store(&step.page->state, SL_SLURM_FAILED);
	}
	step.porter = sl_start_porter(spank, &settings, step.name);
	close_step();
	return 0;
}

static void end_helpers(void)
{
	sl_start_kill(step.porter);
	sl_start_kill(step.keeper);
}

/* Before Slurm hears that the last task has ended: then the job is over. A job has one comment,
 * that of its first node. */
static void account(spank_t spank)
{
	uint32_t node = 0;

	(void)spank_get_item(spank, S_JOB_NODEID, &node);
	if (accounts && step.since && node == 0)
		sl_start_clerk(spank, &settings, step.name, step.since);
}

/* With the last task the workload ends. Processes that a task left behind are ended by Slurm. */
int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	uint32_t tasks = 0;

	(void)spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks);
	if (++step.tasks < tasks)
		return 0;
	account(spank);
	end_helpers();
	return 0;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
	end_helpers();
	return 0;
}

/* --- a task, as the user ------------------------------------------------------------------ */

/* Passes on what the keeper has said. */
static void pass_on(void)
{
	char text[1024];
	ssize_t n = read(step.said[0], text, sizeof(text));

	if (n > 0)
		(void)!write(STDERR_FILENO, text, (size_t)n);
}

static void say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static int give_up(void)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		"sluice: %s did not get its GPU memory within %u s; ask for less, or let "
		"Slurm try again later (RequeueExit=%d in slurm.conf)\n",
		step.name, wait_seconds, EXIT_REFUSED);
	say(text);
	return EXIT_REFUSED;
}

/* One look, LOOK_MS long. False: the keeper has ended and has said all. */
static bool look(bool speaks)
{
	struct pollfd said = {.fd = step.said[0], .events = speaks ? POLLIN : 0};

	if (poll(&said, 1, LOOK_MS) <= 0)
		return true;
	if (said.revents & POLLIN) {
		pass_on();
		return true;
	}
	return !(said.revents & POLLHUP);
}

/* The exit status, or 0: go on. Only the first task speaks. It counts looks, not time, since a step
 * that is suspended does not wait. */
static int await_keeper(bool speaks)
{
	/* Without a wait it still takes a moment. */
	unsigned int left = (wait_seconds ? wait_seconds : 30) * (1000 / LOOK_MS);

	while (atomic_load(&step.page->state) == SL_SLURM_ASKING) {
		if (!look(speaks) && atomic_load(&step.page->state) == SL_SLURM_ASKING)
			return EXIT_SOFTWARE;
		if (!left--)
			return speaks ? give_up() : EXIT_REFUSED;
	}
	/* The keeper has let go of its end: what is left is what it said. */
	while (speaks && look(speaks)) {
	}
	return atomic_load(&step.page->state) == SL_SLURM_READY
		       ? 0
		       : atomic_load(&step.page->status);
}

/* The tasks share the page, and only read it. */
static int take_environment(spank_t spank)
{
	const char *at = step.page->environment;
	char name[64], gpus[GPUS_MAX] = "", changed[2 * GPUS_MAX] = "";
	char own[GPUS_MAX] = "";

	(void)spank_getenv(spank, SL_START_GPUS, gpus, sizeof(gpus));
	(void)spank_getenv(spank, SL_START_CHANGED, changed, sizeof(changed));
	(void)snprintf(own, sizeof(own), "%s", sl_start_own_gpus(gpus, changed));
	for (; *at; at += strlen(at) + 1) {
		const char *value = strchr(at, '=');

		(void)snprintf(name, sizeof(name), "%.*s", (int)(value - at), at);
		if (spank_setenv(spank, name, value + 1, 1) != ESPANK_SUCCESS)
			return EXIT_SOFTWARE;
	}
	(void)spank_getenv(spank, SL_START_GPUS, gpus, sizeof(gpus));
	(void)snprintf(changed, sizeof(changed), "%s=%s", gpus, own);
	return spank_setenv(spank, SL_START_CHANGED, changed, 1) == ESPANK_SUCCESS &&
			       spank_setenv(spank, MARK, step.mark, 1) == ESPANK_SUCCESS
		       ? 0
		       : EXIT_SOFTWARE;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	int task = 0, status;

	if (!step.page)
		return 0;
	(void)spank_get_item(spank, S_TASK_ID, &task);
	(void)close(step.said[1]);
	status = await_keeper(task == 0);
	if (status == EXIT_NO_DAEMON && runs_without) {
		if (task == 0)
			say("sluice: the step runs without Sluice\n");
		return 0;
	}
	if (!status)
		status = take_environment(spank);
	if (status == EXIT_SOFTWARE && task == 0)
		say("sluice: the keeper of this step has ended unexpectedly; slurmd's "
		    "log may tell why\n");
	/* Slurm would turn a failure of this function into its own status. */
	if (status)
		_exit(status);
	return 0;
}
