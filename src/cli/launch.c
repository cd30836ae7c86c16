/*
 * Everything here but a compute resource can be told without the daemon, so a mistake never leaves
 * a workload or a job that lived for a moment.
 */
#include "cli/launch.h"

#include "cli/amounts.h"
#include "cli/program.h"
#include "cli/resource.h"
#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* To see what it needs, nothing may keep it small; and nothing is guaranteed that nobody knows it
 * needs. */
static int set_observe(enum sl_verb_id verb, struct sl_launch *s)
{
	if (!s->observe)
		return -1;
	if (s->request.kind || s->limit.kind || s->resource)
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"--observe goes without --request, --limit and --resource: it "
			"finds out what would do");
	s->request = (struct sl_amount){.kind = SL_AMOUNT_BYTES};
	return -1;
}

int sl_launch_amounts(enum sl_verb_id verb, struct sl_launch *s)
{
	int status = set_observe(verb, s);

	if (status < 0 && s->resource)
		status = sl_resource_take(verb, s);
	if (status >= 0)
		return status;
	s->gpus = s->gpus == SL_LAUNCH_UNSET ? 1 : s->gpus;
	s->priority = s->priority == SL_LAUNCH_UNSET ? 0 : s->priority;
	/* A request of nothing guarantees nothing, and so says nothing about the limit either. */
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
			"--rdma and --swap on exclude each other: what other devices "
			"have registered cannot be moved");
	if (s->warm_after != SL_WARM_UNSET && s->warm_after &&
		(s->rdma || s->swap == SL_SWITCH_OFF))
		return sl_cli_fail(verb, s->json, SL_EXIT_USAGE,
			"--warm-after and %s exclude each other: what must not be moved "
			"never goes to host memory; leave one of them out",
			s->rdma            ? "--rdma"
			: s->keep_resident ? "--keep-resident"
					   : "--swap off");
	return sl_amounts_check(verb, s->json, &s->request, &s->limit, true);
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
	return (s->rdma ? SL_RUN_RDMA | SL_RUN_NO_SWAP : 0) |
	       (s->observe ? SL_RUN_OBSERVE : 0) |
	       (s->swap == SL_SWITCH_OFF ? SL_RUN_NO_SWAP : 0) |
	       (s->oom_first == SL_SWITCH_ON ? SL_RUN_OOM_FIRST : 0) |
	       (s->oom_first == SL_SWITCH_OFF ? SL_RUN_OOM_WAIT : 0);
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
