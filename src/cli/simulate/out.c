/* out - see the header */
#include "cli/simulate/out.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef double (*figure_fn)(const struct sl_simulate_curve *curve, uint32_t pct);

static double used_at(const struct sl_simulate_curve *curve, uint32_t pct)
{
	return curve->used_pct[pct];
}

static double fragments_at(const struct sl_simulate_curve *curve, uint32_t pct)
{
	return curve->fragments_pct[pct];
}

/* NaN if no seed has a figure. */
static double mean_at(
	const struct sl_simulate_result *result, figure_fn figure, uint32_t pct)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < result->seeds; i++) {
		double value = figure(&result->curves[i], pct);

		if (!isnan(value)) {
			sum += value;
			count++;
		}
	}
	return sum / count;
}

static double last_mean(
	const struct sl_simulate_result *result, figure_fn figure, uint32_t pct)
{
	double mean = mean_at(result, figure, pct);

	while (isnan(mean) && pct)
		mean = mean_at(result, figure, --pct);
	return isnan(mean) ? 0 : mean;
}

double sl_simulate_used(const struct sl_simulate_result *result, uint32_t pct)
{
	return last_mean(result, used_at, pct);
}

double sl_simulate_fragments(const struct sl_simulate_result *result, uint32_t pct)
{
	return last_mean(result, fragments_at, pct);
}

double sl_simulate_speed(const struct sl_simulate_result *result)
{
	double decisions = 0, seconds = 0;

	for (uint32_t i = 0; i < result->seeds; i++) {
		decisions += (double)result->curves[i].arrived;
		seconds += result->curves[i].seconds;
	}
	return seconds > 0 ? decisions / seconds : 0;
}

/* Jobs that arrived and were placed, and tasks that moved. */
struct counts {
	double arrived, placed, moved;
};

static struct counts mean_counts(const struct sl_simulate_result *result)
{
	struct counts sum = {0};

	for (uint32_t i = 0; i < result->seeds; i++) {
		sum.arrived += (double)result->curves[i].arrived / result->seeds;
		sum.placed += (double)result->curves[i].placed / result->seeds;
		sum.moved += (double)result->curves[i].moved / result->seeds;
	}
	return sum;
}

/* --- Text and JSON. --- */

void sl_simulate_print(const struct sl_simulate_result *result, FILE *out)
{
	const struct sl_trace *trace = result->trace;
	uint32_t until = result->until_pct, first = until < 100 ? until : 100;
	struct counts counts = mean_counts(result);

	fprintf(out, "%u nodes, %llu GPUs, %u kinds of GPU; %u jobs%s%s\n",
		trace->node_count,
		(unsigned long long)(trace->capacity_milli / SL_FIT_WHOLE),
		trace->model_count, trace->job_count, result->mix ? " of the mix " : "",
		result->mix ? result->mix : "");
	fprintf(out, "policy %s, arrivals %s, mean of %u %s\n\n",
		sl_placement_policy_name(result->policy), result->arrivals, result->seeds,
		result->seeds == 1 ? "run" : "runs");
	fprintf(out, "%-32s %7u%% %7u%%\n", "DEMAND ARRIVED", first, until);
	fprintf(out, "%-32s %7.2f%% %7.2f%%\n", "GPUs allocated",
		sl_simulate_used(result, first), sl_simulate_used(result, until));
	fprintf(out, "%-32s %7.2f%% %7.2f%%\n", "fragmentation, of all GPUs",
		sl_simulate_fragments(result, first),
		sl_simulate_fragments(result, until));
	fprintf(out, "%-32s %17.1f\n", "jobs placed", counts.placed);
	fprintf(out, "%-32s %17.1f\n", "jobs that fit nowhere",
		counts.arrived - counts.placed);
	if (counts.moved > 0)
		fprintf(out, "%-32s %17.1f\n%-32s %17.2f\n", "tasks moved", counts.moved,
			"tasks moved per 10 jobs placed",
			10 * counts.moved / counts.placed);
	fprintf(out, "%-32s %17.0f\n", "decisions/s of one core",
		sl_simulate_speed(result));
}

json_t *sl_simulate_json(const struct sl_simulate_result *result)
{
	uint32_t until = result->until_pct, first = until < 100 ? until : 100;
	json_t *runs = json_array();

	for (uint32_t i = 0; runs && i < result->seeds; i++) {
		const struct sl_simulate_curve *curve = &result->curves[i];
		struct sl_simulate_result one = *result;

		one.seeds = 1;
		one.curves = curve;
		if (json_array_append_new(
			    runs, json_pack("{s:I, s:I, s:I, s:I, s:f, s:f}", "seed",
					  (json_int_t)result->seed[i], "arrived",
					  (json_int_t)curve->arrived, "placed",
					  (json_int_t)curve->placed, "moved",
					  (json_int_t)curve->moved, "allocated_first_pct",
					  sl_simulate_used(&one, first), "allocated_pct",
					  sl_simulate_used(&one, until))))
			break;
	}
	return json_pack(
		"{s:s, s:s, s:s?, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:o}",
		"policy", sl_placement_policy_name(result->policy), "arrivals",
		result->arrivals, "mix", result->mix, "nodes",
		(int)result->trace->node_count, "gpu_milli",
		(json_int_t)result->trace->capacity_milli, "jobs",
		(int)result->trace->job_count, "first_pct", (int)first, "until_pct",
		(int)until, "allocated_first_pct", sl_simulate_used(result, first),
		"allocated_pct", sl_simulate_used(result, until), "fragments_first_pct",
		sl_simulate_fragments(result, first), "fragments_pct",
		sl_simulate_fragments(result, until), "decisions_per_s",
		sl_simulate_speed(result), "runs", runs);
}

/* --- Files. --- */

static void csv_line(FILE *out, const struct sl_simulate_result *result, const char *seed,
	uint32_t pct, double used, double fragments)
{
	if (!isnan(used))
		fprintf(out, "%s,%s,%u,%.4f,%.4f\n",
			sl_placement_policy_name(result->policy), seed, pct, used,
			fragments);
}

void sl_simulate_csv(const void *what, FILE *out)
{
	const struct sl_simulate_result *result = what;

	fprintf(out, "policy,seed,arrived_pct,allocated_pct,fragments_pct\n");
	for (uint32_t i = 0; i < result->seeds; i++) {
		char seed[32];

		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)result->seed[i]);
		for (uint32_t pct = 0; pct <= result->until_pct; pct++)
			csv_line(out, result, seed, pct, used_at(&result->curves[i], pct),
				fragments_at(&result->curves[i], pct));
	}
	for (uint32_t pct = 0; pct <= result->until_pct; pct++)
		csv_line(out, result, "mean", pct, mean_at(result, used_at, pct),
			mean_at(result, fragments_at, pct));
}

#define SVG_WIDTH  720
#define SVG_HEIGHT 440
#define SVG_LEFT   60
#define SVG_TOP    40
#define SVG_INNER  600 /* width of the plot */
#define SVG_TALL   340

static double svg_x(const struct sl_simulate_result *result, double pct)
{
	return SVG_LEFT + pct * SVG_INNER / result->until_pct;
}

static double svg_y(double pct)
{
	return SVG_TOP + SVG_TALL - pct * SVG_TALL / 100;
}

static void svg_axes(const struct sl_simulate_result *result, FILE *out)
{
	uint32_t step = result->until_pct > 200 ? result->until_pct / 10 : 10;

	for (uint32_t pct = 0; pct <= 100; pct += 10)
		fprintf(out,
			"<path d='M%d %.1fh%d' stroke='#ddd'/>"
			"<text x='%d' y='%.1f' text-anchor='end'>%u</text>\n",
			SVG_LEFT, svg_y(pct), SVG_INNER, SVG_LEFT - 6, svg_y(pct) + 4,
			pct);
	for (uint32_t pct = 0; pct <= result->until_pct; pct += step)
		fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%u</text>\n",
			svg_x(result, pct), SVG_TOP + SVG_TALL + 18, pct);
	fprintf(out,
		"<text x='%d' y='%d' text-anchor='middle'>demand arrived, %% of all "
		"GPUs</text>\n",
		SVG_LEFT + SVG_INNER / 2, SVG_HEIGHT - 14);
}

static void svg_line(const struct sl_simulate_result *result, figure_fn figure,
	const char *colour, FILE *out)
{
	const char *sign = "M";

	fprintf(out, "<path fill='none' stroke='%s' stroke-width='2' d='", colour);
	for (uint32_t pct = 0; pct <= result->until_pct; pct++) {
		double mean = mean_at(result, figure, pct);

		if (isnan(mean))
			continue;
		fprintf(out, "%s%.1f %.1f", sign, svg_x(result, pct), svg_y(mean));
		sign = "L";
	}
	fprintf(out, "'/>\n");
}

void sl_simulate_svg(const void *what, FILE *out)
{
	const struct sl_simulate_result *result = what;
	uint32_t until = result->until_pct;

	fprintf(out,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='100%%' height='100%%' fill='white'/>\n"
		"<text x='%d' y='22' font-size='14'>%s: %.2f %% of all GPUs allocated at "
		"%u %%, "
		"mean of %u</text>\n",
		SVG_WIDTH, SVG_HEIGHT, SVG_LEFT, sl_placement_policy_name(result->policy),
		sl_simulate_used(result, until), until, result->seeds);
	svg_axes(result, out);
	svg_line(result, used_at, "#1668b3", out);
	svg_line(result, fragments_at, "#c0392b", out);
	fprintf(out,
		"<text x='%d' y='%d' fill='#1668b3'>allocated</text>\n"
		"<text x='%d' y='%d' fill='#c0392b'>fragmentation</text>\n</svg>\n",
		SVG_LEFT + 12, SVG_TOP + 16, SVG_LEFT + 12, SVG_TOP + 32);
}

bool sl_simulate_save(const void *result, void (*write)(const void *result, FILE *out),
	const char *path, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	sl_cleanup(sl_closep) int fd = -1;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	int r = -ENOMEM;

	if (memory) {
		write(result, memory);
		if (!fclose(memory))
			r = 0;
	}
	if (!r) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		r = fd < 0 ? -errno : sl_file_write_all(fd, text, bytes);
	}
	if (!r && close(sl_steal_fd(&fd)) < 0)
		r = -errno;
	if (!r)
		return true;
	sl_error_set(err, "cannot write %s: %s; what is in it is not whole", path,
		strerror(-r));
	return false;
}
