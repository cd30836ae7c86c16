/*
 * demo-swap - two models that do not fit on one small GPU together: how long a first answer takes
 *
 * A model is a process with weights on the GPU that answers when it is asked. Resident, it answers
 * at once. Warm, all of it is on the host and the GPU is free: it comes back first. Swapped,
 * another model has the GPU and has to leave before. Cold, the process is started and loads its
 * weights, which are made up here and would be read from a disk elsewhere.
 *
 * The daemon tells before each measurement where both models are. At the end every word of both is
 * compared with what was written; the program fails on any difference. Times are those of the
 * software GPU, whose copies the CPU makes, and are printed as such.
 */
#include "base/sl.h"
#include "demo-daemon.h"
#include "gpu-memory.h"
#include "prog.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MODELS = 2, ROUNDS = 2, TIMES_MAX = 8, PATIENCE_MS = 30000 };

#define WEIGHTS_MIB 400
#define REQUEST     "0.4"

struct model {
	const char *name;
	pid_t pid;
	int commands;
	FILE *answers;
	uint64_t answered, wrong;
};

/* Times of one kind, in ms. */
struct times {
	const char *name, *what;
	uint64_t ms[TIMES_MAX];
	size_t count;
};

enum { RESIDENT, WARM, SWAPPED, COLD, KINDS };

static struct act {
	const char *build;
	struct model models[MODELS];
	struct times times[KINDS];
	uint64_t gpu_bytes;
} act = {
	.times = {[RESIDENT] = {"on the GPU", "nothing has to be moved"},
		[WARM] = {"warm", "all of it is on the host, and the GPU is free"},
		[SWAPPED] = {"swapped", "another model has to leave first"},
		[COLD] = {"cold", "its process is started and its weights are made"}},
};

__attribute__((noreturn)) static void give_up(const char *what, const char *detail)
{
	fprintf(stderr, "demo: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
	exit(PROG_WRONG);
}

/* --- models ------------------------------------------------------------------------------ */

static void become_model(const struct model *m, const char *warm_after, int in, int out)
{
	char runner[4096], program[4096];

	snprintf(runner, sizeof(runner), "%s/sluice", act.build);
	snprintf(program, sizeof(program), "%s/tests/programs/swapper", act.build);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execl(runner, "sluice", "run", "--name", m->name, "--request", REQUEST, "--limit",
		"1.0", "--warm-after", warm_after, "--", program, (char *)NULL);
	_exit(127);
}

/* One command and its answer: the value. */
static uint64_t tell(struct model *m, const char *command)
{
	size_t verb = strcspn(command, " ");
	char line[1024], text[128];
	int length = snprintf(text, sizeof(text), "%s\n", command);

	if (write(m->commands, text, (size_t)length) != length)
		give_up("a model takes no commands", m->name);
	while (fgets(line, sizeof(line), m->answers)) {
		json_t *object = json_loads(line, 0, NULL);
		const char *did = json_string_value(json_object_get(object, "did"));
		const char *result = json_string_value(json_object_get(object, "result"));
		uint64_t value =
			(uint64_t)json_integer_value(json_object_get(object, "value"));
		bool good = result && !strcmp(result, "CUDA_SUCCESS");
		bool mine = did && strlen(did) == verb && !strncmp(did, command, verb);

		json_decref(object);
		if (mine && !good)
			give_up(m->name, line);
		if (mine)
			return value;
	}
	give_up("a model ended in the middle", m->name);
}

/* A question: a kernel of the model compares the weights with what must be there. */
static void ask(struct model *m)
{
	m->wrong += tell(m, "check question");
	m->answered++;
}

static void start_model(struct model *m, const char *name, const char *warm_after)
{
	char weights[64];
	int in[2], out[2];

	*m = (struct model){.name = name};
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		give_up("no pipe", NULL);
	m->pid = fork();
	if (m->pid == 0)
		become_model(m, warm_after, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	m->commands = in[1];
	m->answers = fdopen(out[0], "r");
	snprintf(weights, sizeof(weights), "alloc weights %dm", WEIGHTS_MIB);
	tell(m, "alloc question 4m");
	tell(m, "fill question 7");
	tell(m, weights);
	tell(m, "fill weights 1");
	ask(m);
}

static void end_model(struct model *m)
{
	int status = 0;

	m->wrong += tell(m, "checkall");
	if (write(m->commands, "exit\n", 5) != 5)
		give_up("a model does not end", m->name);
	waitpid(m->pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		give_up("a model ended badly", m->name);
	close(m->commands);
	fclose(m->answers);
}

/* --- where they are ---------------------------------------------------------------------- */

/* From `sluice ps --json`: how much of it is on the host, and the word for its state. */
static uint64_t evicted_bytes(const struct model *m, char *state, size_t size)
{
	char command[4200];
	FILE *pipe;
	json_t *rows;
	const json_t *row;
	uint64_t bytes = 0;
	size_t i;

	state[0] = '\0';
	snprintf(command, sizeof(command), "'%s/sluice' ps --json", act.build);
	pipe = popen(command, "r");
	rows = pipe ? json_loadf(pipe, 0, NULL) : NULL;
	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		const char *word = json_string_value(json_object_get(row, "residency"));

		if (!name || strcmp(name, m->name))
			continue;
		bytes += (uint64_t)json_integer_value(
			json_object_get(row, "evicted_bytes"));
		snprintf(state, size, "%s", word ? word : "?");
	}
	json_decref(rows);
	if (pipe)
		pclose(pipe);
	return bytes;
}

/* Until so much of it is on the host, in the state (if one is named). */
static void await_host(const struct model *m, uint64_t least_bytes, const char *wanted)
{
	uint64_t until_ms = prog_now_ms() + PATIENCE_MS;
	char state[32];

	while (evicted_bytes(m, state, sizeof(state)) < least_bytes ||
		(wanted && strcmp(state, wanted))) {
		if (prog_now_ms() > until_ms)
			give_up("a model did not go to the host", m->name);
		prog_sleep_ms(50);
	}
}

static void set_warm_after(const struct model *m, const char *warm_after)
{
	char command[4300];

	snprintf(command, sizeof(command),
		"'%s/sluice' set %s --warm-after %s >/dev/null", act.build, m->name,
		warm_after);
	if (system(command))
		give_up("sluice set failed", m->name);
}

/* --- the act ----------------------------------------------------------------------------- */

static void note(int kind, uint64_t since_ms)
{
	struct times *t = &act.times[kind];

	if (t->count < TIMES_MAX)
		t->ms[t->count++] = prog_now_ms() - since_ms;
}

static void timed_ask(int kind, struct model *m)
{
	uint64_t since_ms = prog_now_ms();

	ask(m);
	note(kind, since_ms);
}

static void play(void)
{
	struct model *alpha = &act.models[0], *beta = &act.models[1];
	uint64_t since_ms = prog_now_ms();

	printf("alpha is started and loads %d MiB of weights.\n", WEIGHTS_MIB);
	fflush(stdout);
	start_model(alpha, "alpha", "500ms");
	note(COLD, since_ms);
	timed_ask(RESIDENT, alpha);
	printf("Nobody asks it for a while, so it goes to the host, and comes back when "
	       "it is "
	       "asked.\n");
	fflush(stdout);
	for (int i = 0; i < ROUNDS; i++) {
		await_host(alpha, SL_MIB * WEIGHTS_MIB, "warm");
		timed_ask(WARM, alpha);
		timed_ask(RESIDENT, alpha);
	}
	set_warm_after(alpha, "0");
	printf("beta is started, of the same size: the GPU has no room for both.\n");
	fflush(stdout);
	since_ms = prog_now_ms();
	start_model(beta, "beta", "1h");
	note(COLD, since_ms);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		struct model *m = &act.models[i % MODELS];

		/* Half of it away is enough: no more leaves than must. */
		await_host(m, SL_MIB * WEIGHTS_MIB / 4, NULL);
		timed_ask(SWAPPED, m);
	}
	for (size_t i = 0; i < MODELS; i++)
		end_model(&act.models[i]);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(void)
{
	printf("\nFirst answer of a model of %d MiB, in the middle of several tries:\n",
		WEIGHTS_MIB);
	for (size_t i = 0; i < KINDS; i++) {
		struct times *t = &act.times[i];

		qsort(t->ms, t->count, sizeof(t->ms[0]), by_number);
		printf("  %-11s %6.2f s   %s\n", t->name,
			(double)t->ms[t->count / 2] / 1000, t->what);
	}
	printf("These are times of the software GPU: the CPU does its copies and its "
	       "work. They say "
	       "nothing about a real GPU.\n");
}

static bool write_json(uint64_t answered, uint64_t wrong)
{
	json_t *kinds = json_object(), *root;
	char path[4200];
	int failed;

	for (size_t i = 0; i < KINDS; i++) {
		json_t *list = json_array();

		for (size_t j = 0; j < act.times[i].count; j++)
			json_array_append_new(
				list, json_integer((json_int_t)act.times[i].ms[j]));
		json_object_set_new(kinds, act.times[i].name, list);
	}
	root = json_pack("{s:b, s:I, s:i, s:I, s:I, s:o}", "software_gpu", 1, "gpu_bytes",
		(json_int_t)act.gpu_bytes, "weights_mib", WEIGHTS_MIB, "answers",
		(json_int_t)answered, "wrong", (json_int_t)wrong, "first_answer_ms",
		kinds);
	snprintf(path, sizeof(path), "%s/demo-swap.json", act.build);
	failed = !root || json_dump_file(root, path, JSON_INDENT(2));
	json_decref(root);
	return !failed;
}

int main(int argc, char **argv)
{
	uint64_t answered = 0, wrong = 0;
	pid_t daemon;

	if (argc != 2 || !prog_gpu_open()) {
		fprintf(stderr, "demo-swap: run tests/demo/demo BUILD_DIR\n");
		return PROG_USAGE;
	}
	act.build = argv[1];
	act.gpu_bytes = prog_gpu_memory().total;
	printf("\nSecond act: two models of %d MiB on one GPU of %.2f GiB, by turns\n",
		WEIGHTS_MIB, (double)act.gpu_bytes / (double)SL_GIB);
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);
	daemon = demo_daemon_start(act.build, "");
	play();
	demo_daemon_stop(daemon);
	for (size_t i = 0; i < MODELS; i++) {
		answered += act.models[i].answered;
		wrong += act.models[i].wrong;
	}
	print_times();
	printf("%llu answers, and every word of both models looked at in the end: %llu "
	       "wrong. The "
	       "figures are in %s/demo-swap.json.\n",
		(unsigned long long)answered, (unsigned long long)wrong, act.build);
	if (!write_json(answered, wrong) || wrong) {
		printf("demo: this is not what Sluice promises\n");
		return PROG_WRONG;
	}
	return PROG_OK;
}
