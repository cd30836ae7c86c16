/* mix - see the header. Jobs of each sort are drawn with replacement until their part is
 * reached. */
#include "cli/simulate/mix.h"

#include <stdlib.h>
#include <string.h>

/* Sorts of jobs. */
enum { NO_GPU, SHARE, ONE, MULTI, SORTS };

static const struct mix {
	const char *name;
	int share, multi, spec, common, cpu_jobs, cpu;
	const char *text;
} mixes[] = {
#define SL_MIX(name, share, multi, spec, common, cpu_jobs, cpu, text) \
	{#name, share, multi, spec, common, cpu_jobs, cpu, text},
#include "cli/simulate/mixes.def"
#undef SL_MIX
};

uint64_t sl_simulate_seeded(uint64_t seed)
{
	uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;

	for (int i = 0; i < 8; i++)
		sl_draw(&state);
	return state;
}

const char *sl_simulate_mix_name(uint32_t number, const char **text)
{
	if (number >= SL_ARRAY_LEN(mixes))
		return NULL;
	*text = mixes[number].text;
	return mixes[number].name;
}

static int sort_of(const struct sl_need *need)
{
	if (!need->gpus)
		return NO_GPU;
	if (need->gpus > 1)
		return MULTI;
	return need->gpu_milli < SL_FIT_WHOLE ? SHARE : ONE;
}

/* The weight of a job: its GPU thousandths, or 1 without GPUs. */
static uint64_t weight_of(const struct sl_need *need)
{
	return need->gpus ? sl_trace_milli(need) : 1;
}

struct making {
	struct sl_trace *trace;
	const struct mix *mix;
	uint64_t random;
	uint32_t *of[SORTS], count[SORTS]; /* jobs of the trace, by sort */
	uint64_t wanted[SORTS];
	uint64_t gpus[SL_TRACE_MODELS], all_gpus; /* of each model; models are drawn in
						   * proportion */
	struct sl_trace_job *jobs;
	uint32_t made, room;
};

static bool sort_out(struct making *m)
{
	for (int sort = 0; sort < SORTS; sort++) {
		m->of[sort] = malloc(m->trace->job_count * sizeof(**m->of));
		if (!m->of[sort])
			return false;
	}
	for (uint32_t i = 0; i < m->trace->job_count; i++) {
		const struct sl_need *need = &m->trace->jobs[i].need;
		int sort = sort_of(need);

		m->of[sort][m->count[sort]++] = i;
		m->wanted[sort] += weight_of(need);
	}
	return true;
}

/* Gives `sort` that percentage of the demand; the other sorts keep their proportions in the
 * rest. */
static void set_part(struct making *m, int sort, int pct)
{
	uint64_t all = m->wanted[SHARE] + m->wanted[ONE] + m->wanted[MULTI];
	uint64_t others = all - m->wanted[sort];
	uint64_t rest = all / 100 * (uint64_t)(100 - pct);

	for (int other = SHARE; other < SORTS; other++)
		if (other != sort)
			m->wanted[other] = others ? (uint64_t)((double)rest *
							       (double)m->wanted[other] /
							       (double)others)
						  : 0;
	m->wanted[sort] = all / 100 * (uint64_t)pct;
}

static bool runs_somewhere(const struct sl_trace *trace, const struct sl_need *need)
{
	for (uint32_t i = 0; i < trace->node_count; i++)
		if (sl_fit_ever(&trace->nodes[i], need))
			return true;
	return false;
}

/* Counts the commonest model with `common` percent of its GPUs. */
static void count_models(struct making *m)
{
	uint32_t commonest = 0;

	for (uint32_t i = 0; i < m->trace->node_count; i++)
		m->gpus[m->trace->nodes[i].model] += m->trace->nodes[i].gpus;
	for (uint32_t i = 1; i < SL_TRACE_MODELS; i++)
		if (m->gpus[i] > m->gpus[commonest])
			commonest = i;
	if (m->mix->common >= 0)
		m->gpus[commonest] =
			(m->gpus[commonest] * (uint64_t)m->mix->common + 99) / 100;
	for (uint32_t i = 0; i < SL_TRACE_MODELS; i++)
		m->all_gpus += m->gpus[i];
}

/* Draws one model or two, in proportion to their GPUs. */
static uint64_t draw_models(struct making *m)
{
	uint64_t models = 0;

	for (int n = 1 + (int)(sl_draw(&m->random) % 2); n; n--) {
		uint64_t gpu = sl_draw(&m->random) % m->all_gpus;
		uint32_t model = 0;

		while (gpu >= m->gpus[model])
			gpu -= m->gpus[model++];
		models |= UINT64_C(1) << model;
	}
	return models;
}

/* Makes the need harder to place, as long as it still fits somewhere. */
static void change(struct making *m, struct sl_need *need)
{
	struct sl_need other = *need;

	if (!need->gpus)
		return;
	if (m->mix->cpu >= 0)
		other.cpu_milli = (uint32_t)((uint64_t)need->cpu_milli *
					     (uint64_t)m->mix->cpu / 100);
	if (runs_somewhere(m->trace, &other))
		*need = other;
	if (m->mix->spec < 0 || sl_draw(&m->random) % 100 >= (uint64_t)m->mix->spec)
		return;
	other = *need;
	other.models = draw_models(m);
	if (runs_somewhere(m->trace, &other))
		*need = other;
}

static bool draw_sort(struct making *m, int sort)
{
	uint64_t got = 0;

	while (m->count[sort] && got < m->wanted[sort]) {
		struct sl_trace_job job =
			m->trace->jobs[m->of[sort][sl_draw(&m->random) % m->count[sort]]];

		if (m->made == m->room) {
			struct sl_trace_job *grown;

			m->room = m->room ? 2 * m->room : 1024;
			grown = realloc(m->jobs, m->room * sizeof(*grown));
			if (!grown)
				return false;
			m->jobs = grown;
		}
		got += weight_of(&job.need);
		change(m, &job.need);
		m->jobs[m->made++] = job;
	}
	return true;
}

/* A sort that is wanted, of which the trace has no job; SORTS: none. */
static int lacking_sort(const struct making *m)
{
	int sort = 0;

	while (sort < SORTS && !(m->wanted[sort] && !m->count[sort]))
		sort++;
	return sort;
}

static bool make(struct making *m, struct sl_error *err)
{
	static const char *const names[SORTS] = {[NO_GPU] = "no GPU",
		[SHARE] = "a part of a GPU",
		[ONE] = "one GPU",
		[MULTI] = "several GPUs"};
	int lacking;

	sl_error_set(err, "out of memory");
	if (!sort_out(m))
		return false;
	count_models(m);
	if (m->mix->share >= 0)
		set_part(m, SHARE, m->mix->share);
	if (m->mix->multi >= 0)
		set_part(m, MULTI, m->mix->multi);
	if (m->mix->cpu_jobs >= 0)
		m->wanted[NO_GPU] = m->wanted[NO_GPU] * (uint64_t)m->mix->cpu_jobs / 100;
	lacking = lacking_sort(m);
	if (lacking < SORTS) {
		sl_error_set(err,
			"the mix '%s' needs jobs with %s, and the trace has none; choose "
			"another trace or mix",
			m->mix->name, names[lacking]);
		return false;
	}
	for (int sort = 0; sort < SORTS; sort++)
		if (!draw_sort(m, sort))
			return false;
	if (!m->made)
		sl_error_set(err, "the trace has no jobs to mix");
	return m->made;
}

int sl_simulate_mix(
	struct sl_trace *trace, const char *name, uint64_t seed, struct sl_error *err)
{
	struct making m = {.trace = trace, .random = sl_simulate_seeded(seed)};
	bool made;

	for (uint32_t i = 0; i < SL_ARRAY_LEN(mixes); i++)
		if (!strcmp(mixes[i].name, name))
			m.mix = &mixes[i];
	if (!m.mix) {
		sl_error_set(err, "there is no mix '%s'; `--mix list` names them", name);
		return SL_TRACE_BAD;
	}
	made = make(&m, err);
	for (int sort = 0; sort < SORTS; sort++)
		free(m.of[sort]);
	if (!made) {
		free(m.jobs);
		return SL_TRACE_BAD;
	}
	free(trace->jobs);
	trace->jobs = m.jobs;
	trace->job_count = m.made;
	return SL_TRACE_OK;
}
