/*
 * Records of a shim, and the state of a job. Whatever the bytes, a record or state is read
 * completely or refused. A record that was read is the same when written again; so is a state, to
 * the letter. Most inputs for a state are a valid one with some bytes changed: chance alone would
 * never write all its keys.
 */
#include "fuzz.h"

#include "daemon/jobs/shim.h"
#include "daemon/jobs/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID 12

static void record(const uint8_t *data, size_t size)
{
	static const char *const starts[] = {"", "begun ", "begun 1\nexit ",
		"begun 1\nerror ", "begun 1\nexit 0 started 1 ended ",
		"begun 1\nexit 0 started ", "begun 1\nerror 2 "};
	struct sl_shim_record got, again;
	char text[4096], line[128];
	size_t used = (size_t)snprintf(
		text, sizeof(text), "%s", starts[data[0] % SL_ARRAY_LEN(starts)]);

	size = sl_min_u64(size - 1, sizeof(text) - used - 1);
	memcpy(text + used, data + 1, size);
	used += size;
	if (data[0] & 64)
		text[used++] = '\n';
	got = sl_shim_record_parse(text, used);
	if (got.ending == SL_SHIM_EXITED)
		(void)snprintf(line, sizeof(line),
			"begun 1\nexit %" PRIu32 " started %" PRIu64 " ended %" PRIu64
			"\n",
			got.status, got.started_ms, got.ended_ms);
	else if (got.ending == SL_SHIM_ERROR)
		(void)snprintf(line, sizeof(line), "begun %" PRIu64 "\nerror %d %s\n",
			got.started_ms, got.error, got.what);
	else if (got.ending == SL_SHIM_BEGUN)
		(void)snprintf(line, sizeof(line), "begun %" PRIu64 "\n", got.started_ms);
	else if ((got.ending == SL_SHIM_NONE) == (used == 0))
		return;
	else
		abort();
	again = sl_shim_record_parse(line, strlen(line));
	if (memcmp(&again, &got, sizeof(got)) != 0)
		abort();
}

static char *good(void)
{
	struct sl_jobs_task tasks[2] = {{.attempt = 1, .workload = 7}, {.parked = true}};
	struct sl_jobs_row row = {.id = ID,
		.name = "a",
		.command = "b c",
		.gpu_count = 1,
		.priority = -5,
		.task_count = 2,
		.request = {.kind = SL_AMOUNT_FRACTION, .value = 1},
		.wait_max = SL_NS_NEVER,
		.tasks = tasks};

	return sl_jobs_state_write(&row);
}

static void state(const uint8_t *data, size_t size)
{
	static char *base;
	struct sl_jobs_row row;
	struct sl_error err = {{0}};
	size_t length;
	char *text, *again;

	if (!base) {
		base = good();
		if (!sl_jobs_state_read(base, ID, &row, &err))
			abort();
		sl_jobs_row_fini(&row);
	}
	length = strlen(base);
	text = strdup(base);
	for (size_t i = 1; i + 1 < size && i < 9; i += 2)
		text[(data[i] * 7u + data[0]) % length] = (char)data[i + 1];
	if (sl_jobs_state_read(text, ID, &row, &err)) {
		struct sl_jobs_row second;

		again = sl_jobs_state_write(&row);
		if (!sl_jobs_state_read(again, ID, &second, &err))
			abort();
		free(text);
		text = sl_jobs_state_write(&second);
		if (strcmp(text, again) != 0)
			abort();
		free(again);
		sl_jobs_row_fini(&row);
		sl_jobs_row_fini(&second);
	} else if (!err.text[0] || row.tasks) {
		abort();
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	/* A state costs a hundred times what a record does. */
	if (data[1] % 16 == 0)
		state(data, size);
	else
		record(data, size);
	return 0;
}
