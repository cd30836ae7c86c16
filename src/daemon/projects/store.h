/*
 * store - projects as records of the daemon's store
 *
 * Loop only.
 */
#ifndef SL_DAEMON_PROJECTS_STORE_H
#define SL_DAEMON_PROJECTS_STORE_H

#include "daemon/projects/projects.h"
#include "daemon/store/store.h"

/* The rows, and the next id; no id is given twice. */
struct sl_projects_stored {
	struct sl_projects set;
	uint64_t next_id;
};

/* Reads what is stored into *out, which was empty. With SL_STORE_PARTLY, children of a damaged
 * project stand at the top, so that the rows fit together. SL_STORE_BAD: *out stays empty. */
SL_MUST_CHECK int sl_projects_store_load(
	struct sl_store *store, struct sl_projects_stored *out, struct sl_error *err);
/* Adds the row to the change, and that ids from next_id on are free. */
void sl_projects_store_put(struct sl_store_change *change,
	const struct sl_project_row *row, uint64_t next_id);

#endif
