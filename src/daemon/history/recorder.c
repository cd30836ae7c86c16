/*
 * recorder - see the header
 *
 * Two workers. The scribe wakes every second, and whenever a reader asks: then it writes open rows,
 * so that the answer reaches up to now. The answerer is in history/door.c.
 */
#include "daemon/history/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/history/read.h"
#include "daemon/history/scribe.h"
#include "daemon/link/peer.h"
#include "daemon/report/events.h"
#include "daemon/report/tell.h"

/* Bytes in the -wal before writing waits for readers: some minutes of a thousand busy workloads. */
#define WAL_MOST    (64ull << 20)
#define WAL_AGAIN_S 300

static struct sl_history_keep keep_of(const struct sl_config *config)
{
	return (struct sl_history_keep){
		.seconds = {(int64_t)(config->history_seconds / SL_S),
			(int64_t)(config->history_minutes / SL_S),
			(int64_t)(config->history_hours / SL_S)},
		.bytes = config->history_size,
		.events = config->history_events,
	};
}

/* --- the scribe --------------------------------------------------------------------------- */

/* Logs a failure when it begins and when it ends, and a note whenever there is one. */
static void log_report(
	const struct sl_history_report *report, int *before, uint64_t dropped_before)
{
	if (report->note.text[0])
		sl_warning("%s", report->note.text);
	if (report->outcome != *before && report->outcome != SL_HISTORY_STORE_OK)
		sl_warning("%s; nothing else is affected", report->err.text);
	else if (report->outcome != *before)
		sl_info("the history is written again%s",
			report->dropped > dropped_before ? "; some of it is missing"
							 : "");
	*before = report->outcome;
}

/* Waits for the history's next second after now_ms, or for a reader's request. False: the end. */
static bool wait_for_second(struct sl_history *history, uint64_t now_ms, bool *is_second)
{
	/* 5 ms into the second, so that all clocks agree which second it is. */
	uint64_t left_ns = (1005 - now_ms % 1000) * SL_MS;
	struct timespec until = {0};
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)((uint64_t)until.tv_nsec + left_ns) / (time_t)SL_S;
	until.tv_nsec = (long)(((uint64_t)until.tv_nsec + left_ns) % SL_S);
	(void)pthread_mutex_lock(&history->scribe.mutex);
	while (!history->scribe.stop && history->told == history->tell_asked && r == 0)
		r = pthread_cond_clockwait(&history->scribe.wake, &history->scribe.mutex,
			CLOCK_MONOTONIC, &until);
	*is_second = r != 0;
	r = history->scribe.stop;
	(void)pthread_mutex_unlock(&history->scribe.mutex);
	return !r;
}

static void note_report(struct sl_history *history,
	const struct sl_history_report *report, uint64_t tells)
{
	struct sl_part *health = &history->health;
	bool is_large;

	(void)pthread_mutex_lock(&history->scribe.mutex);
	health->count = report->rows;
	is_large = history->keep.bytes && report->bytes > history->keep.bytes;
	/* A note (the file was moved aside) is reported until the next start. */
	if (report->note.text[0]) {
		health->health = SL_HEALTH_PARTLY;
		health->text = history->moved = report->note;
	} else if (report->outcome != SL_HISTORY_STORE_OK) {
		health->health = SL_HEALTH_BROKEN;
		health->text = report->err;
	} else if (is_large && !history->moved.text[0]) {
		health->health = SL_HEALTH_PARTLY;
		sl_error_set(&health->text,
			"the history has %" PRIu64 " MiB in use, more than history_size; "
			"what is oldest is being deleted. If that stays, raise "
			"history_size, or lower history_seconds and history_minutes",
			report->bytes >> 20);
	} else {
		health->health =
			history->moved.text[0] ? SL_HEALTH_PARTLY : SL_HEALTH_GOOD;
		health->text = history->moved;
	}
	history->t = report->t;
	history->ahead_s = report->ahead_s;
	history->told = sl_max_u64(history->told, tells);
	(void)pthread_cond_broadcast(&history->is_told);
	(void)pthread_mutex_unlock(&history->scribe.mutex);
}

/* Replaces sums that the loop has not taken. */
static void hand_over(struct sl_history *history, struct sl_history_sums *sums)
{
	if (sums)
		(void)sl_history_sums_put(atomic_exchange(&history->fresh, sums));
}

/* Copies the -wal into the file once it exceeds WAL_MOST, because overlapping readers keep SQLite
 * from doing so by itself. Nothing is written meanwhile, so the copy waits for each reader once at
 * most. */
static void hold_wal(
	struct sl_history *history, struct sl_history_scribe *scribe, sl_ns *again)
{
	struct sl_history_store *store = scribe->store;
	sl_ns now = sl_clock_now();

	if (!store || now < *again || sl_history_store_wal_bytes(store) <= WAL_MOST ||
		sl_history_store_checkpoint(store, SL_HISTORY_READ_MS + 5000))
		return;
	sl_warning("%s-wal has %" PRIu64
		   " MiB, and another program that reads it keeps it from being written "
		   "to %s; end that program",
		history->path, sl_history_store_wal_bytes(store) >> 20, history->path);
	*again = now + WAL_AGAIN_S * SL_S;
}

static void *scribe_body(void *argument)
{
	struct sl_history *history = argument;
	struct sl_history_scribe *scribe = sl_history_scribe_new(
		history->path, history->door, history->first_serial);
	struct sl_history_report report = {.outcome = SL_HISTORY_STORE_OK};
	int before = SL_HISTORY_STORE_OK;
	bool goes_on = scribe != NULL, is_second = true;
	sl_ns wal_again = 0;

	while (goes_on) {
		struct sl_history_keep keep;
		uint64_t tells, dropped = report.dropped;

		(void)pthread_mutex_lock(&history->scribe.mutex);
		keep = history->keep;
		tells = history->tell_asked;
		(void)pthread_mutex_unlock(&history->scribe.mutex);
		if (atomic_exchange(&history->suspect, false))
			scribe->suspects = true;
		sl_history_scribe_step(scribe, sl_tell_now_ms(), &keep, is_second,
			tells != history->told, &report);
		log_report(&report, &before, dropped);
		note_report(history, &report, tells);
		hand_over(history, sl_history_scribe_sums(scribe, &report));
		hold_wal(history, scribe, &wal_again);
		goes_on = wait_for_second(
			history, sl_history_scribe_now(scribe), &is_second);
		if (!goes_on)
			sl_history_scribe_step(
				scribe, sl_tell_now_ms(), &keep, false, true, &report);
	}
	(void)sl_history_scribe_free(scribe);
	return NULL;
}

/* --- the loop's --------------------------------------------------------------------------- */

void sl_history_configure(struct sl_daemon *daemon)
{
	struct sl_history *history = daemon->history;

	if (!history)
		return;
	(void)pthread_mutex_lock(&history->scribe.mutex);
	history->keep = keep_of(&daemon->config);
	(void)pthread_mutex_unlock(&history->scribe.mutex);
}

struct sl_history_sums *sl_history_latest(const struct sl_daemon *daemon)
{
	struct sl_history *history = daemon->history;
	struct sl_history_sums *fresh;

	if (!history)
		return NULL;
	fresh = atomic_exchange(&history->fresh, NULL);
	if (fresh) {
		(void)sl_history_sums_put(history->shown);
		history->shown = fresh;
	}
	if (history->shown)
		history->shown->users++;
	return history->shown;
}

void sl_history_health(const struct sl_daemon *daemon, struct sl_part *part)
{
	struct sl_history *history = daemon->history;

	if (!history) {
		part->health = SL_HEALTH_GOOD;
		return;
	}
	(void)pthread_mutex_lock(&history->scribe.mutex);
	*part = history->health;
	(void)pthread_mutex_unlock(&history->scribe.mutex);
	sl_wire_str(part->path, sizeof(part->path), history->path);
}

/* --- start and end ------------------------------------------------------------------------ */

static int start_threads(struct sl_history *history)
{
	struct sl_daemon *daemon = history->daemon;
	int r = sl_worker_start(&history->answerer, sl_history_answerer, history);

	if (r < 0)
		return r;
	r = sd_event_add_io(daemon->loop, &history->io, history->answerer.event_fd,
		EPOLLIN, sl_history_on_answered, history);
	if (r >= 0)
		r = sd_event_source_set_priority(history->io, SL_PRIORITY_CONTROL);
	if (r >= 0)
		r = sl_worker_start(&history->scribe, scribe_body, history);
	if (r >= 0)
		return 0;
	history->io = sd_event_source_disable_unref(history->io);
	sl_worker_end(&history->answerer);
	return sl_err_origin(r);
}

static void free_all(struct sl_history *history)
{
	sl_history_door_fini(history);
	(void)sl_history_sums_put(atomic_load(&history->fresh));
	(void)sl_history_sums_put(history->shown);
	(void)pthread_cond_destroy(&history->is_told);
	free(history);
}

int sl_history_open(struct sl_daemon *daemon)
{
	struct sl_history *history;
	int r;

	if (!daemon->config.history)
		return 0;
	/* The folder may not exist yet. If it cannot be made, opening the file fails, which is
	 * reported. */
	if (sl_file_make_dirs(daemon->data_dir, 0755) < 0)
		sl_debug("cannot make %s", daemon->data_dir);
	history = calloc(1, sizeof(*history));
	if (!history)
		return sl_err_origin(-ENOMEM);
	history->daemon = daemon;
	history->door = daemon->inside;
	history->first_serial = sl_events_span(daemon).oldest;
	history->keep = keep_of(&daemon->config);
	(void)snprintf(history->path, sizeof(history->path), "%s/%s", daemon->data_dir,
		SL_HISTORY_FILE);
	sl_history_door_init(history);
	(void)pthread_cond_init(&history->is_told, NULL);
	r = start_threads(history);
	if (r < 0) {
		free_all(history);
		return r;
	}
	daemon->history = history;
	return 0;
}

void sl_history_close(struct sl_daemon *daemon)
{
	struct sl_history *history = daemon->history;

	if (!history)
		return;
	daemon->history = NULL;
	sl_history_door_stop(history);
	history->io = sd_event_source_disable_unref(history->io);
	sl_worker_end(&history->scribe);
	sl_worker_end(&history->answerer);
	free_all(history);
}
