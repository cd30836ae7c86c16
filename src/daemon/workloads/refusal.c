/*
 * refusal - the policy gives a reason and two numbers, the user needs a sentence
 */
#include "daemon/workloads/refusal.h"

#include <stdio.h>
#include <string.h>

#include "daemon/gpu/inventory.h"
#include "daemon/workloads/workload.h"

static uint32_t lost_of(const struct sl_daemon *daemon)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		count += daemon->gpus[i].managed && sl_node_gpu(daemon->node, i).lost;
	return count;
}

static void too_few(const struct sl_daemon *daemon, uint32_t gpu_count, uint32_t usable,
	bool masked, struct sl_error *text)
{
	uint32_t count = (uint32_t)__builtin_popcount(usable);
	uint32_t managed = sl_inventory_managed(daemon), lost = lost_of(daemon);

	if (!daemon->nvml_ok)
		sl_error_set(text, "%u GPU%s wanted, and none is known: %s", gpu_count,
			gpu_count == 1 ? "" : "s",
			daemon->nvml_text[0] ? daemon->nvml_text
					     : "NVML has not answered yet");
	else if (lost && managed >= gpu_count)
		sl_error_set(text,
			"%u GPU%s wanted, and %u of the %u that sluiced manages can be "
			"used%s: %u %s lost%s%s%s; %s",
			gpu_count, gpu_count == 1 ? "" : "s", count, managed,
			masked ? " under CUDA_VISIBLE_DEVICES" : "", lost,
			lost == 1 ? "is" : "are", daemon->nvml_text[0] ? " (" : "",
			daemon->nvml_text, daemon->nvml_text[0] ? ")" : "",
			masked  ? "change or unset CUDA_VISIBLE_DEVICES"
			: count ? "lower --gpus, or reset what is lost (sluice "
				  "doctor)"
				: "reset it (sluice doctor)");
	else if (masked && count < gpu_count && managed >= gpu_count)
		sl_error_set(text,
			"%u GPU%s wanted, and CUDA_VISIBLE_DEVICES leaves %u of the %u "
			"that sluiced "
			"manages; change or unset it",
			gpu_count, gpu_count == 1 ? "" : "s", count, managed);
	else
		sl_error_set(text,
			"%u GPU%s wanted, and sluiced manages %u%s%s; lower --gpus",
			gpu_count, gpu_count == 1 ? "" : "s", managed,
			daemon->nvml_text[0] ? "; " : "", daemon->nvml_text);
}

/* A refusal by the administrator's bounds; false: it has another reason. */
static bool is_bound(const struct sl_admission *said, const char *wanted,
	const char *available, struct sl_error *text)
{
	static const char remedy[] = "ask the administrator (bounds in sluiced.conf)";

	switch ((enum sl_reason)said->reason) {
	case SL_REASON_BOUND_REQUEST:
		sl_error_set(text,
			"a request of %s exceeds the %s that the administrator allows "
			"you; lower --request, or %s",
			wanted, available, remedy);
		return true;
	case SL_REASON_BOUND_LIMIT:
		sl_error_set(text,
			"a limit of %s exceeds the %s that the administrator allows you; "
			"lower --limit (without one it is the request, or the whole "
			"GPU), "
			"or %s",
			wanted, available, remedy);
		return true;
	case SL_REASON_BOUND_PRIORITY:
		sl_error_set(text,
			"priority %lld exceeds the %lld that the administrator allows "
			"you; "
			"lower --priority, or %s",
			(long long)said->wanted_bytes, (long long)said->available_bytes,
			remedy);
		return true;
	case SL_REASON_BOUND_WORKLOADS:
		sl_error_set(text,
			"this would be your workload number %llu, and the administrator "
			"allows you %llu at a time; end one (sluice ps), or %s",
			(unsigned long long)said->wanted_bytes,
			(unsigned long long)said->available_bytes, remedy);
		return true;
	default: return false;
	}
}

const char *sl_refusal_sentence(
	const struct sl_daemon *daemon, const char *name, char *buf, size_t size)
{
	const struct sl_admission *said = &daemon->admission;

	return sl_reason_sentence(&(struct sl_reason_facts){.reason = said->reason,
					  .gpu = said->gpu,
					  .name = name,
					  .bytes = said->wanted_bytes,
					  .available_bytes = said->available_bytes},
		buf, size);
}

void sl_refusal_of_set(const struct sl_daemon *daemon, const struct sl_workload *workload,
	struct sl_error *text)
{
	const struct sl_admission *said = &daemon->admission;
	char wanted[32], available[32], sentence[512];

	(void)sl_bytes_format(said->wanted_bytes, wanted, sizeof(wanted));
	(void)sl_bytes_format(said->available_bytes, available, sizeof(available));
	if (is_bound(said, wanted, available, text))
		return;
	switch ((enum sl_reason)said->reason) {
	case SL_REASON_LIMIT_BELOW_REQUEST:
		sl_error_set(text,
			"the limit (%s) would be below the request (%s); change both, or "
			"give another --limit or --request",
			available, wanted);
		return;
	case SL_REASON_REQUEST_TOO_LARGE:
		sl_error_set(text,
			"a request of %s does not fit GPU %u (%s), which can share %s; "
			"lower --request",
			wanted, said->gpu, daemon->gpus[said->gpu].name, available);
		return;
	case SL_REASON_REQUESTS_TAKEN:
		sl_error_set(text,
			"a request of %s does not fit: others' requests and held memory "
			"leave "
			"%s to %s on GPU %u (%s); lower --request, or wait until one of "
			"them ends "
			"(sluice ps)",
			wanted, available, workload->name, said->gpu,
			daemon->gpus[said->gpu].name);
		return;
	case SL_REASON_COMPUTE_TAKEN:
		sl_refusal_of_time(
			workload, (uint32_t)said->wanted_bytes, 1u << said->gpu, text);
		return;
	case SL_REASON_DEGRADED:
		sl_error_set(text,
			"GPU %u is degraded: processes use more of it than they were "
			"admitted for; end what `sluice gpus` shows as unmanaged, then "
			"try again",
			said->gpu);
		return;
	case SL_REASON_UNKNOWN_WORKLOAD:
		sl_error_set(text, "%s is over", workload->name);
		return;
	case SL_REASON_STANDS_ON_REQUESTS:
		sl_error_set(text,
			"%s has %s above its request on GPU %u that stand on requests of "
			"others, who could not take them back after this change; free "
			"some first, or raise --request",
			workload->name, wanted, said->gpu);
		return;
	default:
		sl_error_set(text, "refused: %s",
			sl_refusal_sentence(
				daemon, workload->name, sentence, sizeof(sentence)));
	}
}

void sl_refusal_of_time(const struct sl_workload *workload, uint32_t request_pm,
	uint32_t gpus, struct sl_error *text)
{
	const struct sl_daemon *daemon = workload->daemon;
	uint32_t gpu = 0, least = UINT32_MAX;

	for (; gpus; gpus &= gpus - 1) {
		uint32_t at = (uint32_t)__builtin_ctz(gpus);
		uint32_t others = sl_workload_compute_pm(daemon, at, workload);

		if (others >= least)
			continue;
		least = others;
		gpu = at;
	}
	sl_error_set(text,
		"a compute request of %g does not fit: others' compute requests leave %g "
		"at best, on GPU %u (%s); lower --compute-request, or wait until one of "
		"them ends (sluice ps)",
		request_pm / 1000.0, sl_sub_sat(1000, least) / 1000.0, gpu,
		daemon->gpus[gpu].name);
}

void sl_refusal_text(const struct sl_daemon *daemon, const struct sl_workload *workload,
	uint32_t gpu_count, uint32_t usable, bool masked, struct sl_error *text)
{
	const struct sl_admission *said = &daemon->admission;
	uint32_t gpu = said->gpu; /* the numbers are this GPU's */
	char wanted[32], available[32], gpus[48] = "", sentence[512];
	const char *why;

	(void)sl_bytes_format(said->wanted_bytes, wanted, sizeof(wanted));
	(void)sl_bytes_format(said->available_bytes, available, sizeof(available));
	if (gpu_count > 1)
		(void)snprintf(gpus, sizeof(gpus), " on each of %u GPUs", gpu_count);
	if (is_bound(said, wanted, available, text))
		return;
	switch ((enum sl_reason)said->reason) {
	case SL_REASON_TOO_FEW_GPUS:
		too_few(daemon, gpu_count, usable, masked, text);
		return;
	case SL_REASON_LIMIT_BELOW_REQUEST:
		sl_error_set(text,
			"the limit (%s) is below the request (%s); raise --limit or "
			"lower "
			"--request",
			available, wanted);
		return;
	case SL_REASON_REQUEST_TOO_LARGE:
		sl_error_set(text,
			"a request of %s%s does not fit any GPU: the best one, GPU %u "
			"(%s), can "
			"share %s; lower --request",
			wanted, gpus, gpu, daemon->gpus[gpu].name, available);
		return;
	case SL_REASON_REQUESTS_TAKEN:
		sl_error_set(text,
			"a request of %s%s does not fit: others' requests and held "
			"memory leave "
			"%s at best, on GPU %u (%s); lower --request, or wait until one "
			"of them ends "
			"(sluice ps)",
			wanted, gpus, available, gpu, daemon->gpus[gpu].name);
		return;
	case SL_REASON_COMPUTE_TAKEN:
		sl_refusal_of_time(workload, workload->compute.request_pm,
			usable & sl_workload_compute_full(
					 workload, workload->compute.request_pm),
			text);
		return;
	case SL_REASON_DEGRADED:
		sl_error_set(text,
			"GPU %u is degraded: processes use more of it than they were "
			"admitted for; "
			"end what `sluice gpus` shows as unmanaged, then try again",
			gpu);
		return;
	default:
		(void)sl_refusal_sentence(
			daemon, workload->name, sentence, sizeof(sentence));
		/* Leaves out "... was refused ...:", which is for readers of the events. */
		why = strstr(sentence, " was refused ") ? strstr(sentence, ": ") : NULL;
		sl_error_set(text, why ? "%s" : "refused: %s", why ? why + 2 : sentence);
	}
}

void sl_refusal_add_cut(const struct sl_workload *workload, struct sl_error *text)
{
	const struct sl_error before = *text;
	char asked[32], limit[32];

	if (workload->limit.kind != SL_AMOUNT_BYTES ||
		workload->limit.value <= workload->limit_bytes)
		return;
	sl_error_set(text,
		"%s%s--limit %s is cut to %s, which is all that its GPU%s can share",
		before.text, before.text[0] ? "; " : "",
		sl_bytes_format(workload->limit.value, asked, sizeof(asked)),
		sl_bytes_format(workload->limit_bytes, limit, sizeof(limit)),
		workload->gpu_count > 1 ? "s" : "");
}
