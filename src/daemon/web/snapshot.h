/*
 * snapshot - one thread that reads the daemon's state for all open pages
 *
 * The loop is asked once, however many watchers there are: for a snapshot each second and for
 * events as they happen, only while there is a watcher. A request for a state also takes a snapshot
 * if none is fresh. A watcher gets a first state, then each state that differs from the one before.
 * Watchers wait here, not at the loop. Any thread may call all functions but new, end and free.
 */
#ifndef SL_DAEMON_WEB_SNAPSHOT_H
#define SL_DAEMON_WEB_SNAPSHOT_H

#include "base/clock.h"
#include "daemon/link/inside.h"

#include <jansson.h>

struct sl_page_snapshot;

/* A text that many connections send. */
struct sl_page_text {
	unsigned int users; /* atomic */
	size_t size;
	char text[];
};
struct sl_page_text *sl_page_text_unref(struct sl_page_text *text);

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_page_snapshot_new(
	struct sl_inside_door *door, struct sl_page_snapshot **out);
/* Waiting callers return with nothing. */
void sl_page_snapshot_end(struct sl_page_snapshot *look);
/* Ends the thread, which the door's end has woken. Returns NULL. */
struct sl_page_snapshot *sl_page_snapshot_free(struct sl_page_snapshot *look);

/* Waits for a snapshot (web/state.h) that was begun at or after `since`. NULL: err says why there
 * is none. */
SL_MUST_CHECK struct sl_page_text *sl_page_snapshot_state(
	struct sl_page_snapshot *look, sl_ns since, struct sl_error *err);

/* What a watcher has seen. */
struct sl_page_watch {
	uint64_t states, events;
	sl_ns since;
	bool lacks;  /* has no state yet, and wants one begun at or after `since` */
	bool counts; /* it is counted as a watcher */
};
void sl_page_snapshot_watch(struct sl_page_snapshot *look, struct sl_page_watch *watch);
void sl_page_snapshot_unwatch(struct sl_page_snapshot *look, struct sl_page_watch *watch);

enum sl_page_news {
	SL_PAGE_NEWS_NONE = 0, /* nothing within that time */
	SL_PAGE_NEWS_STATE,
	SL_PAGE_NEWS_EVENT, /* the JSON of an event */
	SL_PAGE_NEWS_END
};
/* The next news for this watcher; *text is the caller's for STATE and EVENT. */
enum sl_page_news sl_page_snapshot_next(struct sl_page_snapshot *look,
	struct sl_page_watch *watch, sl_ns at_most, struct sl_page_text **text);

/* Renames an event's members from those of `sluice events --json` to the API's: `realtime_ms` to
 * `ms`, `sentence` to `text`. Returns object, which may be NULL. */
json_t *sl_page_event_of(json_t *object);
/* The JSON of an event in the API. NULL: no memory. */
json_t *sl_page_event_json(const struct sl_msg_event_row *row);

#endif
