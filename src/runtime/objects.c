/*
 * objects - see objects.h
 *
 * A chained hash table that doubles when it has as many objects as chains. Nothing here is in a hot
 * path: each object stands for a driver call that made or unmade memory.
 */
#include "runtime/objects.h"

#include <pthread.h>
#include <stdlib.h>

#define FIRST_CHAINS 64

struct item {
	struct item *next;
	struct sl_object object;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct item **chains;
static size_t chain_count, item_count;

/* Keys are addresses: their low bits say little. */
static size_t hash_of(enum sl_object_kind kind, uint64_t key)
{
	uint64_t mixed = (key ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15ull;

	return (size_t)(mixed >> 32);
}

/* Under the lock. Where the object is linked in, or the end of its chain. */
static struct item **find(enum sl_object_kind kind, uint64_t key)
{
	struct item **at = &chains[hash_of(kind, key) & (chain_count - 1)];

	while (*at && ((*at)->object.kind != kind || (*at)->object.key != key))
		at = &(*at)->next;
	return at;
}

/* Under the lock. False: there is no table at all. */
static bool grow(void)
{
	size_t old_count = chain_count,
	       new_count = old_count ? 2 * old_count : FIRST_CHAINS;
	struct item **old = chains, **new = calloc(new_count, sizeof(*new)), *item, *next;

	/* Longer chains serve as well. */
	if (!new)
		return old != NULL;
	chains = new;
	chain_count = new_count;
	for (size_t i = 0; i < old_count; i++) {
		for (item = old[i]; item; item = next) {
			struct item **at = find(item->object.kind, item->object.key);

			next = item->next;
			item->next = NULL;
			*at = item;
		}
	}
	free(old);
	return true;
}

bool sl_objects_put(const struct sl_object *object)
{
	struct item *item = malloc(sizeof(*item)), **at;
	bool done = false;

	if (!item)
		return false;
	*item = (struct item){.object = *object};
	(void)pthread_mutex_lock(&lock);
	if (item_count < chain_count || grow()) {
		at = find(object->kind, object->key);
		if (*at) {
			(*at)->object = *object;
		} else {
			*at = sl_steal(&item);
			item_count++;
		}
		done = true;
	}
	(void)pthread_mutex_unlock(&lock);
	free(item);
	return done;
}

bool sl_objects_take(enum sl_object_kind kind, uint64_t key, struct sl_object *out)
{
	struct item **at, *item = NULL;

	(void)pthread_mutex_lock(&lock);
	if (item_count) {
		at = find(kind, key);
		item = *at;
		if (item) {
			*at = item->next;
			*out = item->object;
			item_count--;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	free(item);
	return item != NULL;
}

bool sl_objects_get(enum sl_object_kind kind, uint64_t key, struct sl_object *out)
{
	const struct item *item = NULL;

	(void)pthread_mutex_lock(&lock);
	if (item_count)
		item = *find(kind, key);
	if (item)
		*out = item->object;
	(void)pthread_mutex_unlock(&lock);
	return item != NULL;
}

/* All objects of the context, taken off the table. */
static struct item *take_context(CUcontext ctx)
{
	struct item *taken = NULL, **at;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < chain_count && item_count; i++) {
		at = &chains[i];
		while (*at) {
			struct item *item = *at;

			if (item->object.ctx != ctx) {
				at = &item->next;
				continue;
			}
			*at = item->next;
			item->next = taken;
			taken = item;
			item_count--;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	return taken;
}

void sl_objects_drop_context(CUcontext ctx, void (*fn)(const struct sl_object *object))
{
	struct item *item, *next;

	if (!ctx)
		return;
	for (item = take_context(ctx); item; item = next) {
		next = item->next;
		fn(&item->object);
		free(item);
	}
}

void sl_objects_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	chains = NULL;
	chain_count = item_count = 0;
}
