/*
 * snapshot - the thread that looks at the daemon for everybody who looks at the page
 *
 * However many watch, the loop is asked once: a snapshot each second and the events as they happen,
 * only while somebody watches; and one when somebody asks for it who finds none that is fresh. Who
 * watches gets a first state, and then those that differ from the one before. Readers wait here,
 * not at the loop. All calls but new, end and free are any thread's.
 */
#ifndef SL_DAEMON_WEB_SNAPSHOT_H
#define SL_DAEMON_WEB_SNAPSHOT_H

#include "base/clock.h"
#include "daemon/link/inside.h"

#include <jansson.h>

struct sl_page_snapshot;

/* A text that many send. */
struct sl_page_text {
	unsigned int users; /* atomic */
	size_t size;
	char text[];
};
struct sl_page_text *sl_page_text_unref(struct sl_page_text *text);

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_page_snapshot_new(
	struct sl_inside_door *door, struct sl_page_snapshot **out);
/* Who waits here goes on with nothing. */
void sl_page_snapshot_end(struct sl_page_snapshot *look);
/* Ends the thread, which the door's end has woken. Returns NULL. */
struct sl_page_snapshot *sl_page_snapshot_free(struct sl_page_snapshot *look);

/* A snapshot (web/state.h) that was begun after `since`, waited for; NULL: it cannot be had, err
 * says why. */
SL_MUST_CHECK struct sl_page_text *sl_page_snapshot_state(
	struct sl_page_snapshot *look, sl_ns since, struct sl_error *err);

/* What one who watches has seen. */
struct sl_page_watch {
	uint64_t states, events;
	sl_ns since;
	bool lacks;  /* has no state yet, and wants one that was begun after `since` */
	bool counts; /* among those who watch */
};
void sl_page_snapshot_watch(struct sl_page_snapshot *look, struct sl_page_watch *watch);
void sl_page_snapshot_unwatch(struct sl_page_snapshot *look, struct sl_page_watch *watch);

enum sl_page_news {
	SL_PAGE_NEWS_NONE = 0, /* within that time */
	SL_PAGE_NEWS_STATE,
	SL_PAGE_NEWS_EVENT, /* the JSON of an event */
	SL_PAGE_NEWS_END
};
/* The next thing that it has not seen; *text is the caller's for STATE and EVENT. */
enum sl_page_news sl_page_snapshot_next(struct sl_page_snapshot *look,
	struct sl_page_watch *watch, sl_ns at_most, struct sl_page_text **text);

/* Looks so far. */
uint64_t sl_page_snapshot_count(struct sl_page_snapshot *look);

/* The JSON of an event as `sluice` has it, as the API has it: times are called ms, sentences text.
 * Takes NULL, too; returns object. */
json_t *sl_page_event_of(json_t *object);
/* The JSON of an event as the API has it. NULL: no memory. */
json_t *sl_page_event_json(const struct sl_msg_event_row *row);

#endif
