/*
 * nvml_samples - see the header
 *
 * NVML does not document which clock its samples use. So the start of the requested window is
 * computed from the newest sample seen, and from how long ago that was. Some drivers return shares
 * of millions of percent, and samples older than requested: such rows are skipped.
 */
#include "daemon/gpu/nvml_samples.h"

#include <stdlib.h>
#include <string.h>

/* Samples come several times a second. If the GPU is busy but no process is known to be, ask
 * sooner. */
#define AGAIN_NS (900 * SL_MS)
#define SOON_NS  (100 * SL_MS)
/* Length of the requested window: in a shorter one a busy GPU may have no sample yet. */
#define WINDOW_NS (2 * SL_S)
/* More processes than a GPU can have. */
#define ROOM_MOST 4096

static unsigned long long since_of(const struct sl_nvml_samples *samples, sl_ns now)
{
	sl_ns gone = sl_sub_sat(now, samples->newest_at);

	/* At first all that NVML keeps, then what is new, but never beyond the window. */
	if (!samples->newest_us)
		return 0;
	return samples->newest_us + sl_sub_sat(gone, WINDOW_NS) / 1000;
}

static int by_pid(const void *a, const void *b)
{
	uint32_t x = ((const struct sl_nvml_busy *)a)->pid;
	uint32_t y = ((const struct sl_nvml_busy *)b)->pid;

	return x < y ? -1 : x > y;
}

/* Of two rows of one process the larger one counts. */
static void take_rows(struct sl_nvml_samples *samples,
	const nvmlProcessUtilizationSample_t *rows, uint32_t count,
	unsigned long long since, sl_ns now)
{
	uint32_t kept = 0;

	samples->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!rows[i].pid || rows[i].timeStamp <= since || rows[i].smUtil > 100)
			continue;
		if (rows[i].timeStamp > samples->newest_us) {
			samples->newest_us = rows[i].timeStamp;
			samples->newest_at = now;
		}
		if (rows[i].smUtil)
			samples->all[samples->count++] =
				(struct sl_nvml_busy){rows[i].pid, rows[i].smUtil};
	}
	if (!samples->count)
		return;
	qsort(samples->all, samples->count, sizeof(samples->all[0]), by_pid);
	for (uint32_t i = 1; i < samples->count; i++) {
		if (samples->all[i].pid != samples->all[kept].pid)
			samples->all[++kept] = samples->all[i];
		else if (samples->all[i].busy_pct > samples->all[kept].busy_pct)
			samples->all[kept] = samples->all[i];
	}
	samples->count = kept + 1;
}

static bool make_room(struct sl_nvml_samples *samples, uint32_t count)
{
	void *all;

	if (count <= samples->room)
		return true;
	all = realloc(samples->all, count * sizeof(samples->all[0]));
	if (!all)
		return false;
	samples->all = all;
	samples->room = count;
	return true;
}

static void ask(struct sl_nvml_samples *samples, sl_nvml_samples_fn call,
	nvmlDevice_t device, sl_ns now)
{
	unsigned long long since = since_of(samples, now);
	nvmlProcessUtilizationSample_t *rows;
	unsigned int count = 0;
	nvmlReturn_t result = call(device, NULL, &count, since);

	/* count is now an upper bound. */
	if (result == NVML_ERROR_INSUFFICIENT_SIZE && count && count <= ROOM_MOST) {
		rows = calloc(count, sizeof(*rows));
		if (rows && make_room(samples, count)) {
			uint32_t room = count;

			result = call(device, rows, &count, since);
			if (result == NVML_SUCCESS)
				take_rows(samples, rows,
					(uint32_t)sl_min_u64(count, room), since, now);
		}
		free(rows);
	} else if (result == NVML_SUCCESS) {
		samples->count = 0;
	}
	/* No process worked since, or the next sample is still to come. */
	if (result == NVML_ERROR_NOT_FOUND) {
		if (now - samples->newest_at >= WINDOW_NS)
			samples->count = 0;
		result = NVML_SUCCESS;
	}
	samples->known = result == NVML_SUCCESS;
	samples->refused = result == NVML_ERROR_NOT_SUPPORTED ||
			   result == NVML_ERROR_NO_PERMISSION ||
			   result == NVML_ERROR_FUNCTION_NOT_FOUND;
}

void sl_nvml_samples_ask(struct sl_nvml_samples *samples, sl_nvml_samples_fn call,
	nvmlDevice_t device, bool works, sl_ns now)
{
	sl_ns pause = works && !samples->count ? SOON_NS : AGAIN_NS;

	if (!call || samples->refused ||
		(samples->asked_at && now - samples->asked_at < pause))
		return;
	samples->asked_at = now;
	ask(samples, call, device, now);
}

uint32_t sl_nvml_samples_of(const struct sl_nvml_samples *samples, uint32_t pid)
{
	const struct sl_nvml_busy wanted = {.pid = pid}, *found = NULL;

	if (samples->count)
		found = bsearch(&wanted, samples->all, samples->count,
			sizeof(samples->all[0]), by_pid);
	return found ? found->busy_pct : 0;
}

uint32_t sl_nvml_samples_sum(const struct sl_nvml_samples *samples)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < samples->count; i++)
		sum += samples->all[i].busy_pct;
	return sum;
}

void sl_nvml_samples_fini(struct sl_nvml_samples *samples)
{
	free(samples->all);
	*samples = (struct sl_nvml_samples){0};
}
