/*
 * map - one flat table, linear probing, a grave for each object taken out
 *
 * The daemon looks up a client for every message, so a look-up is one multiplication and mostly one
 * cache line. Graves are swept when the table is rebuilt.
 */
#include "daemon/core/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

#define ROOM_MIN 64

static char grave_object;
#define GRAVE ((void *)&grave_object)

/* Fibonacci hashing: ids grow by one and pids are small; the product spreads both. */
static size_t place_of(const struct sl_map *map, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (map->room - 1);
}

static struct sl_map_slot *find(const struct sl_map *map, uint64_t key)
{
	if (map->room == 0)
		return NULL;
	for (size_t i = place_of(map, key);; i = (i + 1) & (map->room - 1)) {
		struct sl_map_slot *slot = &map->slots[i];

		if (!slot->value)
			return NULL;
		if (slot->value != GRAVE && slot->key == key)
			return slot;
	}
}

static void insert(struct sl_map *map, uint64_t key, void *value)
{
	size_t i = place_of(map, key);

	while (map->slots[i].value && map->slots[i].value != GRAVE)
		i = (i + 1) & (map->room - 1);
	if (!map->slots[i].value)
		map->filled++;
	map->slots[i] = (struct sl_map_slot){key, value};
	map->used++;
}

static int rebuild(struct sl_map *map)
{
	struct sl_map grown = {.room = ROOM_MIN};

	while (grown.room < map->used * 4)
		grown.room *= 2;
	grown.slots = calloc(grown.room, sizeof(*grown.slots));
	if (!grown.slots)
		return sl_err_origin(-ENOMEM);
	for (size_t i = 0; i < map->room; i++) {
		if (map->slots[i].value && map->slots[i].value != GRAVE)
			insert(&grown, map->slots[i].key, map->slots[i].value);
	}
	free(map->slots);
	*map = grown;
	return 0;
}

void sl_map_fini(struct sl_map *map)
{
	free(map->slots);
	*map = (struct sl_map){0};
}

void *sl_map_get(const struct sl_map *map, uint64_t key)
{
	struct sl_map_slot *slot = find(map, key);

	return slot ? slot->value : NULL;
}

int sl_map_put(struct sl_map *map, uint64_t key, void *value)
{
	struct sl_map_slot *slot = find(map, key);

	if (slot) {
		slot->value = value;
		return 0;
	}
	if ((map->filled + 1) * 4 > map->room * 3) {
		int r = rebuild(map);

		if (r < 0)
			return r;
	}
	insert(map, key, value);
	return 0;
}

void *sl_map_take(struct sl_map *map, uint64_t key)
{
	struct sl_map_slot *slot = find(map, key);
	void *value;

	if (!slot)
		return NULL;
	value = slot->value;
	slot->value = GRAVE;
	map->used--;
	return value;
}
