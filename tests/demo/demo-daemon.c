/* The machine's own daemon is left alone: the box has a socket of its own. */
#include "demo-daemon.h"

#include "prog.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* True once the daemon answers. */
static bool daemon_answers(const char *build)
{
	char program[4096];
	pid_t pid;
	int status;

	snprintf(program, sizeof(program), "%s/sluice", build);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execl(program, "sluice", "gpus", "--json", (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

pid_t demo_daemon_start(const char *build, const char *config)
{
	char program[4096], log[4096], path[4096];
	FILE *file;
	pid_t pid;

	snprintf(program, sizeof(program), "%s/sluiced", build);
	snprintf(log, sizeof(log), "%s/demo-sluiced.log", build);
	snprintf(path, sizeof(path), "%s/demo-sluiced.conf", build);
	file = fopen(path, "w");
	if (!file || fputs(config, file) < 0 || fclose(file)) {
		fprintf(stderr, "demo: cannot write %s\n", path);
		exit(PROG_USAGE);
	}
	pid = fork();
	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execl(program, "sluiced", "--config", path, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; pid > 0 && i < 200; i++) {
		if (daemon_answers(build))
			return pid;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			break;
		prog_sleep_ms(50);
	}
	fprintf(stderr, "demo: sluiced does not answer; see %s\n", log);
	exit(PROG_DRIVER);
}

void demo_daemon_stop(pid_t pid)
{
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}
