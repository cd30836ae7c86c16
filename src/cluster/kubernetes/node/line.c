/*
 * line - see the header
 */
#include "cluster/kubernetes/node/line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/paths.h"

#define AGAIN_LEAST (100 * SL_MS)
#define AGAIN_MOST  (5 * SL_S)
/* Messages handled per turn of the loop. */
#define BUDGET 64

struct call {
	struct sl_link link;
	union sl_msg ask;
	enum sl_msg_type want;
	bool rows;
	sl_line_fn fn; /* NULL: the caller no longer waits */
	void *context;
};

struct sl_line {
	sd_event *loop;
	char path[SL_SOCKET_PATH_MAX];
	struct sl_line_handler handler;
	int fd; /* -1: disconnected */
	sd_event_source *io;
	sd_event_source *timer; /* of the next attempt, or of the answer */
	bool up, sent;          /* WELCOME came; the first call is sent */
	sl_ns pause;
	struct sl_link calls;
	struct sl_error told;
};

static void set_timer(struct sl_line *line, sl_ns from_now)
{
	(void)sd_event_source_set_time_relative(line->timer, from_now / SL_US);
	(void)sd_event_source_set_enabled(line->timer, SD_EVENT_ONESHOT);
}

static void finish(struct call *call, const struct sl_error *err)
{
	sl_list_unlink(&call->link);
	if (call->fn)
		call->fn(call->context, NULL, err);
	free(call);
}

static void lose(struct sl_line *line, const struct sl_error *err)
{
	line->io = sd_event_source_disable_unref(line->io);
	sl_closep(&line->fd);
	line->up = line->sent = false;
	line->pause = sl_max_u64(AGAIN_LEAST, sl_min_u64(AGAIN_MOST, 2 * line->pause));
	set_timer(line, line->pause);
	if (strcmp(line->told.text, err->text) != 0) {
		line->told = *err;
		line->handler.down(line->handler.context, err);
	}
	/* No call is accepted while the line is down, so a failed call's function cannot add
	 * one. */
	while (!sl_list_is_empty(&line->calls))
		finish(SL_LIST_ENTRY(line->calls.next, struct call, link), err);
}

SL_PRINTF(2, 3)
static void lose_because(struct sl_line *line, const char *format, ...)
{
	struct sl_error err = {0};
	char words[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	sl_error_set(&err, "sluiced at %s: %s", line->path, words);
	lose(line, &err);
}

/* The loop notices a failed send, so no function is called within a caller's call. */
static void send_msg(struct sl_line *line, const union sl_msg *msg)
{
	if (sl_wire_send(line->fd, msg) != SL_WIRE_OK)
		(void)shutdown(line->fd, SHUT_RDWR);
}

/* One call at a time, so the socket always has space for a message. */
static void send_next(struct sl_line *line)
{
	if (!line->up || line->sent)
		return;
	if (sl_list_is_empty(&line->calls)) {
		(void)sd_event_source_set_enabled(line->timer, SD_EVENT_OFF);
		return;
	}
	line->sent = true;
	set_timer(line, SL_LINE_TIMEOUT);
	send_msg(line, &SL_LIST_ENTRY(line->calls.next, struct call, link)->ask);
}

static void take_answer(struct sl_line *line, const union sl_msg *msg)
{
	struct call *call =
		line->sent ? SL_LIST_ENTRY(line->calls.next, struct call, link) : NULL;
	bool last;

	if (msg->head.type == SL_MSG_REJECT) {
		lose_because(line, "%s", msg->reject.text);
		return;
	}
	last = call && (call->rows ? msg->head.type == SL_MSG_LIST_END
				   : msg->head.type == (uint32_t)call->want);
	if (!last && !(call && call->rows && msg->head.type == (uint32_t)call->want)) {
		lose_because(line, "%s was not asked for", sl_wire_name(msg->head.type));
		return;
	}
	if (msg->head.type == (uint32_t)call->want && call->fn)
		call->fn(call->context, msg, NULL);
	if (!last)
		return;
	line->sent = false;
	finish(call, NULL);
	send_next(line);
}

static void take(struct sl_line *line, const union sl_msg *msg)
{
	if (msg->head.type == SL_MSG_CHALLENGE) {
		union sl_msg proof;

		sl_wire_proof(&proof, msg);
		send_msg(line, &proof);
	} else if (line->up) {
		take_answer(line, msg);
	} else if (msg->head.type == SL_MSG_WELCOME) {
		line->up = true;
		line->pause = 0;
		line->told.text[0] = '\0';
		line->handler.up(line->handler.context);
		send_next(line);
	} else {
		lose_because(line, "%s",
			msg->head.type == SL_MSG_REJECT ? msg->reject.text
							: "does not say WELCOME");
	}
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_line *line = context;

	for (int i = 0; i < BUDGET && line->fd >= 0; i++) {
		struct sl_error err = {0};
		union sl_msg msg;
		int r = sl_wire_recv(line->fd, SL_FROM_DAEMON, &msg, &err);

		if (r == SL_WIRE_AGAIN)
			break;
		if (r == SL_WIRE_OK)
			take(line, &msg);
		else
			lose_because(line, "%s",
				r == SL_WIRE_CLOSED ? "the connection is lost"
				: r < 0             ? strerror(-r)
						    : err.text);
	}
	return 0;
}

static void try_to_connect(struct sl_line *line)
{
	struct sl_error err = {0};
	union sl_msg hello;
	int r;

	/* A stopped daemon accepts no connections; try again, as if it were absent. */
	line->fd = sl_wire_connect_now(line->path, &err);
	if (line->fd < 0) {
		lose(line, &err);
		return;
	}
	r = sd_event_add_io(line->loop, &line->io, line->fd, EPOLLIN, on_io, line);
	if (r < 0) {
		lose_because(line, "%s", strerror(-r));
		return;
	}
	set_timer(line, SL_LINE_TIMEOUT);
	sl_wire_init(&hello, SL_MSG_HELLO);
	hello.hello.role = SL_ROLE_CONTROL;
	sl_wire_str(hello.hello.version, sizeof(hello.hello.version), SL_VERSION);
	send_msg(line, &hello);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_line *line = context;

	if (line->fd < 0)
		try_to_connect(line);
	else if (!line->up || line->sent)
		lose_because(line, "does not answer");
	return 0;
}

int sl_line_new(sd_event *loop, const char *path, const struct sl_line_handler *handler,
	struct sl_line **out)
{
	struct sl_line *line = calloc(1, sizeof(*line));
	int r;

	if (!line)
		return sl_err_origin(-ENOMEM);
	line->loop = sd_event_ref(loop);
	line->handler = *handler;
	line->fd = -1;
	sl_list_init(&line->calls);
	sl_wire_str(line->path, sizeof(line->path), path);
	r = sd_event_add_time_relative(
		loop, &line->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, line);
	if (r < 0) {
		(void)sl_line_free(line);
		return sl_err_origin(r);
	}
	*out = line;
	return 0;
}

struct sl_line *sl_line_free(struct sl_line *line)
{
	if (!line)
		return NULL;
	while (!sl_list_is_empty(&line->calls)) {
		struct call *call = SL_LIST_ENTRY(line->calls.next, struct call, link);

		sl_list_unlink(&call->link);
		free(call);
	}
	line->io = sd_event_source_disable_unref(line->io);
	line->timer = sd_event_source_disable_unref(line->timer);
	sl_closep(&line->fd);
	line->loop = sd_event_unref(line->loop);
	free(line);
	return NULL;
}

bool sl_line_is_up(const struct sl_line *line)
{
	return line->up;
}

int sl_line_call(struct sl_line *line, const union sl_msg *ask, enum sl_msg_type want,
	bool rows, sl_line_fn fn, void *context)
{
	struct call *call = line->up ? malloc(sizeof(*call)) : NULL;

	if (!call)
		return sl_err_origin(line->up ? -ENOMEM : -ENOTCONN);
	*call = (struct call){
		.ask = *ask, .want = want, .rows = rows, .fn = fn, .context = context};
	sl_list_init(&call->link);
	sl_list_push_tail(&line->calls, &call->link);
	send_next(line);
	return 0;
}

void sl_line_forget(struct sl_line *line, const void *context)
{
	sl_list_foreach (link, &line->calls) {
		struct call *call = SL_LIST_ENTRY(link, struct call, link);

		if (call->context == context)
			call->fn = NULL;
	}
}
