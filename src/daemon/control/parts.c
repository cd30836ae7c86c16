/*
 * parts - asks the module in charge of each
 */
#include "daemon/control/parts.h"

#include <string.h>

#include "base/paths.h"
#include "daemon/history/history.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/shim.h"
#include "daemon/projects/registry.h"
#include "daemon/web/serving.h"

static void shim_part(const struct sl_daemon *daemon, struct sl_part *part)
{
	char path[SL_PATH_MAX];

	(void)daemon;
	if (sl_shim_find(path, sizeof(path), &part->text) < 0)
		part->health = SL_HEALTH_BROKEN;
	else
		sl_wire_str(part->path, sizeof(part->path), path);
}

bool sl_parts_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	static void (*const parts[SL_WIRE_PARTS])(
		const struct sl_daemon *daemon, struct sl_part *part) = {
		[SL_PART_SHIM] = shim_part,
		[SL_PART_PROJECTS] = sl_registry_part,
		[SL_PART_JOBS] = sl_jobs_part,
		[SL_PART_HISTORY] = sl_history_health,
		[SL_PART_PAGE] = sl_serving_page_part,
		[SL_PART_METRICS] = sl_serving_metrics_part,
	};
	struct sl_part part = {0};
	struct sl_msg_part_row *row = &msg->part_row;

	if (list->place == SL_WIRE_PARTS)
		return false;
	parts[list->place](daemon, &part);
	sl_wire_init(msg, SL_MSG_PART_ROW);
	row->part = list->place++;
	row->health = part.health;
	row->count = part.count;
	memcpy(row->path, part.path, sizeof(row->path));
	sl_wire_str(row->text, sizeof(row->text), part.text.text);
	return true;
}
