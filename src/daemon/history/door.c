/*
 * door - questions about the past, and their answers
 *
 * The loop receives the command line's questions; a thread answers them one at a time, in the order
 * of history/turns.h. Other threads of the daemon read the file themselves. An answer is a memory
 * file: the asker gets a descriptor, and the daemon keeps another until the connection ends or
 * HANDED_S are over. Then the daemon empties the file, so that an asker that keeps its descriptor
 * does not keep the memory.
 */
#include "daemon/history/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/history/read.h"
#include "daemon/link/bundle.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"
#include "daemon/report/tell.h"

/* How long an answer waits for the scribe, which may wait for the disk itself. Beyond that the
 * answer lacks the last seconds. */
#define TOLD_MS 3000
/* How long an answer stays readable. */
#define HANDED_S 60
/* How often the answerer looks for answers kept long enough. */
#define LOOK_S 5

/* One question of a connection. */
struct wait {
	struct sl_history_turn turn; /* until it is answered */
	struct sl_link link;         /* in answered or handed */
	struct sl_link open;         /* the loop's */
	struct sl_peer *peer;        /* the loop's; NULL: gone */
	struct sl_history_ask ask;
	atomic_bool cancel;
	struct sl_history_text *text; /* NULL: err says why there is none */
	struct sl_error err;
	bool is_handed; /* the loop's */
	bool is_over;   /* under the mutex, with the next: it was emptied */
	sl_ns until;
};

static struct wait *of_link(struct sl_link *link)
{
	return SL_LIST_ENTRY(link, struct wait, link);
}

/* --- answering ---------------------------------------------------------------------------- */

/* Has the scribe write open rows. Returns up to when the history is complete, and how far its time
 * is ahead of the machine's clock. */
static uint64_t have_told(struct sl_history *history, int64_t *ahead_s)
{
	struct timespec until = {0};
	uint64_t mine, now_ms;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TOLD_MS / 1000;
	(void)pthread_mutex_lock(&history->scribe.mutex);
	mine = ++history->tell_asked;
	(void)pthread_cond_signal(&history->scribe.wake);
	while (history->told < mine && r == 0 && !history->scribe.stop)
		r = pthread_cond_clockwait(&history->is_told, &history->scribe.mutex,
			CLOCK_MONOTONIC, &until);
	now_ms = (uint64_t)history->t * 1000;
	*ahead_s = history->ahead_s;
	(void)pthread_mutex_unlock(&history->scribe.mutex);
	return now_ms ? now_ms : sl_tell_now_ms();
}

static struct sl_history_text *answer(struct sl_history *history,
	struct sl_history_ask *ask, uint64_t key, struct sl_error *err)
{
	uint64_t now_ms = have_told(history, &ask->ahead_s);
	FILE *out = NULL;
	struct sl_history_text *text = sl_history_text_new(&history->room, key, &out);
	int r;

	if (!text) {
		sl_error_set(err, "sluiced is out of memory; try again");
		return NULL;
	}
	r = sl_history_query(history->path, ask, now_ms, out, err);
	/* An error in the question itself comes first. */
	if (r != SL_HISTORY_STORE_OK) {
		struct sl_error other;

		if (r == SL_HISTORY_STORE_DAMAGED)
			atomic_store(&history->suspect, true);
		(void)!sl_history_text_end(text, &out, &other);
		return sl_history_text_free(text);
	}
	return sl_history_text_end(text, &out, err) ? text : sl_history_text_free(text);
}

struct sl_history_text *sl_history_answer(struct sl_history *history,
	const struct sl_history_ask *asked, uint64_t key, struct sl_error *err)
{
	struct sl_history_ask ask = *asked;

	if (!history) {
		sl_error_set(err, "no history is written; set history: yes in sluiced's "
				  "configuration, and restart it");
		return NULL;
	}
	if (!ask.cancel)
		ask.cancel = &history->ending;
	return answer(history, &ask, key, err);
}

/* --- the thread --------------------------------------------------------------------------- */

/* The first that was kept long enough, or whose asker is gone. */
static struct wait *take_kept(struct sl_history *history, sl_ns now)
{
	sl_list_foreach (link, &history->handed) {
		struct wait *wait = of_link(link);

		if (wait->until <= now) {
			sl_list_unlink(&wait->link);
			return wait;
		}
	}
	return NULL;
}

/* Passes it to the loop. Under the mutex. */
static void pass_on(struct sl_history *history, struct wait *wait)
{
	sl_list_push_tail(&history->answered, &wait->link);
	sl_worker_tell(&history->answerer);
}

static void rest(struct sl_history *history)
{
	struct sl_worker *worker = &history->answerer;
	struct timespec until = {0};

	if (sl_list_is_empty(&history->handed)) {
		(void)pthread_cond_wait(&worker->wake, &worker->mutex);
		return;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOOK_S;
	(void)pthread_cond_clockwait(
		&worker->wake, &worker->mutex, CLOCK_MONOTONIC, &until);
}

void *sl_history_answerer(void *argument)
{
	struct sl_history *history = argument;
	struct sl_worker *worker = &history->answerer;

	(void)pthread_mutex_lock(&worker->mutex);
	while (!worker->stop) {
		struct wait *wait = take_kept(history, sl_clock_now());
		struct sl_history_turn *turn;

		if (wait) {
			(void)pthread_mutex_unlock(&worker->mutex);
			wait->text = sl_history_text_free(wait->text);
			(void)pthread_mutex_lock(&worker->mutex);
			wait->is_over = true;
			pass_on(history, wait);
			continue;
		}
		turn = sl_history_turns_next(&history->turns);
		if (!turn) {
			rest(history);
			continue;
		}
		wait = SL_CONTAINER_OF(turn, struct wait, turn);
		(void)pthread_mutex_unlock(&worker->mutex);
		wait->text = answer(history, &wait->ask, turn->uid, &wait->err);
		(void)pthread_mutex_lock(&worker->mutex);
		sl_history_turns_leave(turn);
		pass_on(history, wait);
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

/* Call it once the thread is done with it. */
static struct wait *wait_free(struct wait *wait)
{
	sl_list_unlink(&wait->link);
	sl_list_unlink(&wait->open);
	(void)sl_history_text_free(wait->text);
	free(wait);
	return NULL;
}

static bool send_file(struct sl_peer *peer, struct wait *wait)
{
	struct sl_bundle *bundle = sl_bundle_new(1, peer->uid, 0);
	int fd = bundle ? fcntl(wait->text->fd, F_DUPFD_CLOEXEC, 3) : -1;
	union sl_msg msg;

	if (fd >= 0) {
		sl_bundle_add(bundle, &fd, 1);
		sl_wire_init(&msg, SL_MSG_HISTORY_FILE);
		msg.history_file.what = wait->ask.what;
		msg.history_file.format = wait->ask.format;
		msg.history_file.bytes = wait->text->size;
		sl_peer_send_fds(peer, &msg, bundle, 0, 1);
	}
	(void)sl_bundle_unref(bundle);
	return fd >= 0;
}

/* Keeps the answer while the asker may read it. Under the mutex. */
static void hand(struct sl_history *history, struct wait *wait)
{
	wait->is_handed = true;
	wait->until = wait->peer ? sl_clock_now() + HANDED_S * SL_S : 0;
	sl_list_push_tail(&history->handed, &wait->link);
	(void)pthread_cond_signal(&history->answerer.wake);
}

static void deal_with(struct sl_history *history, struct wait *wait)
{
	if (wait->peer && !wait->text)
		refuse(wait->peer, wait->ask.what, wait->err.text);
	else if (wait->peer && !send_file(wait->peer, wait))
		refuse(wait->peer, wait->ask.what, "sluiced is out of memory; try again");
	if (!wait->text) {
		(void)wait_free(wait);
		return;
	}
	/* Freeing many pages takes time: the thread does it. */
	(void)pthread_mutex_lock(&history->answerer.mutex);
	hand(history, wait);
	(void)pthread_mutex_unlock(&history->answerer.mutex);
}

static struct wait *take_answered(struct sl_history *history)
{
	struct wait *wait = NULL;

	(void)pthread_mutex_lock(&history->answerer.mutex);
	if (!sl_list_is_empty(&history->answered)) {
		wait = of_link(history->answered.next);
		sl_list_unlink(&wait->link);
	}
	(void)pthread_mutex_unlock(&history->answerer.mutex);
	return wait;
}

int sl_history_on_answered(
	sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_history *history = context;
	struct sl_share_turn turn = sl_share_begin();
	struct wait *wait;

	sl_worker_hear(&history->answerer);
	while ((wait = take_answered(history))) {
		if (wait->is_over)
			(void)wait_free(wait);
		else
			deal_with(history, wait);
	}
	history->daemon->up->settle(history->daemon);
	sl_share_note(history->daemon, SL_SHARE_HISTORY, &turn);
	return 0;
}

/* The peer is gone: cancels its question, or gives up its answer. */
static void let_go(struct sl_history *history, struct wait *wait)
{
	bool waited;

	atomic_store(&wait->cancel, true);
	wait->peer = NULL;
	(void)pthread_mutex_lock(&history->answerer.mutex);
	waited = sl_list_is_linked(&wait->turn.waiting);
	if (waited)
		sl_history_turns_leave(&wait->turn);
	if (wait->is_handed && !wait->is_over) {
		wait->until = 0;
		(void)pthread_cond_signal(&history->answerer.wake);
	}
	(void)pthread_mutex_unlock(&history->answerer.mutex);
	if (waited)
		(void)wait_free(wait);
}

void sl_history_peer_gone(struct sl_peer *peer)
{
	struct sl_history *history = peer->daemon->history;

	if (!history || !peer->control)
		return;
	sl_list_foreach_safe (link, &history->open) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, open);

		if (wait->peer == peer)
			let_go(history, wait);
	}
}

/* Whether the peer still has an open question. An answered one counts as read. */
static bool is_asking(struct sl_history *history, const struct sl_peer *peer)
{
	sl_list_foreach_safe (link, &history->open) {
		struct wait *wait = SL_LIST_ENTRY(link, struct wait, open);

		if (wait->peer == peer && !wait->is_handed)
			return true;
		if (wait->peer == peer)
			let_go(history, wait);
	}
	return false;
}

static struct wait *wait_new(struct sl_peer *peer, const struct sl_msg_history *asked)
{
	struct wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return NULL;
	sl_list_init(&wait->link);
	sl_list_init(&wait->open);
	wait->peer = peer;
	wait->turn.uid = peer->uid;
	wait->turn.is_admin = peer->uid == 0 || peer->uid == geteuid();
	wait->ask = (struct sl_history_ask){.what = asked->what,
		.by = asked->by,
		.format = asked->format,
		.step_s = asked->step_s,
		.from_ms = asked->from_ms,
		.to_ms = asked->to_ms,
		.workload = asked->workload,
		.before = asked->before,
		.last = asked->last,
		.kinds = asked->kinds,
		.cancel = &wait->cancel};
	memcpy(wait->ask.name, asked->name, sizeof(wait->ask.name));
	return wait;
}

void sl_history_ask(struct sl_peer *peer, const struct sl_msg_history *asked)
{
	static const char *const texts[] = {
		[SL_HISTORY_FULL] = "many questions about the history wait already; try "
				    "again in a while",
		[SL_HISTORY_FULL_USER] = "several questions of yours about the history "
					 "wait already; try again when they are answered",
	};
	struct sl_history *history = peer->daemon->history;
	enum sl_history_enter entered;
	struct wait *wait;

	if (!history) {
		refuse(peer, asked->what,
			"no history is written; set history: yes in sluiced's "
			"configuration, and restart it");
		return;
	}
	if (is_asking(history, peer)) {
		sl_peer_reject(
			peer, SL_REJECT_PROTOCOL, "HISTORY while another one is open");
		return;
	}
	wait = wait_new(peer, asked);
	if (!wait) {
		refuse(peer, asked->what, "sluiced is out of memory; try again");
		return;
	}
	(void)pthread_mutex_lock(&history->answerer.mutex);
	entered = sl_history_turns_enter(&history->turns, &wait->turn);
	(void)pthread_cond_signal(&history->answerer.wake);
	(void)pthread_mutex_unlock(&history->answerer.mutex);
	if (entered == SL_HISTORY_ENTERED) {
		sl_list_push_tail(&history->open, &wait->open);
		return;
	}
	refuse(peer, asked->what, texts[entered]);
	free(wait);
}

/* --- start and end ------------------------------------------------------------------------ */

void sl_history_door_init(struct sl_history *history)
{
	sl_list_init(&history->open);
	sl_list_init(&history->answered);
	sl_list_init(&history->handed);
	sl_history_turns_init(&history->turns);
	sl_history_budget_init(&history->room);
}

void sl_history_door_stop(struct sl_history *history)
{
	atomic_store(&history->ending, true);
	sl_list_foreach (link, &history->open)
		atomic_store(&SL_LIST_ENTRY(link, struct wait, open)->cancel, true);
}

void sl_history_door_fini(struct sl_history *history)
{
	sl_list_foreach_safe (link, &history->open)
		(void)wait_free(SL_LIST_ENTRY(link, struct wait, open));
	sl_history_budget_fini(&history->room);
}
