/* sluice gpus: one line per GPU of the daemon, with the use of its memory. */
#include "cli/line/cli.h"
#include "cli/conn/rows.h"
#include "cli/conn/state.h"
#include "cli/line/table.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

struct settings {
	bool json;
};

const struct sl_option sl_verb_gpus_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON array."),
	SL_OPT_END,
};

enum {
	GPU,
	NAME,
	UUID,
	PCI,
	CAPACITY,
	SHAREABLE,
	REQUESTED,
	RESIDENT,
	EVICTED,
	HIDDEN,
	DYING,
	UNMANAGED,
	FREE,
	UTIL,
	STATE,
	COLUMNS
};
static const struct sl_column columns[COLUMNS] = {
	[GPU] = {"GPU", true, 0, 0},
	[NAME] = {"NAME", false, 10, 6},
	[UUID] = {"UUID", false, 12, 1},
	[PCI] = {"PCI", false, 0, 2},
	[CAPACITY] = {"CAPACITY", true, 0, 5},
	[SHAREABLE] = {"SHAREABLE", true, 0, 0},
	[REQUESTED] = {"REQUESTED", true, 0, 0},
	[RESIDENT] = {"RESIDENT", true, 0, 0},
	[EVICTED] = {"EVICTED", true, 0, 0},
	[HIDDEN] = {"HIDDEN", true, 0, 0},
	[DYING] = {"DYING", true, 0, 4},
	[UNMANAGED] = {"UNMANAGED", true, 0, 3},
	[FREE] = {"FREE", true, 0, 0},
	[UTIL] = {"UTIL", true, 0, 0},
	[STATE] = {"STATE", false, 0, 0},
};

static bool add_row(struct sl_table *table, const struct sl_msg_gpu_row *row)
{
	const struct {
		int column;
		uint64_t bytes;
	} sizes[] = {
		{CAPACITY, row->capacity_bytes},
		{SHAREABLE, row->shareable_bytes},
		{REQUESTED, row->requests_bytes},
		{RESIDENT, row->backing_bytes - row->evicted_bytes},
		/* Charged to the workloads, but not on this GPU. */
		{EVICTED, row->evicted_bytes},
		{HIDDEN, row->hidden_bytes + row->paid_bytes},
		{DYING, row->dying_bytes},
		{UNMANAGED, row->unmanaged_bytes},
		{FREE, row->free_bytes},
	};
	char text[64];

	sl_wire_uuid_format(row->uuid, text);
	sl_table_set(table, UUID, "%s", text);
	sl_table_set(table, GPU, "%u", row->gpu);
	sl_table_set(table, NAME, "%s", row->name);
	sl_table_set(table, PCI, "%s", row->pci);
	for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++)
		sl_table_set(table, (size_t)sizes[i].column, "%s",
			sl_bytes_short(sizes[i].bytes, text, sizeof(text)));
	sl_table_set(table, UTIL, "%u%%", row->utilisation_pct);
	if (row->condition & SL_GPU_LOST) {
		sl_table_set(table, FREE, "-");
		sl_table_set(table, UTIL, "-");
	}
	sl_table_set(table, STATE, "%s", sl_tell_gpu_state(row));
	return sl_table_end_row(table);
}

int sl_verb_gpus(int argc, char **argv)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	sl_cleanup(sl_table_freep) struct sl_table *table = NULL;
	struct settings s = {0};
	struct sl_error err = {0};
	int first, status;

	status = sl_cli_parse(SL_VERB_gpus, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	status = sl_rows_fetch(&rows, SL_LIST_GPUS, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_gpus, s.json, (enum sl_exit)status, "%s", err.text);
	if (s.json) {
		json_t *array = json_array();

		for (size_t i = 0; i < rows.count; i++)
			json_array_append_new(array, sl_tell_gpu(&rows.all[i].gpu_row));
		return sl_rows_print_json(SL_VERB_gpus, array);
	}
	table = sl_table_new(columns, COLUMNS);
	for (size_t i = 0; table && i < rows.count; i++)
		if (!add_row(table, &rows.all[i].gpu_row))
			table = sl_table_free(table);
	if (!table)
		return sl_cli_fail(SL_VERB_gpus, false, SL_EXIT_SYSTEM, "out of memory");
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_gpus, SL_EXIT_OK);
}
