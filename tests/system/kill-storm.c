/*
 * kill-storm - kills clients and the daemon at random moments, then checks the accounts
 *
 * A handful of programs of every kind run under Sluice all the time. At moments drawn from the seed
 * one of them, or the daemon, is killed with SIGKILL and started again. After every fifty kills
 * everything is ended, and the daemon's accounts and the GPU must be empty: no lock, no grant and
 * no byte of a dead process may stay (peer-failures rows 3, 5, 7, 31, 35). A program that ends by
 * itself must report right answers, or out-of-memory by that name.
 *
 *   kill-storm BUILD_DIR COUNT [SEED]      inside `sluice softgpu`
 */
#include "base/sl.h"
#include "gpu-memory.h"
#include "prog.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 5, KILLS_PER_ROUND = 50, SETTLE_MS = 15000 };

/* sluice's own message when there is no daemon, or none any more; see exits.def. */
enum { EXIT_NO_DAEMON = 69, EXIT_REFUSED = 75 };

struct client {
	pid_t pid;
	const char *kind;
	uint64_t due_ms; /* time of its kill */
};

struct storm {
	const char *build;
	char folder[64];
	uint64_t random, kills, client_kills, daemon_kills, ended, unserved, refused, oom;
	unsigned int failures;
	struct client clients[SLOTS];
	pid_t daemon;
	uint64_t daemon_due_ms;
	uint64_t used_before;
};

static uint64_t draw(struct storm *s, uint64_t below)
{
	return prog_random(&s->random) % below;
}

/* Becomes words[0] with output to the file, appended. */
static pid_t spawn(const char *const *words, const char *output)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0644);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execv(words[0], (char *const *)words);
		_exit(127);
	}
	return pid;
}

static void start_daemon(struct storm *s)
{
	char program[4096], config[128], output[128];
	const char *words[] = {program, "--config", config, "--state", NULL, NULL};
	char state[128];

	snprintf(program, sizeof(program), "%s/sluiced", s->build);
	snprintf(config, sizeof(config), "%s/config", s->folder);
	snprintf(state, sizeof(state), "%s/state", s->folder);
	snprintf(output, sizeof(output), "%s/daemon.log", s->folder);
	words[4] = state;
	s->daemon = spawn(words, output);
	/* About one kill in six is the daemon's. */
	s->daemon_due_ms = prog_now_ms() + 20 + draw(s, 400);
}

/* Programs and their arguments; small enough that a start costs little. */
static const struct kind {
	const char *name, *request, *limit, *words[12];
} kinds[] = {
	{"alloc-churn", "60MiB", "0.5",
		{"--operations", "4000", "--slots", "12", "--max", "6MiB"}},
	{"holder", "0", "0.9",
		{"--bytes", "90MiB", "--count", "3", "--gap-ms", "20", "--ms", "300",
			"--verify"}},
	{"holder", "100MiB", "0.9",
		{"--bytes", "200MiB", "--ms", "400", "--fork", "--child-ms", "700"}},
	{"launcher", "50MiB", "0.3", {"--threads", "2", "--ms", "500"}},
	{"model-server", "100MiB", "0.8",
		{"--weights", "32MiB", "--item", "16MiB", "--batch-max", "20",
			"--requests", "40", "--hold-ms", "20"}},
	{"memhog", "0", "0.7", {"--piece", "16MiB", "--hold-ms", "50"}},
};

static void start_client(struct storm *s, struct client *client)
{
	const struct kind *kind = &kinds[draw(s, SL_ARRAY_LEN(kinds))];
	char runner[4096], program[4096], output[128], seed[32];
	const char *words[32] = {runner, "run", "--request", kind->request, "--limit",
		kind->limit, "--", program};
	size_t n = 8;

	snprintf(runner, sizeof(runner), "%s/sluice", s->build);
	snprintf(program, sizeof(program), "%s/tests/programs/%s", s->build, kind->name);
	snprintf(output, sizeof(output), "%s/clients.log", s->folder);
	for (size_t i = 0; kind->words[i]; i++)
		words[n++] = kind->words[i];
	if (!strcmp(kind->name, "alloc-churn")) {
		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)draw(s, 1000));
		words[n++] = "--seed";
		words[n++] = seed;
	}
	client->kind = kind->name;
	client->pid = spawn(words, output);
	/* From before it reached the daemon to long after it holds memory. */
	client->due_ms = prog_now_ms() + draw(s, draw(s, 2) ? 60 : 400);
}

/* A client that ended without being killed. */
static void judge(struct storm *s, const struct client *client, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	s->ended++;
	if (code == PROG_OUT_OF_MEMORY) {
		s->oom++;
	} else if (code == EXIT_NO_DAEMON) {
		s->unserved++;
	} else if (code == EXIT_REFUSED) {
		s->refused++;
	} else if (code != 0) {
		printf("kill-storm: %s (pid %d) ended with status %d\n", client->kind,
			(int)client->pid, code);
		s->failures++;
	}
}

static void kill_client(struct storm *s, struct client *client)
{
	int status;

	kill(client->pid, SIGKILL);
	waitpid(client->pid, &status, 0);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		s->kills++;
		s->client_kills++;
	} else {
		judge(s, client, status);
	}
	client->pid = 0;
}

static void kill_daemon(struct storm *s)
{
	kill(s->daemon, SIGKILL);
	waitpid(s->daemon, NULL, 0);
	s->kills++;
	s->daemon_kills++;
	prog_sleep_ms(draw(s, 40));
	start_daemon(s);
}

/* --- the books ------------------------------------------------------------------------- */

/* `sluice gpus --json`, or NULL if the daemon does not answer. */
static json_t *ask_gpus(struct storm *s)
{
	char command[4200];
	json_t *root;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s/sluice' gpus --json 2>/dev/null",
		s->build);
	pipe = popen(command, "r");
	if (!pipe)
		return NULL;
	root = json_loadf(pipe, 0, NULL);
	pclose(pipe);
	return root;
}

/* True if nothing is booked; otherwise the text says why something is. */
static bool books_empty(struct storm *s, char *why, size_t size)
{
	static const char *const fields[] = {"backing_bytes", "granted_bytes",
		"hidden_bytes", "dying_bytes", "requests_bytes", "waiting", "workloads"};
	json_t *root = ask_gpus(s);
	const json_t *row = json_array_get(root, 0);
	bool empty = json_is_object(row);

	snprintf(why, size, empty ? "?" : "no answer");
	for (size_t i = 0; empty && i < SL_ARRAY_LEN(fields); i++) {
		json_int_t value = json_integer_value(json_object_get(row, fields[i]));

		if (!json_is_integer(json_object_get(row, fields[i])) || value) {
			snprintf(why, size, "%s is %lld", fields[i], (long long)value);
			empty = false;
		}
	}
	json_decref(root);
	if (empty && prog_gpu_memory().used > s->used_before) {
		snprintf(why, size, "NVML sees %llu bytes more than at the start",
			(unsigned long long)(prog_gpu_memory().used - s->used_before));
		empty = false;
	}
	return empty;
}

/* Ends everything and waits for empty books. */
static void settle(struct storm *s)
{
	uint64_t stop_ms = prog_now_ms() + SETTLE_MS;
	char why[128];

	for (size_t i = 0; i < SLOTS; i++)
		if (s->clients[i].pid)
			kill_client(s, &s->clients[i]);
	while (!books_empty(s, why, sizeof(why))) {
		if (prog_now_ms() > stop_ms) {
			printf("kill-storm: after %llu kills the books are not empty: "
			       "%s\n",
				(unsigned long long)s->kills, why);
			s->failures++;
			return;
		}
		/* The daemon must never end by itself. */
		if (waitpid(s->daemon, NULL, WNOHANG) == s->daemon) {
			printf("kill-storm: the daemon ended by itself\n");
			s->failures++;
			start_daemon(s);
		}
		prog_sleep_ms(50);
	}
	s->daemon_due_ms = prog_now_ms() + 20 + draw(s, 400);
}

static void step(struct storm *s)
{
	uint64_t now_ms = prog_now_ms();

	for (size_t i = 0; i < SLOTS; i++) {
		struct client *client = &s->clients[i];
		int status;

		if (!client->pid) {
			/* due_ms of an empty slot is a pause: without a daemon starts are in
			 * vain. */
			if (now_ms >= client->due_ms)
				start_client(s, client);
		} else if (waitpid(client->pid, &status, WNOHANG) == client->pid) {
			judge(s, client, status);
			client->pid = 0;
			client->due_ms = now_ms + draw(s, 60);
		} else if (now_ms >= client->due_ms) {
			kill_client(s, client);
		}
	}
	if (now_ms >= s->daemon_due_ms)
		kill_daemon(s);
	prog_sleep_ms(2);
}

static bool prepare(struct storm *s)
{
	char path[128];
	FILE *config;

	snprintf(s->folder, sizeof(s->folder), "/tmp/sluice-storm.XXXXXX");
	if (!mkdtemp(s->folder) || !prog_gpu_open())
		return false;
	snprintf(path, sizeof(path), "%s/config", s->folder);
	config = fopen(path, "w");
	if (!config)
		return false;
	/* Short waits: this tests death, not patience. */
	fputs("longest_wait: 3s\nrecover_wait: 500ms\nidle_wait: 200ms\n", config);
	fclose(config);
	s->used_before = prog_gpu_memory().used;
	return true;
}

static void print_tail(const struct storm *s, const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "echo '--- %s:'; tail -n 40 '%s/%s'", name,
		s->folder, name);
	fflush(stdout);
	if (system(command))
		printf("kill-storm: no %s\n", name);
}

int main(int argc, char **argv)
{
	struct storm s = {0};
	uint64_t count, next_settle = KILLS_PER_ROUND, seed;
	char command[128];

	if (argc < 3) {
		fprintf(stderr, "usage: kill-storm BUILD_DIR COUNT [SEED]\n");
		return PROG_USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.build = argv[1];
	count = strtoull(argv[2], NULL, 10);
	seed = argc > 3 ? strtoull(argv[3], NULL, 10) : prog_now_ns() % 1000000;
	s.random = seed;
	if (!prepare(&s)) {
		fprintf(stderr, "kill-storm: run it inside `sluice softgpu`\n");
		return PROG_USAGE;
	}
	printf("kill-storm: %llu kills, seed %llu\n", (unsigned long long)count,
		(unsigned long long)seed);
	fflush(stdout);
	start_daemon(&s);
	while (s.kills < count && s.failures < 5) {
		step(&s);
		if (s.kills >= next_settle) {
			settle(&s);
			next_settle = s.kills + KILLS_PER_ROUND;
		}
	}
	settle(&s);
	if (s.failures) {
		print_tail(&s, "daemon.log");
		print_tail(&s, "clients.log");
	}
	kill(s.daemon, SIGTERM);
	waitpid(s.daemon, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", s.folder);
	if (system(command))
		printf("kill-storm: %s stays behind\n", s.folder);
	printf("kill-storm: %llu clients and %llu daemons killed; %llu programs ended by "
	       "themselves (%llu out of memory, %llu without a daemon, %llu refused); %u "
	       "failures; seed %llu\n",
		(unsigned long long)s.client_kills, (unsigned long long)s.daemon_kills,
		(unsigned long long)s.ended, (unsigned long long)s.oom,
		(unsigned long long)s.unserved, (unsigned long long)s.refused, s.failures,
		(unsigned long long)seed);
	return s.failures ? 1 : 0;
}
