/* trace - see the header */
#include "cli/simulate/trace.h"

#include "cli/simulate/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1,000,000 cores; 4 PiB. A GPU has at most 4 TiB. */
#define CPU_MOST     1000000000u
#define MEMORY_MOST  UINT32_MAX
#define GPU_MIB_MOST (4u * 1024 * 1024)

/* Makes space for one more entry in an array that doubles. NULL with err. */
static void *room_for_one(void *array, uint32_t count, size_t size, uint32_t most,
	const struct sl_csv *csv, struct sl_error *err)
{
	void *grown;

	if (count >= most) {
		sl_csv_complain(csv, err, "more than %u lines", most);
		return NULL;
	}
	if (count & (count - 1))
		return array;
	grown = realloc(array, (count ? 2 * (size_t)count : 1) * size);
	if (!grown)
		sl_error_set(err, "cannot read %s: out of memory", csv->path);
	return grown;
}

/* The number of a model by name; a new name is added. -1 with err. */
static int model_number(struct sl_trace *trace, const char *name,
	const struct sl_csv *csv, struct sl_error *err)
{
	for (uint32_t i = 0; i < trace->model_count; i++)
		if (!strcmp(trace->models[i], name))
			return (int)i;
	if (trace->model_count == SL_TRACE_MODELS || strlen(name) >= SL_TRACE_MODEL) {
		sl_csv_complain(csv, err,
			strlen(name) >= SL_TRACE_MODEL
				? "the model '%.40s' has too long a name"
				: "the model '%.40s' is one too many: 64 can be told "
				  "apart",
			name);
		return -1;
	}
	snprintf(trace->models[trace->model_count], SL_TRACE_MODEL, "%s", name);
	return (int)trace->model_count++;
}

struct node_columns {
	int cpu, memory, gpus, model, gpu_mib;
	struct sl_work_node_columns work;
};

/* Columns for projects. */
static bool read_node_work(struct sl_trace *trace, const struct sl_csv *csv,
	const struct node_columns *at, uint8_t *pool, struct sl_error *err)
{
	struct sl_work_node *nodes;

	*pool = 0;
	if (!trace->work)
		return true;
	nodes = room_for_one(trace->work_nodes, trace->node_count, sizeof(*nodes),
		SL_TRACE_NODES, csv, err);
	if (!nodes)
		return false;
	trace->work_nodes = nodes;
	return sl_work_read_node(
		trace->work, csv, &at->work, &nodes[trace->node_count], pool, err);
}

static bool read_node(struct sl_trace *trace, const struct sl_csv *csv,
	const struct node_columns *at, struct sl_error *err)
{
	uint64_t cpu, memory, gpus, gpu_mib;
	struct sl_fit_node *nodes;
	uint8_t pool;
	int model;

	if (!sl_csv_number(csv, at->cpu, -1, CPU_MOST, &cpu, err) ||
		!sl_csv_number(csv, at->memory, -1, MEMORY_MOST, &memory, err) ||
		!sl_csv_number(csv, at->gpus, -1, SL_FIT_GPUS_MAX, &gpus, err) ||
		!sl_csv_number(csv, at->gpu_mib, 0, GPU_MIB_MOST, &gpu_mib, err))
		return false;
	model = model_number(trace, at->model < 0 ? "" : csv->field[at->model], csv, err);
	if (model < 0 || !read_node_work(trace, csv, at, &pool, err))
		return false;
	nodes = room_for_one(trace->nodes, trace->node_count, sizeof(*nodes),
		SL_TRACE_NODES, csv, err);
	if (!nodes)
		return false;
	trace->nodes = nodes;
	sl_fit_node_init(&nodes[trace->node_count++], (uint32_t)cpu, (uint32_t)memory,
		(uint16_t)gpus, (uint32_t)gpu_mib, (uint8_t)model, pool);
	trace->capacity_milli += gpus * SL_FIT_WHOLE;
	return true;
}

int sl_trace_nodes(struct sl_trace *trace, const char *path, struct sl_error *err)
{
	sl_cleanup(sl_csv_fini) struct sl_csv csv = {0};
	struct node_columns at;
	int more;

	if (!sl_csv_open(&csv, path, err))
		return SL_TRACE_BAD;
	at.cpu = sl_csv_need(&csv, "cpu_milli", err);
	at.memory = sl_csv_need(&csv, "memory_mib", err);
	at.gpus = sl_csv_need(&csv, "gpu", err);
	at.model = sl_csv_column(&csv, "model");
	at.gpu_mib = sl_csv_column(&csv, "gpu_mib");
	sl_work_find_node_columns(&csv, &at.work);
	if (at.cpu < 0 || at.memory < 0 || at.gpus < 0)
		return SL_TRACE_BAD;
	while ((more = sl_csv_next(&csv, err)) > 0)
		if (!read_node(trace, &csv, &at, err))
			return SL_TRACE_BAD;
	if (!more && !trace->capacity_milli)
		sl_error_set(err, "%s has no node with a GPU", path);
	return more || !trace->capacity_milli ? SL_TRACE_BAD : SL_TRACE_OK;
}

struct job_columns {
	int cpu, memory, gpus, milli, spec, gpu_mib, created, ended;
	struct sl_work_job_columns work;
};

/* Models by name, '|' between. A model that no node has counts too: such a job fits nowhere. */
static bool read_spec(struct sl_trace *trace, const struct sl_csv *csv, char *spec,
	uint64_t *models, struct sl_error *err)
{
	char *rest = NULL;

	*models = 0;
	for (char *name = strtok_r(spec, "|", &rest); name;
		name = strtok_r(NULL, "|", &rest)) {
		int model = model_number(trace, name, csv, err);

		if (model < 0)
			return false;
		*models |= UINT64_C(1) << model;
	}
	return true;
}

static bool read_need(struct sl_trace *trace, const struct sl_csv *csv,
	const struct job_columns *at, struct sl_need *need, struct sl_error *err)
{
	uint64_t cpu, memory, gpus, milli, gpu_mib;

	if (!sl_csv_number(csv, at->cpu, -1, CPU_MOST, &cpu, err) ||
		!sl_csv_number(csv, at->memory, -1, MEMORY_MOST, &memory, err) ||
		!sl_csv_number(csv, at->gpus, -1, 1024, &gpus, err) ||
		!sl_csv_number(csv, at->milli, 0, SL_FIT_WHOLE, &milli, err) ||
		!sl_csv_number(csv, at->gpu_mib, 0, GPU_MIB_MOST, &gpu_mib, err))
		return false;
	if (gpus && !milli && !gpu_mib) {
		sl_csv_complain(csv, err,
			"it asks for GPUs, but for no share of them: gpu_milli is 0");
		return false;
	}
	*need = (struct sl_need){(uint32_t)cpu, (uint32_t)memory, (uint16_t)gpus,
		(uint16_t)milli, (uint32_t)gpu_mib, 0, 0};
	if (!gpus)
		need->gpu_milli = 0;
	return at->spec < 0 || !gpus ||
	       read_spec(trace, csv, csv->field[at->spec], &need->models, err);
}

static bool read_job_work(struct sl_trace *trace, const struct sl_csv *csv,
	const struct job_columns *at, const struct sl_need *need, struct sl_error *err)
{
	struct sl_work_job *jobs;

	if (!trace->work)
		return true;
	jobs = room_for_one(trace->work_jobs, trace->job_count, sizeof(*jobs),
		SL_TRACE_JOBS, csv, err);
	if (!jobs)
		return false;
	trace->work_jobs = jobs;
	return sl_work_read_job(
		trace->work, csv, &at->work, need, &jobs[trace->job_count], err);
}

static bool read_job(struct sl_trace *trace, const struct sl_csv *csv,
	const struct job_columns *at, struct sl_error *err)
{
	struct sl_trace_job *jobs, job = {0};

	if (!read_need(trace, csv, at, &job.need, err) ||
		!sl_csv_seconds(csv, at->created, &job.created, err) ||
		!sl_csv_seconds(csv, at->ended, &job.ended, err) ||
		!read_job_work(trace, csv, at, &job.need, err))
		return false;
	jobs = room_for_one(
		trace->jobs, trace->job_count, sizeof(*jobs), SL_TRACE_JOBS, csv, err);
	if (!jobs)
		return false;
	trace->jobs = jobs;
	jobs[trace->job_count++] = job;
	return true;
}

int sl_trace_jobs(struct sl_trace *trace, const char *path, struct sl_error *err)
{
	sl_cleanup(sl_csv_fini) struct sl_csv csv = {0};
	struct job_columns at;
	int more;

	if (!sl_csv_open(&csv, path, err))
		return SL_TRACE_BAD;
	at.cpu = sl_csv_need(&csv, "cpu_milli", err);
	at.memory = sl_csv_need(&csv, "memory_mib", err);
	at.gpus = sl_csv_need(&csv, "num_gpu", err);
	at.milli = sl_csv_need(&csv, "gpu_milli", err);
	at.spec = sl_csv_column(&csv, "gpu_spec");
	at.gpu_mib = sl_csv_column(&csv, "gpu_mib");
	at.created = sl_csv_column(&csv, "creation_time");
	at.ended = sl_csv_column(&csv, "deletion_time");
	sl_work_find_job_columns(&csv, &at.work);
	if (at.cpu < 0 || at.memory < 0 || at.gpus < 0 || at.milli < 0)
		return SL_TRACE_BAD;
	while ((more = sl_csv_next(&csv, err)) > 0)
		if (!read_job(trace, &csv, &at, err))
			return SL_TRACE_BAD;
	if (!more && !trace->job_count)
		sl_error_set(err, "%s has no jobs", path);
	return more || !trace->job_count ? SL_TRACE_BAD : SL_TRACE_OK;
}

void sl_trace_fini(struct sl_trace *trace)
{
	free(trace->nodes);
	free(trace->jobs);
	free(trace->work_nodes);
	free(trace->work_jobs);
	memset(trace, 0, sizeof(*trace));
}

/* --- Orders of arrival. --- */

/* The numbers of a field, each below `most`, in a new array. NULL with err. */
static uint32_t *read_numbers(const struct sl_csv *csv, const char *text, uint32_t most,
	uint32_t *count, struct sl_error *err)
{
	size_t room = strlen(text) / 2 + 1;
	uint32_t *numbers = malloc(room * sizeof(*numbers));

	*count = 0;
	if (!numbers)
		sl_error_set(err, "cannot read %s: out of memory", csv->path);
	while (numbers && *text) {
		char *end;
		unsigned long number;

		errno = 0;
		number = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || errno || (*end && *end != ' ') ||
			number >= most) {
			sl_csv_complain(csv, err,
				"number %u of its indices, '%.*s', is none of 0 to %u",
				*count + 1, (int)strcspn(text, " ") % 40, text, most - 1);
			free(numbers);
			return NULL;
		}
		numbers[(*count)++] = (uint32_t)number;
		text = *end ? end + 1 : end;
	}
	return numbers;
}

/* The entry of this seed, added if missing; NULL with err. */
static struct sl_arrivals *arrivals_of(struct sl_arrivals_list *list, uint64_t seed,
	const struct sl_csv *csv, struct sl_error *err)
{
	struct sl_arrivals *all;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->all[i].seed == seed)
			return &list->all[i];
	all = room_for_one(list->all, list->count, sizeof(*all), 10000, csv, err);
	if (!all)
		return NULL;
	list->all = all;
	all[list->count] = (struct sl_arrivals){.seed = seed};
	return &all[list->count++];
}

static bool read_arrivals(struct sl_arrivals_list *list, const struct sl_trace *trace,
	const struct sl_csv *csv, const int *at, struct sl_error *err)
{
	bool pods = !strcmp(csv->field[at[1]], "pods");
	struct sl_arrivals *arrivals;
	uint32_t count, **into;
	uint64_t seed;

	if (!pods && strcmp(csv->field[at[1]], "nodes") != 0) {
		sl_csv_complain(csv, err, "kind is '%.40s'; it must be pods or nodes",
			csv->field[at[1]]);
		return false;
	}
	if (!sl_csv_number(csv, at[0], -1, UINT64_MAX, &seed, err))
		return false;
	arrivals = arrivals_of(list, seed, csv, err);
	if (!arrivals)
		return false;
	into = pods ? &arrivals->jobs : &arrivals->ranks;
	if (*into) {
		sl_csv_complain(csv, err, "seed %llu has had its %s already",
			(unsigned long long)seed, csv->field[at[1]]);
		return false;
	}
	*into = read_numbers(csv, csv->field[at[2]],
		pods ? trace->job_count : trace->node_count, &count, err);
	if (pods)
		arrivals->count = count;
	if (*into && !pods && count != trace->node_count) {
		sl_csv_complain(
			csv, err, "%u ranks for %u nodes", count, trace->node_count);
		return false;
	}
	return *into != NULL;
}

static bool whole(
	const struct sl_arrivals_list *list, const char *path, struct sl_error *err)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (!list->all[i].jobs) {
			sl_error_set(err, "%s: seed %llu has no line of kind pods", path,
				(unsigned long long)list->all[i].seed);
			return false;
		}
	if (!list->count)
		sl_error_set(err, "%s has no arrivals", path);
	return list->count > 0;
}

int sl_arrivals_read(struct sl_arrivals_list *list, const struct sl_trace *trace,
	const char *path, struct sl_error *err)
{
	sl_cleanup(sl_csv_fini) struct sl_csv csv = {0};
	int at[3], more;

	if (!sl_csv_open(&csv, path, err))
		return SL_TRACE_BAD;
	at[0] = sl_csv_need(&csv, "seed", err);
	at[1] = sl_csv_need(&csv, "kind", err);
	at[2] = sl_csv_need(&csv, "indices", err);
	if (at[0] < 0 || at[1] < 0 || at[2] < 0)
		return SL_TRACE_BAD;
	while ((more = sl_csv_next(&csv, err)) > 0)
		if (!read_arrivals(list, trace, &csv, at, err))
			return SL_TRACE_BAD;
	return more || !whole(list, path, err) ? SL_TRACE_BAD : SL_TRACE_OK;
}

void sl_arrivals_fini(struct sl_arrivals_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		free(list->all[i].jobs);
		free(list->all[i].ranks);
	}
	free(list->all);
	memset(list, 0, sizeof(*list));
}
