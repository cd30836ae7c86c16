#include "slurm/standing.h"

#include <string.h>

#include "cli/conn/rows.h"

int sl_standing_look(
	struct sl_conn *conn, const char *name, uid_t uid, struct sl_standing *now)
{
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	int status = sl_rows_list(&uses, conn, SL_LIST_USES, NULL);

	*now = (struct sl_standing){.away = true};
	/* One line for each of its GPUs. */
	for (size_t i = 0; i < uses.count; i++) {
		const struct sl_msg_use_row *row = &uses.all[i].use_row;

		if (row->uid != uid || strcmp(row->name, name) != 0)
			continue;
		now->workload = row->workload;
		now->is_parked = sl_wire_is_parked(row->residency);
		now->away &= row->backing_bytes <= row->evicted_bytes + row->held_bytes;
	}
	return status;
}
