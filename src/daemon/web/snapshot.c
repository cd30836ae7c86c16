/*
 * snapshot - one thread, two lines: one for lists, one that follows events
 *
 * It sleeps in poll(2) on an eventfd and on the second line. Its results are under the mutex, and
 * watchers wait for the condition. Events are in a ring; a watcher that reads too slowly misses the
 * oldest, and notices by the serials.
 */
#include "daemon/web/snapshot.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/worker.h"
#include "daemon/report/tell.h"
#include "daemon/web/state.h"

/* Between snapshots, while there is a watcher. */
#define LOOK_EACH (1 * SL_S)
/* From the end of one snapshot to the next, however often one is asked for. */
#define LOOK_PAUSE (50 * SL_MS)
#define RING       256
/* Most events taken before the next snapshot. */
#define EVENTS_TURN 256
/* After a failure. */
#define RETRY (1 * SL_S)

struct sl_page_snapshot {
	struct sl_inside_door *door;
	struct sl_worker worker; /* its event wakes the thread */
	/* the thread's own */
	struct sl_inside line, events_line;
	bool line_open, events_open, lists; /* lists: earlier events still come */
	struct sl_page_users users;
	/* under the worker's mutex */
	pthread_cond_t news;
	bool hurried; /* a new watcher waits for its first state */
	unsigned int watchers, askers;
	sl_ns begun, ended;         /* of the latest snapshot */
	uint64_t states, events;    /* states: those that differed */
	uint64_t digest;            /* of the state, without what time alone changes */
	struct sl_page_text *state; /* NULL: the latest failed, and err says why */
	struct sl_error err;
	struct sl_page_text *ring[RING]; /* event n stands at n % RING */
};

/* --- texts ------------------------------------------------------------------------------------ */

static struct sl_page_text *text_new(const char *from)
{
	size_t size = strlen(from);
	struct sl_page_text *text = malloc(sizeof(*text) + size + 1);

	if (!text)
		return NULL;
	text->users = 1;
	text->size = size;
	memcpy(text->text, from, size + 1);
	return text;
}

static struct sl_page_text *text_ref(struct sl_page_text *text)
{
	(void)__atomic_add_fetch(&text->users, 1, __ATOMIC_RELAXED);
	return text;
}

struct sl_page_text *sl_page_text_unref(struct sl_page_text *text)
{
	if (text && __atomic_sub_fetch(&text->users, 1, __ATOMIC_ACQ_REL) == 0)
		free(text);
	return NULL;
}

json_t *sl_page_event_of(json_t *object)
{
	static const struct {
		const char *from, *to;
	} names[] = {{"realtime_ms", "ms"}, {"sentence", "text"}};

	for (size_t i = 0; object && i < SL_ARRAY_LEN(names); i++) {
		(void)json_object_set(
			object, names[i].to, json_object_get(object, names[i].from));
		(void)json_object_del(object, names[i].from);
	}
	return object;
}

json_t *sl_page_event_json(const struct sl_msg_event_row *row)
{
	return sl_page_event_of(sl_tell_event(row));
}

/* --- the thread's ----------------------------------------------------------------------------- */

static void close_line(struct sl_inside *line, bool *is_open)
{
	if (*is_open)
		sl_inside_close(line);
	*is_open = false;
}

static char *make_state(
	struct sl_page_snapshot *look, uint64_t *digest, struct sl_error *err)
{
	char *text = NULL;
	int r = SL_INSIDE_OK;

	if (!look->line_open) {
		r = sl_inside_open(&look->line, look->door, NULL, err);
		look->line_open = true;
	}
	if (r == SL_INSIDE_OK)
		r = sl_page_state_make(&look->line, &look->users, &text, digest, err);
	if (r != SL_INSIDE_OK)
		close_line(&look->line, &look->line_open);
	return text;
}

static void do_look(struct sl_page_snapshot *look)
{
	struct sl_error err = {0};
	sl_ns begun = sl_clock_now();
	uint64_t digest = 0;
	sl_cleanup(sl_freep) char *made = make_state(look, &digest, &err);
	struct sl_page_text *state = made ? text_new(made) : NULL;

	if (made && !state)
		sl_error_set(&err, "sluiced is out of memory");
	(void)pthread_mutex_lock(&look->worker.mutex);
	(void)sl_page_text_unref(look->state);
	look->state = state;
	look->err = err;
	look->begun = begun;
	look->ended = sl_clock_now();
	/* Watchers are told of changed states only. */
	look->states += state && digest != look->digest;
	look->digest = state ? digest : 0;
	look->hurried = false;
	(void)pthread_cond_broadcast(&look->news);
	(void)pthread_mutex_unlock(&look->worker.mutex);
}

static void keep_event(struct sl_page_snapshot *look, const struct sl_msg_event_row *row)
{
	json_t *object = sl_page_event_json(row);
	sl_cleanup(sl_freep) char *made =
		object ? json_dumps(object, JSON_COMPACT) : NULL;
	struct sl_page_text *text = made ? text_new(made) : NULL;

	json_decref(object);
	if (!text)
		return;
	(void)pthread_mutex_lock(&look->worker.mutex);
	(void)sl_page_text_unref(look->ring[look->events % RING]);
	look->ring[look->events % RING] = text;
	look->events++;
	(void)pthread_cond_broadcast(&look->news);
	(void)pthread_mutex_unlock(&look->worker.mutex);
}

/* Follows events from now on; earlier ones are skipped. */
static void begin_events(struct sl_page_snapshot *look)
{
	struct sl_error err = {0};
	union sl_msg ask;
	int r = sl_inside_open(&look->events_line, look->door, NULL, &err);

	look->events_open = true;
	look->lists = true;
	sl_wire_init(&ask, SL_MSG_EVENTS);
	ask.events.flags = SL_EVENTS_FOLLOW;
	ask.events.last = 1;
	if (r == SL_INSIDE_OK)
		r = sl_inside_send(&look->events_line, &ask, &err);
	if (r == SL_INSIDE_OK)
		return;
	sl_debug("page: no events: %s", err.text);
	close_line(&look->events_line, &look->events_open);
}

static bool has_event(const struct sl_page_snapshot *look)
{
	struct pollfd ready = {.fd = look->events_line.fd, .events = POLLIN};

	return poll(&ready, 1, 0) > 0;
}

static void take_events(struct sl_page_snapshot *look)
{
	for (int i = 0; i < EVENTS_TURN && has_event(look); i++) {
		union sl_msg row;
		int r = sl_inside_next(&look->events_line, SL_MSG_EVENT_ROW, &row, NULL);

		if (r == SL_INSIDE_END)
			look->lists = false;
		else if (r == SL_INSIDE_OK && !look->lists)
			keep_event(look, &row.event_row);
		else if (r != SL_INSIDE_OK) {
			close_line(&look->events_line, &look->events_open);
			return;
		}
	}
}

/* When the next snapshot is due; SL_NS_NEVER: it is not wanted. */
static sl_ns next_look(struct sl_page_snapshot *look, bool *follows)
{
	sl_ns at = SL_NS_NEVER;

	(void)pthread_mutex_lock(&look->worker.mutex);
	*follows = look->watchers > 0;
	if (look->askers || look->hurried)
		at = look->ended + (look->state ? LOOK_PAUSE : RETRY / 4);
	else if (look->watchers)
		at = look->begun + (look->state ? LOOK_EACH : RETRY);
	if (look->worker.stop)
		at = 0;
	(void)pthread_mutex_unlock(&look->worker.mutex);
	return at;
}

static bool is_ending(struct sl_page_snapshot *look)
{
	bool ending;

	(void)pthread_mutex_lock(&look->worker.mutex);
	ending = look->worker.stop;
	(void)pthread_mutex_unlock(&look->worker.mutex);
	return ending;
}

/* Sleeps until `at`, or until woken. */
static void rest(struct sl_page_snapshot *look, sl_ns at)
{
	struct pollfd fds[2] = {{.fd = look->worker.event_fd, .events = POLLIN},
		{.fd = look->events_open ? look->events_line.fd : -1, .events = POLLIN}};
	sl_ns now = sl_clock_now();
	int ms = at == SL_NS_NEVER ? -1
		 : at <= now       ? 0
				   : (int)((at - now + SL_MS - 1) / SL_MS);

	if (poll(fds, 2, ms) > 0 && fds[0].revents)
		sl_worker_hear(&look->worker);
}

static void *run(void *context)
{
	struct sl_page_snapshot *look = context;

	while (!is_ending(look)) {
		bool follows;
		sl_ns at = next_look(look, &follows);

		if (follows && !look->events_open)
			begin_events(look);
		else if (!follows)
			close_line(&look->events_line, &look->events_open);
		if (look->events_open)
			take_events(look);
		if (at <= sl_clock_now() && !is_ending(look))
			do_look(look);
		else
			rest(look, at);
	}
	close_line(&look->events_line, &look->events_open);
	close_line(&look->line, &look->line_open);
	return NULL;
}

int sl_page_snapshot_new(struct sl_inside_door *door, struct sl_page_snapshot **out)
{
	struct sl_page_snapshot *look = calloc(1, sizeof(*look));
	pthread_condattr_t attr;
	int r;

	if (!look)
		return sl_err_origin(-ENOMEM);
	look->door = door;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&look->news, &attr);
	(void)pthread_condattr_destroy(&attr);
	r = sl_worker_start(&look->worker, run, look);
	if (r == 0)
		*out = look;
	else
		free(look);
	return r;
}

void sl_page_snapshot_end(struct sl_page_snapshot *look)
{
	(void)pthread_mutex_lock(&look->worker.mutex);
	look->worker.stop = true;
	(void)pthread_cond_broadcast(&look->news);
	(void)pthread_mutex_unlock(&look->worker.mutex);
	sl_worker_tell(&look->worker);
}

struct sl_page_snapshot *sl_page_snapshot_free(struct sl_page_snapshot *look)
{
	if (!look)
		return NULL;
	sl_page_snapshot_end(look);
	sl_worker_end(&look->worker);
	(void)sl_page_text_unref(look->state);
	for (size_t i = 0; i < RING; i++)
		(void)sl_page_text_unref(look->ring[i]);
	(void)pthread_cond_destroy(&look->news);
	free(look);
	return NULL;
}

/* --- any thread's ----------------------------------------------------------------------------- */

static bool wait_until(struct sl_page_snapshot *look, sl_ns end)
{
	struct timespec at = {
		.tv_sec = (time_t)(end / SL_S), .tv_nsec = (long)(end % SL_S)};

	return pthread_cond_timedwait(&look->news, &look->worker.mutex, &at) != ETIMEDOUT;
}

/* A failed snapshot answers, too, if it began at or after `since`. */
struct sl_page_text *sl_page_snapshot_state(
	struct sl_page_snapshot *look, sl_ns since, struct sl_error *err)
{
	sl_ns end = sl_clock_now() + (SL_INSIDE_TIMEOUT_MS + 1000) * SL_MS;
	struct sl_page_text *state = NULL;
	bool in_time = true;

	(void)pthread_mutex_lock(&look->worker.mutex);
	if (look->begun < since)
		sl_worker_tell(&look->worker);
	look->askers++;
	while (!look->worker.stop && in_time && look->begun < since)
		in_time = wait_until(look, end);
	look->askers--;
	if (look->worker.stop)
		sl_error_set(err, "sluiced is ending; try again");
	else if (look->begun < since)
		sl_error_set(err, "sluiced did not answer itself in time; try again");
	else if (look->state)
		state = text_ref(look->state);
	else if (err)
		*err = look->err;
	(void)pthread_mutex_unlock(&look->worker.mutex);
	return state;
}

void sl_page_snapshot_watch(struct sl_page_snapshot *look, struct sl_page_watch *watch)
{
	(void)pthread_mutex_lock(&look->worker.mutex);
	*watch = (struct sl_page_watch){.states = look->states,
		.events = look->events,
		.since = sl_clock_now(),
		.lacks = true,
		.counts = true};
	/* The first state comes at once: the latest one if it is fresh, else a new one. */
	if (look->state && look->begun + LOOK_EACH > watch->since)
		watch->since = look->begun;
	else
		look->hurried = true;
	look->watchers++;
	(void)pthread_mutex_unlock(&look->worker.mutex);
	sl_worker_tell(&look->worker);
}

void sl_page_snapshot_unwatch(struct sl_page_snapshot *look, struct sl_page_watch *watch)
{
	if (!watch->counts)
		return;
	watch->counts = false;
	(void)pthread_mutex_lock(&look->worker.mutex);
	look->watchers--;
	(void)pthread_mutex_unlock(&look->worker.mutex);
}

/* Events first: they happened before the next state. */
static enum sl_page_news take_news(struct sl_page_snapshot *look,
	struct sl_page_watch *watch, struct sl_page_text **text)
{
	if (watch->events < look->events) {
		if (look->events - watch->events > RING)
			watch->events = look->events - RING;
		*text = text_ref(look->ring[watch->events++ % RING]);
		return SL_PAGE_NEWS_EVENT;
	}
	if (look->state && (watch->lacks ? look->begun >= watch->since
					 : watch->states < look->states)) {
		watch->states = look->states;
		watch->lacks = false;
		*text = text_ref(look->state);
		return SL_PAGE_NEWS_STATE;
	}
	return SL_PAGE_NEWS_NONE;
}

enum sl_page_news sl_page_snapshot_next(struct sl_page_snapshot *look,
	struct sl_page_watch *watch, sl_ns at_most, struct sl_page_text **text)
{
	sl_ns end = sl_clock_now() + at_most;
	enum sl_page_news news;
	bool in_time = true;

	(void)pthread_mutex_lock(&look->worker.mutex);
	do {
		news = look->worker.stop ? SL_PAGE_NEWS_END
					 : take_news(look, watch, text);
		if (news == SL_PAGE_NEWS_NONE && in_time)
			in_time = wait_until(look, end);
		else
			break;
	} while (true);
	(void)pthread_mutex_unlock(&look->worker.mutex);
	return news;
}
