/*
 * reconcile - samples become HIDDEN, UNMANAGED and RELEASED
 *
 * Urgent samples (a client is dying, or asked to be measured) examine only the clients concerned;
 * all clients are examined once per measure_interval. So the cost of a death does not grow with the
 * number of clients.
 */
#include "daemon/clients/reconcile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/clients/claim.h"
#include "daemon/clients/client.h"
#include "daemon/clients/gpu_loss.h"
#include "daemon/clients/views.h"
#include "daemon/gpu/asking.h"
#include "daemon/gpu/inventory.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"
#include "daemon/swap/swap.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/strangers.h"
#include "daemon/workloads/workload.h"

/* Rounding in the driver's own sums, and what a context may vary meanwhile. */
#define OVERHEAD_SLACK (16 * SL_MIB)
/* Most releases per sample, so that the loop still serves others when a thousand processes die at
 * once. The next sample, which is asked for at once, finds the rest. */
#define RELEASES_MOST 200

/* One step of the policy. */
struct releases {
	uint32_t count;
	struct sl_event event[RELEASES_MOST];
};

static void release(struct releases *all, struct sl_client *client, uint32_t ordinal,
	uint64_t remaining_bytes)
{
	all->count += sl_client_released(
		client, ordinal, remaining_bytes, &all->event[all->count]);
}

static void tell(struct sl_daemon *daemon, struct releases *all)
{
	if (!all->count)
		return;
	sl_drive_all(daemon, all->event, all->count);
	sl_step(D_RELEASED);
	all->count = 0;
}

/* --- what is late ------------------------------------------------------------------------- */

/* NVML does not answer: dying bytes are released by time instead. */
static void without_nvml(struct sl_daemon *daemon, sl_ns now)
{
	struct releases all = {0};

	sl_list_foreach_safe (link, &daemon->dying) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, state_link);
		sl_ns since = client->died_at;

		for (uint32_t i = 0; i < client->gpu_count; i++) {
			const struct sl_gpu *gpu = &daemon->gpus[client->gpu_numbers[i]];

			if (!client->gpus[i].dying_bytes ||
				now < sl_max_u64(since, gpu->measured_at) +
						SL_ASKING_BLIND_NS)
				continue;
			sl_warning("GPU %u cannot be measured; taking the memory of the "
				   "dead "
				   "process %d for released",
				client->gpu_numbers[i], (int)client->pid);
			release(&all, client, i, 0);
			if (all.count == RELEASES_MOST)
				tell(daemon, &all);
			if (client->state_link.next == &client->state_link)
				break; /* forgotten */
		}
	}
	tell(daemon, &all);
}

/* Answers clients that waited long enough; returns when the next one will have. */
static sl_ns answer_late(struct sl_daemon *daemon, sl_ns now)
{
	sl_ns next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &daemon->measuring) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, state_link);
		bool waits = false;

		for (uint32_t i = 0; i < client->gpu_count; i++) {
			struct sl_client_gpu *gpu = &client->gpus[i];

			if (gpu->measure_by && gpu->measure_by <= now) {
				gpu->measure_by = 0;
				sl_views_answer(client, i);
			} else if (gpu->measure_by) {
				next = sl_min_u64(next, gpu->measure_by);
				waits = true;
			}
		}
		if (waits)
			continue;
		sl_list_unlink(&client->state_link);
		sl_client_measured(client);
	}
	return next;
}

int sl_reconcile_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now(), next;

	daemon->measure_timer_at = SL_NS_NEVER;
	next = answer_late(daemon, now);
	without_nvml(daemon, now);
	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		next = sl_min_u64(next, sl_asking_if_due(daemon, i, now));
	if (next != SL_NS_NEVER)
		sl_asking_arm(daemon, next);
	daemon->up->settle(daemon);
	return 0;
}

/* --- what a sample says ------------------------------------------------------------------- */

struct view {
	struct sl_daemon *daemon;
	const struct sl_measure_answer *sample;
	uint32_t gpu;
	uint64_t listed_bytes; /* sum of all rows */
	bool unsure;           /* another sample soon would tell more */
	bool is_cut;           /* more were released than one sample may tell */
	bool is_whole;         /* all clients are examined */
};

static const struct sl_nvml_process *listed(const struct view *view, pid_t pid)
{
	const struct sl_nvml_usage *usage = &view->sample->usage;
	uint32_t low = 0, high = usage->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (usage->processes[middle].pid < (uint32_t)pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < usage->count && usage->processes[low].pid == (uint32_t)pid
		       ? &usage->processes[low]
		       : NULL;
}

static int ordinal_of(const struct sl_client *client, uint32_t gpu)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpu_numbers[i] == gpu)
			return (int)i;
	}
	return -1;
}

/* The sample is comparable with the books: nothing was in flight for this client. */
static bool is_judgeable(const struct view *view, const struct sl_client *client)
{
	const struct sl_daemon *daemon = client->daemon;

	/* A client that may still report its backing would be counted twice. */
	if (client->expected && !client->known &&
		view->sample->begin < daemon->started + daemon->config.recover_wait)
		return false;
	return client->changed_at < view->sample->begin && !sl_client_has_grant(client) &&
	       !client->place.order && !sl_swap_is_moving(client, view->sample->begin);
}

/* Has the process exec'ed a program without CUDA? Then it is alive, but neither listed nor
 * connected. */
static bool has_left(const struct view *view, struct sl_client *client, uint32_t ordinal)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];

	if (client->peer || client->expected || !gpu->was_listed)
		return false;
	if (!gpu->unlisted_since)
		gpu->unlisted_since = view->sample->begin;
	if (view->sample->begin <= client->lost_at + 2 * SL_S ||
		view->sample->begin <= gpu->unlisted_since + 2 * SL_S)
		return false;
	/* A client that may be evicted entirely is checked by its process. */
	return (!client->away_bytes &&
		       !sl_node_client_use(client->daemon->node, client->id, view->gpu)
				.evicted_bytes) ||
	       sl_process_is_without_cuda(client->process, client->workload->uid);
}

/*
 * Books the client's hidden bytes by a sample that shows `bytes`. The first sample counts at once.
 * Later a change counts once two samples in a row show it, and then the smaller one: a single
 * sample may catch memory on its way in or out, or a list that lags. A rise counts at once if the
 * client asked to be measured, since it has just made something.
 */
static void believe(
	struct view *view, struct sl_client *client, uint32_t ordinal, uint64_t bytes)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];
	uint64_t now = gpu->hidden_bytes, before = gpu->sampled_bytes;

	if (!gpu->sampled || (gpu->measure_by && bytes > now))
		now = bytes;
	else if (bytes > now && before > now)
		now = sl_min_u64(bytes, before);
	else if (bytes < now && before < now)
		now = sl_max_u64(bytes, before);
	else if (bytes != now)
		view->unsure = true;
	gpu->sampled = true;
	gpu->sampled_bytes = bytes;
	sl_claim_hidden(client, ordinal, now);
}

static void judge(struct view *view, struct sl_client *client)
{
	int ordinal = ordinal_of(client, view->gpu);
	const struct sl_nvml_process *row = listed(view, client->pid);
	struct sl_node_use_view use;
	struct sl_client_gpu *gpu;
	uint64_t hidden;

	if (ordinal < 0)
		return;
	gpu = &client->gpus[ordinal];
	gpu->listed_bytes = row ? row->used_bytes : 0;
	if (view->is_whole)
		gpu->busy_pct = row ? row->busy_pct : 0;
	if (!row && has_left(view, client, (uint32_t)ordinal)) {
		sl_info("process %d holds no GPU memory and lost its connection; taking "
			"its "
			"program for ended",
			(int)client->pid);
		sl_client_exit(client, true);
		return;
	}
	if (row) {
		gpu->unlisted_since = 0;
		gpu->was_listed = true;
	}
	if (!is_judgeable(view, client))
		return;
	use = sl_node_client_use(client->daemon->node, client->id, view->gpu);
	hidden = sl_sub_sat(row ? row->used_bytes : 0,
		sl_sub_sat(use.backing_bytes, use.evicted_bytes));
	believe(view, client, (uint32_t)ordinal, hidden);
	if (gpu->measure_by && gpu->measure_from <= view->sample->begin) {
		gpu->measure_by = 0;
		sl_views_answer(client, (uint32_t)ordinal);
	}
}

/* The rows account for the GPU's use, so no unlisted memory lingers. */
static bool is_explained(const struct view *view)
{
	const struct sl_gpu *gpu = &view->daemon->gpus[view->gpu];

	return view->sample->usage.used_bytes <=
	       view->listed_bytes + gpu->overhead_bytes + OVERHEAD_SLACK;
}

/* True: the policy was told of released memory. */
static void bury(const struct view *view, struct sl_client *client, struct releases *all)
{
	int ordinal = ordinal_of(client, view->gpu);
	const struct sl_nvml_process *row = listed(view, client->pid);
	struct sl_client_gpu *gpu = ordinal < 0 ? NULL : &client->gpus[ordinal];
	sl_ns begin = view->sample->begin;

	if (!gpu || !gpu->dying_bytes || begin <= client->died_at)
		return;
	if (row && client->superseded) {
		/* The process goes on with another program; its row is the sum of both. */
		if (row->used_bytes >= gpu->dying_bytes &&
			begin <= client->died_at + SL_RECONCILE_LEFT_NS)
			return;
		release(all, client, (uint32_t)ordinal, 0);
		return;
	}
	if (row && row->used_bytes) {
		gpu->unlisted_since = 0;
		release(all, client, (uint32_t)ordinal, row->used_bytes);
		return;
	}
	if (!gpu->unlisted_since)
		gpu->unlisted_since = begin;
	if (!is_explained(view) && begin < gpu->unlisted_since + SL_RECONCILE_LEFT_NS)
		return;
	release(all, client, (uint32_t)ordinal, 0);
}

/* Marks the rows of our dead clients: they are dying, not unmanaged. */
static void mark_dying(const struct view *view)
{
	sl_list_foreach (link, &view->daemon->dying) {
		pid_t pid = SL_LIST_ENTRY(link, struct sl_client, state_link)->pid;
		struct sl_nvml_process *row = (struct sl_nvml_process *)listed(view, pid);

		if (row)
			row->ours = true;
	}
}

static bool is_ours(const struct view *view, const struct sl_nvml_process *row)
{
	const struct sl_process *process = sl_map_get(&view->daemon->processes, row->pid);

	return row->ours || (process && process->client);
}

static void count_unmanaged(const struct view *view)
{
	struct sl_gpu *gpu = &view->daemon->gpus[view->gpu];
	struct sl_event event = {.type = SL_EVENT_UNMANAGED};
	uint64_t bytes = 0;

	gpu->counted_at = view->sample->begin;
	mark_dying(view);
	sl_strangers_begin(view->daemon);
	for (uint32_t i = 0; i < view->sample->usage.count; i++) {
		const struct sl_nvml_process *row = &view->sample->usage.processes[i];
		/* A process cannot hold more than the GPU has, whatever NVML says. */
		uint64_t held = sl_min_u64(row->used_bytes, gpu->capacity_bytes);

		if (is_ours(view, row))
			continue;
		bytes = sl_min_u64(bytes + held, gpu->capacity_bytes);
		if (held)
			sl_strangers_seen(view->daemon, view->gpu, row->pid, held);
	}
	if (bytes != gpu->unmanaged_bytes) {
		gpu->unmanaged_bytes = bytes;
		event.unmanaged.gpu = view->gpu;
		event.unmanaged.bytes = bytes;
		sl_drive(view->daemon, &event);
	}
	sl_strangers_end(view->daemon, view->gpu);
}

/* Learns what the GPU uses beyond all listed processes, while no client is dying. The smaller of
 * the last two samples counts, since an allocation may fall between the two NVML calls of one. */
static void learn_overhead(const struct view *view)
{
	struct sl_gpu *gpu = &view->daemon->gpus[view->gpu];
	uint64_t beyond;

	if (!sl_list_is_empty(&view->daemon->dying))
		return;
	beyond = sl_sub_sat(view->sample->usage.used_bytes, view->listed_bytes);
	gpu->overhead_bytes = sl_min_u64(beyond, gpu->overhead_before);
	gpu->overhead_before = beyond;
}

static void judge_all(struct view *view)
{
	sl_list_foreach_safe (at, &view->daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		sl_list_foreach_safe (link, &workload->clients) {
			judge(view, SL_LIST_ENTRY(link, struct sl_client, link));
		}
	}
	count_unmanaged(view);
	learn_overhead(view);
}

static bool is_answered(const struct sl_client *client)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpus[i].measure_by)
			return false;
	}
	return true;
}

static void bury_all(struct view *view)
{
	struct releases all = {0};

	sl_list_foreach_safe (dead, &view->daemon->dying) {
		if (all.count == RELEASES_MOST) {
			view->is_cut = true;
			break;
		}
		bury(view, SL_LIST_ENTRY(dead, struct sl_client, state_link), &all);
	}
	tell(view->daemon, &all);
}

static void judge_urgent(struct view *view)
{
	sl_list_foreach_safe (link, &view->daemon->measuring) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, state_link);

		judge(view, client);
		if (client->state == SL_CLIENT_DYING || !is_answered(client))
			continue;
		sl_list_unlink(&client->state_link);
		sl_client_measured(client);
	}
	bury_all(view);
}

/* Does some client on this GPU need a sample before the next interval? */
static bool is_urgent(const struct sl_daemon *daemon, uint32_t gpu)
{
	const struct sl_link *lists[] = {&daemon->dying, &daemon->measuring};

	for (size_t i = 0; i < SL_ARRAY_LEN(lists); i++) {
		for (const struct sl_link *link = lists[i]->next; link != lists[i];
			link = link->next) {
			const struct sl_client *client = SL_CONTAINER_OF(
				(struct sl_link *)link, struct sl_client, state_link);
			int ordinal = ordinal_of(client, gpu);

			if (ordinal >= 0 && (client->gpus[ordinal].dying_bytes ||
						    client->gpus[ordinal].measure_by))
				return true;
		}
	}
	return false;
}

static void after_sample(struct sl_daemon *daemon, uint32_t number)
{
	struct sl_gpu *gpu = &daemon->gpus[number];
	sl_ns now = sl_clock_now();

	if (is_urgent(daemon, number)) {
		sl_asking_at(daemon, gpu, now + gpu->pause);
		gpu->pause = sl_min_u64(
			gpu->pause * 2, now < gpu->hurried_at + SL_ASKING_URGENT_NS
						? SL_ASKING_PAUSE_NS
						: SL_ASKING_PAUSE_MAX_NS);
	}
	sl_asking_at(daemon, gpu,
		sl_max_u64(now, gpu->full_at + daemon->config.measure_interval));
}

/* NVML failed as a whole, as far as we can see: the inventory opens it again. */
static void sample_failed(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample)
{
	struct sl_gpu *gpu = &daemon->gpus[sample->gpu];

	if (daemon->nvml_ok)
		sl_timer_set(daemon->inventory_timer, sl_clock_now() + SL_S);
	daemon->nvml_ok = false;
	sl_wire_str(daemon->nvml_text, sizeof(daemon->nvml_text), sample->text);
	if (!gpu->complained)
		sl_warning("GPU %u: %s", sample->gpu, sample->text);
	gpu->complained = true;
	sl_asking_at(daemon, gpu, sl_clock_now() + sl_max_u64(gpu->pause, 100 * SL_MS));
}

/* True: the sample needs no further examination. */
static bool is_about_loss(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample)
{
	struct sl_gpu *gpu = &daemon->gpus[sample->gpu];

	if (!sample->ok) {
		if (sample->lost || sample->absent)
			sl_asking_at(daemon, gpu, sl_gpu_loss_unanswered(daemon, sample));
		else
			sample_failed(daemon, sample);
		return true;
	}
	if (!gpu->lost || sl_gpu_loss_answered(daemon, sample))
		return false;
	sl_asking_at(daemon, gpu, sl_clock_now() + SL_GPU_LOSS_ASK_NS);
	return true;
}

static bool is_whole_look_due(const struct sl_daemon *daemon, const struct sl_gpu *gpu,
	const struct sl_measure_answer *sample)
{
	return !gpu->full_at ||
	       gpu->full_at + daemon->config.measure_interval <= sample->begin ||
	       (gpu->look_from && gpu->look_from <= sample->begin);
}

static void look_at_all(struct view *view)
{
	struct sl_gpu *gpu = &view->daemon->gpus[view->gpu];

	gpu->full_at = view->sample->begin;
	if (gpu->look_from <= gpu->full_at)
		gpu->look_from = 0;
	gpu->by_process = view->sample->usage.by_process;
	gpu->busy_sum_pct = view->sample->usage.busy_sum_pct;
	view->is_whole = true;
	judge_all(view);
	view->is_whole = false;
	/* Another sample soon, but only once: a client may allocate all the time. */
	if (view->unsure && !gpu->unsure)
		gpu->full_at -= sl_min_u64(gpu->full_at,
			sl_sub_sat(view->daemon->config.measure_interval, 50 * SL_MS));
	gpu->unsure = view->unsure && !gpu->unsure;
}

void sl_reconcile_sample(struct sl_daemon *daemon, const struct sl_measure_answer *sample)
{
	struct sl_gpu *gpu = &daemon->gpus[sample->gpu];
	struct view view = {.daemon = daemon, .sample = sample, .gpu = sample->gpu};

	gpu->asked = false;
	if (is_about_loss(daemon, sample))
		return;
	if (gpu->complained)
		sl_info("NVML answers about GPU %u again", sample->gpu);
	gpu->complained = false;
	gpu->measured_at = sample->end;
	gpu->used_bytes = sample->usage.used_bytes;
	gpu->utilisation_pct = sample->usage.utilisation_pct;
	if (gpu->driver_bytes != sample->usage.driver_bytes) {
		gpu->driver_bytes = sample->usage.driver_bytes;
		sl_inventory_announce(daemon, gpu);
	}
	for (uint32_t i = 0; i < sample->usage.count; i++)
		view.listed_bytes += sample->usage.processes[i].used_bytes;
	judge_urgent(&view);
	if (is_whole_look_due(daemon, gpu, sample))
		look_at_all(&view);
	if (view.is_cut)
		sl_asking_now(daemon, sample->gpu);
	after_sample(daemon, sample->gpu);
}
