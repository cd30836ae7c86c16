/*
 * starver - takes the processor away from threads of others, drawn anew again and again
 *
 * On a machine that is loaded evenly each thread is late by about as much. What hangs when one of
 * them is much later than the rest is found by this: threads of all programs under a folder are
 * among the idle ones (SCHED_IDLE) for some milliseconds, while processes of the starver keep all
 * processors busy. Runs until it is killed.
 */
#include "prog.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct {
	const char *under;
	uint64_t percent, seed;
} options = {.percent = 35};

static void draw_for(const char *pid)
{
	const struct sched_param none = {0};
	char path[300];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		bool starves = prog_random(&options.seed) % 100 < options.percent;

		if (isdigit((unsigned char)entry->d_name[0]))
			(void)sched_setscheduler((pid_t)strtol(entry->d_name, NULL, 10),
				starves ? SCHED_IDLE : SCHED_OTHER, &none);
	}
	if (tasks)
		(void)closedir(tasks);
}

static bool is_meant(const char *pid)
{
	char path[300], program[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	length = readlink(path, program, sizeof(program) - 1);
	if (length < 0)
		return false;
	program[length] = '\0';
	return strncmp(program, options.under, strlen(options.under)) == 0 &&
	       strtol(pid, NULL, 10) != getpid();
}

static void draw_for_all(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	while (processes && (entry = readdir(processes))) {
		if (isdigit((unsigned char)entry->d_name[0]) && is_meant(entry->d_name))
			draw_for(entry->d_name);
	}
	if (processes)
		(void)closedir(processes);
}

static void keep_busy(void)
{
	for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--) {
		if (fork() != 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, "busy");
		for (;;)
			;
	}
}

int main(int argc, char **argv)
{
	static const uint64_t pauses_ms[] = {3, 20, 100};
	const struct prog_option rows[] = {
		{"under", PROG_TEXT, &options.under, "folder of the programs"},
		{"percent", PROG_NUMBER, &options.percent, "threads that starve"},
		{"seed", PROG_NUMBER, &options.seed, "of what is drawn"},
	};

	(void)prog_options(argc, argv, "Starves threads of others.", rows,
		sizeof(rows) / sizeof(rows[0]));
	if (!options.under || options.under[0] != '/') {
		fprintf(stderr, "starver: --under: a folder's whole path is needed\n");
		return PROG_USAGE;
	}
	keep_busy();
	for (;;) {
		draw_for_all();
		prog_sleep_ms(pauses_ms[prog_random(&options.seed) % 3]);
	}
}
