/*
 * Records of a shim: whatever the bytes, they are taken whole or not at all. A record that is taken
 * is the same when written anew.
 */
#include "fuzz.h"

#include "daemon/jobs/shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		record(data, size);
	return 0;
}
