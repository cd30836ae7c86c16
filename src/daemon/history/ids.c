/*
 * ids - maps the daemon's workloads and GPUs to numbers of the history
 *
 * The daemon's numbers may start over with each daemon; the history has numbers of its own. A
 * workload that outlives a daemon keeps its number in the history.
 */
#include "daemon/history/scribe_internal.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void *sl_history_grow(void *all, size_t count, size_t *room, size_t size)
{
	void *grown;

	if (count < *room)
		return all;
	grown = realloc(all, sl_max_u64(32, *room * 2) * size);
	if (grown)
		*room = sl_max_u64(32, *room * 2);
	return grown;
}

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

/* The same workload in the file, if any. Its number and pid alone may repeat after a reboot, or in
 * a container. */
static const struct sl_history_workload *known_one(const struct sl_history_scribe *scribe,
	const struct sl_msg_use_row *row, uint64_t begun_ms)
{
	for (size_t i = 0; i < scribe->known.living_count; i++) {
		const struct sl_history_workload *one = &scribe->known.living[i];

		if (one->number == row->workload && one->uid == row->uid &&
			one->pid == row->pid && one->id &&
			is_about(one->begun_ms, begun_ms))
			return one;
	}
	return NULL;
}

static void describe(struct sl_history_scribe *scribe, struct sl_history_workload *out,
	const struct sl_msg_use_row *row, uint64_t now_ms)
{
	uint64_t begun_ms = sl_sub_sat(now_ms, row->age_ms);
	const struct sl_history_workload *one = known_one(scribe, row, begun_ms);

	*out = (struct sl_history_workload){
		.id = one ? one->id : scribe->next_workload++,
		.number = row->workload,
		.uid = row->uid,
		.pid = row->pid,
		.observed = row->flags & SL_USE_OBSERVED,
		.begun_ms = one ? one->begun_ms : begun_ms,
	};
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
	describe(scribe, &living->row, row, now_ms);
	(void)snprintf(user, sizeof(user), "%u", row->uid);
	living->user = sl_history_summing_find(
		&scribe->summing, SL_HISTORY_OF_USER, user, living->row.user);
	living->project = sl_history_summing_find(&scribe->summing, SL_HISTORY_OF_PROJECT,
		living->row.project, living->row.project);
	living->dirty = true;
	living->met_ms = now_ms;
	return living;
}

/* Replaces the queued row of the same workload. False: none is queued. */
static bool say_again(
	struct sl_history_scribe *scribe, const struct sl_history_workload *row)
{
	for (size_t i = scribe->workload_count; i-- > 0;) {
		if (scribe->workloads[i].id == row->id) {
			scribe->workloads[i] = *row;
			return true;
		}
	}
	return false;
}

/* Queues a row for the next batch. False: no memory; the caller tries again. When the queue is
 * full, a new workload is dropped; if it still lives once writing works again, its end writes all
 * of its row. */
static bool say(struct sl_history_scribe *scribe, const struct sl_history_workload *row)
{
	struct sl_history_workload *all;

	if (scribe->workload_count >= SL_HISTORY_WHO_MAX) {
		scribe->dropped += !say_again(scribe, row);
		return true;
	}
	all = sl_history_grow(scribe->workloads, scribe->workload_count,
		&scribe->workload_room, sizeof(*all));
	if (!all)
		return false;
	scribe->workloads = all;
	scribe->workloads[scribe->workload_count++] = *row;
	return true;
}

/* Queues changed workloads. A workload that the daemon no longer lists has ended: its event says
 * when; without it, its last sample counts. */
void sl_history_ids_say(struct sl_history_scribe *scribe)
{
	for (size_t i = scribe->living_count; i-- > 0;) {
		struct sl_history_living *living = scribe->living[i];

		/* The event comes over another connection, and may be late. */
		if (!living->seen && !living->row.ended_ms && !living->missed) {
			living->missed = true;
			continue;
		}
		if (!living->seen && !living->row.ended_ms)
			living->row.ended_ms = living->seen_ms;
		if (living->dirty || !living->seen)
			living->dirty = !say(scribe, &living->row);
		if (living->seen || living->dirty) {
			living->seen = false;
			continue;
		}
		(void)sl_map_take(&scribe->by_number, living->row.number);
		scribe->living[i] = scribe->living[--scribe->living_count];
		free(living);
	}
}

/* Ends workloads that ended while no daemon ran. */
void sl_history_ids_end_former(struct sl_history_scribe *scribe)
{
	for (size_t i = 0; i < scribe->known.living_count; i++) {
		struct sl_history_workload *one = &scribe->known.living[i];
		const struct sl_history_living *now =
			sl_map_get(&scribe->by_number, one->number);

		if (now && now->row.id == one->id)
			continue;
		one->ended_ms =
			sl_max_u64((uint64_t)scribe->known.end * 1000, one->begun_ms + 1);
		(void)say(scribe, one);
	}
	free(scribe->known.living);
	scribe->known.living = NULL;
	scribe->known.living_count = 0;
}

int64_t sl_history_ids_gpu(
	struct sl_history_scribe *scribe, const struct sl_msg_gpu_row *row)
{
	struct sl_history_gpu gpu = {0}, *all, *fresh;

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
	fresh = realloc(scribe->new_gpus, (scribe->new_gpu_count + 1) * sizeof(*fresh));
	if (!fresh)
		return 0;
	scribe->new_gpus = fresh;
	scribe->gpus[scribe->gpu_count++] = scribe->new_gpus[scribe->new_gpu_count++] =
		gpu;
	scribe->next_gpu++;
	return gpu.id;
}
