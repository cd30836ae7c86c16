/*
 * object - handles that can be told from stale ones
 *
 * Real drivers crash or answer at random when a program uses a destroyed handle. Here a dead object
 * is kept, so tests notice: its magic word is zero, and its memory serves the next object of its
 * kind once no queued work refers to it. One chain holds all objects ever made, so a leak checker
 * does not blame the driver for objects that a program left undestroyed.
 */
#include "softgpu/driver/driver.h"

#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 40

static struct sl_object *all; /* chained by all_next */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spare {
	uint32_t kind;
	struct sl_object *first; /* chained by link.next */
} spare[KINDS_MAX];

static struct spare *spare_of(uint32_t kind)
{
	for (unsigned i = 0; i < KINDS_MAX; i++)
		if (spare[i].kind == kind || !spare[i].kind) {
			spare[i].kind = kind;
			return &spare[i];
		}
	abort(); /* more kinds than there are */
}

void *sl_object_new(uint32_t magic, size_t bytes)
{
	struct sl_object *o;

	pthread_mutex_lock(&lock);
	struct spare *s = spare_of(magic);
	o = s->first;
	if (o)
		s->first = (struct sl_object *)o->link.next;
	pthread_mutex_unlock(&lock);
	if (o) {
		memset((char *)o + sizeof(*o), 0, bytes - sizeof(*o));
	} else {
		o = calloc(1, bytes);
		if (!o)
			return NULL;
		pthread_mutex_lock(&lock);
		o->all_next = all;
		all = o;
		pthread_mutex_unlock(&lock);
	}
	o->kind = magic;
	sl_list_init(&o->link);
	atomic_store(&o->refs, 1);
	atomic_store(&o->magic, magic);
	return o;
}

bool sl_object_is(const void *object, uint32_t magic)
{
	const struct sl_object *o = object;

	/* The two special streams and small numbers are not pointers. */
	return (uintptr_t)o > 4096 &&
	       atomic_load(&((struct sl_object *)o)->magic) == magic;
}

void sl_object_ref(void *object)
{
	atomic_fetch_add(&((struct sl_object *)object)->refs, 1);
}

void sl_object_unref(void *object)
{
	struct sl_object *o = object;

	if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
		return;
	pthread_mutex_lock(&lock);
	struct spare *s = spare_of(o->kind);
	o->link.next = (struct sl_link *)s->first;
	s->first = o;
	pthread_mutex_unlock(&lock);
}

bool sl_object_kill(void *object)
{
	return atomic_exchange(&((struct sl_object *)object)->magic, 0) != 0;
}
