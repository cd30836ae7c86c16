/*
 * store - the queue of changes, and the thread that carries them out
 */
#include "daemon/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "daemon/core/worker.h"
#include "daemon/store/database.h"

struct sl_store {
	struct sl_worker worker;
	/* Under its mutex. */
	struct sl_link waiting[SL_STORE_DATABASES], done; /* changes */
	/* The thread's once the first change is handed over. */
	struct sl_database databases[SL_STORE_DATABASES];
	/* The loop's: changes that are not reported yet. */
	size_t under_way;
};

/* --- Changes. --- */

struct sl_store_change *sl_store_change_new(void)
{
	struct sl_store_change *change = calloc(1, sizeof(*change));

	if (change)
		sl_list_init(&change->link);
	return change;
}

struct sl_store_change *sl_store_change_free(struct sl_store_change *change)
{
	if (change) {
		for (size_t i = 0; i < change->count; i++) {
			free(change->items[i].text);
			free(change->items[i].object);
		}
		free(change->items);
		free(change->step);
		free(change);
	}
	return NULL;
}

static struct sl_store_item *add(
	struct sl_store_change *change, enum sl_store_kind kind, uint64_t number)
{
	if (!change || change->failed)
		return NULL;
	if (change->count == change->room) {
		size_t room = 2 * change->room + 4;
		struct sl_store_item *grown =
			realloc(change->items, room * sizeof(*grown));

		change->failed = !grown;
		if (!grown)
			return NULL;
		change->items = grown;
		change->room = room;
	}
	change->items[change->count] =
		(struct sl_store_item){.kind = kind, .number = number};
	return &change->items[change->count++];
}

void sl_store_put(struct sl_store_change *change, enum sl_store_kind kind,
	uint64_t number, const char *text)
{
	struct sl_store_item *item = add(change, kind, number);

	if (!item)
		return;
	item->text = text ? strdup(text) : NULL;
	change->failed = !item->text;
}

void sl_store_put_object(struct sl_store_change *change, enum sl_store_kind kind,
	uint64_t number, const struct sl_field *fields, size_t field_count,
	const void *object, size_t size)
{
	struct sl_store_item *item = add(change, kind, number);

	if (!item)
		return;
	item->fields = fields;
	item->field_count = field_count;
	item->object = malloc(size);
	change->failed = !item->object;
	if (item->object)
		memcpy(item->object, object, size);
}

void sl_store_drop(
	struct sl_store_change *change, enum sl_store_kind kind, uint64_t number)
{
	struct sl_store_item *item = add(change, kind, number);

	if (item)
		item->what = SL_ITEM_DROP;
}

void sl_store_clear(struct sl_store_change *change, enum sl_store_kind kind)
{
	struct sl_store_item *item = add(change, kind, 0);

	if (item)
		item->what = SL_ITEM_CLEAR;
}

void sl_store_put_number(
	struct sl_store_change *change, enum sl_store_kind kind, uint64_t next)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, next);
	sl_store_put(change, SL_KIND_NUMBER, (uint64_t)kind, text);
}

void sl_store_add_step(struct sl_store_change *change, struct sl_store_step *step)
{
	if (change) {
		change->step = step;
		change->failed |= !step;
	} else {
		free(step);
	}
}

/* --- The thread. --- */

/* Under the mutex. */
static struct sl_store_change *next_change(struct sl_store *store)
{
	for (size_t i = 0; i < SL_STORE_DATABASES; i++) {
		struct sl_link *first = store->waiting[i].next;

		if (sl_list_is_empty(&store->waiting[i]))
			continue;
		sl_list_unlink(first);
		return SL_LIST_ENTRY(first, struct sl_store_change, link);
	}
	return NULL;
}

/* That of a step alone is state.db. */
static enum sl_store_database database_of(const struct sl_store_change *change)
{
	return change->count ? sl_store_database_of(change->items[0].kind)
			     : SL_STORE_STATE;
}

static void carry_out(struct sl_store *store, struct sl_store_change *change)
{
	struct sl_store_step *step = change->step;
	int r = step ? step->before(step, &change->err) : 0;
	bool begun = r == 0;

	if (begun && change->count)
		r = sl_database_write(
			&store->databases[database_of(change)], change, &change->err);
	if (begun && step && step->after)
		step->after(step, r);
	change->result = r;
}

static void *thread_main(void *argument)
{
	struct sl_store *store = argument;
	struct sl_worker *worker = &store->worker;
	struct sl_store_change *change;

	(void)pthread_mutex_lock(&worker->mutex);
	/* Changes that were handed over are written before the end. */
	while ((change = next_change(store)) || !worker->stop) {
		if (!change) {
			(void)pthread_cond_wait(&worker->wake, &worker->mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&worker->mutex);
		carry_out(store, change);
		(void)pthread_mutex_lock(&worker->mutex);
		sl_list_push_tail(&store->done, &change->link);
		sl_worker_tell(worker);
	}
	(void)pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

/* --- The loop's side. --- */

/* Files of an earlier sluiced are named, and left alone. */
static void name_old_files(const char *run_folder, const char *state_folder)
{
	static const struct {
		enum sl_store_database folder;
		const char *name;
	} old[] = {{SL_STORE_RUN, "journal"}, {SL_STORE_STATE, "projects.db"},
		{SL_STORE_STATE, "resources.json"}};
	char path[SL_PATH_MAX];

	for (size_t i = 0; i < SL_ARRAY_LEN(old); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s",
			old[i].folder == SL_STORE_RUN ? run_folder : state_folder,
			old[i].name);
		if (access(path, F_OK) == 0)
			sl_warning("%s is of an earlier sluiced and is not read; start "
				   "that one, or remove it",
				path);
	}
}

int sl_store_new(const char *run_folder, const char *state_folder, struct sl_store **out)
{
	struct sl_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return sl_err_origin(-ENOMEM);
	for (size_t i = 0; i < SL_STORE_DATABASES; i++) {
		sl_list_init(&store->waiting[i]);
		sl_database_init(&store->databases[i], (enum sl_store_database)i,
			i == SL_STORE_RUN ? run_folder : state_folder);
	}
	sl_list_init(&store->done);
	name_old_files(run_folder, state_folder);
	r = sl_worker_start(&store->worker, thread_main, store);
	if (r < 0)
		free(store);
	else
		*out = store;
	return r;
}

struct sl_store *sl_store_free(struct sl_store *store)
{
	if (!store)
		return NULL;
	sl_worker_end(&store->worker);
	sl_list_foreach_safe (link, &store->done) {
		sl_list_unlink(link);
		(void)sl_store_change_free(
			SL_LIST_ENTRY(link, struct sl_store_change, link));
	}
	for (size_t i = 0; i < SL_STORE_DATABASES; i++)
		sl_database_close(&store->databases[i]);
	free(store);
	return NULL;
}

const char *sl_store_path(const struct sl_store *store, enum sl_store_kind kind)
{
	return store->databases[sl_store_database_of(kind)].path;
}

int sl_store_load(struct sl_store *store, enum sl_store_kind kind,
	bool (*take)(
		void *context, uint64_t number, const char *text, struct sl_error *why),
	void *context, struct sl_error *err)
{
	return sl_database_load(
		&store->databases[sl_store_database_of(kind)], kind, take, context, err);
}

struct number {
	enum sl_store_kind kind;
	uint64_t *next;
};

static bool take_number(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	const struct number *wanted = context;

	if (number == (uint64_t)wanted->kind)
		*wanted->next = strtoull(text, NULL, 10);
	return true;
}

int sl_store_load_number(struct sl_store *store, enum sl_store_kind kind, uint64_t *next,
	struct sl_error *err)
{
	struct number wanted = {.kind = kind, .next = next};

	return sl_store_load(store, SL_KIND_NUMBER, take_number, &wanted, err);
}

int sl_store_commit(struct sl_store *store, struct sl_store_change *change,
	void (*done)(void *context, int r, const struct sl_error *err), void *context)
{
	struct sl_worker *worker = &store->worker;

	if (!change || change->failed) {
		(void)sl_store_change_free(change);
		return sl_err_origin(-ENOMEM);
	}
	change->done = done;
	change->context = context;
	store->under_way++;
	(void)pthread_mutex_lock(&worker->mutex);
	if (change->count || change->step) {
		sl_list_push_tail(&store->waiting[database_of(change)], &change->link);
		(void)pthread_cond_signal(&worker->wake);
	} else {
		sl_list_push_tail(&store->done, &change->link);
		sl_worker_tell(worker);
	}
	(void)pthread_mutex_unlock(&worker->mutex);
	return 0;
}

int sl_store_fd(const struct sl_store *store)
{
	return store->worker.event_fd;
}

static struct sl_store_change *take_one(struct sl_store *store)
{
	struct sl_link *first;

	(void)pthread_mutex_lock(&store->worker.mutex);
	first = sl_list_is_empty(&store->done) ? NULL : store->done.next;
	if (first)
		sl_list_unlink(first);
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return first ? SL_LIST_ENTRY(first, struct sl_store_change, link) : NULL;
}

void sl_store_take(struct sl_store *store)
{
	struct sl_store_change *change;

	sl_worker_hear(&store->worker);
	while ((change = take_one(store))) {
		store->under_way--;
		change->done(change->context, change->result, &change->err);
		change = sl_store_change_free(change);
	}
}

void sl_store_finish(struct sl_store *store)
{
	struct pollfd over = {.fd = store->worker.event_fd, .events = POLLIN};

	while (store->under_way) {
		(void)poll(&over, 1, -1);
		sl_store_take(store);
	}
}
