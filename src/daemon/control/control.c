/*
 * control - one message after another, or the rows of an answer
 *
 * `sluice run` execs the program in the process that sent RUN, so the sender is the root of the
 * workload (jobs/front.c). If the sender dies before it execs, its pidfd tells the daemon, as for
 * any other death.
 */
#include "daemon/control/control.h"

#include <string.h>

#include "base/step.h"
#include "daemon/control/dump.h"
#include "daemon/control/entry.h"
#include "daemon/control/parking.h"
#include "daemon/control/rows.h"
#include "daemon/control/set.h"
#include "daemon/control/why.h"
#include "daemon/core/fields.h"
#include "daemon/history/history.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/names.h"
#include "daemon/jobs/resources.h"
#include "daemon/link/places.h"
#include "daemon/link/share.h"
#include "daemon/projects/registry.h"
#include "daemon/report/events.h"
#include "daemon/web/page.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

/* --- RUN ---------------------------------------------------------------------------------- */

/* A process that runs `sluice run` again has left its former program; that workload, without
 * clients, would keep its request in vain. */
static void end_former(struct sl_daemon *daemon, const struct sl_process *process)
{
	bool ended = false;

	sl_list_foreach_safe (link, &process->roots) {
		struct sl_workload *former =
			SL_LIST_ENTRY(link, struct sl_workload, root_link);

		if (!sl_list_is_empty(&former->clients))
			continue;
		sl_workload_root_died(former);
		ended = true;
	}
	/* Frees its name and its part of a limit for the new workload. */
	if (ended)
		sl_jobs_look_now(daemon);
}

static void on_run(struct sl_peer *peer, const struct sl_msg_run *run)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *mistake = sl_field_mistake(run);
	struct sl_process *process = NULL;
	struct sl_error text = {0};

	sl_step(D_RUN_TAKEN);
	/* The sender becomes the program; a thread of the daemon must not. */
	if (peer->who) {
		sl_jobs_answer_run(peer, NULL, SL_REASON_NONE,
			"sluiced starts nothing in itself; submit a job");
		return;
	}
	if (sl_jobs_run_waits(peer)) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "RUN while another one waits");
		return;
	}
	if (mistake) {
		sl_jobs_answer_run(peer, NULL, SL_REASON_NONE, mistake);
		return;
	}
	if (!sl_field_chain_fits(run->flags, daemon->config.resolvers, &text) ||
		!sl_registry_admits(peer, run->project, &text)) {
		sl_jobs_answer_run(peer, NULL, SL_REASON_NONE, text.text);
		return;
	}
	if (sl_process_get(daemon, peer->pid, &peer->pidfd, peer->start_ticks,
		    &process) != SL_PROCESS_OK) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced cannot watch process %d; try again", (int)peer->pid);
		return;
	}
	end_former(daemon, process);
	if (sl_places_workloads_full(daemon, peer->uid)) {
		process = sl_process_put(process);
		sl_jobs_answer_run(peer, NULL, SL_REASON_NONE,
			"no place for another workload; end some (sluice ps), or raise "
			"max_clients in sluiced's configuration");
		return;
	}
	if (run->name[0] &&
		!sl_jobs_name_is_free(daemon, peer->uid, run->name, 1, &text)) {
		process = sl_process_put(process);
		sl_jobs_answer_run(peer, NULL, SL_REASON_DUPLICATE, text.text);
		return;
	}
	sl_jobs_run(peer, run, process);
}

/* --- answers of many rows ----------------------------------------------------------------- */

static enum sl_stream_outcome next_row(struct sl_peer *peer, union sl_msg *msg)
{
	switch (peer->list.kind) {
	case SL_STREAM_EVENTS: return sl_events_next(peer, msg);
	case SL_STREAM_WHY: return sl_why_next(peer, msg);
	case SL_STREAM_DUMP: return sl_dump_next(peer, msg);
	case SL_STREAM_LIST:
	default:
		return sl_rows_next(peer->daemon, &peer->list, msg) ? SL_STREAM_ROW
								    : SL_STREAM_END;
	}
}

void sl_control_list_more(struct sl_peer *peer)
{
	sl_ns begin = sl_clock_now();

	peer->list.waits = false;
	for (int i = 0; i < SL_STREAM_TURN; i++) {
		enum sl_stream_outcome outcome;
		union sl_msg msg;

		if (!peer->list.active || peer->doomed || !sl_peer_is_drained(peer) ||
			(i && sl_share_turn_is_over(begin)))
			return;
		outcome = next_row(peer, &msg);
		if (outcome == SL_STREAM_AGAIN)
			return;
		peer->list.waits = outcome == SL_STREAM_WAIT;
		if (outcome == SL_STREAM_WAIT)
			return;
		if (outcome == SL_STREAM_ROW) {
			peer->list.rows++;
		} else {
			sl_peer_list_end(peer);
			sl_wire_init(&msg, SL_MSG_LIST_END);
			msg.list_end.rows = peer->list.rows;
		}
		sl_peer_send(peer, &msg);
	}
}

static void begin_list(struct sl_peer *peer, const struct sl_msg_list *list)
{
	peer->list = (struct sl_peer_list){
		.active = true, .kind = SL_STREAM_LIST, .what = list->what};
}

void sl_control_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	switch (msg->head.type) {
	case SL_MSG_RUN: on_run(peer, &msg->run); break;
	case SL_MSG_ENTRY_ADD: sl_entry_add(peer, &msg->entry_add); break;
	case SL_MSG_ENTRY_OPEN: sl_entry_open(peer, &msg->entry_open); break;
	case SL_MSG_ENTRY_END: sl_entry_end(peer, &msg->entry_end); break;
	case SL_MSG_LIST: begin_list(peer, &msg->list); break;
	case SL_MSG_SET: sl_set_set(peer, &msg->set); break;
	case SL_MSG_MOVE: sl_parking_move(peer, &msg->move); break;
	case SL_MSG_PARK: sl_parking_park(peer, &msg->park); break;
	case SL_MSG_PROJECT_PUT: sl_registry_put(peer, &msg->project_put); break;
	case SL_MSG_PROJECT_DELETE: sl_registry_delete(peer, &msg->project_delete); break;
	case SL_MSG_SUBMIT: sl_jobs_submit(peer, &msg->submit, fds); break;
	case SL_MSG_JOB_WAIT: sl_jobs_wait(peer, &msg->job_wait); break;
	case SL_MSG_JOB_STOP: sl_jobs_stop(peer, &msg->job_stop); break;
	case SL_MSG_JOB_LOG: sl_jobs_log(peer, &msg->job_log); break;
	case SL_MSG_PAGE_TOKEN: sl_page_give_token(peer); break;
	case SL_MSG_RESOURCE_PUT: sl_resources_put(peer, &msg->resource_put); break;
	case SL_MSG_RESOURCE_DELETE:
		sl_resources_delete(peer, &msg->resource_delete);
		break;
	case SL_MSG_HISTORY: sl_history_ask(peer, &msg->history); break;
	case SL_MSG_STOP: sl_set_stop(peer, &msg->stop); break;
	case SL_MSG_WHY: sl_why_begin(peer, &msg->why); break;
	case SL_MSG_DUMP: sl_dump_begin(peer); break;
	case SL_MSG_EVENTS: sl_events_begin(peer, &msg->events); break;
	default:
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "%s twice",
			sl_wire_name(msg->head.type));
	}
	if (peer->list.active)
		sl_control_list_more(peer);
}
