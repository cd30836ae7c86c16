/*
 * sample - see the header
 *
 * NVML reports a GPU's utilisation, and on most GPUs the share of each process. Where it reports
 * shares, utilisation is divided by them; the share of unmanaged processes is left out. Where it
 * does not, utilisation is divided evenly among workloads that worked in that second. A workload's
 * clients say whether it worked if the daemon asks them anyway; any other workload with memory
 * there counts as having worked.
 */
#include "daemon/history/sample.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/fields.h"
#include "policy/figures/usage.h"

/* --- samples ------------------------------------------------------------------------------ */

void sl_history_sample_clear(struct sl_history_sample *sample)
{
	struct sl_history_seen *uses = sample->uses;
	size_t room = sample->room;

	sl_map_fini(&sample->by_key);
	*sample = (struct sl_history_sample){.uses = uses, .room = room};
}

void sl_history_sample_fini(struct sl_history_sample *sample)
{
	sl_map_fini(&sample->by_key);
	free(sample->uses);
	*sample = (struct sl_history_sample){0};
}

static uint64_t key_of(uint64_t workload, uint32_t gpu)
{
	return workload << 8 | (gpu & 0xff);
}

struct sl_history_seen *sl_history_sample_find(
	const struct sl_history_sample *sample, uint64_t workload, uint32_t gpu)
{
	uintptr_t at = (uintptr_t)sl_map_get(&sample->by_key, key_of(workload, gpu));

	return at ? &sample->uses[at - 1] : NULL;
}

static void take_use(struct sl_history_sample *sample, const struct sl_msg_use_row *row)
{
	struct sl_history_seen *use;
	bool follows = sample->count &&
		       sample->uses[sample->count - 1].workload == row->workload;

	if (row->gpu >= SL_HISTORY_GPU_NUMBERS ||
		sl_history_sample_find(sample, row->workload, row->gpu))
		return;
	use = sl_history_grow(sample->uses, sample->count, &sample->room, sizeof(*use));
	if (use)
		sample->uses = use;
	if (!use || sl_map_put(&sample->by_key, key_of(row->workload, row->gpu),
			    (void *)(uintptr_t)(sample->count + 1)) < 0) {
		sample->failed = true;
		return;
	}
	use = &sample->uses[sample->count++];
	*use = (struct sl_history_seen){
		.workload = row->workload,
		.gpu = row->gpu,
		.ordinal = follows ? use[-1].ordinal + 1 : 0,
		.residency = row->residency,
		/* A parked workload has given up its request. */
		.request_bytes =
			sl_wire_gave_up_request(row->residency) ? 0 : row->request_bytes,
		.limit_bytes = row->limit_bytes,
		.backing_bytes = row->backing_bytes,
		.hidden_bytes = row->hidden_bytes,
		.waiting = row->waiting,
		.waiting_bytes = row->waiting_bytes,
		.idle_ms = UINT64_MAX,
		.work_pm = row->work_pm,
		.evicted_bytes = row->evicted_bytes,
		.turns = row->turns,
		.out_bytes = row->out_bytes,
		.in_bytes = row->in_bytes,
		.clean_bytes = row->clean_bytes,
		.waits = row->waits,
		.waits_ms = row->waits_ms,
		.denials = row->denials,
		.compute_us = row->compute_us,
		.compute_alone_us = row->compute_alone_us,
		.compute_request_pm = row->compute_request_pm,
		.metered = row->compute_used_pm != UINT32_MAX,
		.waited_ms = row->waited_ms,
		.turn_left_ms = row->turn_left_ms,
	};
}

static void take_client(
	struct sl_history_sample *sample, const struct sl_msg_client_row *row)
{
	struct sl_history_seen *use =
		sl_history_sample_find(sample, row->workload, row->gpu);

	if (!use)
		return;
	use->clients++;
	if (!(row->flags & SL_CLIENT_IDLE))
		return;
	use->idle_clients++;
	use->idle_ms = sl_min_u64(use->idle_ms, row->idle_ms);
}

void sl_history_sample_take(struct sl_history_sample *sample, const union sl_msg *row)
{
	switch (row->head.type) {
	case SL_MSG_GPU_ROW:
		if (row->gpu_row.gpu >= SL_HISTORY_GPU_NUMBERS)
			return;
		sample->gpus[row->gpu_row.gpu].there = true;
		sample->gpus[row->gpu_row.gpu].row = row->gpu_row;
		break;
	case SL_MSG_USE_ROW: take_use(sample, &row->use_row); break;
	case SL_MSG_CLIENT_ROW: take_client(sample, &row->client_row); break;
	default: break;
	}
}

/* --- rows --------------------------------------------------------------------------------- */

struct between {
	const struct sl_history_sample *before, *now;
	struct sl_history_tables *tables;
	/* By GPU: workloads that worked, wait to return, wait for memory; utilisation in
	 * thousandths; use; and millionths that are allocated. */
	uint32_t active[SL_HISTORY_GPU_NUMBERS];
	bool by_process[SL_HISTORY_GPU_NUMBERS]; /* NVML reports shares of processes */
	uint32_t told_pm[SL_HISTORY_GPU_NUMBERS], gone_pm[SL_HISTORY_GPU_NUMBERS];
	uint32_t returning[SL_HISTORY_GPU_NUMBERS], asking[SL_HISTORY_GPU_NUMBERS];
	int64_t utilisation_pm[SL_HISTORY_GPU_NUMBERS]; /* -1: not known */
	struct sl_usage_gpu usage[SL_HISTORY_GPU_NUMBERS];
	int64_t allocated_ppm[SL_HISTORY_GPU_NUMBERS];
};

/* A part of it within one minute. */
struct piece {
	int64_t t, span;
	bool first; /* counters go into the first */
};

static int64_t kib(uint64_t bytes)
{
	/* 256 TiB at most, so that a sum over an hour fits, and its product with an hour. */
	return (int64_t)(sl_min_u64(bytes, 1ull << 48) >> 10);
}

static uint64_t resident_of(const struct sl_history_seen *use)
{
	return sl_sub_sat(use->backing_bytes, use->evicted_bytes);
}

static uint64_t here_of(const struct sl_history_seen *use)
{
	return resident_of(use) + use->hidden_bytes;
}

static struct sl_usage_look look_of(const struct sl_history_seen *use)
{
	return (struct sl_usage_look){.here_bytes = here_of(use),
		.clients = use->clients,
		.idle_clients = use->idle_clients,
		.idle_ms = use->idle_ms,
		.work_pm = use->work_pm <= 1000 ? use->work_pm : SL_USAGE_UNTOLD};
}

/* Whether the workload worked between the samples. later: NULL if it is gone. */
static enum sl_usage_work work_of(const struct between *between,
	const struct sl_history_seen *use, const struct sl_history_seen *later)
{
	struct sl_usage_look before = look_of(use), now = {0};

	if (between->utilisation_pm[use->gpu] < 0)
		return SL_USAGE_UNKNOWN;
	if (between->utilisation_pm[use->gpu] == 0)
		return SL_USAGE_IDLE;
	if (later)
		now = look_of(later);
	return sl_usage_work(&before, later ? &now : NULL, between->by_process[use->gpu],
		(uint64_t)(between->now->t - between->before->t) * 1000);
}

/* In millionths of the GPU. */
static uint32_t allocated_of(
	const struct between *between, const struct sl_history_seen *use)
{
	return sl_usage_allocated(
		&between->usage[use->gpu], use->request_bytes, here_of(use));
}

static bool is_gone(const struct sl_history_seen *later)
{
	return !later || !later->clients;
}

/* Counts a workload that worked, and adds up its share: the later sample's or, if the workload is
 * gone, the last one known. */
static void count_work(struct between *between, const struct sl_history_seen *use)
{
	const struct sl_history_seen *later =
		sl_history_sample_find(between->now, use->workload, use->gpu);

	if (work_of(between, use, later) != SL_USAGE_WORKED)
		return;
	between->active[use->gpu]++;
	if (!between->by_process[use->gpu])
		return;
	if (is_gone(later))
		between->gone_pm[use->gpu] += use->work_pm;
	else
		between->told_pm[use->gpu] += later->work_pm;
}

/* Its share of the GPU's work in millionths. Workloads that are gone divide what the others
 * leave. */
static uint32_t told_ppm(const struct between *between, const struct sl_history_seen *use,
	const struct sl_history_seen *later)
{
	uint64_t gone_pm = between->gone_pm[use->gpu];
	uint64_t left_pm = sl_sub_sat(1000, between->told_pm[use->gpu]);

	if (!is_gone(later))
		return later->work_pm * 1000;
	return (uint32_t)(use->work_pm * 1000ull * sl_min_u64(left_pm, gone_pm) /
			  gone_pm);
}

/* In millionths; for a workload that worked. */
static uint32_t used_of(const struct between *between, const struct sl_history_seen *use,
	const struct sl_history_seen *later)
{
	uint32_t part_ppm = between->by_process[use->gpu]
				    ? told_ppm(between, use, later)
				    : SL_USAGE_WHOLE / between->active[use->gpu];

	return sl_usage_used(allocated_of(between, use),
		(uint32_t)between->utilisation_pm[use->gpu], part_ppm);
}

static void look_at_gpus(struct between *between)
{
	for (uint32_t g = 0; g < SL_HISTORY_GPU_NUMBERS; g++) {
		const struct sl_msg_gpu_row *row = &between->now->gpus[g].row;

		between->usage[g].shareable_bytes =
			between->before->gpus[g].row.shareable_bytes;
		between->utilisation_pm[g] = -1;
		if (between->now->gpus[g].there && !(row->condition & SL_GPU_LOST) &&
			row->measured_age_ms <= SL_HISTORY_MEASURED_MS)
			between->utilisation_pm[g] =
				(int64_t)sl_min_u64(row->utilisation_pct, 100) * 10;
	}
	/* NVML reports shares for all workloads of a GPU, or for none. */
	for (size_t i = 0; i < between->now->count; i++)
		between->by_process[between->now->uses[i].gpu] |=
			between->now->uses[i].work_pm != UINT32_MAX;
	for (size_t i = 0; i < between->before->count; i++)
		sl_usage_add(&between->usage[between->before->uses[i].gpu],
			between->before->uses[i].request_bytes,
			here_of(&between->before->uses[i]));
	for (size_t i = 0; i < between->before->count; i++) {
		const struct sl_history_seen *use = &between->before->uses[i];

		between->returning[use->gpu] += use->waited_ms > 0;
		between->asking[use->gpu] += use->waiting > 0;
		count_work(between, use);
		between->allocated_ppm[use->gpu] += allocated_of(between, use);
	}
}

/* Does the workload have a turn? It does if it is entirely resident on all its GPUs (consecutive
 * rows) while others wait to return. Others that wait for more memory count only while the
 * workload's turn is counted down. */
static bool has_turn(const struct between *between, const struct sl_history_seen *use)
{
	const struct sl_history_sample *sample = between->before;
	const struct sl_history_seen *at = use - use->ordinal;
	uint64_t backing = 0;

	if (use->residency != SL_WIRE_BOUND || use->waiting)
		return false;
	if (!between->returning[use->gpu] &&
		!(between->asking[use->gpu] && use->turn_left_ms))
		return false;
	for (; at < sample->uses + sample->count && at->workload == use->workload; at++) {
		if (at->evicted_bytes || at->waited_ms)
			return false;
		backing += at->backing_bytes;
	}
	return backing > 0;
}

/* The growth of a counter; one that started over counts whole. */
static int64_t grown(uint64_t before, uint64_t now)
{
	return (int64_t)(now >= before ? now - before : now);
}

static void count_use(int64_t *value, const struct sl_history_seen *use,
	const struct sl_history_seen *later)
{
	static const struct sl_history_seen nothing;
	/* Nothing that it did before its first sample is counted yet. */
	const struct sl_history_seen *from = use->fresh ? &nothing : use;
	const struct sl_history_seen *to = later ? later : use;

	value[SL_HISTORY_USE_out] = kib((uint64_t)grown(from->out_bytes, to->out_bytes));
	value[SL_HISTORY_USE_in] = kib((uint64_t)grown(from->in_bytes, to->in_bytes));
	value[SL_HISTORY_USE_clean] =
		kib((uint64_t)grown(from->clean_bytes, to->clean_bytes));
	if (use->ordinal)
		return;
	value[SL_HISTORY_USE_turns] = grown(from->turns, to->turns);
	value[SL_HISTORY_USE_waits] = grown(from->waits, to->waits);
	value[SL_HISTORY_USE_waiting_ms] = grown(from->waits_ms, to->waits_ms);
	value[SL_HISTORY_USE_denials] = grown(from->denials, to->denials);
}

/* Shares of time. Between two samples of a metered GPU all time counts in which something competed
 * with the workload. */
static void count_compute(const struct between *between, int64_t *value,
	const struct sl_history_seen *use, const struct sl_history_seen *later)
{
	int64_t span_ms = (between->now->t - between->before->t) * 1000, alone_ms;

	if (!use->metered || !later || !later->metered)
		return;
	alone_ms = grown(use->compute_alone_us, later->compute_alone_us) / 1000;
	value[SL_HISTORY_USE_contested_ms] = alone_ms < span_ms ? span_ms - alone_ms : 0;
	value[SL_HISTORY_USE_compute_us] =
		(int64_t)sl_min_u64((uint64_t)grown(use->compute_us, later->compute_us),
			(uint64_t)value[SL_HISTORY_USE_contested_ms] * 1000);
}

static int add_use(struct between *between, const struct sl_history_seen *use,
	const struct piece *piece)
{
	const struct sl_history_seen *later =
		sl_history_sample_find(between->now, use->workload, use->gpu);
	struct sl_history_row row = {.t = piece->t,
		.span = piece->span,
		.gpu = between->before->gpus[use->gpu].id,
		.workload = use->id};
	int64_t *value = row.value, span = piece->span;
	enum sl_usage_work work = work_of(between, use, later);

	if (!row.gpu || !row.workload)
		return 0;
	value[SL_HISTORY_USE_request] = kib(use->request_bytes) * span;
	value[SL_HISTORY_USE_limit] = kib(use->limit_bytes) * span;
	value[SL_HISTORY_USE_backing] = kib(use->backing_bytes) * span;
	value[SL_HISTORY_USE_resident] = kib(resident_of(use)) * span;
	value[SL_HISTORY_USE_evicted] = kib(use->evicted_bytes) * span;
	value[SL_HISTORY_USE_hidden] = kib(use->hidden_bytes) * span;
	value[SL_HISTORY_USE_most] = kib(use->backing_bytes + use->hidden_bytes);
	value[SL_HISTORY_USE_asked] =
		kib(use->backing_bytes + use->hidden_bytes + use->waiting_bytes);
	value[SL_HISTORY_USE_allocated_us] = allocated_of(between, use) * span;
	value[SL_HISTORY_USE_turn_ms] = has_turn(between, use) ? span * 1000 : 0;
	if (work == SL_USAGE_WORKED) {
		value[SL_HISTORY_USE_active_ms] = span * 1000;
		value[SL_HISTORY_USE_used_us] = used_of(between, use, later) * span;
	} else if (work == SL_USAGE_IDLE) {
		value[SL_HISTORY_USE_idle_us] = value[SL_HISTORY_USE_allocated_us];
	}
	value[SL_HISTORY_USE_compute_request] = (int64_t)use->compute_request_pm * span;
	if (piece->first) {
		count_use(value, use, later);
		count_compute(between, value, use, later);
	}
	if (between->tables->summing)
		sl_history_summing_use(
			between->tables->summing, use->user, use->project, value);
	return sl_history_runs_add(&between->tables->runs[SL_HISTORY_USES], &row,
		&between->tables->out[SL_HISTORY_USES]);
}

static int add_gpu(struct between *between, uint32_t g, const struct piece *piece)
{
	const struct sl_msg_gpu_row *gpu = &between->before->gpus[g].row;
	struct sl_history_row row = {
		.t = piece->t, .span = piece->span, .gpu = between->before->gpus[g].id};
	int64_t *value = row.value, span = piece->span, pm = between->utilisation_pm[g];
	uint64_t evicted = 0, resident;

	for (size_t i = 0; i < between->before->count; i++) {
		if (between->before->uses[i].gpu == g)
			evicted += between->before->uses[i].evicted_bytes;
	}
	resident = sl_sub_sat(gpu->backing_bytes, evicted);
	value[SL_HISTORY_GPU_shareable] = kib(gpu->shareable_bytes) * span;
	value[SL_HISTORY_GPU_requests] = kib(gpu->requests_bytes) * span;
	value[SL_HISTORY_GPU_resident] = kib(resident) * span;
	value[SL_HISTORY_GPU_evicted] = kib(evicted) * span;
	value[SL_HISTORY_GPU_hidden] = kib(gpu->hidden_bytes) * span;
	value[SL_HISTORY_GPU_unmanaged] = kib(gpu->unmanaged_bytes) * span;
	value[SL_HISTORY_GPU_free] = kib(gpu->free_bytes) * span;
	value[SL_HISTORY_GPU_most] =
		kib(resident + gpu->hidden_bytes + gpu->unmanaged_bytes);
	value[SL_HISTORY_GPU_allocated_us] = between->allocated_ppm[g] * span;
	if (pm >= 0) {
		value[SL_HISTORY_GPU_known_ms] = span * 1000;
		value[SL_HISTORY_GPU_busy_us] = pm * 1000 * span;
		value[SL_HISTORY_GPU_by_process_ms] =
			between->by_process[g] ? span * 1000 : 0;
	}
	if (pm == 0)
		value[SL_HISTORY_GPU_idle_us] = value[SL_HISTORY_GPU_allocated_us];
	if (between->tables->summing)
		sl_history_summing_gpu(
			between->tables->summing, between->before->gpus[g].place, value);
	return sl_history_runs_add(&between->tables->runs[SL_HISTORY_GPUS], &row,
		&between->tables->out[SL_HISTORY_GPUS]);
}

static int add_piece(struct between *between, const struct piece *piece)
{
	int r = 0;

	for (size_t i = 0; i < between->before->count && r == 0; i++)
		r = add_use(between, &between->before->uses[i], piece);
	for (uint32_t g = 0; g < SL_HISTORY_GPU_NUMBERS && r == 0; g++) {
		if (between->before->gpus[g].there && between->before->gpus[g].id)
			r = add_gpu(between, g, piece);
	}
	return r;
}

int sl_history_sample_rows(const struct sl_history_sample *before,
	const struct sl_history_sample *now, struct sl_history_tables *tables)
{
	struct between between = {.before = before, .now = now, .tables = tables};
	struct piece piece = {.t = before->t, .first = true};
	int r = 0;

	if (before->t && now->t > before->t && now->t - before->t <= SL_HISTORY_GAP_S) {
		look_at_gpus(&between);
		for (; piece.t < now->t && r == 0; piece.t += piece.span) {
			int64_t end = piece.t / 60 * 60 + 60;

			piece.span = (end < now->t ? end : now->t) - piece.t;
			r = add_piece(&between, &piece);
			piece.first = false;
		}
	}
	for (int kind = 0; kind < SL_HISTORY_KINDS && r == 0; kind++)
		r = sl_history_runs_sweep(
			&tables->runs[kind], now->t, &tables->out[kind]);
	return r;
}

/* --- programs ----------------------------------------------------------------------------- */

/* Copies the word at *at without its folder, and moves *at behind it. False at the end. */
static bool next_word(const char **at, char *word, size_t size)
{
	const char *begin, *base;

	while (**at == ' ')
		++*at;
	if (!**at)
		return false;
	begin = base = *at;
	for (; **at && **at != ' '; ++*at) {
		if (**at == '/' && (*at)[1] && (*at)[1] != ' ')
			base = *at + 1;
	}
	/* Options are recognised by their dash, before any slash is looked for. */
	if (*begin == '-')
		base = begin;
	(void)snprintf(word, size, "%.*s", (int)(*at - base), base);
	return true;
}

/* Programs that run the file named next; some have a version in their name. */
static bool is_interpreter(char *word)
{
	static const char *const names[] = {"python", "pypy", "bash", "sh", "dash", "zsh",
		"perl", "ruby", "node", "java", "julia", "Rscript", "lua", "php",
		"torchrun", "accelerate"};
	size_t length = strlen(word);

	while (length &&
		(isdigit((unsigned char)word[length - 1]) || word[length - 1] == '.'))
		length--;
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (strlen(names[i]) == length && strncmp(word, names[i], length) == 0) {
			word[length] = '\0';
			return true;
		}
	}
	return false;
}

void sl_history_program(const char *command, char *buf, size_t size)
{
	char word[128];
	size_t used;

	buf[0] = '\0';
	if (!next_word(&command, buf, size) || !is_interpreter(buf))
		return;
	/* The first argument that is no option; "-m module" is a program, too. */
	while (next_word(&command, word, sizeof(word))) {
		bool is_module = strcmp(word, "-m") == 0;

		if (strcmp(word, "-c") == 0)
			return; /* a program without a name */
		if (word[0] == '-' && !is_module)
			continue;
		if (is_module && !next_word(&command, word, sizeof(word)))
			return;
		used = strlen(buf);
		(void)snprintf(buf + used, size - used, " %s", word);
		return;
	}
}

const char *sl_history_group(const char *name, const char *command, const char *program)
{
	char chosen[64];
	size_t length;

	sl_field_make_name(command, "", 0, chosen);
	length = strlen(chosen) - 1; /* without the number */
	if (!*name)
		return program;
	if (strncmp(name, chosen, length) == 0) {
		const char *number = name + length + (name[length] == 'j');

		if (*number && !number[strspn(number, "0123456789")])
			return program;
	}
	return name;
}
