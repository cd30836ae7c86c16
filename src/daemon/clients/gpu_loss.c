/*
 * gpu_loss - see the header
 */
#include "daemon/clients/gpu_loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/clients/client.h"
#include "daemon/gpu/asking.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/measure.h"
#include "daemon/gpu/xid.h"
#include "daemon/report/events.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/strangers.h"

static void let_go_of_the_dead(struct sl_daemon *daemon, uint32_t gpu)
{
	sl_list_foreach_safe (link, &daemon->dying) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, state_link);

		for (uint32_t i = 0; i < client->gpu_count; i++) {
			if (client->gpu_numbers[i] != gpu)
				continue;
			sl_client_gone_with_gpu(client, i);
			break; /* it may be forgotten */
		}
	}
}

static void lose(struct sl_daemon *daemon, uint32_t number, uint64_t xid, const char *why)
{
	struct sl_event event = {.type = SL_EVENT_GPU_LOST};
	struct sl_gpu *gpu = &daemon->gpus[number];

	if (gpu->lost || !gpu->managed)
		return;
	gpu->lost = true;
	gpu->unreachable = false;
	gpu->reopen_at = sl_clock_now() + SL_GPU_LOSS_REOPEN_NS;
	(void)snprintf(gpu->why_not, sizeof(gpu->why_not), "%s", why);
	sl_warning("GPU %u (%s at %s) is lost: %s", number, gpu->name, gpu->pci, why);
	sl_strangers_lost(daemon, number);
	event.gpu_lost.gpu = number;
	event.gpu_lost.xid = (uint32_t)sl_min_u64(xid, UINT32_MAX);
	sl_drive(daemon, &event);
	sl_inventory_explain(daemon);
	daemon->up->gpus_changed(daemon);
	let_go_of_the_dead(daemon, number);
}

/* NVML's calls may fail before the driver names the cause. The first Xid stays. */
static void say_better(struct sl_daemon *daemon, struct sl_gpu *gpu, const char *why)
{
	if (!gpu->lost || strncmp(gpu->why_not, "Xid", 3) == 0)
		return;
	(void)snprintf(gpu->why_not, sizeof(gpu->why_not), "%s", why);
	sl_inventory_explain(daemon);
}

static void tell(struct sl_daemon *daemon, uint32_t gpu, uint64_t xid)
{
	static const enum sl_reason reasons[] = {
		[SL_XID_NOTED] = SL_REASON_XID_NOTED,
		[SL_XID_PROCESS] = SL_REASON_XID_OF_PROCESS,
		[SL_XID_GPU] = SL_REASON_XID_OF_GPU,
	};

	sl_info("GPU %u: Xid %" PRIu64 ": %s", gpu, xid, sl_xid_meaning(xid));
	sl_events_add(
		daemon, &(struct sl_node_because){.reason = reasons[sl_xid_scope(xid)],
				.gpu = gpu,
				.other_bytes = xid});
}

void sl_gpu_loss_xid(struct sl_daemon *daemon, const struct sl_measure_answer *answer)
{
	char why[96];

	if (answer->gpu >= daemon->gpu_count) {
		/* Some GPU is lost; the event does not say which. */
		for (uint32_t i = 0; i < daemon->gpu_count; i++)
			sl_asking_now(daemon, i);
		return;
	}
	if (!daemon->gpus[answer->gpu].managed)
		return;
	tell(daemon, answer->gpu, answer->xid);
	if (sl_xid_scope(answer->xid) == SL_XID_GPU) {
		(void)snprintf(why, sizeof(why), "Xid %" PRIu64 ", %s", answer->xid,
			sl_xid_meaning(answer->xid));
		lose(daemon, answer->gpu, answer->xid, why);
		say_better(daemon, &daemon->gpus[answer->gpu], why);
	}
	sl_asking_now(daemon, answer->gpu);
}

sl_ns sl_gpu_loss_unanswered(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample)
{
	struct sl_gpu *gpu = &daemon->gpus[sample->gpu];
	sl_ns now = sl_clock_now();

	if (!gpu->lost && sample->absent && gpu->present) {
		/* NVML contradicts itself: its list decides. */
		sl_measure_ask_inventory(daemon->measure);
		return now + SL_S;
	}
	lose(daemon, sample->gpu, 0, sample->text);
	gpu->unreachable = true;
	if (now >= gpu->reopen_at) {
		gpu->reopen_at = now + SL_GPU_LOSS_REOPEN_NS;
		sl_measure_reopen(daemon->measure);
		sl_measure_ask_inventory(daemon->measure);
	}
	return now + SL_GPU_LOSS_ASK_NS;
}

bool sl_gpu_loss_answered(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample)
{
	struct sl_gpu *gpu = &daemon->gpus[sample->gpu];

	if (!gpu->present) {
		sl_measure_ask_inventory(daemon->measure);
		return false;
	}
	if (!gpu->unreachable && sample->usage.count > 0)
		return false;
	gpu->lost = false;
	gpu->why_not[0] = '\0';
	sl_inventory_explain(daemon);
	sl_info("GPU %u (%s at %s) is back", sample->gpu, gpu->name, gpu->pci);
	sl_inventory_announce(daemon, gpu);
	daemon->up->gpus_changed(daemon);
	return true;
}
