/*
 * starver - takes the processor away from some threads, drawn anew again and again
 *
 * On an evenly loaded machine every thread is late by about the same time. The starver finds hangs
 * that need one thread to be much later than the others. It makes drawn threads of all programs
 * under a folder idle ones (SCHED_IDLE) for some milliseconds, while its own processes keep all
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

/* Of a hundred threads. */
#define STARVING 35

static const char *under;
static char own[4096]; /* program: its busy processes are not to starve */
static uint64_t random_state;

static void draw_for(const char *pid)
{
	const struct sched_param none = {0};
	char path[300];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		bool starves = prog_random(&random_state) % 100 < STARVING;

		if (isdigit((unsigned char)entry->d_name[0]))
			(void)sched_setscheduler((pid_t)strtol(entry->d_name, NULL, 10),
				starves ? SCHED_IDLE : SCHED_OTHER, &none);
	}
	if (tasks)
		(void)closedir(tasks);
}

/* "" for one that is gone, or has none. */
static void look_up(const char *pid, char program[4096])
{
	char path[300];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	length = readlink(path, program, 4095);
	program[length < 0 ? 0 : length] = '\0';
}

static bool is_meant(const char *pid)
{
	char program[4096];

	look_up(pid, program);
	return strncmp(program, under, strlen(under)) == 0 && strcmp(program, own) != 0;
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
		{"under", PROG_TEXT, &under, "folder of the programs"},
	};

	(void)prog_options(argc, argv, "Starves threads of others.", rows,
		sizeof(rows) / sizeof(rows[0]));
	if (!under || under[0] != '/') {
		fprintf(stderr, "starver: --under: a folder's whole path is needed\n");
		return PROG_USAGE;
	}
	look_up("self", own);
	random_state = prog_now_ms();
	keep_busy();
	for (;;) {
		draw_for_all();
		prog_sleep_ms(pauses_ms[prog_random(&random_state) % 3]);
	}
}
