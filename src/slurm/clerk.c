/*
 * clerk - writes what the workload of a step had of the GPUs into Slurm's accounting
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
#include "cli/conn/conn.h"
#include "cli/conn/past.h"
#include "slurm/holder.h"
#include "slurm/standing.h"

#define ANSWER_MS 1000

/* The number of the workload, which its keeper still holds. 0: there is none. */
static uint64_t find(const char *name, uid_t uid)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_standing now;

	if (sl_conn_open_within(&conn, ANSWER_MS, NULL) ||
		sl_standing_look(&conn, name, uid, &now))
		return 0;
	return now.workload;
}

/* Its line of the answer, or NULL. */
static const json_t *line_of(const json_t *answer, uint64_t workload)
{
	const json_t *row, *totals = json_object_get(answer, "totals");
	size_t i;

	json_array_foreach(totals, i, row)
	{
		const char *key = json_string_value(json_object_get(row, "key"));

		if (key && strtoull(key, NULL, 10) == workload)
			return row;
	}
	return NULL;
}

static double number(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

_Noreturn static void write_comment(const char *job, const json_t *line)
{
	char of[32], text[256];
	const char *argv[] = {"scontrol", "update", of, text, NULL};

	(void)snprintf(of, sizeof(of), "JobId=%s", job);
	(void)snprintf(text, sizeof(text),
		"AdminComment=sluice: allocated=%.1fs used=%.1fs most=%.0fM waited=%.1fs",
		number(line, "allocated_gpu_s"), number(line, "used_gpu_s"),
		number(line, "most_bytes") / (1 << 20),
		number(line, "waiting_ms") / 1000);
	(void)execvp(argv[0], (char *const *)argv);
	/* The plugin says so, in slurmd's log: the clerk itself has no output. */
	_exit(SL_EXIT_SYSTEM);
}

int sl_clerk_main(char **argv)
{
	sl_cleanup(sl_freep) char *text = NULL;
	struct sl_msg_history ask = {.what = SL_HISTORY_USAGE,
		.by = SL_HISTORY_BY_WORKLOAD,
		.format = SL_HISTORY_JSON,
		.from_ms = strtoull(argv[3], NULL, 10) * 1000};
	uint64_t workload = find(argv[0], (uid_t)strtoul(argv[1], NULL, 10));
	json_t *answer;
	const json_t *line;
	size_t size = 0;
	int status;

	/* It did not begin. */
	if (!workload)
		return SL_EXIT_OK;
	sl_wire_str(ask.name, sizeof(ask.name), argv[0]);
	status = sl_past_fetch(SL_VERB_history, false, &ask, &text, &size);
	if (status < 0)
		status = sl_past_parse(SL_VERB_history, text, size, &answer);
	if (status >= 0)
		return status;
	line = line_of(answer, workload);
	if (line)
		write_comment(argv[2], line);
	json_decref(answer);
	return SL_EXIT_OK;
}
