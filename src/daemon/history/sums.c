/* history_sums - see the header */
#include "daemon/history/sums.h"

#include <stdlib.h>
#include <string.h>

uint32_t sl_history_summing_find(struct sl_history_summing *summing,
	enum sl_history_sum_of of, const char *key, const char *name)
{
	uint32_t *count = &summing->count[of], place = 0;
	struct sl_history_sum *sum;

	/* Called once for each workload, and once a second for each GPU: few enough to walk. */
	while (place < *count && strcmp(summing->all[of][place].key, key) != 0)
		place++;
	if (place < *count)
		return place;
	if (place > SL_HISTORY_SUMS_MAX)
		return SL_HISTORY_SUMS_MAX;
	if (place == SL_HISTORY_SUMS_MAX)
		key = name = SL_HISTORY_SUMS_OTHERS;
	sum = &summing->all[of][place];
	sl_wire_str(sum->key, sizeof(sum->key), key);
	sl_wire_str(sum->name, sizeof(sum->name), name);
	++*count;
	return place;
}

static void add(struct sl_history_sum *sum, const int64_t *value)
{
	sum->allocated_us += (uint64_t)value[SL_HISTORY_USE_allocated_us];
	sum->used_us += (uint64_t)value[SL_HISTORY_USE_used_us];
	sum->idle_us += (uint64_t)value[SL_HISTORY_USE_idle_us];
	sum->waiting_ms += (uint64_t)value[SL_HISTORY_USE_waiting_ms];
	sum->waits += (uint64_t)value[SL_HISTORY_USE_waits];
	sum->turns += (uint64_t)value[SL_HISTORY_USE_turns];
}

void sl_history_summing_use(struct sl_history_summing *summing, uint32_t user,
	uint32_t project, const int64_t value[SL_HISTORY_USE_COLUMNS])
{
	add(&summing->all[SL_HISTORY_OF_USER][user], value);
	add(&summing->all[SL_HISTORY_OF_PROJECT][project], value);
}

void sl_history_summing_gpu(struct sl_history_summing *summing, uint32_t gpu,
	const int64_t value[SL_HISTORY_GPU_COLUMNS])
{
	struct sl_history_sum *sum = &summing->all[SL_HISTORY_OF_GPU][gpu];

	sum->allocated_us += (uint64_t)value[SL_HISTORY_GPU_allocated_us];
	sum->idle_us += (uint64_t)value[SL_HISTORY_GPU_idle_us];
	sum->known_ms += (uint64_t)value[SL_HISTORY_GPU_known_ms];
	sum->busy_us += (uint64_t)value[SL_HISTORY_GPU_busy_us];
}

struct sl_history_sums *sl_history_sums_of(const struct sl_history_summing *summing)
{
	struct sl_history_sums *sums;
	uint32_t total = 0;

	for (int of = 0; summing && of < SL_HISTORY_OFS; of++)
		total += summing->count[of];
	sums = calloc(1, sizeof(*sums) + total * sizeof(sums->all[0]));
	if (!sums)
		return NULL;
	sums->users = 1;
	total = 0;
	for (int of = 0; summing && of < SL_HISTORY_OFS; of++) {
		sums->first[of] = total;
		sums->count[of] = summing->count[of];
		memcpy(sums->all + total, summing->all[of],
			summing->count[of] * sizeof(sums->all[0]));
		total += summing->count[of];
	}
	return sums;
}

struct sl_history_sums *sl_history_sums_put(struct sl_history_sums *sums)
{
	if (sums && --sums->users == 0)
		free(sums);
	return NULL;
}
