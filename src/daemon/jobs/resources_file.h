/*
 * resources_file - compute resources on the disk
 *
 * A name for what a workload asks for: request, limit, GPUs, priority. One JSON file, replaced
 * whole, so that a reader finds the old list or the new one. Reading errors name the file, what is
 * wrong, and the remedy.
 */
#ifndef SL_DAEMON_JOBS_RESOURCES_FILE_H
#define SL_DAEMON_JOBS_RESOURCES_FILE_H

#include "base/amount.h"

#define SL_RESOURCES_MOST 256
#define SL_RESOURCES_FILE "resources.json"
/* Most of one user other than root. */
#define SL_RESOURCES_OF_USER 16

struct sl_compute {
	char name[64];    /* sl_project_is_name() */
	char project[64]; /* the project that it counts towards; "": any */
	uint32_t owner;   /* the owner's uid, unless it is for all */
	bool shared;
	struct sl_amount request, limit;
	uint32_t gpus;
	int32_t priority;
};

/* Those for all first, by name; then by owner. */
struct sl_compute_list {
	struct sl_compute all[SL_RESOURCES_MOST];
	uint32_t count;
};

enum { SL_RESOURCES_OK = 0, SL_RESOURCES_BAD };

/* "" if valid, else what is wrong. */
const char *sl_compute_mistake(const struct sl_compute *resource);
/* By key's name and owner; NULL: not found. */
struct sl_compute *sl_compute_find(
	struct sl_compute_list *list, const struct sl_compute *key);
/* Replaces the one of that name and owner, or inserts it. False: there are SL_RESOURCES_MOST. */
SL_MUST_CHECK bool sl_compute_put(
	struct sl_compute_list *list, const struct sl_compute *resource);
/* False: not found. */
SL_MUST_CHECK bool sl_compute_drop(
	struct sl_compute_list *list, const struct sl_compute *key);

/* Without a file the list is empty. */
SL_MUST_CHECK int sl_resources_load(
	const char *folder, struct sl_compute_list *list, struct sl_error *err);
/* Makes the folder if needed. */
SL_MUST_CHECK int sl_resources_save(
	const char *folder, const struct sl_compute_list *list, struct sl_error *err);

#endif
