/*
 * objects - see objects.h
 *
 * A chained hash table that doubles when it has as many objects as chains. It is in no hot path:
 * each object stands for a driver call that made or freed memory.
 */
#include "runtime/driver/objects.h"

#include <pthread.h>
#include <stdlib.h>

#define FIRST_CHAINS 64

struct sl_objects_taken {
	struct sl_objects_taken *next;
	struct sl_object object;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_objects_taken **chains;
static size_t chain_count, item_count;

/* Keys are addresses, so their low bits vary little. */
static size_t hash_of(enum sl_object_kind kind, uint64_t key)
{
	uint64_t mixed = (key ^ (uint64_t)kind) * 0x9e3779b97f4a7c15ull;

	return (size_t)(mixed >> 32);
}

/* Under the lock. The link that points to the object, or the end of its chain. */
static struct sl_objects_taken **find(enum sl_object_kind kind, uint64_t key)
{
	struct sl_objects_taken **at = &chains[hash_of(kind, key) & (chain_count - 1)];

	while (*at && ((*at)->object.kind != kind || (*at)->object.key != key))
		at = &(*at)->next;
	return at;
}

/* Under the lock. False: there is no table. */
static bool grow(void)
{
	size_t old_count = chain_count,
	       new_count = old_count ? 2 * old_count : FIRST_CHAINS;
	struct sl_objects_taken **old = chains, **new = calloc(new_count, sizeof(*new)),
				*item, *next;

	/* Without memory to grow, longer chains still work. */
	if (!new)
		return old != NULL;
	chains = new;
	chain_count = new_count;
	for (size_t i = 0; i < old_count; i++) {
		for (item = old[i]; item; item = next) {
			struct sl_objects_taken **at =
				find(item->object.kind, item->object.key);

			next = item->next;
			item->next = NULL;
			*at = item;
		}
	}
	free(old);
	return true;
}

/* Takes the item. */
static bool put_item(struct sl_objects_taken *item)
{
	struct sl_objects_taken **at;
	bool done;

	(void)pthread_mutex_lock(&lock);
	done = item_count < chain_count || grow();
	if (done) {
		at = find(item->object.kind, item->object.key);
		if (*at) {
			(*at)->object = item->object;
		} else {
			item->next = NULL;
			*at = sl_steal(&item);
			item_count++;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	free(item);
	return done;
}

bool sl_objects_put(const struct sl_object *object)
{
	struct sl_objects_taken *item = malloc(sizeof(*item));

	if (!item)
		return false;
	item->object = *object;
	return put_item(item);
}

bool sl_objects_take(enum sl_object_kind kind, uint64_t key, struct sl_object *out)
{
	struct sl_objects_taken **at, *item = NULL;

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
	const struct sl_objects_taken *item = NULL;

	(void)pthread_mutex_lock(&lock);
	if (item_count)
		item = *find(kind, key);
	if (item)
		*out = item->object;
	(void)pthread_mutex_unlock(&lock);
	return item != NULL;
}

struct sl_objects_taken *sl_objects_take_context(CUcontext ctx)
{
	struct sl_objects_taken *taken = NULL, **at;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < chain_count && item_count; i++) {
		at = &chains[i];
		while (*at) {
			struct sl_objects_taken *item = *at;

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

void sl_objects_end_taken(
	struct sl_objects_taken *taken, void (*fn)(const struct sl_object *object))
{
	struct sl_objects_taken *item, *next;

	for (item = taken; item; item = next) {
		next = item->next;
		if (fn) {
			fn(&item->object);
			free(item);
		} else {
			/* The table that it was taken from is there. */
			(void)!put_item(item);
		}
	}
}

void sl_objects_drop_context(CUcontext ctx, void (*fn)(const struct sl_object *object))
{
	if (ctx)
		sl_objects_end_taken(sl_objects_take_context(ctx), fn);
}

void sl_objects_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	chains = NULL;
	chain_count = item_count = 0;
}
