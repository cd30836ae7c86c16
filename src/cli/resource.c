/* See resource.h. */
#include "cli/resource.h"

#include "cli/rows.h"
#include "cli/text.h"

#include <stdio.h>
#include <string.h>

static const struct sl_msg_resource_row *find(
	const struct sl_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (!strcmp(rows->all[i].resource_row.name, name))
			return &rows->all[i].resource_row;
	return NULL;
}

/* There is none of that name, so which there are. */
static int unknown(
	enum sl_verb_id verb, const struct sl_launch *launch, const struct sl_rows *rows)
{
	char names[400] = "";
	size_t used = 0;

	for (size_t i = 0; i < rows->count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
			i ? ", " : "", rows->all[i].resource_row.name);
	sl_text_tame(names);
	return sl_cli_fail(verb, launch->json, SL_EXIT_USAGE,
		rows->count
			? "there is no compute resource %s; there are %s"
			: "there is no compute resource %s, nor any other; root defines "
			  "them on the page%s",
		launch->resource, names);
}

static void take(struct sl_launch *launch, const struct sl_msg_resource_row *row)
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

int sl_resource_take(enum sl_verb_id verb, struct sl_launch *launch)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	const struct sl_msg_resource_row *row;
	struct sl_error err = {0};
	int status = sl_rows_fetch(&rows, SL_LIST_RESOURCES, &err);

	if (status)
		return sl_cli_fail(
			verb, launch->json, (enum sl_exit)status, "%s", err.text);
	row = find(&rows, launch->resource);
	if (!row)
		return unknown(verb, launch, &rows);
	take(launch, row);
	return -1;
}
