/*
 * clerk - writes what a job's workloads had of the GPUs into Slurm's accounting
 *
 * A SPANK plugin cannot add to a job's TRES, but root may set the comment of the administrator,
 * which Slurm keeps with the job (`scontrol show job`; `sacct -o AdminComment`). The figures are
 * those of `sluice history`, where docs/metrics.md defines them.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/conn/past.h"
#include "slurm/holder.h"

struct sums {
	double allocated, used; /* GPU seconds */
	uint64_t most_bytes, waiting_ms;
};

/* The workload of the job's script, of one of its steps, or of another of its nodes. */
static bool is_of_job(const char *name, const char *job)
{
	size_t length = strlen(job);

	return name && strncmp(name, job, length) == 0 &&
	       (!name[length] || name[length] == '.' || name[length] == '-');
}

static double number(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static struct sums add_up(const json_t *answer, const char *job)
{
	const json_t *row, *totals = json_object_get(answer, "totals");
	struct sums sums = {0};
	size_t i;

	json_array_foreach(totals, i, row)
	{
		if (!is_of_job(json_string_value(json_object_get(row, "name")), job))
			continue;
		sums.allocated += number(row, "allocated_gpu_s");
		sums.used += number(row, "used_gpu_s");
		sums.most_bytes =
			sl_max_u64(sums.most_bytes, (uint64_t)number(row, "most_bytes"));
		sums.waiting_ms += (uint64_t)number(row, "waiting_ms");
	}
	return sums;
}

_Noreturn static void write_comment(const char *job, const struct sums *sums)
{
	char of[32], text[256];
	const char *argv[] = {"scontrol", "update", of, text, NULL};

	(void)snprintf(of, sizeof(of), "JobId=%s", job);
	(void)snprintf(text, sizeof(text),
		"AdminComment=sluice: allocated=%.1fs used=%.1fs most=%" PRIu64
		"M waited=%.1fs",
		sums->allocated, sums->used, sums->most_bytes >> 20,
		(double)sums->waiting_ms / 1000);
	(void)execvp(argv[0], (char *const *)argv);
	perror("sluice: cannot execute scontrol");
	_exit(SL_EXIT_SYSTEM);
}

int sl_clerk_main(char **argv)
{
	sl_cleanup(sl_freep) char *text = NULL;
	struct sl_msg_history ask = {.what = SL_HISTORY_USAGE,
		.by = SL_HISTORY_BY_WORKLOAD,
		.format = SL_HISTORY_JSON,
		.from_ms = strtoull(argv[1], NULL, 10) * 1000};
	char name[SL_SLURM_NAME_MAX];
	json_t *answer;
	size_t size = 0;
	struct sums sums;
	int status = sl_past_fetch(SL_VERB_history, false, &ask, &text, &size);

	if (status < 0)
		status = sl_past_parse(SL_VERB_history, text, size, &answer);
	if (status >= 0)
		return status;
	(void)snprintf(name, sizeof(name), "slurm-%s", argv[0]);
	sums = add_up(answer, name);
	json_decref(answer);
	write_comment(argv[0], &sums);
}
