/*
 * saving - two lists of peers that wait: for the current write of the journal, and for the next
 */
#include "daemon/loop/saving.h"

#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/jobs/jobs.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"
#include "daemon/loop/recover.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/swap/place.h"

#define COMMIT_MOST_NS (5 * SL_MS)
/* A failed write is tried again, even if nothing else changes. */
#define RETRY_NS SL_S

static void enable(struct sl_daemon *daemon, bool on)
{
	(void)sd_event_source_set_enabled(
		daemon->commit.source, on ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void say(struct sl_daemon *daemon, int r)
{
	bool failed = r < 0;

	if (failed && !daemon->commit.error)
		sl_error_log("cannot write the journal in %s: %s; running on, but a "
			     "restart would "
			     "not know what runs now",
			daemon->state_dir, strerror(-r));
	if (failed != (daemon->commit.error != 0))
		sl_events_add(
			daemon, &(struct sl_node_because){
					.reason = failed ? SL_REASON_JOURNAL_FAILS
							 : SL_REASON_JOURNAL_WORKS});
	daemon->commit.error = failed ? -r : 0;
}

/* Adds a warning to an answer whose change is not in the journal. */
static void admit_loss(struct sl_peer *peer, union sl_msg *msg)
{
	const struct sl_daemon *daemon = peer->daemon;
	struct sl_error text = {0};

	sl_error_set(&text,
		"sluiced cannot write its journal in %s (%s): after a restart of it this "
		"is forgotten; see sluice doctor",
		daemon->state_dir, strerror(daemon->commit.error));
	if (msg->head.type == SL_MSG_RUN_REPLY && msg->run_reply.ok)
		sl_wire_str(msg->run_reply.text, sizeof(msg->run_reply.text), text.text);
	else if (msg->head.type == SL_MSG_SET_REPLY && msg->set_reply.ok)
		sl_wire_str(msg->set_reply.text, sizeof(msg->set_reply.text), text.text);
	else if (msg->head.type == SL_MSG_PARK_REPLY && msg->park_reply.ok)
		sl_wire_str(
			msg->park_reply.text, sizeof(msg->park_reply.text), text.text);
	else if (msg->head.type == SL_MSG_STOP_REPLY && msg->stop_reply.ok)
		sl_wire_str(
			msg->stop_reply.text, sizeof(msg->stop_reply.text), text.text);
}

/* The write is done, or has failed: answers the peers that waited for it. */
static void written(struct sl_daemon *daemon, int r)
{
	daemon->commit.writing = false;
	daemon->commit.done = daemon->commit.begun;
	sl_jobs_written(daemon);
	sl_place_written(daemon);
	say(daemon, r);
	sl_step(D_JOURNALLED);
	while (!sl_list_is_empty(&daemon->commit.held_writing)) {
		struct sl_peer *peer = SL_LIST_ENTRY(
			daemon->commit.held_writing.next, struct sl_peer, held_link);

		if (r < 0)
			sl_peer_revise(peer, admit_loss);
		sl_peer_release(peer);
	}
	sl_step(D_TOLD);
	if (daemon->commit.pending)
		enable(daemon, true);
}

static void on_stored(void *context, int r, const struct sl_error *err);

static int hand_over(struct sl_daemon *daemon)
{
	struct sl_commit *commit = &daemon->commit;

	return sl_store_commit(daemon->store,
		sl_journal_change(
			commit->whole ? NULL : &commit->before, &commit->journal),
		on_stored, daemon);
}

static void on_stored(void *context, int r, const struct sl_error *err)
{
	struct sl_daemon *daemon = context;
	struct sl_commit *commit = &daemon->commit;

	if (r == 0) {
		struct sl_journal before = commit->before;

		commit->before = commit->journal;
		commit->journal = before;
		commit->whole = false;
	} else if (!commit->whole) {
		/* Perhaps it was moved away, or is damaged: then all of it can be written. */
		commit->whole = true;
		r = hand_over(daemon);
		if (r == 0)
			return;
	}
	written(daemon, r);
}

static void start(struct sl_daemon *daemon)
{
	struct sl_share_turn turn = sl_share_begin();
	int r = sl_recover_save(daemon);

	daemon->commit.pending = false;
	daemon->commit.writing = true;
	daemon->commit.begun++;
	enable(daemon, false);
	while (!sl_list_is_empty(&daemon->commit.held)) {
		struct sl_link *link = daemon->commit.held.next;

		sl_list_unlink(link);
		sl_list_push_tail(&daemon->commit.held_writing, link);
	}
	if (r == 0)
		r = hand_over(daemon);
	sl_share_note(daemon, SL_SHARE_JOURNAL, &turn);
	if (r < 0)
		written(daemon, r);
}

static int on_commit(sd_event_source *source, void *context)
{
	struct sl_daemon *daemon = context;

	if (daemon->commit.pending && !daemon->commit.writing)
		start(daemon);
	daemon->up->settle(daemon);
	return 0;
}

void sl_saving_settle(struct sl_daemon *daemon)
{
	if (daemon->commit.error && !daemon->commit.writing &&
		sl_clock_now() - daemon->commit.since > RETRY_NS)
		sl_commit_soon(daemon);
	if (daemon->commit.pending && !daemon->commit.writing &&
		sl_clock_now() - daemon->commit.since > COMMIT_MOST_NS)
		start(daemon);
}

void sl_saving_finish(struct sl_daemon *daemon)
{
	sl_store_finish(daemon->store);
	if (!daemon->commit.pending)
		return;
	start(daemon);
	sl_store_finish(daemon->store);
}

int sl_saving_open(struct sl_daemon *daemon)
{
	int r = sd_event_add_defer(
		daemon->loop, &daemon->commit.source, on_commit, daemon);

	if (r >= 0)
		r = sd_event_source_set_priority(
			daemon->commit.source, SL_PRIORITY_COMMIT);
	if (r < 0)
		return sl_err_origin(r);
	daemon->commit.whole = true;
	enable(daemon, false);
	return 0;
}

void sl_saving_close(struct sl_daemon *daemon)
{
	daemon->commit.source = sd_event_source_disable_unref(daemon->commit.source);
	sl_journal_fini(&daemon->commit.before);
	sl_journal_fini(&daemon->commit.journal);
}
