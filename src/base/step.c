/*
 * step - see the header; compiled into the builds of tests/crash only
 */
#include "base/step.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[SL_STEPS_COUNT] = {
#define SL_STEP(NAME, SIDE, PHASE, text) [SL_STEP_##NAME] = #NAME,
#include "base/steps.def"
#undef SL_STEP
};

static uint32_t passed[SL_STEPS_COUNT];

/* One write per line, so lines of several processes do not mix. */
static void note(enum sl_step step)
{
	const char *path = getenv("SLUICE_STEP_LOG");
	char line[64];
	int fd, length;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	length = snprintf(line, sizeof(line), "%s\n", names[step]);
	if (write(fd, line, (size_t)length) < 0)
		(void)0;
	(void)close(fd);
}

/* The pid to kill: from the file of SLUICE_STEP_KILL (0 if it has none yet), else this process. */
static pid_t victim(void)
{
	const char *path = getenv("SLUICE_STEP_KILL");
	char text[32] = "";
	ssize_t length;
	int fd;

	if (!path)
		return getpid();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return length > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

void sl_step_at(enum sl_step step)
{
	uint32_t times = __atomic_add_fetch(&passed[step], 1, __ATOMIC_RELAXED);
	const char *wanted = getenv("SLUICE_STEP");
	size_t length = strlen(names[step]);
	uint32_t which = 1;

	if (times == 1)
		note(step);
	if (!wanted || strncmp(wanted, names[step], length) != 0)
		return;
	if (wanted[length] == ':')
		which = (uint32_t)strtoul(wanted + length + 1, NULL, 10);
	else if (wanted[length])
		return;
	if (times == which && victim() > 0)
		(void)syscall(SYS_kill, victim(), SIGKILL);
}
