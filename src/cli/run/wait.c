/* One ppoll(2) waits for the daemon and for signals; the daemon sends each change by itself. */
#include "cli/run/wait.h"

#include "base/clock.h"
#include "cli/line/cli.h"
#include "cli/line/interrupt.h"
#include "cli/line/text.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>

/* How long to look for a daemon that ended, and how often. */
#define DAEMON_GONE    (60 * SL_S)
#define DAEMON_LOOK_MS 200

struct wait {
	struct sl_conn *conn;
	union sl_msg *ask;
	sigset_t unblocked;
	sl_ns lost_at; /* when the daemon ended, 0: it answers */
	bool asked, json;
};

static void say_waits(const struct wait *wait, struct sl_msg_run_waits *waits)
{
	json_t *object = NULL;

	if (wait->json)
		object = json_pack("{s:b, s:o, s:o}", "waits", 1, "name",
			sl_text_json(waits->name), "text", sl_text_json(waits->text));
	if (object) {
		json_dumpf(object, stderr, 0);
		fputc('\n', stderr);
		json_decref(object);
		return;
	}
	sl_text_tame(waits->name);
	sl_text_tame(waits->text);
	fprintf(stderr, "sluice run: %s waits: %s\n", waits->name, waits->text);
}

static int lost(struct wait *wait)
{
	wait->lost_at = sl_clock_now();
	wait->asked = false;
	sl_conn_close(wait->conn);
	if (!wait->json)
		fputs("sluice run: the daemon went away; waiting for it to come back\n",
			stderr);
	return SL_EXIT_OK;
}

/* Asks again once the daemon is back. */
static int look_for_daemon(struct wait *wait, struct sl_error *err)
{
	int status;

	if (!sl_interrupt_sleep(&wait->unblocked, DAEMON_LOOK_MS))
		return SL_EXIT_OK;
	status = sl_conn_open(wait->conn, err);
	if (!status) {
		wait->lost_at = 0;
		return SL_EXIT_OK;
	}
	sl_conn_close(wait->conn);
	if (status != SL_EXIT_NO_DAEMON || sl_clock_now() - wait->lost_at > DAEMON_GONE)
		return status;
	return SL_EXIT_OK;
}

static int ask(struct wait *wait, struct sl_error *err)
{
	int status = sl_conn_send(wait->conn, wait->ask, err);

	wait->asked = true;
	return status == SL_EXIT_NO_DAEMON ? lost(wait) : status;
}

/* msg->head.type: what came, 0: nothing that matters. */
static int step(struct wait *wait, union sl_msg *msg, struct sl_error *err)
{
	struct pollfd daemon = {.events = POLLIN};
	int status;

	msg->head.type = 0;
	if (wait->lost_at)
		return look_for_daemon(wait, err);
	if (!wait->asked)
		return ask(wait, err);
	daemon.fd = wait->conn->fd;
	if (ppoll(&daemon, 1, NULL, &wait->unblocked) <= 0)
		return SL_EXIT_OK;
	status = sl_conn_receive_or(
		wait->conn, SL_MSG_RUN_REPLY, SL_MSG_RUN_WAITS, msg, err);
	if (status)
		msg->head.type = 0;
	return status == SL_EXIT_NO_DAEMON ? lost(wait) : status;
}

int sl_run_wait(struct sl_conn *conn, union sl_msg *asked, bool json, union sl_msg *reply,
	struct sl_error *err)
{
	struct wait wait = {.conn = conn, .ask = asked, .json = json};
	int status = SL_EXIT_OK;

	asked->run.flags |= SL_RUN_WAIT;
	sl_interrupt_catch(&wait.unblocked);
	reply->head.type = 0;
	while (!status && !sl_interrupt_came() && reply->head.type != SL_MSG_RUN_REPLY) {
		status = step(&wait, reply, err);
		if (reply->head.type == SL_MSG_RUN_WAITS)
			say_waits(&wait, &reply->run_waits);
	}
	if (sl_interrupt_came())
		sl_conn_close(conn);
	sl_interrupt_die();
	sl_interrupt_release();
	return status;
}
