/*
 * compute - compute resources: the list, and their records in the daemon's store
 *
 * A name for what a workload asks for: request, limit, GPUs, priority.
 */
#ifndef SL_DAEMON_JOBS_COMPUTE_H
#define SL_DAEMON_JOBS_COMPUTE_H

#include "base/amount.h"
#include "daemon/store/store.h"

#define SL_RESOURCES_MOST 256
/* Most of one user other than root. */
#define SL_RESOURCES_OF_USER 16

struct sl_compute {
	uint64_t number;  /* of its record; sl_compute_put() gives it */
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

/* "" if valid, else what is wrong. */
const char *sl_compute_mistake(const struct sl_compute *resource);
/* By key's name and owner; NULL: not found. */
struct sl_compute *sl_compute_find(
	struct sl_compute_list *list, const struct sl_compute *key);
/* Replaces the one of that name and owner, or inserts it with a new number. False: there are
 * SL_RESOURCES_MOST. */
SL_MUST_CHECK bool sl_compute_put(
	struct sl_compute_list *list, const struct sl_compute *resource);
/* False: not found. */
SL_MUST_CHECK bool sl_compute_drop(
	struct sl_compute_list *list, const struct sl_compute *key);

/* Reads what is stored into an empty list. SL_STORE_*. */
SL_MUST_CHECK int sl_compute_load(
	struct sl_store *store, struct sl_compute_list *list, struct sl_error *err);
/* Adds the record to the change. */
void sl_compute_store(struct sl_store_change *change, const struct sl_compute *resource);

#endif
