/*
 * guests - workloads of claims on GPUs of others
 *
 * policy/placement/guests.h decides; here are the facts, and what follows. The claims' scheduler
 * knows nothing of it: each claim keeps the GPUs that it was given, and comes back to them when
 * others that were given them want to use them.
 */
#include <stdlib.h>

#include "base/log.h"
#include "daemon/jobs/internal.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/workload.h"
#include "policy/placement/guests.h"

#define LOOK_EVERY    (5 * SL_S)
#define WAITERS_EVERY (1 * SL_S)
#define HOUR          (3600 * SL_S)

struct facts {
	struct sl_guests_gpu gpus[SL_NODE_GPUS_MAX];
	struct sl_guest *guests;
	struct sl_workload **of;
	size_t count;
};

static void facts_fini(struct facts *facts)
{
	free(facts->guests);
	free(facts->of);
}

static uint32_t home_of(const struct sl_workload *workload)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < workload->gpu_count; i++)
		mask |= 1u << workload->first[i];
	return mask;
}

static struct sl_guest guest_of(
	const struct sl_jobs *jobs, const struct sl_workload *workload)
{
	return (struct sl_guest){.home = home_of(workload),
		.at = sl_workload_gpus(workload),
		.reach = workload->reach,
		.request_bytes = workload->request_bytes,
		.compute_pm = workload->compute.request_pm,
		.claims = workload->park == SL_PARK_NOT,
		.returns = workload->park != SL_PARK_PARKED,
		/* Its first process may be starting CUDA just now. */
		.bursts = workload->limit_bytes > workload->request_bytes &&
			  !sl_list_is_empty((struct sl_link *)&workload->clients),
		.moves = sl_jobs_can_leave(jobs, workload),
		.moved = workload->went_at};
}

static void gpu_facts(const struct sl_daemon *daemon, struct facts *facts)
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];
		struct sl_node_gpu_view view = sl_node_gpu(daemon->node, i);

		facts->gpus[i].shareable_bytes = view.shareable_bytes;
		facts->gpus[i].requests_bytes = view.requests_bytes;
		facts->gpus[i].compute_pm = sl_workload_compute_pm(daemon, i, NULL);
		facts->gpus[i].works = gpu->managed && gpu->present && !gpu->lost;
	}
}

/* False: no memory. */
static bool gather(const struct sl_jobs *jobs, struct facts *facts)
{
	const struct sl_daemon *daemon = jobs->daemon;

	facts->guests = calloc(daemon->workload_count + 1, sizeof(facts->guests[0]));
	facts->of = calloc(daemon->workload_count + 1, sizeof(facts->of[0]));
	if (!facts->guests || !facts->of)
		return false;
	gpu_facts(daemon, facts);
	sl_list_foreach (link, (struct sl_link *)&daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload->park == SL_PARK_NOT) {
			for (uint32_t i = 0; i < workload->gpu_count; i++)
				facts->gpus[workload->gpus[i]].users++;
		}
		if (!workload->is_claimed)
			continue;
		facts->guests[facts->count] = guest_of(jobs, workload);
		facts->of[facts->count++] = workload;
	}
	return true;
}

/* --- going home --------------------------------------------------------------------------- */

uint32_t sl_jobs_reach(const struct sl_daemon *daemon, uint32_t gpus)
{
	const struct sl_jobs_books *books = daemon->jobs ? &daemon->jobs->books : NULL;
	const struct sl_jobs_kind *kind;
	uint32_t mask, reach = 0;
	uint64_t node;

	if (!books || !sl_jobs_place_of(books, gpus, &node, &mask))
		return 0;
	kind = &books->kind[node - 1];
	for (uint32_t i = 0; i < kind->count; i++)
		reach |= 1u << kind->gpus[i];
	return reach;
}

/* GPUs that the workload is to give up. One that resumes has not claimed its request again yet, and
 * can only leave after that. */
static uint32_t left_by(const struct sl_workload *workload)
{
	uint32_t at = sl_workload_gpus(workload);

	if (sl_jobs_is_moving(workload))
		return at & ~workload->move_to;
	return workload->is_claimed && workload->park == SL_PARK_RESUMING
		       ? at & ~home_of(workload)
		       : 0;
}

bool sl_jobs_leaves(const struct sl_daemon *daemon, uint32_t gpus)
{
	uint32_t left = 0;

	sl_list_foreach (link, (struct sl_link *)&daemon->workload_list)
		left |= left_by(SL_LIST_ENTRY(link, struct sl_workload, link));
	return left & gpus;
}

static void send_home(struct sl_jobs *jobs, const struct facts *facts)
{
	for (size_t i = 0; i < facts->count; i++) {
		struct sl_error text = {0};

		if (facts->guests[i].goes &&
			!sl_jobs_send(jobs, facts->of[i], facts->guests[i].home, &text))
			sl_warning(
				"%s does not go home: %s", facts->of[i]->name, text.text);
	}
}

bool sl_jobs_clear(struct sl_daemon *daemon, uint32_t gpus, struct sl_error *text)
{
	sl_cleanup(facts_fini) struct facts facts = {0};
	struct sl_jobs *jobs = daemon->jobs;
	size_t stuck = 0;

	if (!jobs || !gather(jobs, &facts))
		return false;
	switch (sl_guests_leave(facts.gpus, facts.guests, facts.count, gpus, &stuck)) {
	case SL_GUESTS_GO: send_home(jobs, &facts); return true;
	case SL_GUESTS_STUCK:
		sl_error_set(text,
			"%s is on a GPU that it was not given and cannot go back to its "
			"own "
			"now; sluice move %s --gpu N says why, and deleting its pod ends "
			"it",
			facts.of[stuck]->name, facts.of[stuck]->name);
		return false;
	default: return false;
	}
}

/* --- waiters and spreading ------------------------------------------------------------------ */

static bool has_room(const struct facts *facts, const struct sl_guest *guest)
{
	for (uint32_t on = guest->at; on; on &= on - 1) {
		const struct sl_guests_gpu *gpu = &facts->gpus[__builtin_ctz(on)];

		if (gpu->requests_bytes + guest->request_bytes > gpu->shareable_bytes ||
			sl_compute_is_full(gpu->compute_pm, guest->compute_pm))
			return false;
	}
	return true;
}

/* One that resumes and lacks room comes back to its home, or its home is cleared. */
static bool help(struct sl_jobs *jobs, const struct facts *facts, size_t i)
{
	const struct sl_guest *guest = &facts->guests[i];
	struct sl_workload *workload = facts->of[i];
	struct sl_error text = {0};

	if (workload->park != SL_PARK_RESUMING || sl_jobs_is_moving(workload))
		return false;
	if (has_room(facts, guest))
		return true;
	if (guest->at == guest->home) {
		if (!sl_jobs_leaves(jobs->daemon, guest->home) &&
			!sl_jobs_clear(jobs->daemon, guest->home, &text) && text.text[0])
			sl_debug("%s waits: %s", workload->name, text.text);
	} else if (sl_node_workload_alone(jobs->daemon->node, workload->id).presence ==
			   SL_PRESENCE_AWAY &&
		   !sl_park_resume_on(jobs->daemon, workload, guest->home, &text)) {
		sl_warning("%s does not go home: %s", workload->name, text.text);
	}
	return true;
}

/* Half of the moves is kept for those that must. */
static bool has_moves(const struct sl_jobs *jobs)
{
	uint32_t most = (jobs->daemon->config.move_budget + 1) / 2;

	return jobs->guests.hour != sl_clock_now() / HOUR ? most > 0
							  : jobs->guests.count < most;
}

static void count_move(struct sl_jobs *jobs)
{
	uint64_t hour = sl_clock_now() / HOUR;

	if (jobs->guests.hour != hour)
		jobs->guests.count = 0;
	jobs->guests.hour = hour;
	jobs->guests.count++;
}

static void spread(struct sl_jobs *jobs, const struct facts *facts)
{
	sl_ns now = sl_clock_now();
	struct sl_error text = {0};
	uint32_t gpu;
	size_t i;

	if (jobs->daemon->config.placement != SL_PLACEMENT_SPREAD || !has_moves(jobs) ||
		now < jobs->guests.spread_from || !sl_list_is_empty(&jobs->moving))
		return;
	i = sl_guests_spread(facts->gpus, facts->guests, facts->count, now, &gpu);
	if (i == facts->count)
		return;
	if (sl_jobs_send(jobs, facts->of[i], 1u << gpu, &text)) {
		count_move(jobs);
		return;
	}
	facts->of[i]->went_at = now;
	sl_debug("%s is not spread: %s", facts->of[i]->name, text.text);
}

void sl_jobs_guests_look(struct sl_jobs *jobs)
{
	sl_cleanup(facts_fini) struct facts facts = {0};
	sl_ns now = sl_clock_now();
	bool waits = false;

	if (now < jobs->guests.look_at)
		return;
	jobs->guests.look_at = now + WAITERS_EVERY;
	if (!sl_jobs_may_choose(jobs) || !gather(jobs, &facts))
		return;
	for (size_t i = 0; i < facts.count; i++)
		waits |= help(jobs, &facts, i);
	if (!waits)
		spread(jobs, &facts);
	jobs->guests.look_at = !facts.count ? SL_NS_NEVER
			       : waits      ? now + WAITERS_EVERY
					    : now + LOOK_EVERY;
}

void sl_jobs_claims_changed(struct sl_daemon *daemon)
{
	if (!daemon->jobs)
		return;
	daemon->jobs->guests.look_at = 0;
	sl_jobs_awake(daemon->jobs);
}
