/*
 * keeper - the root of a step's workload, which lives as long as the step, whatever its tasks do
 *
 * It runs as the job's user, a child of slurmstepd beside the tasks and in their cgroup, so Slurm
 * sends it the signals that it sends to them. They are not meant for it: only SIGKILL ends it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/line/cli.h"
#include "cli/run/run.h"
#include "slurm/holder.h"

static const char *const variables[] = {"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES",
	"SLUICE_SOCKET", "SLUICE_WORKLOAD", "LD_PRELOAD"};

/* False if there is no room. */
static bool publish(struct sl_slurm_page *page)
{
	size_t used = 0, size = sizeof(page->environment) - 1;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i]);
		int n = snprintf(page->environment + used, size - used, "%s=%s",
			variables[i], value ? value : "");

		if (n < 0 || (size_t)n >= size - used)
			return false;
		used += (size_t)n + 1;
	}
	page->environment[used] = '\0';
	return true;
}

static int fail(struct sl_slurm_page *page, int status)
{
	atomic_store(&page->status, status);
	atomic_store(&page->state, SL_SLURM_FAILED);
	return status;
}

/* The tasks' output ends when the last process that holds it closes it. */
static void let_go_of_output(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd);
}

int sl_keeper_main(struct sl_slurm_page *page, int argc, char **argv)
{
	int status = sl_run_begin(argc, argv);

	if (status >= 0)
		return fail(page, status);
	if (!publish(page)) {
		fputs("sluice run: LD_PRELOAD is too long; shorten it\n", stderr);
		return fail(page, SL_EXIT_SYSTEM);
	}
	atomic_store(&page->state, SL_SLURM_READY);
	let_go_of_output();
	for (;;)
		(void)pause();
}
