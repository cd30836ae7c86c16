/*
 * nodes - nodes, their accounts, and the search for a place
 *
 * Every change of an account goes through here, so that its consequences are never forgotten: the
 * placer's index, the sums, and the list of rooms that grew. When a class of tasks has found no
 * place, only nodes whose room grew since are tried for it. In a full cluster, the cost of a cycle
 * therefore depends on what changed, not on the number of nodes.
 */
#include "policy/cluster/internal.h"

#include <string.h>

#include "policy/mutant.h"

uint32_t sl_cl_find_node(const struct sl_cluster *cl, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&cl->nodes_by_id, id);

	if (!found)
		return SL_CL_NO_NODE;
	return (uint32_t)(SL_CONTAINER_OF(found, struct sl_cl_node, index) - cl->node);
}

static void changed(struct sl_cluster *cl, uint32_t number, bool grew)
{
	cl->node[number].changes++;
	for (int i = 0; i < SL_PLACE_POLICIES; i++) {
		if (cl->placer[i])
			sl_placer_changed(cl->placer[i], number);
	}
	if (grew) {
		cl->gained[cl->gains % SL_CL_GAINS] = number;
		cl->gains++;
	}
}

/* Called around each change: the node's part of the sum of what is free later. */
static void count(struct sl_cluster *cl, uint32_t number, int sign)
{
	const struct sl_fit_node *fit = &cl->fit[number];

	if (!fit->closed)
		cl->later_gpu_milli += sign * fit->later.gpu_milli;
}

typedef void (*account_fn)(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);

static void account(struct sl_cluster *cl, const struct sl_cl_task *task,
	account_fn change, struct sl_place place, bool grew)
{
	struct sl_need need = sl_cl_moves(task, place.node);

	count(cl, place.node, -1);
	change(&cl->fit[place.node], &need, place);
	count(cl, place.node, 1);
	changed(cl, place.node, grew);
}

static void give_released(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	sl_fit_give(node, need, place, true);
}

static void give_running(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	sl_fit_give(node, need, place, false);
}

struct sl_need sl_cl_moves(const struct sl_cl_task *task, uint32_t number)
{
	struct sl_need need = task->part->class->need;

	if (task->keeps && task->place.node == number)
		need.cpu_milli = need.memory_mib = 0;
	return need;
}

/* A place without GPUs, for cores and memory alone. */
static void host_account(
	struct sl_cluster *cl, const struct sl_cl_task *task, account_fn change)
{
	const struct sl_place host = {.node = task->place.node};

	change(&cl->fit[host.node], &task->part->class->need, host);
}

void sl_cl_node_keep(struct sl_cluster *cl, struct sl_cl_task *task)
{
	if (task->keeps || !(task->part->job->flags & SL_JOB_KEEPS_HOST))
		return;
	host_account(cl, task, sl_fit_take);
	changed(cl, task->place.node, false);
	task->keeps = true;
}

static void give_host(struct sl_cluster *cl, struct sl_cl_task *task, account_fn give)
{
	if (!task->keeps)
		return;
	host_account(cl, task, give);
	changed(cl, task->place.node, true);
	task->keeps = false;
}

void sl_cl_node_unkeep(struct sl_cluster *cl, struct sl_cl_task *task)
{
	give_host(cl, task, give_running);
}

void sl_cl_node_leave(struct sl_cluster *cl, struct sl_cl_task *task)
{
	give_host(cl, task, sl_fit_release);
}

void sl_cl_node_take(struct sl_cluster *cl, struct sl_cl_task *task)
{
	account(cl, task, sl_fit_take, task->place, false);
	sl_list_push_tail(&cl->node[task->place.node].tasks, &task->on_node);
}

void sl_cl_node_give(struct sl_cluster *cl, struct sl_cl_task *task, bool released)
{
	account(cl, task, released ? give_released : give_running, task->place, true);
	sl_list_unlink(&task->on_node);
}

void sl_cl_node_release(struct sl_cluster *cl, struct sl_cl_task *task)
{
	account(cl, task, sl_fit_release, task->place, true);
}

void sl_cl_node_unrelease(struct sl_cluster *cl, struct sl_cl_task *task)
{
	account(cl, task, sl_fit_unrelease, task->place, false);
}

void sl_cl_node_promise(struct sl_cluster *cl, struct sl_cl_task *task)
{
	cl->node[task->next.node].promises++;
	account(cl, task, sl_fit_pipeline, task->next, false);
}

void sl_cl_node_unpromise(struct sl_cluster *cl, struct sl_cl_task *task)
{
	cl->node[task->next.node].promises--;
	account(cl, task, sl_fit_unpipeline, task->next, true);
}

void sl_cl_node_shut(struct sl_cluster *cl, uint32_t number, bool shut)
{
	count(cl, number, -1);
	cl->fit[number].closed = shut;
	count(cl, number, 1);
	changed(cl, number, !shut);
}

/* --- Places. --- */

bool sl_cl_room_at(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need, struct sl_place place)
{
	if (need->cpu_milli > room->cpu_milli || need->memory_mib > room->memory_mib)
		return false;
	for (uint32_t mask = place.gpu_mask; mask; mask &= mask - 1) {
		if (room->left[__builtin_ctz(mask)] < place.milli)
			return false;
	}
	return true;
}

/* What is free now and not promised. */
static struct sl_room unpromised(const struct sl_fit_node *node)
{
	struct sl_room room = node->now;

	if (node->later.cpu_milli < room.cpu_milli)
		room.cpu_milli = node->later.cpu_milli;
	if (node->later.memory_mib < room.memory_mib)
		room.memory_mib = node->later.memory_mib;
	room.gpu_milli = room.whole = 0;
	for (uint32_t i = 0; i < node->gpus; i++) {
		if (node->later.left[i] < room.left[i])
			room.left[i] = node->later.left[i];
		room.gpu_milli += room.left[i];
		room.whole = (int16_t)(room.whole + (room.left[i] == SL_FIT_WHOLE));
	}
	return room;
}

/* On this node: free now (without promises), or later. */
static bool place_on(const struct sl_cluster *cl, uint32_t number,
	const struct sl_need *need, bool later, struct sl_place *place)
{
	const struct sl_fit_node *node = &cl->fit[number];
	const struct sl_room *room = later ? &node->later : &node->now;
	struct sl_room less;

	if (!sl_fit_in(node, room, need))
		return false;
	if (!later && SL_MUTANT(CLUSTER_STEALS_PROMISE, cl->node[number].promises, 0)) {
		less = unpromised(node);
		room = &less;
		if (!sl_fit_in(node, room, need))
			return false;
	}
	*place = (struct sl_place){.node = number,
		.gpu_mask = need->gpus ? sl_fit_gpus(node, room, need) : 0,
		.milli = (uint16_t)sl_fit_milli(node, need)};
	return true;
}

/* Without the placer: the fullest node with room. */
static bool scan(const struct sl_cluster *cl, const struct sl_need *need, bool later,
	struct sl_place *place)
{
	struct sl_place here;
	int32_t least = INT32_MAX;

	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		const struct sl_fit_node *node = &cl->fit[i];
		int32_t left = later ? node->later.gpu_milli : node->now.gpu_milli;

		if (cl->node[i].used && left < least &&
			place_on(cl, i, need, later, &here)) {
			least = left;
			*place = here;
		}
	}
	return least != INT32_MAX;
}

static struct sl_placer *placer(struct sl_cluster *cl)
{
	if (!cl->placer[cl->placement]) {
		cl->placer[cl->placement] =
			sl_placer_new(cl->arena, cl->placement, cl->fit, cl->nodes_most);
		for (uint32_t i = 0; i < cl->nodes_high; i++)
			sl_placer_changed(cl->placer[cl->placement], i);
		for (size_t i = 0; cl->classes && i < (size_t)1 << cl->class_bits; i++) {
			for (struct sl_cl_class *class = cl->classes[i]; class;
				class = class->chain)
				if (class->seen)
					sl_placer_learn(cl->placer[cl->placement],
						&class->need, class->seen);
		}
	}
	return cl->placer[cl->placement];
}

void sl_cl_learn(struct sl_cluster *cl, struct sl_cl_class *class, uint32_t tasks)
{
	if (class->need.only)
		return;
	class->seen += tasks;
	for (int i = 0; i < SL_PLACE_POLICIES; i++) {
		if (cl->placer[i])
			sl_placer_learn(cl->placer[i], &class->need, tasks);
	}
}

static bool search(struct sl_cluster *cl, const struct sl_need *need, bool later,
	struct sl_place *place)
{
	/* The placer sorts GPUs, so it cannot tell them apart. Only sluiced, with a few nodes, has
	 * tasks that name GPUs. */
	if (cl->dry || need->only) {
		cl->effort -= sl_min_u64(cl->effort, cl->nodes_high / 4);
		return scan(cl, need, later, place);
	}
	cl->tried++;
	if (!sl_placer_place(placer(cl), need, later, place))
		return false;
	if (later || !cl->node[place->node].promises ||
		sl_cl_room_at(
			&cl->fit[place->node], &cl->fit[place->node].later, need, *place))
		return true;
	/* What is free there is promised, which the placer does not know; this is rare. */
	return place_on(cl, place->node, need, false, place) ||
	       scan(cl, need, false, place);
}

/* Has a node grown since position `since` so that need fits there now? */
static bool grew_for(const struct sl_cluster *cl, const struct sl_need *need, bool later,
	uint64_t since)
{
	struct sl_place place;

	if (!since || cl->gains - since > SL_CL_GAINS)
		return true;
	for (; since < cl->gains; since++) {
		if (place_on(cl, cl->gained[since % SL_CL_GAINS], need, later, &place))
			return true;
	}
	return false;
}

static void shut_refused(struct sl_cluster *cl, const struct sl_cl_job *job, bool shut)
{
	for (uint32_t i = 0; i < job->refusals; i++) {
		uint32_t node = sl_cl_find_node(cl, job->refused[i].node);

		if (job->refused[i].until > cl->now && node != SL_CL_NO_NODE)
			sl_cl_node_shut(cl, node, shut || cl->node[node].shut);
	}
}

bool sl_cl_is_refused(
	const struct sl_cluster *cl, const struct sl_cl_job *job, uint32_t node)
{
	for (uint32_t i = 0; i < job->refusals; i++) {
		if (job->refused[i].until > cl->now &&
			(node == SL_CL_NO_NODE ||
				job->refused[i].node == cl->node[node].index.id))
			return true;
	}
	return false;
}

/* Its memory is, or will be, on the host of its node. */
static bool is_tied(const struct sl_cl_task *task)
{
	return task->parked || SL_MUTANT(CLUSTER_MOVES_AWAY,
				       task->state == SL_TASK_RELEASING && task->pooled &&
					       sl_cl_movable(task->part->job),
				       false);
}

/* On the node of a tied task: where it was, or, if it may move, anywhere. */
static bool place_at_home(const struct sl_cluster *cl, const struct sl_cl_task *task,
	bool later, struct sl_place *place)
{
	const struct sl_fit_node *node = &cl->fit[task->place.node];
	struct sl_need need = sl_cl_moves(task, task->place.node);

	*place = task->place;
	if (node->closed || sl_cl_is_refused(cl, task->part->job, place->node) ||
		!sl_fit_ever(node, &need))
		return false;
	if (sl_cl_room_at(node, &node->later, &need, *place) &&
		(later || sl_cl_room_at(node, &node->now, &need, *place)))
		return true;
	return !sl_cl_is_pinned(task) &&
	       place_on(cl, task->place.node, &need, later, place);
}

bool sl_cl_find_place(struct sl_cluster *cl, const struct sl_cl_task *task, bool later,
	struct sl_place *place)
{
	struct sl_cl_class *class = task->part->class;
	uint64_t *none = later ? &class->none_later : &class->none_now;
	bool found;

	if (is_tied(task))
		return place_at_home(cl, task, later, place);
	if (sl_cl_is_refused(cl, task->part->job, SL_CL_NO_NODE)) {
		shut_refused(cl, task->part->job, true);
		found = search(cl, &class->need, later, place);
		shut_refused(cl, task->part->job, false);
		return found;
	}
	found = grew_for(cl, &class->need, later, *none) &&
		search(cl, &class->need, later, place);
	/* During a search there is less room than after its failure. */
	if (!cl->given.count && !cl->evicted.count)
		*none = found ? 0 : cl->gains;
	return found;
}

bool sl_cl_place_on(struct sl_cluster *cl, const struct sl_cl_task *task, uint32_t number,
	struct sl_place *place)
{
	if (is_tied(task))
		return number == task->place.node && place_at_home(cl, task, true, place);
	return !cl->fit[number].closed &&
	       !sl_cl_is_refused(cl, task->part->job, number) &&
	       place_on(cl, number, &task->part->class->need, true, place);
}

bool sl_cl_ever(struct sl_cluster *cl, struct sl_cl_class *class)
{
	if (class->ever_at == cl->nodes_version)
		return class->ever;
	class->ever_at = cl->nodes_version;
	class->ever = false;
	for (uint32_t i = 0; i < cl->nodes_high && !class->ever; i++)
		class->ever = cl->node[i].used && sl_fit_ever(&cl->fit[i], &class->need);
	return class->ever;
}

struct sl_need sl_cl_any_gpu(const struct sl_need *need)
{
	return (struct sl_need){.models = need->models,
		.pools = need->pools,
		.only = need->only,
		.gpus = 1,
		.gpu_milli = 1};
}

/* Returns how much GPU an empty node could give one task of this need; *wanted gets how much the
 * task asks for there. Both are thousandths, summed over its GPUs. */
static int64_t most_gpu(
	const struct sl_fit_node *node, const struct sl_need *need, int64_t *wanted)
{
	struct sl_need one = sl_cl_any_gpu(need);
	uint64_t milli = need->gpu_milli;

	*wanted = 0;
	if (!sl_fit_ever(node, &one))
		return 0;
	if (need->gpu_mib && node->gpu_mib)
		milli = sl_max_u64(milli,
			((uint64_t)SL_FIT_WHOLE * need->gpu_mib + node->gpu_mib - 1) /
				node->gpu_mib);
	*wanted = (int64_t)milli * need->gpus;
	/* Of each GPU no more than the need wants of one: the rest is useless to it. */
	return (int64_t)(sl_min_u64(milli, SL_FIT_WHOLE) *
			 sl_min_u64(
				 (uint32_t)__builtin_popcount(sl_fit_usable(node, need)),
				 need->gpus));
}

struct sl_pending_because sl_cl_never_because(
	const struct sl_cluster *cl, const struct sl_need *need)
{
	struct sl_need gpus = *need, cores = *need;
	struct sl_pending_because best[SL_RESOURCES] = {{.reason = SL_PENDING_NEVER}};
	bool has_gpus = false, has_cores = false;

	gpus.cpu_milli = gpus.memory_mib = cores.memory_mib = 0;
	best[SL_RES_GPU].wanted = (int64_t)need->gpu_milli * need->gpus;
	best[SL_RES_CPU] = (struct sl_pending_because){.reason = SL_PENDING_NEVER,
		.resource = SL_RES_CPU,
		.wanted = need->cpu_milli};
	best[SL_RES_MEMORY] = (struct sl_pending_because){.reason = SL_PENDING_NEVER,
		.resource = SL_RES_MEMORY,
		.wanted = need->memory_mib};
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		const struct sl_fit_node *node = &cl->fit[i];
		int64_t wanted,
			most = cl->node[i].used ? most_gpu(node, need, &wanted) : 0;

		if (!cl->node[i].used)
			continue;
		if (most > best[SL_RES_GPU].available) {
			best[SL_RES_GPU].available = most;
			best[SL_RES_GPU].wanted = wanted;
		}
		if (!sl_fit_ever(node, &gpus))
			continue;
		has_gpus = true;
		if (node->cpu_milli > best[SL_RES_CPU].available)
			best[SL_RES_CPU].available = node->cpu_milli;
		if (!sl_fit_ever(node, &cores))
			continue;
		has_cores = true;
		if (node->memory_mib > best[SL_RES_MEMORY].available)
			best[SL_RES_MEMORY].available = node->memory_mib;
	}
	return best[!has_gpus ? SL_RES_GPU : !has_cores ? SL_RES_CPU : SL_RES_MEMORY];
}

/* --- Classes. --- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

static uint64_t hash_need(const struct sl_need *need)
{
	uint64_t hash = mix(1, need->cpu_milli);

	hash = mix(hash, need->memory_mib);
	hash = mix(hash, ((uint64_t)need->gpus << 16) | need->gpu_milli);
	hash = mix(hash, ((uint64_t)need->compute_milli << 32) | need->gpu_mib);
	hash = mix(hash, need->models);
	hash = mix(hash, need->only);
	return mix(hash, need->pools);
}

static void grow_classes(struct sl_cluster *cl)
{
	struct sl_cl_class **old = cl->classes;
	size_t places = old ? (size_t)1 << cl->class_bits : 0;

	if (cl->class_count < places)
		return;
	cl->class_bits = old ? cl->class_bits + 1 : 6;
	cl->classes = sl_arena_take(cl->arena, sizeof(cl->classes[0]) << cl->class_bits);
	for (size_t i = 0; i < places; i++) {
		for (struct sl_cl_class *class = old[i], *next; class; class = next) {
			size_t at = hash_need(&class->need) >> (64 - cl->class_bits);

			next = class->chain;
			class->chain = cl->classes[at];
			cl->classes[at] = class;
		}
	}
}

struct sl_cl_class *sl_cl_class(struct sl_cluster *cl, const struct sl_need *need)
{
	struct sl_cl_class *class;
	size_t at;

	grow_classes(cl);
	at = hash_need(need) >> (64 - cl->class_bits);
	for (class = cl->classes[at]; class; class = class->chain) {
		if (sl_need_is_same(&class->need, need))
			return class;
	}
	class = sl_arena_take(cl->arena, sizeof(*class));
	class->need = *need;
	class->chain = cl->classes[at];
	cl->classes[at] = class;
	cl->class_count++;
	return class;
}

/* --- Events. --- */

static uint32_t take_number(struct sl_cluster *cl)
{
	if (cl->node_frees)
		return cl->node_free[--cl->node_frees];
	return cl->nodes_high < cl->nodes_most ? cl->nodes_high++ : SL_CL_NO_NODE;
}

static void add_capacity(struct sl_cluster *cl, const struct sl_fit_node *fit, int sign)
{
	cl->capacity.of[SL_RES_GPU] += sign * (int64_t)sl_fit_open(fit) * SL_FIT_WHOLE;
	cl->capacity.of[SL_RES_CPU] += sign * (int64_t)fit->cpu_milli;
	cl->capacity.of[SL_RES_MEMORY] += sign * (int64_t)fit->memory_mib;
	cl->capacity.of[SL_RES_COMPUTE] = cl->capacity.of[SL_RES_GPU];
	cl->nodes_version++;
	cl->nodes += (uint32_t)sign;
}

/* What the node counts for the smallest GPUs; 0: it has none. */
static uint32_t gpu_mib_of(const struct sl_cluster *cl, uint32_t number)
{
	return cl->node[number].used && sl_fit_open(&cl->fit[number])
		       ? cl->fit[number].gpu_mib
		       : 0;
}

/* The node's GPUs had that many MiB. */
static void set_least(struct sl_cluster *cl, uint32_t number, uint32_t had)
{
	uint32_t mib = gpu_mib_of(cl, number), least = cl->least_gpu_mib;

	if (mib == had)
		return;
	if (had && had == least) {
		least = UINT32_MAX;
		for (uint32_t i = 0; i < cl->nodes_high; i++)
			least = gpu_mib_of(cl, i) && gpu_mib_of(cl, i) < least
					? gpu_mib_of(cl, i)
					: least;
		least = least == UINT32_MAX ? 0 : least;
	}
	if (mib && (!least || mib < least))
		least = mib;
	if (cl->least_gpu_mib == least)
		return;
	cl->least_gpu_mib = least;
	sl_cl_requote(cl);
}

/* May the task still be promised its place? */
static bool may_come(const struct sl_cluster *cl, const struct sl_cl_task *task)
{
	const struct sl_fit_node *fit = &cl->fit[task->next.node];
	struct sl_need need = sl_cl_moves(task, task->next.node);

	return !fit->closed && !(fit->shut & task->next.gpu_mask) &&
	       sl_fit_ever(fit, &need) &&
	       (task->parked || sl_fit_milli(fit, &need) == task->next.milli);
}

/* Withdraws promises of jobs of which a task may not come any more to this node. */
static void drop_promises(struct sl_cluster *cl, uint32_t number)
{
	sl_list_foreach_safe (link, &cl->promised) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, promised);
		bool drop = false;

		for (uint32_t p = 0; p < job->parts; p++) {
			for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
				const struct sl_cl_task *task = &job->part[p]->task[i];

				drop |= task->promised && task->next.node == number &&
					!may_come(cl, task);
			}
		}
		if (drop) {
			sl_cl_job_unpromise(cl, job);
			sl_cl_job_settle(cl, job);
		}
	}
}

/* Nothing promised is below zero. */
static bool keeps(const struct sl_cluster *cl, uint32_t number)
{
	const struct sl_room *later = &cl->fit[number].later;

	if (later->cpu_milli < 0 || later->memory_mib < 0)
		return false;
	for (uint32_t i = 0; i < cl->fit[number].gpus; i++) {
		if (later->left[i] < 0 && !(cl->fit[number].shut >> i & 1))
			return false;
	}
	return true;
}

void sl_cl_node_repair(struct sl_cluster *cl, uint32_t number)
{
	while (cl->node[number].promises && !keeps(cl, number)) {
		struct sl_cl_job *last = NULL;

		sl_list_foreach (link, &cl->promised) {
			struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, promised);

			if (sl_cl_job_is_promised(job, number))
				last = job;
		}
		if (!last)
			return;
		sl_cl_job_unpromise(cl, last);
		sl_cl_job_settle(cl, last);
	}
}

void sl_cl_on_node_lost(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t number = sl_cl_find_node(cl, event->node_lost.node);
	struct sl_cl_node *node;
	uint32_t had;

	if (number == SL_CL_NO_NODE)
		return;
	node = &cl->node[number];
	had = gpu_mib_of(cl, number);
	sl_cl_node_shut(cl, number, true);
	drop_promises(cl, number);
	sl_list_foreach_safe (link, &node->tasks) {
		struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		sl_cl_task_clear(cl, task, SL_TASK_PENDING);
		sl_cl_job_settle(cl, task->part->job);
	}
	sl_list_foreach_safe (link, &node->parked) {
		struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		sl_cl_task_unpark(cl, task);
		sl_cl_job_settle(cl, task->part->job);
	}
	sl_index_remove(&cl->nodes_by_id, &node->index);
	node->used = false;
	add_capacity(cl, &cl->fit[number], -1);
	changed(cl, number, false);
	cl->node_free[cl->node_frees++] = number;
	set_least(cl, number, had);
}

/* A node without anything; SL_CL_NO_NODE: there are too many. */
static uint32_t new_node(struct sl_cluster *cl, uint64_t id)
{
	uint32_t number = take_number(cl);
	struct sl_cl_node *node;

	if (number == SL_CL_NO_NODE)
		return number;
	node = &cl->node[number];
	*node = (struct sl_cl_node){.used = true};
	node->index.id = id;
	sl_list_init(&node->tasks);
	sl_list_init(&node->parked);
	sl_index_add(&cl->nodes_by_id, &node->index);
	cl->fit[number] = (struct sl_fit_node){0};
	add_capacity(cl, &cl->fit[number], 1);
	count(cl, number, 1);
	return number;
}

/* Tasks keep what they have, so what is left may drop below 0; later needs count by the new
 * size. */
void sl_cl_on_node_put(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t number = sl_cl_find_node(cl, event->node_put.node), had;
	struct sl_cl_node *node;
	struct sl_fit_node *fit;

	if (event->node_put.gpus > SL_FIT_GPUS_MAX ||
		event->node_put.pool >= SL_CL_POOLS ||
		event->node_put.first >= SL_FIT_GPUS_MAX)
		return;
	if (number == SL_CL_NO_NODE)
		number = new_node(cl, event->node_put.node);
	if (number == SL_CL_NO_NODE)
		return;
	node = &cl->node[number];
	fit = &cl->fit[number];
	had = gpu_mib_of(cl, number);
	count(cl, number, -1);
	add_capacity(cl, fit, -1);
	node->swaps = event->node_put.swaps;
	node->pool_mib = event->node_put.pool_mib;
	node->shut = fit->closed = event->node_put.closed;
	fit->gpu_mib = event->node_put.gpu_mib;
	fit->model = event->node_put.model;
	fit->first = event->node_put.first;
	fit->pool = (uint8_t)(event->node_put.pool + (node->swaps ? 32 : 0));
	sl_fit_resize(fit, event->node_put.cpu_milli, event->node_put.memory_mib,
		event->node_put.gpus,
		SL_MUTANT(CLUSTER_SHUT_OPEN, event->node_put.shut, 0));
	add_capacity(cl, fit, 1);
	count(cl, number, 1);
	changed(cl, number, true);
	if (SL_MUTANT(CLUSTER_SHUT_PROMISED, true, false))
		drop_promises(cl, number);
	sl_cl_node_repair(cl, number);
	set_least(cl, number, had);
}
