/*
 * page - the cost of the page and of open pages
 *
 * Over the page's socket (SL_BENCH_PAGE), beside the workloads that metrics.c has started. The
 * requests for a state are so far apart that the daemon makes a new one for each. An open page
 * reads as fast as data comes.
 */
#include "http.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define STATES    10
#define PAUSE_NS  (400 * SL_MS)
#define WATCHERS  8
#define SCRAPES   10
#define WATCH_NS  (4 * SL_S)
#define PARTS_MAX 64

static const char *page_path(void)
{
	const char *path = getenv("SL_BENCH_PAGE");

	bench_require(path, "SL_BENCH_PAGE is not set: the path of the page's socket");
	return path;
}

/* The body, and its size. */
static const char *fetch(const char *target, char *text, size_t *size)
{
	sl_cleanup(sl_closep) int fd = bench_http_ask(page_path(), target);
	ssize_t got = bench_http_read(fd, text);
	const char *body = got > 0 ? strstr(text, "\r\n\r\n") : NULL;

	bench_require(body && strncmp(text + strlen("HTTP/1.x"), " 200 ", 5) == 0,
		"%s: no answer", target);
	*size = (size_t)(text + got - body) - 4;
	return body + 4;
}

static void measure_state(const char *variant, uint32_t count, char *text)
{
	struct bench_samples *took = bench_samples_new();
	const char *body = "";
	uint32_t found = 0;
	size_t size = 0;

	for (int i = 0; i < STATES; i++) {
		sl_ns begin = sl_clock_now();

		body = fetch("/api/state", text, &size);
		bench_samples_add(took, sl_clock_now() - begin);
		sl_clock_sleep(PAUSE_NS);
	}
	for (const char *at = body; (at = strstr(at, "\"bench-metrics-")); at++)
		found++;
	bench_require(
		found >= count, "only %u of %u workloads are in the state", found, count);
	bench_emit(BENCH_PAGE_STATE, variant,
		(double)bench_quantile(took, 500) / (double)SL_MS);
	bench_emit(BENCH_PAGE_STATE_BYTES, variant, (double)size / 1024);
	free(took);
}

static pid_t start_watcher(void)
{
	pid_t pid = fork();
	char piece[65536];
	int fd;

	bench_require(pid >= 0, "no process");
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = bench_http_ask(page_path(), "/api/live");
	while (read(fd, piece, sizeof(piece)) > 0)
		;
	_exit(0);
}

static void end_watchers(pid_t pids[], int count)
{
	for (int i = 0; i < count; i++) {
		(void)kill(pids[i], SIGKILL);
		bench_require(waitpid(pids[i], NULL, 0) == pids[i], "no child");
	}
}

static void measure_watched(
	uint32_t pid, const char *variant, const char *metrics, char *text)
{
	struct bench_samples *took = bench_samples_new();
	pid_t watchers[WATCHERS];
	sl_ns idle = bench_cpu_of(pid), busy;

	sl_clock_sleep(WATCH_NS);
	idle = bench_cpu_of(pid) - idle;
	watchers[0] = start_watcher();
	sl_clock_sleep(SL_S / 2);
	busy = bench_cpu_of(pid);
	sl_clock_sleep(WATCH_NS);
	busy = bench_cpu_of(pid) - busy;
	bench_emit(BENCH_PAGE_CPU, variant,
		100.0 * (double)sl_sub_sat(busy, idle) / (double)WATCH_NS);
	for (int i = 1; i < WATCHERS; i++)
		watchers[i] = start_watcher();
	for (int i = 0; i < SCRAPES; i++) {
		sl_ns begin = sl_clock_now();

		(void)bench_scrape(metrics, text);
		bench_samples_add(took, sl_clock_now() - begin);
		/* Out of step with things done once a second. */
		sl_clock_sleep(PAUSE_NS / 2 + (sl_ns)i * 17 * SL_MS);
	}
	bench_emit(BENCH_PAGE_SCRAPE, variant,
		(double)bench_quantile(took, 500) / (double)SL_MS);
	end_watchers(watchers, WATCHERS);
	free(took);
}

/* --- the page itself -------------------------------------------------------------------------- */

struct parts {
	char names[PARTS_MAX][128];
	size_t count;
};

static void add_part(struct parts *parts, const char *name, size_t length)
{
	char target[128];

	(void)snprintf(target, sizeof(target), "/assets/%.*s", (int)length, name);
	for (size_t i = 0; i < parts->count; i++) {
		if (strcmp(parts->names[i], target) == 0)
			return;
	}
	bench_require(parts->count < PARTS_MAX, "the page has too many parts");
	memcpy(parts->names[parts->count++], target, sizeof(target));
}

/* Files that a file asks for by "/assets/NAME" or "./NAME", in quotes. */
static void find_parts(struct parts *parts, const char *text, const char *before)
{
	for (const char *at = text; (at = strstr(at, before));) {
		size_t length;

		at += strlen(before);
		length = strcspn(at, "\"'`)<> ");
		if (at[length] == '"' || at[length] == '\'')
			add_part(parts, at, length);
	}
}

/* All that a browser fetches before it can show anything. */
static void measure_load(char *text)
{
	struct parts parts = {.count = 0};
	size_t size, sum = 0;

	for (size_t i = 0; i <= parts.count; i++) {
		const char *body = fetch(i ? parts.names[i - 1] : "/", text, &size);

		sum += size;
		find_parts(&parts, body, "\"/assets/");
		find_parts(&parts, body, "\"./");
	}
	bench_emit(BENCH_PAGE_LOAD, NULL, (double)sum / 1024);
	bench_emit(BENCH_PAGE_PARTS, NULL, (double)parts.count + 1);
}

void bench_page(uint32_t pid, uint32_t count, const char *metrics, char *text)
{
	char variant[32];

	(void)snprintf(variant, sizeof(variant), "workloads-%u", count);
	measure_state(variant, count, text);
	measure_watched(pid, variant, metrics, text);
	if (count == 200)
		measure_load(text);
}
