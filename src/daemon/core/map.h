/*
 * map - objects by a 64-bit key
 *
 * Open addressing; get, put and take are O(1) on average. The map owns no object. A zeroed
 * struct is an empty map. Not thread-safe.
 */
#ifndef SL_DAEMON_CORE_MAP_H
#define SL_DAEMON_CORE_MAP_H

#include "base/sl.h"

struct sl_map_slot {
	uint64_t key;
	void *value; /* NULL: never used */
};

struct sl_map {
	struct sl_map_slot *slots;
	size_t room;   /* a power of two, or 0 */
	size_t used;   /* objects */
	size_t filled; /* objects and graves */
};

/* Frees the map's own memory; the objects stay. */
void sl_map_fini(struct sl_map *map);
/* The object, or NULL. */
void *sl_map_get(const struct sl_map *map, uint64_t key);
/* Puts value (not NULL) under key and replaces an earlier one. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_map_put(struct sl_map *map, uint64_t key, void *value);
/* Takes the object out and returns it, or NULL. */
void *sl_map_take(struct sl_map *map, uint64_t key);

#endif
