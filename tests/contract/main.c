/*
 * main - runs the facts, each in a process of its own
 *
 * A child is this executable again with --fact. It reports by its exit status (0 holds, 1 does not,
 * 77 cannot be asked here) and by its output. If a child crashes or outlives its limit, the fact
 * does not hold.
 *
 *   contract [--list] [--only PATTERN] [--json] [--observed] [--jobs N]
 *
 * With --jobs several facts are asked at a time. They share a GPU then, so one that fails is asked
 * again alone, and that answer counts.
 *
 * Exit status: 0 if no fact failed.
 */
#include "contract.h"
#include "prog.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FACT_HOLDS = 0, FACT_FAILS = 1, FACT_SKIPPED = 77 };

extern const struct contract_fact *const __start_contract_facts[];
extern const struct contract_fact *const __stop_contract_facts[];

struct outcome {
	int status;
	char text[2048]; /* what the child said */
};

static bool under_sluice(void)
{
	return getenv("SLUICE_WORKLOAD");
}

/* The tag of a fact: where it was observed, or that it was not. */
static const char *tag(const struct contract_fact *fact)
{
	static const struct {
		const char *name, *tag;
	} observed[] = {
#define OBSERVED(name, gpu, driver) {#name, "observed on " gpu ", driver " driver},
#include "observed.def"
#undef OBSERVED
		{NULL, NULL},
	};

	for (size_t i = 0; observed[i].name; i++)
		if (!strcmp(observed[i].name, fact->name))
			return observed[i].tag;
	return "assumed";
}

/* Reads what the child prints until it closes its end or the time is over. */
static void listen_to(int fd, int limit_ms, struct outcome *outcome)
{
	uint64_t stop_ms = prog_now_ms() + (uint64_t)limit_ms;
	size_t used = 0;

	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		uint64_t now_ms = prog_now_ms();
		char rest[256];
		bool full = used + 1 >= sizeof(outcome->text);
		ssize_t got;

		if (now_ms >= stop_ms || poll(&ready, 1, (int)(stop_ms - now_ms)) == 0)
			break;
		got = full ? read(fd, rest, sizeof(rest))
			   : read(fd, outcome->text + used,
				     sizeof(outcome->text) - 1 - used);
		if (got <= 0)
			break;
		used += full ? 0 : (size_t)got;
	}
	outcome->text[used] = '\0';
}

/* Waits for the child, kills it if it is late. */
static void reap(pid_t pid, uint64_t stop_ms, struct outcome *outcome)
{
	size_t length = strlen(outcome->text);
	char *end = outcome->text + length;
	size_t room = sizeof(outcome->text) - length;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (prog_now_ms() >= stop_ms) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			snprintf(end, room, "no answer in time\n");
			outcome->status = FACT_FAILS;
			return;
		}
		prog_sleep_ms(2);
	}
	if (WIFEXITED(status)) {
		outcome->status = WEXITSTATUS(status);
	} else {
		snprintf(end, room, "died of signal %d\n", WTERMSIG(status));
		outcome->status = FACT_FAILS;
	}
}

static struct outcome ask(const struct contract_fact *fact)
{
	int limit_ms = fact->flags & SLOW ? 60000 : 20000;
	uint64_t stop_ms = prog_now_ms() + (uint64_t)limit_ms;
	struct outcome outcome = {FACT_FAILS, ""};
	int ends[2];
	pid_t pid;

	if (under_sluice() && fact->flags & NATIVE_ONLY) {
		outcome.status = FACT_SKIPPED;
		snprintf(outcome.text, sizeof(outcome.text), "about the bare driver\n");
		return outcome;
	}
	/* Closed in the processes of other facts, or their ends would be this one's. */
	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		snprintf(outcome.text, sizeof(outcome.text), "no process: %m\n");
		return outcome;
	}
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "contract", "--fact", fact->name, (char *)NULL);
		_exit(FACT_FAILS);
	}
	close(ends[1]);
	listen_to(ends[0], limit_ms, &outcome);
	close(ends[0]);
	reap(pid, stop_ms, &outcome);
	return outcome;
}

/* The GPU and the driver this runs on, for rows of observed.def. */
static void print_observed(const struct contract_fact *fact)
{
	static char gpu[128], driver[96];
	nvmlDevice_t device;

	if (!gpu[0]) {
		if (contract_software()) {
			fprintf(stderr, "contract: a software GPU proves nothing\n");
			exit(PROG_USAGE);
		}
		if (ML(nvmlInit_v2)() || ML(nvmlDeviceGetHandleByIndex_v2)(0, &device) ||
			ML(nvmlDeviceGetName)(device, gpu, sizeof(gpu)) ||
			ML(nvmlSystemGetDriverVersion)(driver, sizeof(driver)))
			snprintf(gpu, sizeof(gpu), "unknown GPU");
	}
	printf("OBSERVED(%s, \"%s\", \"%s\")\n", fact->name, gpu, driver);
}

static void report(
	const struct contract_fact *fact, const struct outcome *outcome, bool json)
{
	static const char *const words[] = {"ok", "FAIL", "skip"};
	int word = outcome->status == FACT_HOLDS     ? 0
		   : outcome->status == FACT_SKIPPED ? 2
						     : 1;
	char detail[2048];
	size_t used = 0;

	/* Lines of the child become one, without what JSON would have to escape. */
	for (const char *c = outcome->text; *c && used + 1 < sizeof(detail); c++)
		detail[used++] = *c == '\n' ? ';' : *c == '"' || *c == '\\' ? '\'' : *c;
	detail[used] = '\0';
	if (json)
		printf("{\"fact\":\"%s\",\"outcome\":\"%s\",\"tag\":\"%s\",\"source\":\"%"
		       "s\",\"text\":\"%s\",\"detail\":\"%s\"}\n",
			fact->name, words[word], tag(fact), fact->source, fact->text,
			detail);
	else
		printf("%-4s %-32s %s [%s]%s%s\n", words[word], fact->name, fact->text,
			tag(fact), word ? "\n     " : "", word ? detail : "");
	fflush(stdout);
}

static int run_one(const char *name)
{
	for (const struct contract_fact *const *at = __start_contract_facts;
		at < __stop_contract_facts; at++) {
		if (strcmp((*at)->name, name))
			continue;
		(*at)->run();
		return FACT_HOLDS;
	}
	printf("no such fact\n");
	return FACT_FAILS;
}

/* The facts that are asked, with their answers. */
struct questions {
	const struct contract_fact *const *facts;
	struct outcome *outcomes;
	size_t count;
	_Atomic size_t next;
};

static void *ask_some(void *arg)
{
	struct questions *questions = arg;
	size_t i;

	while ((i = questions->next++) < questions->count)
		questions->outcomes[i] = ask(questions->facts[i]);
	return NULL;
}

static void ask_beside(struct questions *questions, uint64_t jobs)
{
	pthread_t threads[64];
	uint64_t started = 0;

	while (started < jobs && started < SL_ARRAY_LEN(threads) &&
		!pthread_create(&threads[started], NULL, ask_some, questions))
		started++;
	ask_some(questions);
	while (started)
		pthread_join(threads[--started], NULL);
	for (size_t i = 0; i < questions->count; i++)
		if (questions->outcomes[i].status == FACT_FAILS)
			questions->outcomes[i] = ask(questions->facts[i]);
}

static int run_all(const char *only, bool list, bool json, bool observed, uint64_t jobs)
{
	size_t all = (size_t)(__stop_contract_facts - __start_contract_facts);
	const struct contract_fact **facts = calloc(all, sizeof(*facts));
	struct outcome *outcomes = calloc(all, sizeof(*outcomes));
	struct questions questions = {.facts = facts, .outcomes = outcomes};
	unsigned int counts[3] = {0}, assumed = 0;

	if (!facts || !outcomes)
		return PROG_USAGE;
	for (size_t i = 0; i < all; i++)
		if (!only || !fnmatch(only, __start_contract_facts[i]->name, 0))
			facts[questions.count++] = __start_contract_facts[i];
	if (jobs > 1 && !list)
		ask_beside(&questions, jobs - 1);
	for (size_t i = 0; i < questions.count; i++) {
		const struct contract_fact *fact = facts[i];

		assumed += !strcmp(tag(fact), "assumed");
		if (list) {
			printf("%-32s %s [%s; %s]\n", fact->name, fact->text, tag(fact),
				fact->source);
			counts[0]++;
			continue;
		}
		if (jobs <= 1)
			outcomes[i] = ask(fact);
		if (observed && outcomes[i].status == FACT_HOLDS)
			print_observed(fact);
		else if (!observed)
			report(fact, &outcomes[i], json);
		counts[outcomes[i].status == FACT_HOLDS      ? 0
			: outcomes[i].status == FACT_SKIPPED ? 2
							     : 1]++;
	}
	free(facts);
	free(outcomes);
	if (only && !counts[0] && !counts[1] && !counts[2]) {
		fprintf(stderr, "contract: no fact is called %s\n", only);
		return PROG_USAGE;
	}
	if (json)
		printf("{\"facts\":%u,\"ok\":%u,\"failed\":%u,\"skipped\":%u,"
		       "\"assumed\":%u,\"observed\":%u}\n",
			counts[0] + counts[1] + counts[2], counts[0], counts[1],
			counts[2], assumed, counts[0] + counts[1] + counts[2] - assumed);
	else if (!observed)
		printf("%u facts: %u hold, %u do not, %u skipped; %u observed on a GPU, "
		       "%u assumed\n",
			counts[0] + counts[1] + counts[2], counts[0], counts[1],
			counts[2], counts[0] + counts[1] + counts[2] - assumed, assumed);
	return counts[1] ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *only = NULL, *fact = NULL, *helper = NULL;
	bool list = false, json = false, observed = false;
	uint64_t jobs = 1;
	const struct prog_option options[] = {
		{"list", PROG_FLAG, &list, "list the facts"},
		{"only", PROG_TEXT, &only,
			"run facts of this name alone; * stands for anything"},
		{"json", PROG_FLAG, &json, "one JSON object per line"},
		{"observed", PROG_FLAG, &observed, "print rows for observed.def"},
		{"jobs", PROG_NUMBER, &jobs, "facts asked at a time, 64 at most"},
		{"fact", PROG_TEXT, &fact, "be the process of one fact"},
		{"helper", PROG_TEXT, &helper, "be a second process of a fact"},
	};

	prog_options(argc, argv, "Checks facts about the CUDA driver.", options,
		SL_ARRAY_LEN(options));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fact)
		return run_one(fact);
	if (helper)
		return contract_helper(helper);
	return run_all(only, list, json, observed, jobs);
}
