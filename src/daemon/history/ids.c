/*
 * ids - maps the daemon's workloads and GPUs to numbers of the history
 *
 * The daemon's numbers may start over with each daemon; the history has numbers of its own. A
 * workload that outlives a daemon keeps its number in the history.
 */
#include "daemon/history/scribe.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void user_name(uint32_t uid, char *buf, size_t size)
{
	char space[4096];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(uid, &entry, space, sizeof(space), &found) == 0 && found)
		(void)snprintf(buf, size, "%s", found->pw_name);
	else
		(void)snprintf(buf, size, "%u", uid);
	sl_text_tame(buf);
}

/* Begin times that differ less are equal: samples and a daemon's start are only so exact. */
#define SAME_MS 10000

static bool is_about(uint64_t a, uint64_t b)
{
	return a <= b + SAME_MS && b <= a + SAME_MS;
}

/* The same workload of an earlier daemon, if any. Its number and pid alone may repeat after a
 * reboot, or in a container. */
static const struct sl_history_workload *former_one(
	const struct sl_history_scribe *scribe, const struct sl_msg_use_row *row,
	uint64_t begun_ms)
{
	for (size_t i = 0; i < scribe->former_count; i++) {
		const struct sl_history_workload *one = &scribe->former[i];

		if (one->number == row->workload && one->uid == row->uid &&
			one->pid == row->pid && is_about(one->begun_ms, begun_ms))
			return one;
	}
	return NULL;
}

static void describe(struct sl_history_workload *out, const struct sl_msg_use_row *row)
{
	out->number = row->workload;
	out->uid = row->uid;
	out->pid = row->pid;
	out->observed = row->flags & SL_USE_OBSERVED;
	memcpy(out->name, row->name, sizeof(out->name));
	memcpy(out->project, row->project, sizeof(out->project));
	(void)snprintf(out->command, sizeof(out->command), "%s", row->command);
	sl_text_tame(out->name);
	sl_text_tame(out->project);
	sl_text_tame(out->command);
	sl_history_program(out->command, out->program, sizeof(out->program));
	user_name(row->uid, out->user, sizeof(out->user));
}

struct sl_history_living *sl_history_ids_living(struct sl_history_scribe *scribe,
	const struct sl_msg_use_row *row, uint64_t now_ms)
{
	struct sl_history_living *living = sl_map_get(&scribe->by_number, row->workload),
				 **all;
	uint64_t begun_ms = sl_sub_sat(now_ms, row->age_ms);
	const struct sl_history_workload *former;
	char user[16];

	if (living)
		return living;
	all = sl_history_grow(
		scribe->living, scribe->living_count, &scribe->living_room, sizeof(*all));
	if (!all)
		return NULL;
	scribe->living = all;
	living = calloc(1, sizeof(*living));
	if (!living || sl_map_put(&scribe->by_number, row->workload, living) < 0) {
		free(living);
		return NULL;
	}
	scribe->living[scribe->living_count++] = living;
	former = former_one(scribe, row, begun_ms);
	if (former)
		living->row = *former;
	else
		living->row = (struct sl_history_workload){
			.id = scribe->next_workload++, .begun_ms = begun_ms};
	describe(&living->row, row);
	(void)snprintf(user, sizeof(user), "%u", row->uid);
	living->user = sl_history_summing_find(
		&scribe->summing, SL_HISTORY_OF_USER, user, living->row.user);
	living->project = sl_history_summing_find(&scribe->summing, SL_HISTORY_OF_PROJECT,
		living->row.project, living->row.project);
	living->dirty = true;
	living->met_ms = now_ms;
	return living;
}

/* Ends workloads that the daemon no longer lists: their event says when, and without it, their last
 * sample counts. */
void sl_history_ids_end(struct sl_history_scribe *scribe)
{
	for (size_t i = 0; i < scribe->living_count; i++) {
		struct sl_history_living *living = scribe->living[i];
		bool was_seen = living->seen;

		living->seen = false;
		if (was_seen || living->over)
			continue;
		/* The event comes over another connection, and may be late. */
		if (!living->row.ended_ms && !living->missed) {
			living->missed = true;
			continue;
		}
		if (!living->row.ended_ms)
			living->row.ended_ms = living->seen_ms;
		living->over = living->dirty = true;
		(void)sl_map_take(&scribe->by_number, living->row.number);
	}
}

void sl_history_ids_collect(struct sl_history_scribe *scribe)
{
	scribe->workload_count = 0;
	for (size_t i = 0; i < scribe->living_count; i++) {
		struct sl_history_workload *all = scribe->workloads;

		if (!scribe->living[i]->dirty)
			continue;
		all = sl_history_grow(all, scribe->workload_count, &scribe->workload_room,
			sizeof(*all));
		if (!all)
			return;
		scribe->workloads = all;
		all[scribe->workload_count++] = scribe->living[i]->row;
	}
}

void sl_history_ids_written(struct sl_history_scribe *scribe, bool ok)
{
	size_t written = ok ? scribe->workload_count : 0, kept = 0;

	for (size_t i = 0; i < scribe->living_count; i++) {
		struct sl_history_living *living = scribe->living[i];

		if (living->dirty && written) {
			living->dirty = false;
			written--;
		}
		if (living->over && living->dirty && kept >= SL_HISTORY_WHO_MAX) {
			living->dirty = false;
			scribe->dropped++;
		}
		if (living->over && !living->dirty)
			free(living);
		else
			scribe->living[kept++] = living;
	}
	scribe->living_count = kept;
}

int64_t sl_history_ids_gpu(
	struct sl_history_scribe *scribe, const struct sl_msg_gpu_row *row)
{
	struct sl_history_gpu gpu = {0}, *all;

	sl_wire_uuid_format(row->uuid, gpu.uuid);
	for (size_t i = 0; i < scribe->gpu_count; i++) {
		if (strcmp(scribe->gpus[i].uuid, gpu.uuid) == 0)
			return scribe->gpus[i].id;
	}
	memcpy(gpu.name, row->name, sizeof(gpu.name));
	sl_text_tame(gpu.name);
	gpu.id = scribe->next_gpu;
	all = realloc(scribe->gpus, (scribe->gpu_count + 1) * sizeof(*all));
	if (!all)
		return 0;
	scribe->gpus = all;
	scribe->gpus[scribe->gpu_count++] = gpu;
	scribe->gpus_dirty = true;
	scribe->next_gpu++;
	return gpu.id;
}
