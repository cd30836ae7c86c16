/*
 * whatif - `sluice simulate --projects`: command line, files and runs
 *
 * world.h defines a run.
 */
#include "cli/line/cli.h"
#include "cli/simulate/simulate.h"
#include "cli/simulate/out.h"
#include "cli/simulate/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SWAP_COST (10 * SL_S)
#define DEFAULT_REPAIR    (3600 * SL_S)
#define DEFAULT_SEEDS     10

struct whatif {
	const struct sl_simulate_settings *s;
	struct sl_work work;
	struct sl_trace trace;
	struct sl_world_ask ask;
	struct sl_arena *arena;
	struct sl_figures *figures;
	struct sl_world_refusal *refusal;
	uint64_t *seed;
	uint32_t runs, run;
};

static void fini(struct whatif *m)
{
	sl_trace_fini(&m->trace);
	sl_work_fini(&m->work);
	m->arena = sl_arena_free(m->arena);
	free(m->figures);
	free(m->refusal);
	free(m->seed);
}

/* --- The command line. --- */

/* Refuses options that have no meaning with --projects. */
static bool makes_sense(const struct sl_simulate_settings *s, struct sl_error *err)
{
	bool shuffled = s->arrivals && !strcmp(s->arrivals, "shuffled");

	if (!s->nodes || !s->jobs)
		sl_error_set(err, "give --nodes FILE and --jobs FILE");
	else if (s->mix)
		sl_error_set(err,
			"--mix makes other jobs, and these are in no project; leave out "
			"--mix or --projects");
	else if (s->learn && strcmp(s->learn, "arrivals") != 0)
		sl_error_set(err,
			"--learn %s: with --projects the policy learns from arrivals, as "
			"the daemon's does; leave it out",
			s->learn);
	else if (s->arrivals && strcmp(s->arrivals, "trace") != 0 && !shuffled)
		sl_error_set(err,
			"--arrivals %s: an order has no times, and with --projects jobs "
			"come at a time; take trace or shuffled",
			s->arrivals);
	else if ((s->seeds > 1 || s->first_seed >= 0) && !shuffled && !s->failures)
		sl_error_set(err,
			"--%s: nothing is drawn, so every run would be the same; leave "
			"it "
			"out, or take --arrivals shuffled or --failures TIME",
			s->seeds > 1 ? "seeds" : "first-seed");
	else if (s->repair && !s->failures)
		sl_error_set(err, "--repair: nothing fails without --failures TIME");
	else if (s->on_reclaim && strcmp(s->on_reclaim, "park") != 0 &&
		 strcmp(s->on_reclaim, "terminate") != 0)
		sl_error_set(
			err, "--on-reclaim %s: give park or terminate", s->on_reclaim);
	return !err->text[0];
}

static bool read_until(const char *text, sl_ns *until, struct sl_error *err)
{
	struct sl_error said = {0};

	if (strchr(text, '%')) {
		sl_error_set(err,
			"--until %s: with --projects jobs come at their time and go "
			"again; give a time, such as 36h, or leave it out",
			text);
		return false;
	}
	if (sl_duration_parse(text, until, &said) == SL_AMOUNT_OK && *until)
		return true;
	sl_error_set(err, "--until %s: %s", text,
		said.text[0] ? said.text : "give a time above 0, such as 36h");
	return false;
}

static bool read_settings(struct whatif *m, struct sl_error *err)
{
	const struct sl_simulate_settings *s = m->s;

	if (!makes_sense(s, err))
		return false;
	m->work.swap_cost =
		s->swap_cost == SL_NS_NEVER ? DEFAULT_SWAP_COST : s->swap_cost;
	m->work.terminates = s->on_reclaim && !strcmp(s->on_reclaim, "terminate");
	m->ask.shuffled = s->arrivals && !strcmp(s->arrivals, "shuffled");
	m->ask.failures = s->failures;
	m->ask.repair = s->repair ? s->repair : DEFAULT_REPAIR;
	m->ask.resume_wait = s->resume_wait;
	m->ask.cycle = s->cycle;
	m->ask.moves = (uint32_t)s->moves;
	m->runs = s->seeds                         ? (uint32_t)s->seeds
		  : m->ask.shuffled || s->failures ? DEFAULT_SEEDS
						   : 1;
	return sl_simulate_read_policy(s->policy, &m->ask.policy, err) &&
	       (!s->until || read_until(s->until, &m->ask.until, err));
}

static bool read_files(struct whatif *m, struct sl_error *err)
{
	m->trace.work = &m->work;
	if (!sl_work_projects(&m->work, m->s->projects, err) ||
		sl_trace_nodes(&m->trace, m->s->nodes, err) ||
		sl_trace_jobs(&m->trace, m->s->jobs, err))
		return false;
	m->arena = sl_arena_new();
	m->figures = calloc(m->runs, sizeof(*m->figures));
	m->refusal = calloc(m->runs, sizeof(*m->refusal));
	m->seed = calloc(m->runs, sizeof(*m->seed));
	if (m->figures && m->refusal && m->seed)
		return true;
	sl_error_set(err, "out of memory for %u runs; ask for fewer --seeds", m->runs);
	return false;
}

/* --- Runs. --- */

static void show_progress(void *context, uint32_t done, uint32_t all)
{
	const struct whatif *m = context;

	sl_simulate_bar(m->run, m->runs, done, all);
}

static bool run_all(struct whatif *m, struct sl_error *err)
{
	bool bar = isatty(STDERR_FILENO), drawn = m->ask.shuffled || m->ask.failures;
	int64_t first = m->s->first_seed < 0 ? 1 : m->s->first_seed;
	sl_ns width = 0;
	bool ok = true;

	if (bar) {
		m->ask.progress = show_progress;
		m->ask.context = m;
	}
	for (m->run = 0; ok && m->run < m->runs; m->run++) {
		m->ask.seed = m->seed[m->run] = drawn ? (uint64_t)first + m->run : 0;
		ok = sl_world_run(&m->trace, &m->ask, m->arena, &m->figures[m->run],
			&m->refusal[m->run]);
		if (ok && m->figures[m->run].width > width)
			width = m->figures[m->run].width;
	}
	if (bar)
		sl_simulate_bar_end();
	for (uint32_t i = 0; ok && i < m->runs; i++)
		sl_figures_widen(&m->figures[i], width);
	if (!ok)
		sl_error_set(err, "out of memory; ask for fewer jobs");
	return ok;
}

/* --- Output. --- */

static bool print(const struct whatif *m, const struct sl_report *report)
{
	json_t *json;
	bool ok;

	if (!m->s->json)
		return sl_report_print(report, stdout);
	json = sl_report_json(report);
	ok = json && json_dumpf(json, stdout, JSON_INDENT(2)) >= 0;
	putchar('\n');
	json_decref(json);
	return ok;
}

static int tell(const struct whatif *m)
{
	const struct sl_report report = {.trace = &m->trace,
		.policy = m->ask.policy,
		.arrivals = m->ask.shuffled ? "shuffled" : "trace",
		.jobs = m->s->jobs,
		.runs = m->runs,
		.seed = m->seed,
		.figures = m->figures,
		.refusal = m->refusal};
	struct sl_error err = {0};

	if (!print(m, &report))
		sl_error_set(&err, "cannot write the output");
	if (!err.text[0] && m->s->output &&
		!sl_simulate_save(&report, sl_report_csv, m->s->output, &err))
		sl_error_wrap(&err, "--output");
	if (!err.text[0] && m->s->plot &&
		!sl_simulate_save(&report, sl_report_svg, m->s->plot, &err))
		sl_error_wrap(&err, "--plot");
	if (err.text[0])
		return sl_cli_fail(
			SL_VERB_simulate, m->s->json, SL_EXIT_SYSTEM, "%s", err.text);
	return sl_cli_finish(SL_VERB_simulate, SL_EXIT_OK);
}

int sl_simulate_whatif(const struct sl_simulate_settings *settings)
{
	sl_cleanup(fini) struct whatif m = {.s = settings};
	struct sl_error err = {0};

	if (!read_settings(&m, &err) || !read_files(&m, &err))
		return sl_cli_fail(
			SL_VERB_simulate, settings->json, SL_EXIT_USAGE, "%s", err.text);
	if (!run_all(&m, &err))
		return sl_cli_fail(
			SL_VERB_simulate, settings->json, SL_EXIT_SYSTEM, "%s", err.text);
	return tell(&m);
}
