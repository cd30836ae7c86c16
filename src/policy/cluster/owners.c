/*
 * owners - the bound on how many tasks a user may have at a time
 *
 * The bound is independent of projects: an owner may have jobs in several of them. Each cycle
 * counts the tasks of an owner at its beginning and adds those that get places. A task that leaves
 * during the cycle counts until the next one.
 */
#include "policy/cluster/internal.h"

#include "policy/mutant.h"

struct sl_cl_owner *sl_cl_owner(struct sl_cluster *cl, uint64_t id)
{
	struct sl_index_node *found = id ? sl_index_find(&cl->owners_by_id, id) : NULL;
	struct sl_cl_owner *owner;

	if (found)
		return SL_CONTAINER_OF(found, struct sl_cl_owner, index);
	if (!id)
		return NULL;
	owner = sl_arena_take(cl->arena, sizeof(*owner));
	*owner = (struct sl_cl_owner){.index.id = id, .most = UINT32_MAX};
	sl_index_add(&cl->owners_by_id, &owner->index);
	return owner;
}

static uint32_t parked(const struct sl_cl_job *job)
{
	uint32_t count = 0;

	for (uint32_t p = 0; job->flags & SL_JOB_PARKS && p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++)
			count += job->part[p]->task[i].state == SL_TASK_PENDING &&
				 job->part[p]->task[i].parked;
	}
	return count;
}

uint32_t sl_cl_stands(const struct sl_cl_job *job)
{
	uint32_t stands;

	if (!job->owner)
		return 0;
	stands = parked(job);
	for (uint32_t p = 0; p < job->parts; p++)
		stands += sl_cl_placed(job->part[p]);
	return stands;
}

bool sl_cl_owner_allows(const struct sl_cl_job *job, const struct sl_cl_want *want,
	uint32_t wants, struct sl_pending_because *because)
{
	uint64_t stands = job->owner ? job->owner->stands : 0;

	/* Parked tasks count already, so their return adds none. */
	if (!job->owner || parked(job))
		return true;
	for (uint32_t w = 0; w < wants; w++)
		stands += want[w].count;
	*because = (struct sl_pending_because){.reason = SL_PENDING_BOUND,
		.wanted = (int64_t)stands,
		.available = job->owner->most};
	return SL_MUTANT(CLUSTER_MOST_OPEN, stands <= job->owner->most, true);
}

void sl_cl_count_owners(struct sl_cluster *cl)
{
	if (!cl->owners_by_id.count)
		return;
	sl_list_foreach (link, &cl->jobs) {
		const struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, all);

		if (job->owner)
			job->owner->stands = 0;
	}
	sl_list_foreach (link, &cl->jobs) {
		const struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, all);

		if (job->owner)
			job->owner->stands += sl_cl_stands(job);
	}
}

void sl_cl_on_owner_most(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_owner *owner = sl_cl_owner(cl, event->owner_most.owner);

	if (!owner || owner->most == event->owner_most.most)
		return;
	owner->most = event->owner_most.most;
	cl->version++;
}
