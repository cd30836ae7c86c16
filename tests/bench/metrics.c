/*
 * metrics - the cost of being scraped
 *
 * 10, 100 and 1,000 workloads of a process each, all with memory in the daemon's accounts. A scrape
 * is a request and its complete answer over the daemon's metrics socket (SL_BENCH_METRICS), read as
 * fast as it comes. The daemon keeps a copy of the numbers for a while; scrapes are further apart,
 * so each pays for a new copy.
 *
 * The daemon itself counts the longest turns of its loop since its start. That count is read once
 * more after forty readers, half of which do not read, have competed for its sixteen places.
 */
#include "bench.h"

#include "ask.h"
#include "http.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define WORKLOADS_MOST 1000
#define SCRAPES        20
#define PAUSE_NS       (110 * SL_MS)
#define HELD_BYTES     (2 * SL_MIB)
#define LIMIT_NS       (60 * SL_S)
#define CROWD          40
#define CROWD_NS       (4 * SL_S)

static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
static uint32_t *ready;

static void workload_main(int index, int end_fd)
{
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	char name[32], byte;
	int control, fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	(void)snprintf(name, sizeof(name), "bench-metrics-%d", index);
	bench_register(control, name, 4 * HELD_BYTES, 0, token);
	(void)close(control);
	fd = bench_dial(SL_ROLE_CLIENT, token, NULL);
	bench_reported(fd);
	bench_ask(fd, 1, HELD_BYTES);
	bench_collect(fd, 1, HELD_BYTES);
	(void)__atomic_add_fetch(ready, 1, __ATOMIC_ACQ_REL);
	(void)!read(end_fd, &byte, 1);
	_exit(0);
}

static void grow_to(uint32_t count, const int end[2])
{
	sl_ns give_up = sl_clock_now() + LIMIT_NS;

	for (uint32_t i = *ready; i < count; i++) {
		pid_t pid = fork();

		bench_require(pid >= 0, "no process");
		if (pid == 0) {
			(void)close(end[1]);
			workload_main((int)i, end[0]);
		}
	}
	while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) < count) {
		bench_require(sl_clock_now() < give_up, "only %u of %u workloads started",
			*ready, count);
		sl_clock_sleep(10 * SL_MS);
	}
}

size_t bench_scrape(const char *path, char *text)
{
	sl_cleanup(sl_closep) int fd = bench_http_ask(path, "/metrics");
	ssize_t used = bench_http_read(fd, text);

	bench_require(used > 0 && strncmp(text, "HTTP/1.", 7) == 0 &&
			      strstr(text, "\nsluice_workload_priority{"),
		"%s: no whole answer", path);
	return (size_t)used;
}

/* A sample without labels. */
static double sample(const char *text, const char *name)
{
	char line[128];
	const char *at;

	(void)snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(text, line);
	bench_require(at, "%s is not served", name);
	return strtod(at + strlen(line), NULL);
}

static void emit_held(const char *variant)
{
	json_t *json = bench_dump(), *value;

	value = json_object_get(json_object_get(json, "long_turns"), "metrics_us");
	bench_require(value, "the dump has no metrics_us");
	bench_emit_turn(BENCH_METRICS_HELD, variant, value);
	json_decref(json);
}

static void measure(uint32_t pid, uint32_t count, const char *path, char *text)
{
	struct bench_samples *took = bench_samples_new();
	sl_ns idle, busy;
	size_t bytes = 0;
	char variant[32];

	sl_clock_sleep(SL_S); /* what the newcomers caused settles */
	idle = bench_cpu_of(pid);
	sl_clock_sleep(SCRAPES * PAUSE_NS);
	idle = bench_cpu_of(pid) - idle;
	if (count == WORKLOADS_MOST)
		bench_emit(BENCH_HISTORY_DAEMON, NULL,
			100.0 * (double)idle / (double)(SCRAPES * PAUSE_NS));
	busy = bench_cpu_of(pid);
	for (int i = 0; i < SCRAPES; i++) {
		sl_ns begin = sl_clock_now();

		bytes = bench_scrape(path, text);
		bench_samples_add(took, sl_clock_now() - begin);
		sl_clock_sleep(PAUSE_NS);
	}
	busy = bench_cpu_of(pid) - busy;
	bench_require(sample(text, "sluice_workloads") >= count, "workloads are missing");
	(void)snprintf(variant, sizeof(variant), "workloads-%u", count);
	bench_emit(BENCH_METRICS_SCRAPE, variant,
		(double)bench_quantile(took, 500) / (double)SL_MS);
	/* Per scrape, and one scrape a second: hundredths of that second. */
	bench_emit(BENCH_METRICS_CPU, variant,
		100.0 * (double)sl_sub_sat(busy, idle) / SCRAPES / (double)SL_S);
	emit_held(variant);
	bench_emit(BENCH_METRICS_BYTES, variant, (double)bytes / 1024);
	free(took);
}

static void crowd_main(const char *path, char *text, bool reads)
{
	sl_ns end = sl_clock_now() + CROWD_NS;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		sl_cleanup(sl_closep) int fd = bench_http_ask(path, "/metrics");

		/* A reader that is cut off, because others wait for the place, comes again. */
		if (reads)
			(void)bench_http_read(fd, text);
		else
			sl_clock_sleep(SL_S);
	} while (sl_clock_now() < end);
	_exit(0);
}

/* More readers than places, all the time; half of them never read. */
static void measure_crowd(const char *path, char *text)
{
	pid_t pids[CROWD];
	int status;

	for (int i = 0; i < CROWD; i++) {
		pids[i] = fork();
		bench_require(pids[i] >= 0, "no process");
		if (pids[i] == 0)
			crowd_main(path, text, i % 2);
	}
	for (int i = 0; i < CROWD; i++)
		bench_require(waitpid(pids[i], &status, 0) == pids[i] && status == 0,
			"a reader failed");
	(void)bench_scrape(path, text);
	emit_held("crowd");
}

int bench_part_metrics(int argc, char **argv)
{
	static const uint32_t counts[] = {10, 100, 200, WORKLOADS_MOST};
	const char *path = getenv("SL_BENCH_METRICS");
	sl_cleanup(sl_closep) int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	sl_cleanup(sl_freep) char *text = malloc(BENCH_HTTP_MAX);
	struct sl_msg_status_row status;
	int end[2];

	bench_require(
		path, "SL_BENCH_METRICS is not set: the path of the daemon's metrics");
	ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench_require(text && ready != MAP_FAILED && pipe(end) == 0, "out of memory");
	bench_status(control, &status);
	for (size_t i = 0; i < SL_ARRAY_LEN(counts); i++) {
		grow_to(counts[i], end);
		/* The page is judged at 200, a busy machine, and at the most. */
		if (counts[i] != 200)
			measure(status.pid, counts[i], path, text);
		if (counts[i] >= 200)
			bench_page(status.pid, counts[i], path, text);
	}
	measure_crowd(path, text);
	bench_asked(control, text);
	(void)close(end[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
