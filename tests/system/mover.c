/*
 * mover - the daemon's side of sluice-move, for tests: gives orders and says what is answered
 *
 * usage: mover HELPER UID GID HOW CALL:N ORDER...
 *
 * ORDER is away:PID or back:PID, or with the start time of the process, away:PID:TICKS, or with
 * pairs of GPUs, back:PID:TICKS:UUID=UUID,... HOW is what happens when the helper comes to its Nth
 * CALL, where it hangs (the file that PLAN in the environment names tells the software GPU):
 *	plain   Nothing happens; CALL:N is a dash.
 *	mid     The same, but the helper is killed 300 ms after the order.
 *	kill    It is killed.
 *	target  The process is killed, and the call goes on.
 *	close   The socket is closed, and the helper must end.
 *	show    The same, but lines of its status in /proc are written first.
 *	hold    The other orders are given and answered; then the call goes on.
 *	crowd   N is @1: such calls hang until the orders that a helper does not take are answered.
 *
 * Writes a line for each answer, in the order they come: what PID OUTCOME CUDA_RESULT CALL. At last
 * it says how the helper ended: "ended STATUS" or "killed".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/move.h"
#include "wire/wire.h"

#define ORDERS_MAX 80
/* Only a test that failed waits so long. */
#define WAIT_MS 60000

static struct sl_move_order orders[ORDERS_MAX];
static unsigned int count;
static int fd = -1;
static pid_t helper;
static const char *plan;

static void die(const char *what)
{
	(void)fprintf(stderr, "mover: %s: %s\n", what, strerror(errno));
	if (helper > 0)
		(void)kill(helper, SIGKILL);
	exit(3);
}

/* A new file under the old name: the software GPU reads it anew. */
static void set_plan(const char *text)
{
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s.new", plan);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0 || rename(path, plan) < 0)
		die(plan);
}

static void wait_for_hang(void)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s.met", plan);
	for (int i = 0; access(path, F_OK) < 0; i++) {
		if (i == WAIT_MS / 5)
			die("the call is never made");
		sl_clock_sleep(5 * SL_MS);
	}
	(void)unlink(path);
}

static void start(char *program, char *user, char *group)
{
	/* Root keeps all of its capabilities, as for a process of the host. */
	char *args[] = {(char *)(uintptr_t) "sluice-move", user, group,
		(char *)(uintptr_t) "18446744073709551615", NULL};
	sigset_t all;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
		die("socketpair");
	(void)fflush(NULL);
	helper = fork();
	if (helper == 0) {
		if (dup2(ends[1], 9) < 0 || dup2(9, SL_MOVE_FD) < 0)
			_exit(126);
		for (int i = SL_MOVE_FD + 1; i < 10; i++)
			(void)close(i);
		/* As the daemon does. */
		(void)sigfillset(&all);
		(void)sigprocmask(SIG_SETMASK, &all, NULL);
		(void)execv(program, args);
		_exit(127);
	}
	(void)close(ends[1]);
	fd = ends[0];
}

static void read_pairs(struct sl_move_order *order, const char *text)
{
	char from[48], to[48];
	int length = 0;

	while (*text && order->pairs < SL_MOVE_GPUS_MAX) {
		struct sl_move_pair *pair = &order->pair[order->pairs++];

		if (sscanf(text, "%40[^=]=%40[^,]%n", from, to, &length) != 2 ||
			!sl_wire_uuid_parse(from, pair->from) ||
			!sl_wire_uuid_parse(to, pair->to))
			die(text);
		text += length;
		text += *text == ',';
	}
}

static void read_order(const char *text)
{
	struct sl_move_order *order = &orders[count];
	unsigned long long ticks = 0;
	char what[8];
	int pid, pairs = 0, n;

	n = sscanf(text, "%7[a-z]:%d:%llu:%n", what, &pid, &ticks, &pairs);
	if (n < 2 || count == ORDERS_MAX)
		die(text);
	*order = (struct sl_move_order){.order = ++count,
		.pid = pid,
		.start_ticks = ticks,
		.op = strcmp(what, "back") == 0 ? SL_MOVE_BACK : SL_MOVE_AWAY,
		.lock_ms = 2000};
	if (pairs)
		read_pairs(order, text + pairs);
}

/* False: the helper ended. */
static bool receive(struct sl_move_answer *answer)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	if (poll(&in, 1, WAIT_MS) <= 0)
		die("no answer");
	return recv(fd, answer, sizeof(*answer), 0) == (ssize_t)sizeof(*answer);
}

static void give(unsigned int from, unsigned int to)
{
	for (; from < to; from++)
		if (send(fd, &orders[from], sizeof(orders[from]), MSG_NOSIGNAL) < 0)
			die("send");
}

static void end(void)
{
	int status = 0;

	(void)close(fd);
	for (int i = 0; waitpid(helper, &status, WNOHANG) == 0; i++) {
		if (i == WAIT_MS / 5)
			die("it does not end");
		sl_clock_sleep(5 * SL_MS);
	}
	if (WIFSIGNALED(status))
		(void)puts("killed");
	else
		(void)printf("ended %d\n", WEXITSTATUS(status));
	exit(0);
}

static void hear(unsigned int answers)
{
	static const char *const outcomes[] = {
		"done", "refused", "away-still", "broken", "gone", "unable"};
	static const char *const calls[] = {"-",
#define NAME(name, function) #function,
		SL_MOVE_CALLS(NAME)
#undef NAME
	};
	struct sl_move_answer answer;

	while (answers-- > 0) {
		const struct sl_move_order *order;

		if (!receive(&answer))
			end();
		if (answer.order == 0 || answer.order > count ||
			answer.outcome >= SL_MOVE_OUTCOMES ||
			answer.at >= SL_MOVE_CALLS_COUNT)
			die("nonsense");
		order = &orders[answer.order - 1];
		(void)printf("%s %d %s %d %s\n",
			order->op == SL_MOVE_BACK ? "back" : "away", order->pid,
			outcomes[answer.outcome], answer.cuda_result, calls[answer.at]);
	}
}

/* What the kernel says of its rights. */
static void show(void)
{
	static const char *const names[] = {"Uid:", "Gid:", "Groups:", "CapPrm:",
		"CapEff:", "NoNewPrivs:", "SigBlk:"};
	char path[64], line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)helper);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				(void)fputs(line, stdout);
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)helper);
	file = fopen(path, "r");
	if (file && fgets(line, sizeof(line), file))
		(void)printf("oom %s", line);
}

/* Returns when it has ended: then its sockets are closed, too. */
static void kill_target(pid_t pid)
{
	struct pollfd death = {
		.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

	(void)kill(pid, SIGKILL);
	if (death.fd < 0 || poll(&death, 1, WAIT_MS) <= 0)
		die("the process does not end");
	(void)close(death.fd);
}

static void at_hang(const char *how)
{
	if (strcmp(how, "kill") == 0) {
		(void)kill(helper, SIGKILL);
	} else if (strcmp(how, "target") == 0) {
		kill_target(orders[0].pid);
		set_plan("");
		hear(1);
	} else if (strcmp(how, "show") == 0) {
		show();
	} else if (strcmp(how, "hold") == 0) {
		give(1, count);
		hear(count - 1);
		set_plan("");
		hear(1);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 4 ? argv[4] : "";
	struct sl_move_answer ready;
	char text[128] = "";

	plan = getenv("PLAN");
	if (argc < 7 || !plan) {
		(void)fputs("usage: mover HELPER UID GID HOW CALL:N ORDER...\n", stderr);
		return 2;
	}
	for (int i = 6; i < argc; i++)
		read_order(argv[i]);
	if (strcmp(argv[5], "-") != 0)
		(void)snprintf(text, sizeof(text), "%s=hang\n", argv[5]);
	set_plan(text);
	if (setenv("SLUICE_SOFTGPU_FAULTS_FILE", plan, 1) < 0)
		die("setenv");
	start(argv[1], argv[2], argv[3]);
	if (!receive(&ready))
		end();
	if (ready.outcome != SL_MOVE_READY)
		die("not ready");
	give(0, strcmp(how, "crowd") == 0 ? count : 1);
	if (strcmp(how, "plain") == 0) {
		give(1, count);
		hear(count);
	} else if (strcmp(how, "crowd") == 0) {
		hear(count - SL_MOVE_ORDERS_MAX);
		set_plan("");
		hear(SL_MOVE_ORDERS_MAX);
	} else if (strcmp(how, "mid") == 0) {
		sl_clock_sleep(300 * SL_MS);
		(void)kill(helper, SIGKILL);
	} else {
		wait_for_hang();
		at_hang(how);
	}
	end();
	return 0;
}
