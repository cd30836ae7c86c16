/*
 * sluice simulate: places the jobs of a trace on the nodes of another file, in virtual time, with
 * the daemon's placement code. Starts nothing and asks no daemon.
 *
 * This file does it without --projects: each run takes the jobs in one order of arrival, and the
 * figures of several runs are averaged. run.h defines a run; for --projects see whatif.c.
 */
#include "cli/line/cli.h"
#include "cli/simulate/simulate.h"
#include "cli/simulate/mix.h"
#include "cli/simulate/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 40
#define DAY_MS    86400000LL
#define YEAR_MS   (366 * DAY_MS)

/* Each with '|' before it. */
static const char policies[] =
#define SL_PLACEMENT_POLICY(NAME, name) "|" #name
#include "policy/placement/policies.def"
#undef SL_PLACEMENT_POLICY
	;

const struct sl_option sl_verb_simulate_options[] = {
	SL_OPT(struct sl_simulate_settings, nodes, STRING, "FILE", 0, 0,
		"Nodes, as CSV."),
	SL_OPT(struct sl_simulate_settings, jobs, STRING, "FILE", 0, 0, "Jobs, as CSV."),
	SL_OPT(struct sl_simulate_settings, projects, STRING, "FILE", 0, 0,
		"Projects, as YAML: simulates arrivals, waits and reclaim in virtual "
		"time."),
	SL_OPT(struct sl_simulate_settings, policy, STRING, policies + 1, 0, 0,
		"How nodes are chosen (pack)."),
	SL_OPT(struct sl_simulate_settings, arrivals, STRING, "trace|shuffled|FILE", 0, 0,
		"Order of arrival (shuffled; with projects trace); FILE: orders as CSV."),
	SL_OPT(struct sl_simulate_settings, until, STRING, "PERCENT|TIME", 0, 0,
		"Demand at which arrivals end, in percent of all GPUs (130%); with "
		"projects, the time."),
	SL_OPT(struct sl_simulate_settings, seeds, INTEGER, "N", 1, 10000,
		"Number of orders, shuffled or of FILE (10); number of random runs."),
	SL_OPT_AS("first-seed", struct sl_simulate_settings, first_seed, INTEGER, "SEED",
		0, 1000000000, "First seed (1)."),
	SL_OPT(struct sl_simulate_settings, mix, STRING, "NAME", 0, 0,
		"Another mix made of these jobs; list: print their names."),
	SL_OPT(struct sl_simulate_settings, learn, STRING, "trace|arrivals", 0, 0,
		"Typical jobs are known in advance (trace) or learnt from arrivals."),
	SL_OPT(struct sl_simulate_settings, moves, INTEGER, "N", 0, 1000000,
		"Tasks that may move to other GPUs of their node per hour (0)."),
	SL_OPT_AS("swap-cost", struct sl_simulate_settings, swap_cost, DURATION, "TIME",
		0, DAY_MS,
		"Time to park a task, or to resume it, unless the jobs say (10s)."),
	SL_OPT_AS("on-reclaim", struct sl_simulate_settings, on_reclaim, STRING,
		"park|terminate", 0, 0,
		"How jobs are preempted, unless they say (park)."),
	SL_OPT_AS("resume-wait", struct sl_simulate_settings, resume_wait, DURATION,
		"TIME", 1, YEAR_MS,
		"A job parked for longer begins again elsewhere (never)."),
	SL_OPT(struct sl_simulate_settings, cycle, DURATION, "TIME", 1, DAY_MS,
		"Shortest time between two decisions (none: at every event)."),
	SL_OPT(struct sl_simulate_settings, failures, DURATION, "TIME", 1000,
		100 * YEAR_MS, "Mean time between two failures of a node (no failures)."),
	SL_OPT(struct sl_simulate_settings, repair, DURATION, "TIME", 1, YEAR_MS,
		"Time to repair a node (1h)."),
	SL_OPT(struct sl_simulate_settings, output, STRING, "FILE", 0, 0,
		"Write what was allocated at each percent, or over time, as CSV."),
	SL_OPT(struct sl_simulate_settings, plot, STRING, "FILE", 0, 0,
		"Draw that into an SVG file."),
	SL_OPT_JSON(struct sl_simulate_settings),
	SL_OPT_END,
};

/* All data of one call. */
struct simulation {
	struct sl_simulate_settings s;
	struct sl_trace trace;
	struct sl_arrivals_list orders; /* from FILE */
	struct sl_simulate_ask ask;
	struct sl_simulate_curve *curves;
	uint64_t *seed;
	uint32_t runs, run; /* run: the current one */
	bool bar;
};

static void fini(struct simulation *m)
{
	sl_trace_fini(&m->trace);
	sl_arrivals_fini(&m->orders);
	free(m->curves);
	free(m->seed);
}

/* --- The command line. --- */

bool sl_simulate_read_policy(
	const char *name, enum sl_placement_policy *policy, struct sl_error *err)
{
	*policy = SL_PLACE_PACK;
	if (!name || sl_placement_policy_find(name, policy))
		return true;
	sl_error_set(err, "there is no policy '%s'; take one of %s", name, policies + 1);
	return false;
}

static bool read_until(const char *text, uint32_t *pct, struct sl_error *err)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (*end == '%')
		end++;
	if (end != text && !*end && !errno && value >= 1 &&
		value <= SL_SIMULATE_PCT_MOST) {
		*pct = (uint32_t)value;
		return true;
	}
	sl_error_set(err, "--until %s: give whole percent of all GPUs, 1%% to %d%%", text,
		SL_SIMULATE_PCT_MOST);
	return false;
}

/* Checks options that need --projects. */
static bool without_projects(const struct sl_simulate_settings *s, struct sl_error *err)
{
	const char *name = s->swap_cost != SL_NS_NEVER ? "swap-cost"
			   : s->on_reclaim             ? "on-reclaim"
			   : s->resume_wait            ? "resume-wait"
			   : s->cycle                  ? "cycle"
			   : s->failures               ? "failures"
			   : s->repair                 ? "repair"
						       : NULL;

	if (name)
		sl_error_set(err,
			"--%s: nothing runs, and nothing is stopped, without "
			"--projects FILE",
			name);
	return !name;
}

static bool read_settings(struct simulation *m, struct sl_error *err)
{
	struct sl_simulate_settings *s = &m->s;

	if (!s->nodes || !s->jobs) {
		sl_error_set(err, "give --nodes FILE and --jobs FILE");
		return false;
	}
	s->arrivals = s->arrivals ? s->arrivals : "shuffled";
	s->until = s->until ? s->until : "130%";
	s->learn = s->learn ? s->learn : s->moves ? "arrivals" : "trace";
	s->seeds = s->seeds ? s->seeds : 10;
	s->first_seed = s->first_seed < 0 ? 1 : s->first_seed;
	if (strcmp(s->learn, "trace") != 0 && strcmp(s->learn, "arrivals") != 0) {
		sl_error_set(err, "--learn %s: give trace or arrivals", s->learn);
		return false;
	}
	m->ask.learn_only = !strcmp(s->learn, "arrivals");
	if (s->moves && !m->ask.learn_only) {
		sl_error_set(err,
			"--learn %s: with --moves the policy learns from arrivals, as "
			"the "
			"daemon's does; leave it out",
			s->learn);
		return false;
	}
	m->ask.moves = (uint32_t)s->moves;
	return without_projects(s, err) &&
	       sl_simulate_read_policy(s->policy, &m->ask.policy, err) &&
	       read_until(s->until, &m->ask.until_pct, err);
}

static int list_mixes(void)
{
	const char *name, *text;

	for (uint32_t i = 0; (name = sl_simulate_mix_name(i, &text)); i++)
		printf("%-10s %s\n", name, text);
	return sl_cli_finish(SL_VERB_simulate, SL_EXIT_OK);
}

/* --- Files. --- */

static bool read_files(struct simulation *m, struct sl_error *err)
{
	const char *arrivals = m->s.arrivals;

	if (sl_trace_nodes(&m->trace, m->s.nodes, err) ||
		sl_trace_jobs(&m->trace, m->s.jobs, err))
		return false;
	if (strcmp(arrivals, "trace") != 0 && strcmp(arrivals, "shuffled") != 0) {
		if (m->s.mix) {
			sl_error_set(err,
				"--mix makes other jobs than those that %s is about; "
				"take "
				"--arrivals shuffled",
				arrivals);
			return false;
		}
		if (sl_arrivals_read(&m->orders, &m->trace, arrivals, err))
			return false;
		m->runs = m->orders.count < m->s.seeds ? m->orders.count
						       : (uint32_t)m->s.seeds;
	} else {
		m->runs = !strcmp(arrivals, "trace") ? 1 : (uint32_t)m->s.seeds;
	}
	if (m->s.mix &&
		sl_simulate_mix(&m->trace, m->s.mix, (uint64_t)m->s.first_seed, err))
		return false;
	m->curves = calloc(m->runs, sizeof(*m->curves));
	m->seed = calloc(m->runs, sizeof(*m->seed));
	if (!m->curves || !m->seed)
		sl_error_set(
			err, "out of memory for %u runs; ask for fewer --seeds", m->runs);
	return m->curves && m->seed;
}

/* --- Runs. --- */

void sl_simulate_bar(uint32_t run, uint32_t runs, uint32_t done, uint32_t all)
{
	unsigned int full = (unsigned int)((uint64_t)BAR_WIDTH * done / all);

	fprintf(stderr, "\rrun %u of %u [%.*s%*s] %3u%%", run + 1, runs, (int)full,
		"########################################", (int)(BAR_WIDTH - full), "",
		(unsigned int)(100 * (uint64_t)done / all));
}

void sl_simulate_bar_end(void)
{
	fprintf(stderr, "\r\033[K");
}

static void show_progress(void *context, uint32_t done, uint32_t all)
{
	const struct simulation *m = context;

	sl_simulate_bar(m->run, m->runs, done, all);
}

static bool run_one(struct simulation *m, struct sl_error *err)
{
	struct sl_arrivals made = {0}, *order = &made;
	bool ok = true;

	if (m->orders.count)
		order = &m->orders.all[m->run];
	else if (!strcmp(m->s.arrivals, "trace"))
		ok = sl_simulate_in_order(&m->trace, &made);
	else
		ok = sl_simulate_shuffle(&m->trace, (uint64_t)(m->s.first_seed + m->run),
			m->ask.until_pct, &made);
	if (ok) {
		sl_simulate_run(&m->trace, order, &m->ask, &m->curves[m->run]);
		m->seed[m->run] = order->seed;
	} else {
		sl_error_set(err, "out of memory for the order of arrival");
	}
	free(made.jobs);
	free(made.ranks);
	return ok;
}

static bool run_all(struct simulation *m, struct sl_error *err)
{
	bool ok = true;

	if (m->bar) {
		m->ask.progress = show_progress;
		m->ask.context = m;
	}
	for (m->run = 0; ok && m->run < m->runs; m->run++)
		ok = run_one(m, err);
	if (m->bar)
		sl_simulate_bar_end();
	return ok;
}

/* --- Output. --- */

static int tell(const struct simulation *m)
{
	const struct sl_simulate_result result = {.trace = &m->trace,
		.policy = m->ask.policy,
		.arrivals = m->s.arrivals,
		.mix = m->s.mix,
		.until_pct = m->ask.until_pct,
		.seeds = m->runs,
		.seed = m->seed,
		.curves = m->curves};
	struct sl_error err = {0};
	json_t *json;

	if (m->s.json) {
		json = sl_simulate_json(&result);
		if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) < 0)
			sl_error_set(&err, "cannot write the output");
		putchar('\n');
		json_decref(json);
	} else {
		sl_simulate_print(&result, stdout);
	}
	if (!err.text[0] && m->s.output &&
		!sl_simulate_save(&result, sl_simulate_csv, m->s.output, &err))
		sl_error_wrap(&err, "--output");
	if (!err.text[0] && m->s.plot &&
		!sl_simulate_save(&result, sl_simulate_svg, m->s.plot, &err))
		sl_error_wrap(&err, "--plot");
	if (err.text[0])
		return sl_cli_fail(
			SL_VERB_simulate, m->s.json, SL_EXIT_SYSTEM, "%s", err.text);
	return sl_cli_finish(SL_VERB_simulate, SL_EXIT_OK);
}

int sl_verb_simulate(int argc, char **argv)
{
	sl_cleanup(fini) struct simulation m = {
		.s = {.first_seed = -1, .swap_cost = SL_NS_NEVER}};
	struct sl_error err = {0};
	int first, status;

	status = sl_cli_parse(SL_VERB_simulate, &m.s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (m.s.mix && !strcmp(m.s.mix, "list"))
		return list_mixes();
	if (m.s.projects)
		return sl_simulate_whatif(&m.s);
	m.bar = isatty(STDERR_FILENO);
	if (!read_settings(&m, &err) || !read_files(&m, &err))
		return sl_cli_fail(
			SL_VERB_simulate, m.s.json, SL_EXIT_USAGE, "%s", err.text);
	if (!run_all(&m, &err))
		return sl_cli_fail(
			SL_VERB_simulate, m.s.json, SL_EXIT_SYSTEM, "%s", err.text);
	return tell(&m);
}
