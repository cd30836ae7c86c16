/*
 * asking - a due time per GPU, and one timer for the earliest
 */
#include "daemon/gpu/asking.h"

#include "base/log.h"
#include "daemon/gpu/measure.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"

void sl_asking_arm(struct sl_daemon *daemon, sl_ns at)
{
	if (at >= daemon->measure_timer_at)
		return;
	daemon->measure_timer_at = at;
	sl_timer_set(daemon->measure_timer, at);
}

void sl_asking_at(struct sl_daemon *daemon, struct sl_gpu *gpu, sl_ns at)
{
	gpu->due = sl_min_u64(gpu->due, at);
	sl_asking_arm(daemon, gpu->due);
}

static void hurry(struct sl_daemon *daemon, struct sl_gpu *gpu)
{
	gpu->pause = SL_ASKING_PAUSE_MIN_NS;
	gpu->hurried_at = sl_clock_now();
	sl_asking_at(daemon, gpu, gpu->hurried_at);
}

void sl_asking_begin(struct sl_daemon *daemon, uint32_t gpu)
{
	char uuid[41];

	sl_wire_uuid_format(daemon->gpus[gpu].uuid, uuid);
	sl_measure_name(daemon->measure, gpu, uuid);
	daemon->gpus[gpu].due = SL_NS_NEVER;
	hurry(daemon, &daemon->gpus[gpu]);
}

void sl_asking_now(struct sl_daemon *daemon, uint32_t gpu)
{
	if (daemon->gpus[gpu].managed)
		hurry(daemon, &daemon->gpus[gpu]);
}

void sl_asking_look(struct sl_daemon *daemon, uint32_t gpu)
{
	daemon->gpus[gpu].look_from = sl_clock_now();
	hurry(daemon, &daemon->gpus[gpu]);
}

void sl_asking_soon(struct sl_daemon *daemon, const struct sl_client *client, sl_ns delay)
{
	for (uint32_t i = 0; i < client->gpu_count; i++)
		sl_asking_at(daemon, &daemon->gpus[client->gpu_numbers[i]],
			sl_clock_now() + delay);
}

void sl_asking_dying(struct sl_daemon *daemon, struct sl_client *client)
{
	for (uint32_t i = 0; i < client->gpu_count; i++) {
		if (client->gpus[i].dying_bytes)
			hurry(daemon, &daemon->gpus[client->gpu_numbers[i]]);
	}
}

void sl_asking_measure(
	struct sl_daemon *daemon, struct sl_client *client, uint32_t ordinal)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];

	if (gpu->measure_by)
		return; /* the pending answer serves both requests */
	gpu->measure_from = sl_clock_now();
	gpu->measure_by = gpu->measure_from + SL_ASKING_ANSWER_NS;
	if (!sl_list_is_linked(&client->state_link))
		sl_list_push_tail(&daemon->measuring, &client->state_link);
	sl_asking_arm(daemon, gpu->measure_by);
	hurry(daemon, &daemon->gpus[client->gpu_numbers[ordinal]]);
}

sl_ns sl_asking_if_due(struct sl_daemon *daemon, uint32_t number, sl_ns now)
{
	struct sl_gpu *gpu = &daemon->gpus[number];

	if (!gpu->managed)
		return SL_NS_NEVER;
	if (gpu->asked) {
		if (now > gpu->asked_at + SL_ASKING_BLIND_NS && !gpu->complained) {
			gpu->complained = true;
			sl_warning("NVML has not answered about GPU %u for 5 s; deciding "
				   "on what "
				   "was measured before",
				number);
		}
		return gpu->asked_at + SL_ASKING_BLIND_NS > now
			       ? gpu->asked_at + SL_ASKING_BLIND_NS + SL_MS
			       : now + SL_S;
	}
	if (gpu->due > now)
		return gpu->due;
	gpu->asked = true;
	gpu->asked_at = now;
	gpu->due = SL_NS_NEVER;
	sl_measure_ask(daemon->measure, number);
	return now + SL_ASKING_BLIND_NS + SL_MS;
}
