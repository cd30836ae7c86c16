/*
 * groups - jobs that want the same, as one entry of the order
 *
 * A group is found by a hash of what its jobs want. Its first job stands for all in joborder.h; if
 * that job finds no place, the others need not be tried. A job has a group of its own while it is
 * parked (and so bound to its place), refused by a node, or paused after a stop.
 */
#include "policy/cluster/internal.h"

#include <string.h>

/* Below the number of further tasks in the key of the order. */
#define SEQ_BITS   42
#define EXTRA_MOST ((1u << 20) - 1)

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

static uint64_t hash_of(const struct sl_cl_group *group)
{
	uint64_t hash = mix((uint64_t)(uintptr_t)group->only, group->order.project);

	hash = mix(hash, (uint64_t)(int64_t)group->order.priority);
	hash = mix(hash, ((uint64_t)group->extra << 1) | group->fixed);
	hash = mix(hash, group->preempt_delay);
	hash = mix(hash, group->owner ? group->owner->index.id : 0);
	for (uint32_t i = 0; i < group->wants; i++) {
		hash = mix(hash, (uint64_t)(uintptr_t)group->want[i].class);
		hash = mix(hash, group->want[i].count);
	}
	return hash;
}

static bool same(const struct sl_cl_group *a, const struct sl_cl_group *b)
{
	if (a->hash != b->hash || a->only != b->only || a->fixed != b->fixed ||
		a->owner != b->owner || a->preempt_delay != b->preempt_delay ||
		a->extra != b->extra || a->wants != b->wants ||
		a->order.project != b->order.project ||
		a->order.priority != b->order.priority)
		return false;
	for (uint32_t i = 0; i < a->wants; i++) {
		if (a->want[i].class != b->want[i].class ||
			a->want[i].count != b->want[i].count)
			return false;
	}
	return true;
}

static void grow(struct sl_cluster *cl)
{
	struct sl_cl_group **old = cl->groups;
	size_t places = old ? (size_t)1 << cl->group_bits : 0;

	if (cl->group_count < places)
		return;
	cl->group_bits = old ? cl->group_bits + 1 : 6;
	cl->groups = sl_arena_take(cl->arena, sizeof(cl->groups[0]) << cl->group_bits);
	for (size_t i = 0; i < places; i++) {
		for (struct sl_cl_group *group = old[i], *next; group; group = next) {
			size_t at = group->hash >> (64 - cl->group_bits);

			next = group->chain;
			group->chain = cl->groups[at];
			cl->groups[at] = group;
		}
	}
}

/* --- The heap of a group: first submitted, first served. --- */

static void put(struct sl_cl_group *group, uint32_t at, struct sl_cl_job *job)
{
	group->heap[at] = job;
	job->in_group = at;
}

static void sift(struct sl_cl_group *group, uint32_t at)
{
	struct sl_cl_job *job = group->heap[at];

	while (at && job->seq < group->heap[(at - 1) / 2]->seq) {
		put(group, at, group->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (uint32_t child; (child = 2 * at + 1) < group->count; at = child) {
		if (child + 1 < group->count &&
			group->heap[child + 1]->seq < group->heap[child]->seq)
			child++;
		if (group->heap[child]->seq > job->seq)
			break;
		put(group, at, group->heap[child]);
	}
	put(group, at, job);
}

static void heap_add(
	struct sl_cluster *cl, struct sl_cl_group *group, struct sl_cl_job *job)
{
	if (!group->bits || ((size_t)1 << group->bits) / sizeof(job) == group->count) {
		uint32_t bits = group->bits ? group->bits + 1 : 5;
		struct sl_cl_job **heap = sl_cl_block_take(cl, bits);

		if (group->bits) {
			memcpy(heap, group->heap, group->count * sizeof(job));
			sl_cl_block_give(cl, group->heap, group->bits);
		}
		group->heap = heap;
		group->bits = bits;
	}
	put(group, group->count++, job);
	sift(group, group->count - 1);
}

static void heap_remove(struct sl_cl_group *group, struct sl_cl_job *job)
{
	struct sl_cl_job *last = group->heap[--group->count];

	if (last == job)
		return;
	put(group, job->in_group, last);
	sift(group, last->in_group);
}

/* --- Its entry in the order. --- */

static void show(struct sl_cluster *cl, struct sl_cl_group *group)
{
	const struct sl_cl_job *first = group->count ? group->heap[0] : NULL;
	uint64_t extra = group->extra < EXTRA_MOST ? group->extra : EXTRA_MOST;

	if (first && group->order.in && group->order.id == first->index.id)
		return;
	sl_joborder_remove(cl->order, &group->order);
	if (!first)
		return;
	group->order.id = first->index.id;
	group->order.submitted = extra << SEQ_BITS | first->seq;
	sl_joborder_add(cl->order, &group->order);
}

static struct sl_cl_group *new_group(struct sl_cluster *cl, const struct sl_cl_group *key)
{
	struct sl_cl_group *group =
		sl_cl_spare_take(cl, &cl->spare_groups, sizeof(*group));
	size_t at = key->hash >> (64 - cl->group_bits);

	*group = *key;
	for (uint32_t i = 0; i < group->wants; i++) {
		const struct sl_cl_want *want = &group->want[i];
		const struct sl_cl_job *job = key->only;

		for (int r = 0; r < SL_RESOURCES; r++)
			group->order.wants.of[r] +=
				job->part[want->part]->each.of[r] * want->count;
	}
	group->only = NULL;
	group->chain = cl->groups[at];
	cl->groups[at] = group;
	cl->group_count++;
	return group;
}

static void drop_group(struct sl_cluster *cl, struct sl_cl_group *group)
{
	struct sl_cl_group **at = &cl->groups[group->hash >> (64 - cl->group_bits)];

	while (*at != group)
		at = &(*at)->chain;
	*at = group->chain;
	cl->group_count--;
	if (group->bits)
		sl_cl_block_give(cl, group->heap, group->bits);
	sl_cl_spare_give(&cl->spare_groups, group);
}

/* Bound to places, refused, or paused: its result says nothing about other jobs. */
static bool stands_alone(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	if (sl_cl_is_refused(cl, job, SL_CL_NO_NODE) || job->paused_until > cl->now)
		return true;
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks && job->flags & SL_JOB_PARKS;
			i++) {
			if (job->part[p]->task[i].parked)
				return true;
		}
	}
	return false;
}

void sl_cl_group_join(struct sl_cluster *cl, struct sl_cl_job *job,
	const struct sl_cl_want *want, uint32_t wants, uint32_t extra)
{
	struct sl_cl_group key = {.wants = wants, .extra = extra}, *group;
	bool alone = stands_alone(cl, job);

	key.fixed = !sl_cl_preemptible(job);
	key.owner = job->owner;
	key.preempt_delay = job->preempt_delay;
	key.only = alone ? job : NULL;
	key.order.project = job->project;
	key.order.priority = job->priority;
	key.order.extra = extra > 0;
	memcpy(key.want, want, wants * sizeof(*want));
	key.hash = hash_of(&key);
	grow(cl);
	group = cl->groups[key.hash >> (64 - cl->group_bits)];
	while (group && !same(group, &key))
		group = group->chain;
	if (!group) {
		key.only = job;
		group = new_group(cl, &key);
		group->only = alone ? job : NULL;
	}
	job->group = group;
	heap_add(cl, group, job);
	show(cl, group);
}

void sl_cl_group_leave(struct sl_cluster *cl, struct sl_cl_job *job)
{
	struct sl_cl_group *group = job->group;

	if (!group)
		return;
	heap_remove(group, job);
	job->group = NULL;
	show(cl, group);
	if (!group->count)
		drop_group(cl, group);
}
