/*
 * demo-show - three model servers on one small GPU, first bare, then under Sluice
 *
 * Each server needs little most of the time and 1.9 GiB at its peaks; three peaks make 5.6 GiB on a
 * GPU of 4. Bare, two peaks that meet kill a server: that is what out-of-memory does. Under Sluice
 * each has a guaranteed request and a limit it may burst to. A burst that does not fit waits until
 * another's peak is over: the resolver is wait, for swapping is the second act (demo-swap.c). Peaks
 * are one allocation each, and a waiting server holds only its request, so that waiting always
 * ends.
 *
 * The servers themselves report all that is shown and written, line by line; the bar is NVML's
 * figure. The program fails if no server died without Sluice, or if anything went wrong with it.
 */
#include "base/sl.h"
#include "demo-daemon.h"
#include "gpu-memory.h"
#include "prog.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 3, LINE_MAX_BYTES = 4096, PHASE_LIMIT_MS = 40000 };

#define REQUESTS "15"
#define REQUEST  "512MiB"
#define LIMIT    "0.6"

struct server {
	const char *name;
	pid_t pid;
	int fd; /* its output; -1 once it is over */
	char line[LINE_MAX_BYTES];
	size_t used;
	uint64_t requests, wrong, held_bytes, asked_bytes, peak_bytes;
	uint64_t asked_ms; /* since when it wants memory, 0 if it does not */
	uint64_t waits, wait_max_ms;
	int oom, status;
};

struct phase {
	const char *title;
	struct server servers[SERVERS];
	uint64_t used_max_bytes, ms;
	unsigned int oom, died;
	uint64_t requests, wrong, waits, wait_max_ms, worst_bytes;
};

struct screen {
	bool terminal;
	unsigned int lines; /* drawn last time, to be drawn over */
	uint64_t last_ms;
};

static double gib(uint64_t bytes)
{
	return (double)bytes / (double)SL_GIB;
}

/* --- the servers ----------------------------------------------------------------------- */

/* Becomes the server; with Sluice in front if socket says so. */
static void become_server(const char *build, const struct server *server,
	const char *seed, bool sluice, int out)
{
	char program[4096], runner[4096];
	const char *words[40];
	size_t n = 0;

	snprintf(program, sizeof(program), "%s/tests/programs/model-server", build);
	snprintf(runner, sizeof(runner), "%s/sluice", build);
	if (sluice) {
		const char *front[] = {runner, "run", "--request", REQUEST, "--limit",
			LIMIT, "--name", server->name, "--"};

		for (size_t i = 0; i < SL_ARRAY_LEN(front); i++)
			words[n++] = front[i];
	}
	const char *own[] = {program, "--name", server->name, "--weights", "320MiB",
		"--item", "64MiB", "--touch", "64KiB", "--batch-max", "24",
		"--peak-every", "3", "--requests", REQUESTS, "--hold-ms", "150",
		"--think-ms", "100", "--seed", seed, NULL};

	for (size_t i = 0; i < SL_ARRAY_LEN(own); i++)
		words[n++] = own[i];
	dup2(out, STDOUT_FILENO);
	execv(words[0], (char *const *)words);
	_exit(127);
}

static bool start_server(
	const char *build, struct server *server, const char *seed, bool sluice)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	server->pid = fork();
	if (server->pid < 0)
		return false;
	if (server->pid == 0)
		become_server(build, server, seed, sluice, ends[1]);
	close(ends[1]);
	server->fd = ends[0];
	return true;
}

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* One line of a server. What cannot be read counts as a wrong answer. */
static void take_line(struct server *server, const char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	const char *event = json_string_value(json_object_get(object, "event"));

	if (!object) {
		server->wrong++;
		return;
	}
	if (event && (!strcmp(event, "loaded") || !strcmp(event, "freed"))) {
		server->held_bytes = number(object, "held_bytes");
	} else if (event && !strcmp(event, "ask")) {
		server->asked_ms = prog_now_ms();
		server->asked_bytes = number(object, "bytes");
	} else if (event && !strcmp(event, "granted")) {
		uint64_t waited_ms = number(object, "waited_ms");

		server->asked_ms = 0;
		server->held_bytes = number(object, "held_bytes");
		/* Shorter than this is the driver's own work. */
		server->waits += waited_ms >= 100;
		server->wait_max_ms = sl_max_u64(server->wait_max_ms, waited_ms);
	} else if (event && !strcmp(event, "request")) {
		server->requests = number(object, "request");
		server->wrong = number(object, "wrong");
	} else if (event && !strcmp(event, "end")) {
		server->asked_ms = 0;
		server->oom = (int)number(object, "oom");
		server->wrong = number(object, "wrong");
		server->requests = number(object, "requests");
		server->peak_bytes = number(object, "peak_bytes");
	}
	json_decref(object);
}

/* Reads what there is; at the end of the output collects the exit status. */
static void listen_to(struct server *server)
{
	ssize_t got = read(server->fd, server->line + server->used,
		sizeof(server->line) - 1 - server->used);
	char *start = server->line, *end;

	if (got <= 0) {
		close(server->fd);
		server->fd = -1;
		server->held_bytes = 0;
		server->asked_ms = 0;
		waitpid(server->pid, &server->status, 0);
		return;
	}
	server->used += (size_t)got;
	server->line[server->used] = '\0';
	while ((end = strchr(start, '\n'))) {
		*end = '\0';
		take_line(server, start);
		start = end + 1;
	}
	server->used -= (size_t)(start - server->line);
	memmove(server->line, start, server->used);
}

/* --- the table ------------------------------------------------------------------------- */

static const char *state_of(const struct server *server, char *buf, size_t size)
{
	if (server->fd < 0) {
		if (server->oom)
			return "DIED: out of memory";
		if (WIFEXITED(server->status) && WEXITSTATUS(server->status) == 0)
			return "done";
		snprintf(buf, size, "FAILED: status %d", WEXITSTATUS(server->status));
		return buf;
	}
	if (server->asked_ms && prog_now_ms() - server->asked_ms >= 100) {
		snprintf(buf, size, "waits for %.2f GiB", gib(server->asked_bytes));
		return buf;
	}
	return server->held_bytes ? "serving" : "loading";
}

static void draw_table(struct screen *screen, const struct phase *phase)
{
	nvmlMemory_t memory = prog_gpu_memory();
	unsigned int cells =
		memory.total ? (unsigned int)(40 * memory.used / memory.total) : 0;
	char bar[41], state[64];

	for (unsigned int i = 0; i < 40; i++)
		bar[i] = i < cells ? '#' : '.';
	bar[40] = '\0';
	if (screen->lines)
		printf("\033[%uA", screen->lines);
	printf("\033[K%s\n", phase->title);
	printf("\033[K  GPU     [%s] %.2f of %.2f GiB\n", bar, gib(memory.used),
		gib(memory.total));
	printf("\033[K  %-8s %9s %6s %10s  %s\n", "SERVER", "ANSWERED", "WRONG", "HOLDS",
		"STATE");
	for (size_t i = 0; i < SERVERS; i++) {
		const struct server *s = &phase->servers[i];

		printf("\033[K  %-8s %9llu %6llu %6.2f GiB  %s\n", s->name,
			(unsigned long long)s->requests, (unsigned long long)s->wrong,
			gib(s->held_bytes), state_of(s, state, sizeof(state)));
	}
	screen->lines = 3 + SERVERS;
	fflush(stdout);
}

/* For a file or a pipe: the same on one line. */
static void print_line(const struct phase *phase)
{
	nvmlMemory_t memory = prog_gpu_memory();
	char state[64];

	printf("  %.2f of %.2f GiB", gib(memory.used), gib(memory.total));
	for (size_t i = 0; i < SERVERS; i++) {
		const struct server *s = &phase->servers[i];

		printf(" | %s: %llu answered, %llu wrong, %s", s->name,
			(unsigned long long)s->requests, (unsigned long long)s->wrong,
			state_of(s, state, sizeof(state)));
	}
	printf("\n");
	fflush(stdout);
}

static void show(struct screen *screen, const struct phase *phase, bool last)
{
	uint64_t now_ms = prog_now_ms(), pause_ms = screen->terminal ? 100 : 1000;

	if (!last && now_ms - screen->last_ms < pause_ms)
		return;
	screen->last_ms = now_ms;
	if (screen->terminal)
		draw_table(screen, phase);
	else
		print_line(phase);
}

/* --- a phase --------------------------------------------------------------------------- */

static void add_up(struct phase *phase)
{
	for (size_t i = 0; i < SERVERS; i++) {
		struct server *s = &phase->servers[i];
		bool good = WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0;

		phase->died += !good;
		/* Both its own word and its exit status must say so. */
		phase->oom += s->oom && WIFEXITED(s->status) &&
			      WEXITSTATUS(s->status) == PROG_OUT_OF_MEMORY;
		phase->requests += s->requests;
		phase->wrong += s->wrong;
		phase->waits += s->waits;
		phase->wait_max_ms = sl_max_u64(phase->wait_max_ms, s->wait_max_ms);
		phase->worst_bytes += s->peak_bytes;
	}
}

static int open_servers(const struct phase *phase)
{
	int count = 0;

	for (size_t i = 0; i < SERVERS; i++)
		count += phase->servers[i].fd >= 0;
	return count;
}

static void run_phase(
	const char *build, struct phase *phase, bool sluice, struct screen *screen)
{
	static const char *const names[SERVERS] = {"alpha", "beta", "gamma"};
	static const char *const seeds[SERVERS] = {"11", "22", "33"};
	uint64_t start_ms = prog_now_ms();

	screen->lines = 0;
	if (!screen->terminal)
		printf("%s\n", phase->title);
	for (size_t i = 0; i < SERVERS; i++) {
		phase->servers[i].name = names[i];
		phase->servers[i].fd = -1;
		if (!start_server(build, &phase->servers[i], seeds[i], sluice))
			exit(PROG_DRIVER);
	}
	while (open_servers(phase)) {
		struct pollfd fds[SERVERS];

		for (size_t i = 0; i < SERVERS; i++)
			fds[i] = (struct pollfd){phase->servers[i].fd, POLLIN, 0};
		if (poll(fds, SERVERS, 50) > 0)
			for (size_t i = 0; i < SERVERS; i++)
				if (fds[i].revents)
					listen_to(&phase->servers[i]);
		phase->used_max_bytes =
			sl_max_u64(phase->used_max_bytes, prog_gpu_memory().used);
		if (prog_now_ms() - start_ms > PHASE_LIMIT_MS)
			for (size_t i = 0; i < SERVERS; i++)
				if (phase->servers[i].fd >= 0)
					kill(phase->servers[i].pid, SIGKILL);
		show(screen, phase, false);
	}
	show(screen, phase, true);
	phase->ms = prog_now_ms() - start_ms;
	add_up(phase);
}

/* --- the end --------------------------------------------------------------------------- */

static json_t *phase_json(const struct phase *phase)
{
	json_t *servers = json_array();

	for (size_t i = 0; i < SERVERS; i++) {
		const struct server *s = &phase->servers[i];

		json_array_append_new(servers,
			json_pack("{s:s, s:I, s:I, s:i, s:i, s:I, s:I}", "name", s->name,
				"requests", (json_int_t)s->requests, "wrong",
				(json_int_t)s->wrong, "oom", s->oom, "status",
				WIFEXITED(s->status) ? WEXITSTATUS(s->status)
						     : 128 + WTERMSIG(s->status),
				"peak_bytes", (json_int_t)s->peak_bytes, "wait_max_ms",
				(json_int_t)s->wait_max_ms));
	}
	return json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "oom",
		(int)phase->oom, "died", (int)phase->died, "wrong",
		(json_int_t)phase->wrong, "requests", (json_int_t)phase->requests,
		"waits", (json_int_t)phase->waits, "wait_max_ms",
		(json_int_t)phase->wait_max_ms, "gpu_used_max_bytes",
		(json_int_t)phase->used_max_bytes, "ms", (json_int_t)phase->ms, "servers",
		servers);
}

static bool write_json(const char *build, const struct phase *without,
	const struct phase *with, uint64_t total_bytes, bool good)
{
	char path[4096];
	json_t *root = json_pack("{s:b, s:I, s:s, s:s, s:o, s:o}", "good", good,
		"gpu_bytes", (json_int_t)total_bytes, "request", REQUEST, "limit", LIMIT,
		"without", phase_json(without), "with", phase_json(with));
	int failed;

	snprintf(path, sizeof(path), "%s/demo.json", build);
	failed = !root || json_dump_file(root, path, JSON_INDENT(2));
	json_decref(root);
	return !failed;
}

static void summarise(const struct phase *without, const struct phase *with,
	uint64_t total_bytes, const char *build)
{
	printf("\nWithout Sluice: %u of %d servers died of out-of-memory; %llu requests "
	       "answered.\n",
		without->oom, SERVERS, (unsigned long long)without->requests);
	printf("With Sluice:    %u of %d died; %llu requests answered, %llu wrong.\n",
		with->died, SERVERS, (unsigned long long)with->requests,
		(unsigned long long)with->wrong);
	printf("Their peaks add up to %.2f GiB; the GPU has %.2f, and never had more "
	       "than "
	       "%.2f in use.\n",
		gib(with->worst_bytes), gib(total_bytes), gib(with->used_max_bytes));
	printf("%llu requests waited for memory, the longest for %.2f s.\n",
		(unsigned long long)with->waits, (double)with->wait_max_ms / 1000);
	printf("%.1f s in all; the figures are in %s/demo.json.\n",
		(double)(without->ms + with->ms) / 1000, build);
}

int main(int argc, char **argv)
{
	static struct phase without = {.title = "Without Sluice:"},
			    with = {.title = "With Sluice, --request " REQUEST
					     " --limit " LIMIT ":"};
	struct screen screen = {.terminal = isatty(STDOUT_FILENO)};
	uint64_t total_bytes;
	pid_t daemon;
	bool good;

	if (argc != 2 || !prog_gpu_open()) {
		fprintf(stderr, "demo-show: run tests/demo/demo BUILD_DIR\n");
		return PROG_USAGE;
	}
	total_bytes = prog_gpu_memory().total;
	run_phase(argv[1], &without, false, &screen);
	printf("\n");
	fflush(stdout);
	daemon = demo_daemon_start(argv[1], "resolvers: wait\n");
	run_phase(argv[1], &with, true, &screen);
	demo_daemon_stop(daemon);
	good = without.oom >= 1 && without.oom == without.died && !without.wrong &&
	       !with.oom && !with.died && !with.wrong &&
	       with.requests == SERVERS * strtoull(REQUESTS, NULL, 10) &&
	       with.worst_bytes > total_bytes;
	summarise(&without, &with, total_bytes, argv[1]);
	if (!write_json(argv[1], &without, &with, total_bytes, good))
		good = false;
	if (!good)
		printf("demo: this is not what Sluice promises\n");
	return good ? 0 : 1;
}
