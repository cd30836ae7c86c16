/*
 * history - see the header
 *
 * Two workers. The scribe wakes with each second, and whenever somebody is about to read: then it writes what is open, so that an answer reaches up to
 * now. The answerer takes questions in their order; one at a time, since they share a disk.
 */
#include "daemon/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/bundle.h"
#include "daemon/events.h"
#include "daemon/history_scribe.h"
#include "daemon/peer.h"
#include "daemon/worker.h"

/* What an answer waits for the scribe, which may be waiting for a disk itself. Then it is without the last seconds. */
#define TOLD_MS 3000

/* One question of a connection. */
struct wait {
	struct sl_link link;  /* asked or answered */
	struct sl_link open;  /* the loop's */
	struct sl_peer *peer; /* the loop's; NULL: gone */
	struct sl_history_ask ask;
	/* the answer: a descriptor, or why there is none */
	int fd;
	size_t size;
	struct sl_error err;
};

struct sl_history {
	struct sl_daemon *daemon; /* the loop's */
	sd_event_source *io;      /* the loop's */
	struct sl_link
		open; /* the loop's: all that were asked, until they are answered */
	uint32_t open_count;
	char path[SL_PATH_MAX];
	struct sl_inside_door *door;
	uint64_t first_serial;             /* of this daemon's events */
	struct sl_worker scribe, answerer; /* mutex of scribe: the next few */
	struct sl_history_keep keep;
	uint64_t told, tell_asked; /* what is open was written so often; is to be */
	pthread_cond_t is_told;
	struct sl_part health;
	struct sl_error moved; /* a damaged file was moved aside */
	int64_t t;             /* the history reaches up to then; 0: nothing yet */
	/* mutex of answerer */
	struct sl_link asked, answered;
	atomic_bool ending;
	/* The scribe's newest, until the loop takes them; what it took last is the loop's. */
	_Atomic(struct sl_history_sums *) fresh;
	struct sl_history_sums *shown;
};

static uint64_t realtime_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / SL_MS;
}

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

/* Once when it begins, and once when it is over; what was dealt with whenever it happens. */
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

/* Waits for the next second, or for somebody who is about to read. The machine's clock says when seconds begin, another how long that is. False: the
 * end. */
static bool wait_for_second(struct sl_history *history, bool *is_second)
{
	struct timespec now = {0}, until = {0};
	uint64_t left_ns;
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	/* A little into it, so that nobody's clock says that it is the one before. */
	left_ns = SL_S - (uint64_t)now.tv_nsec + 5 * SL_MS;
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

	(void)pthread_mutex_lock(&history->scribe.mutex);
	health->count = report->rows;
	/* That one was moved aside stays to be known until the next start. */
	if (report->note.text[0]) {
		health->health = SL_HEALTH_PARTLY;
		health->text = history->moved = report->note;
	} else if (report->outcome != SL_HISTORY_STORE_OK) {
		health->health = SL_HEALTH_BROKEN;
		health->text = report->err;
	} else {
		health->health =
			history->moved.text[0] ? SL_HEALTH_PARTLY : SL_HEALTH_GOOD;
		health->text = history->moved;
	}
	history->t = report->t;
	history->told = sl_max_u64(history->told, tells);
	(void)pthread_cond_broadcast(&history->is_told);
	(void)pthread_mutex_unlock(&history->scribe.mutex);
}

/* What nobody took meanwhile is of no use any more. */
static void hand_over(struct sl_history *history, struct sl_history_sums *sums)
{
	if (sums)
		(void)sl_history_sums_put(atomic_exchange(&history->fresh, sums));
}

static void *scribe_body(void *argument)
{
	struct sl_history *history = argument;
	struct sl_history_scribe *scribe = sl_history_scribe_new(
		history->path, history->door, history->first_serial);
	struct sl_history_report report = {.outcome = SL_HISTORY_STORE_OK};
	int before = SL_HISTORY_STORE_OK;
	bool goes_on = scribe != NULL, is_second = true;

	while (goes_on) {
		struct sl_history_keep keep;
		uint64_t tells, dropped = report.dropped;

		(void)pthread_mutex_lock(&history->scribe.mutex);
		keep = history->keep;
		tells = history->tell_asked;
		(void)pthread_mutex_unlock(&history->scribe.mutex);
		if (is_second)
			sl_history_scribe_step(scribe, realtime_ms(), &keep,
				tells != history->told, &report);
		else
			sl_history_scribe_tell(scribe, realtime_ms(), &keep, &report);
		log_report(&report, &before, dropped);
		note_report(history, &report, tells);
		hand_over(history, sl_history_scribe_sums(scribe, &report));
		goes_on = wait_for_second(history, &is_second);
		if (!goes_on)
			sl_history_scribe_tell(scribe, realtime_ms(), &keep, &report);
	}
	(void)sl_history_scribe_free(scribe);
	return NULL;
}

/* What is open is written, soon; as of which the history is. */
static int64_t have_told(struct sl_history *history)
{
	struct timespec until = {0};
	uint64_t mine;
	int64_t t;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TOLD_MS / 1000;
	(void)pthread_mutex_lock(&history->scribe.mutex);
	mine = ++history->tell_asked;
	(void)pthread_cond_signal(&history->scribe.wake);
	while (history->told < mine && r == 0 && !history->scribe.stop)
		r = pthread_cond_clockwait(&history->is_told, &history->scribe.mutex,
			CLOCK_MONOTONIC, &until);
	t = history->t;
	(void)pthread_mutex_unlock(&history->scribe.mutex);
	return t;
}

/* --- answering ---------------------------------------------------------------------------- */

bool sl_history_answer(struct sl_history *history, const struct sl_history_ask *asked,
	char **text, size_t *size, struct sl_error *err)
{
	struct sl_history_ask ask = *asked;
	int64_t t;
	FILE *out;
	int r;

	*text = NULL;
	*size = 0;
	if (!history) {
		sl_error_set(err, "no history is written; set history: yes in sluiced's "
				  "configuration, and restart it");
		return false;
	}
	if (!ask.cancel)
		ask.cancel = &history->ending;
	t = have_told(history);
	out = open_memstream(text, size);
	if (!out) {
		sl_error_set(err, "sluiced is out of memory; try again");
		return false;
	}
	r = sl_history_query(
		history->path, &ask, t ? (uint64_t)t * 1000 : realtime_ms(), out, err);
	if (fclose(out) != 0 && r == SL_HISTORY_STORE_OK) {
		sl_error_set(err, "sluiced is out of memory; ask for less");
		r = SL_HISTORY_STORE_BAD;
	}
	if (r == SL_HISTORY_STORE_OK)
		return true;
	free(*text);
	*text = NULL;
	return false;
}

/* Nobody can change what others read. Returns the descriptor, or negative errno. */
static int seal(const char *text, size_t size)
{
	sl_cleanup(sl_closep) int fd =
		memfd_create("sluice-history", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return sl_err_origin(-errno);
	r = sl_file_write_all(fd, text, size);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS,
		    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return sl_err_origin(-errno);
	return sl_steal_fd(&fd);
}

static void answer(struct sl_history *history, struct wait *wait)
{
	sl_cleanup(sl_freep) char *text = NULL;

	if (!sl_history_answer(history, &wait->ask, &text, &wait->size, &wait->err))
		return;
	wait->fd = seal(text, wait->size);
	if (wait->fd < 0)
		sl_error_set(&wait->err, "no memory for the answer (%s); ask for less",
			strerror(-wait->fd));
}

static void *answerer_body(void *argument)
{
	struct sl_history *history = argument;
	struct sl_worker *worker = &history->answerer;

	(void)pthread_mutex_lock(&worker->mutex);
	while (!worker->stop) {
		struct wait *wait;

		if (sl_list_is_empty(&history->asked)) {
			(void)pthread_cond_wait(&worker->wake, &worker->mutex);
			continue;
		}
		wait = SL_LIST_ENTRY(history->asked.next, struct wait, link);
		sl_list_unlink(&wait->link);
		(void)pthread_mutex_unlock(&worker->mutex);
		answer(history, wait);
		(void)pthread_mutex_lock(&worker->mutex);
		sl_list_push_tail(&history->answered, &wait->link);
		sl_worker_tell(worker);
	}
	(void)pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

/* --- the loop's --------------------------------------------------------------------------- */

static void refuse(struct sl_peer *peer, enum sl_history_what what, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HISTORY_REPLY);
	msg.history_reply.what = what;
	sl_wire_str(msg.history_reply.text, sizeof(msg.history_reply.text), text);
	sl_peer_send(peer, &msg);
}

static struct wait *wait_free(struct wait *wait)
{
	sl_list_unlink(&wait->link);
	sl_list_unlink(&wait->open);
	sl_closep(&wait->fd);
	free(wait);
	return NULL;
}

static void send_answer(struct sl_peer *peer, struct wait *wait)
{
	struct sl_bundle *bundle = wait->fd >= 0 ? sl_bundle_new(1, peer->uid, 0) : NULL;
	union sl_msg msg;

	if (!bundle) {
		refuse(peer, wait->ask.what,
			wait->fd >= 0 ? "sluiced is out of memory; try again"
				      : wait->err.text);
		return;
	}
	sl_bundle_add(bundle, &wait->fd, 1);
	wait->fd = -1;
	sl_wire_init(&msg, SL_MSG_HISTORY_FILE);
	msg.history_file.what = wait->ask.what;
	msg.history_file.format = wait->ask.format;
	msg.history_file.bytes = wait->size;
	sl_peer_send_fds(peer, &msg, bundle, 0, 1);
	(void)sl_bundle_unref(bundle);
}

static struct wait *take_answered(struct sl_history *history)
{
	struct wait *wait = NULL;

	(void)pthread_mutex_lock(&history->answerer.mutex);
	if (!sl_list_is_empty(&history->answered)) {
		wait = SL_LIST_ENTRY(history->answered.next, struct wait, link);
		sl_list_unlink(&wait->link);
	}
	(void)pthread_mutex_unlock(&history->answerer.mutex);
	return wait;
}

static int on_answered(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_history *history = context;
	struct sl_daemon *daemon = history->daemon;
	struct wait *wait;

	sl_worker_hear(&history->answerer);
	while ((wait = take_answered(history))) {
		if (wait->peer)
			send_answer(wait->peer, wait);
		history->open_count--;
		(void)wait_free(wait);
	}
	sl_daemon_settle(daemon);
	return 0;
}

static bool is_asking(const struct sl_history *history, const struct sl_peer *peer)
{
	for (const struct sl_link *link = history->open.next; link != &history->open;
		link = link->next) {
		if (SL_CONTAINER_OF((struct sl_link *)link, struct wait, open)->peer ==
			peer)
			return true;
	}
	return false;
}

void sl_history_ask(struct sl_peer *peer, const struct sl_msg_history *asked)
{
	struct sl_history *history = peer->daemon->history;
	struct wait *wait;

	if (!history) {
		refuse(peer, asked->what,
			"no history is written; set history: yes in sluiced's "
			"configuration, and "
			"restart it");
		return;
	}
	if (is_asking(history, peer)) {
		sl_peer_reject(
			peer, SL_REJECT_PROTOCOL, "HISTORY while another one is open");
		return;
	}
	wait = history->open_count < SL_HISTORY_WAITS_MAX ? calloc(1, sizeof(*wait))
							  : NULL;
	if (!wait) {
		refuse(peer, asked->what,
			"many questions about the history wait already; try again in a "
			"while");
		return;
	}
	wait->fd = -1;
	wait->peer = peer;
	wait->ask = (struct sl_history_ask){.what = asked->what,
		.by = asked->by,
		.format = asked->format,
		.step_s = asked->step_s,
		.from_ms = asked->from_ms,
		.to_ms = asked->to_ms,
		.workload = asked->workload};
	memcpy(wait->ask.name, asked->name, sizeof(wait->ask.name));
	sl_list_push_tail(&history->open, &wait->open);
	history->open_count++;
	(void)pthread_mutex_lock(&history->answerer.mutex);
	sl_list_push_tail(&history->asked, &wait->link);
	(void)pthread_cond_signal(&history->answerer.wake);
	(void)pthread_mutex_unlock(&history->answerer.mutex);
}

/* The thread may be at its question: only the loop's part is touched. */
void sl_history_peer_gone(struct sl_peer *peer)
{
	struct sl_history *history = peer->daemon->history;

	if (!history || !peer->control)
		return;
	sl_list_foreach (link, &history->open) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, open);

		if (wait->peer == peer)
			wait->peer = NULL;
	}
}

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
	int r = sl_worker_start(&history->answerer, answerer_body, history);

	if (r < 0)
		return r;
	r = sl_worker_start(&history->scribe, scribe_body, history);
	if (r < 0) {
		sl_worker_end(&history->answerer);
		return r;
	}
	r = sd_event_add_io(daemon->loop, &history->io, history->answerer.event_fd,
		EPOLLIN, on_answered, history);
	if (r >= 0)
		r = sd_event_source_set_priority(history->io, SL_PRIORITY_CONTROL);
	return r < 0 ? sl_err_origin(r) : 0;
}

int sl_history_open(struct sl_daemon *daemon)
{
	struct sl_history *history;
	int r;

	if (!daemon->config.history)
		return 0;
	/* The folder may be one that nothing was kept in yet. If it cannot be made, the file cannot, and that is said then. */
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
	sl_list_init(&history->open);
	sl_list_init(&history->asked);
	sl_list_init(&history->answered);
	(void)pthread_cond_init(&history->is_told, NULL);
	r = start_threads(history);
	if (r < 0 && !history->io) {
		(void)pthread_cond_destroy(&history->is_told);
		free(history);
		return r;
	}
	daemon->history = history;
	return r;
}

void sl_history_close(struct sl_daemon *daemon)
{
	struct sl_history *history = daemon->history;

	if (!history)
		return;
	daemon->history = NULL;
	atomic_store(&history->ending, true);
	history->io = sd_event_source_disable_unref(history->io);
	sl_worker_end(&history->scribe);
	sl_worker_end(&history->answerer);
	sl_list_foreach_safe (link, &history->open)
		(void)wait_free(SL_LIST_ENTRY(link, struct wait, open));
	(void)sl_history_sums_put(atomic_load(&history->fresh));
	(void)sl_history_sums_put(history->shown);
	(void)pthread_cond_destroy(&history->is_told);
	free(history);
}
