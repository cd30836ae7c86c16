/*
 * Everything but a compute resource is checked without the daemon, so a mistake never creates a
 * workload or a job for a moment.
 */
#include "cli/run/launch.h"

#include "cli/line/amounts.h"
#include "cli/line/program.h"
#include "cli/conn/rows.h"
#include "cli/line/text.h"

#include "daemon/report/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sl_launch_words(enum sl_verb_id verb, bool json, char *const *words)
{
	if (!words[0])
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"no command: sluice %s [options] -- CMD [ARG...]",
			sl_verbs[verb].name);
	if (!words[0][0])
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"no command: CMD is an empty word; is a variable in it unset?");
	return -1;
}

/* A run that measures a program's need has no limit, and reserves no request for an unknown
 * need. */
static int set_observe(enum sl_verb_id verb, struct sl_launch *s)
{
	if (!s->observe)
		return -1;
	if (s->request.kind || s->limit.kind || s->resource)
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"--observe excludes --request, --limit and --resource: it "
			"measures what the program needs");
	s->request = (struct sl_amount){.kind = SL_AMOUNT_BYTES};
	return -1;
}

/* --- a compute resource ---------------------------------------------------------------- */

static const struct sl_msg_resource_row *find_resource(
	const struct sl_rows *rows, const char *name)
{
	const struct sl_msg_resource_row *found = NULL;

	for (size_t i = 0; i < rows->count; i++) {
		const struct sl_msg_resource_row *row = &rows->all[i].resource_row;

		if (sl_tell_resource_is(row, name, geteuid()))
			found = row;
	}
	return found;
}

/* Names the resources that exist. */
static int unknown_resource(
	enum sl_verb_id verb, const struct sl_launch *launch, const struct sl_rows *rows)
{
	char names[400] = "";
	size_t used = 0;

	for (size_t i = 0; i < rows->count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
			i ? ", " : "", rows->all[i].resource_row.name);
	sl_text_tame(names);
	return sl_cli_fail(verb, launch->json, SL_EXIT_USAGE,
		rows->count ? "there is no compute resource %s; there are %s"
			    : "there is no compute resource %s, nor any other; sluice "
			      "resource apply defines one%s",
		launch->resource, names);
}

/* -1 to go on. */
static int take_project(enum sl_verb_id verb, struct sl_launch *launch,
	const struct sl_msg_resource_row *row)
{
	if (!row->project[0])
		return -1;
	if (strcmp(launch->project, "default") != 0 &&
		strcmp(launch->project, row->project) != 0)
		return sl_cli_fail(verb, launch->json, SL_EXIT_USAGE,
			"compute resource %s is project %s's; leave --project out",
			launch->resource, row->project);
	snprintf(launch->resource_project, sizeof(launch->resource_project), "%s",
		row->project);
	launch->project = launch->resource_project;
	return -1;
}

static void take_amounts(struct sl_launch *launch, const struct sl_msg_resource_row *row)
{
	if (!launch->request.kind)
		launch->request = (struct sl_amount){
			.kind = row->request_kind, .value = row->request_value};
	if (!launch->limit.kind)
		launch->limit = (struct sl_amount){
			.kind = row->limit_kind, .value = row->limit_value};
	if (launch->gpus == SL_LAUNCH_UNSET)
		launch->gpus = row->gpu_count;
	if (launch->priority == SL_LAUNCH_UNSET)
		launch->priority =
			(int64_t)row->priority_biased - (int64_t)SL_PRIORITY_BIAS;
}

/* Uses the values of launch->resource for options that were not given. -1 to go on. */
static int take_resource(enum sl_verb_id verb, struct sl_launch *launch)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	const struct sl_msg_resource_row *row;
	struct sl_error err = {0};
	int status = sl_rows_fetch(&rows, SL_LIST_RESOURCES, &err);

	if (status)
		return sl_cli_fail(
			verb, launch->json, (enum sl_exit)status, "%s", err.text);
	row = find_resource(&rows, launch->resource);
	if (!row)
		return unknown_resource(verb, launch, &rows);
	take_amounts(launch, row);
	return take_project(verb, launch, row);
}

/* --- amounts -------------------------------------------------------------------------- */

int sl_launch_amounts(enum sl_verb_id verb, struct sl_launch *s)
{
	int status = set_observe(verb, s);

	if (status < 0 && s->resource)
		status = take_resource(verb, s);
	if (status >= 0)
		return status;
	s->gpus = s->gpus == SL_LAUNCH_UNSET ? 1 : s->gpus;
	s->priority = s->priority == SL_LAUNCH_UNSET ? 0 : s->priority;
	/* A request of 0 guarantees nothing, so it does not set the limit either. */
	if (!s->limit.kind && s->request.kind == SL_AMOUNT_BYTES && !s->request.value)
		s->limit = (struct sl_amount){
			.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	if (s->keep_resident && s->swap == SL_SWITCH_ON)
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"--keep-resident and --swap on exclude each other: leave one of "
			"them out");
	if (s->keep_resident)
		s->swap = SL_SWITCH_OFF;
	if (s->rdma && s->swap == SL_SWITCH_ON)
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"--rdma and --swap on exclude each other: memory that other "
			"devices have registered cannot be moved");
	if (sl_amounts_goes(s->warm_after, s->detach_after) &&
		(s->rdma || s->swap == SL_SWITCH_OFF))
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"%s and %s exclude each other: memory that must stay on the GPU "
			"never goes to the host; leave one of them out",
			sl_amounts_goes(s->warm_after, s->detach_after),
			s->rdma            ? "--rdma"
			: s->keep_resident ? "--keep-resident"
					   : "--swap off");
	status = sl_amounts_check_compute(
		verb, s->json, &s->compute_request, &s->compute_limit);
	if (status < 0)
		status = sl_amounts_chain(verb, s->json, s->on_collision, &s->chain);
	return status >= 0
		       ? status
		       : sl_amounts_check(verb, s->json, &s->request, &s->limit, true);
}

void sl_launch_join(char *out, size_t size, char *const *words)
{
	size_t at = 0;

	for (; *words && at + 1 < size; words++) {
		int n = snprintf(out + at, size - at, "%s%s", at ? " " : "", *words);

		at += n < 0 ? 0 : (size_t)n;
	}
	sl_text_tame(out);
}

int sl_launch_command(enum sl_verb_id verb, const struct sl_launch *s, char *const *words)
{
	char path[SL_PATH_MAX];
	struct sl_error err = {0};

	switch (sl_program_inspect_words(words, path, sizeof(path), &err)) {
	case SL_PROGRAM_OK: return -1;
	case SL_PROGRAM_NOT_FOUND:
		return sl_cli_fail(verb, s->json, SL_EXIT_NOT_FOUND, "%s", err.text);
	case SL_PROGRAM_NOT_EXECUTABLE:
		return sl_cli_fail(verb, s->json, SL_EXIT_NOT_EXECUTABLE, "%s", err.text);
	default: break;
	}
	if (!s->force)
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"%s\n(--force starts it all the same, without Sluice's limits)",
			err.text);
	fprintf(stderr, "sluice %s: warning: %s\n", sl_verbs[verb].name, err.text);
	return -1;
}

uint32_t sl_launch_flags(const struct sl_launch *s)
{
	return s->chain << SL_RUN_CHAIN_SHIFT |
	       (s->rdma ? SL_RUN_RDMA | SL_RUN_NO_SWAP : 0) |
	       (s->observe ? SL_RUN_OBSERVE : 0) |
	       (s->swap == SL_SWITCH_OFF ? SL_RUN_NO_SWAP : 0) |
	       (s->oom_first == SL_SWITCH_ON ? SL_RUN_OOM_FIRST : 0) |
	       (s->oom_first == SL_SWITCH_OFF ? SL_RUN_OOM_WAIT : 0) |
	       (s->warm_after ? 0 : SL_SUBMIT_NEVER_WARM) |
	       (s->detach_after ? 0 : SL_SUBMIT_NEVER_DETACH) |
	       (s->idle_grace != SL_WARM_UNSET ? SL_SUBMIT_GRACE : 0);
}

int sl_launch_visible(
	enum sl_verb_id verb, bool json, char *out, size_t size, uint32_t *flags)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (!visible)
		return -1;
	if (strlen(visible) >= size)
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"CUDA_VISIBLE_DEVICES has %zu bytes, more than %zu; name fewer "
			"GPUs in it",
			strlen(visible), size - 1);
	*flags |= SL_RUN_VISIBLE_SET;
	sl_wire_str(out, size, visible);
	return -1;
}
