/*
 * grpc - see the header
 *
 * Three objects: the server, its connections, and calls. A call belongs both to the stream of a
 * connection, while that lives, and to the handler, until it answers; it is freed when both are
 * done. nghttp2's callbacks only take notes. Connections are freed, and waiting data is sent, after
 * the callbacks have returned.
 */
#include "cluster/kubernetes/api/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/paths.h"
#include "cluster/kubernetes/api/grpc_frame.h"

#define PREFIX_BYTES SL_GRPC_PREFIX_BYTES
#define METHOD_MAX   128
#define STATUS_MAX   1024
/* Pause of accepting without descriptors or memory for another connection. */
#define PAUSE SL_S

struct sl_grpc {
	sd_event *loop;
	sl_grpc_fn fn;
	void *context;
	char path[SL_SOCKET_PATH_MAX];
	int fd;
	sd_event_source *io;
	sd_event_source *pause; /* until connections are accepted again */
	bool is_short;          /* of descriptors or memory; logged once */
	struct sl_link connections;
	uint32_t connection_count;
};

struct connection {
	struct sl_link link;
	struct sl_grpc *grpc;
	int fd;
	sd_event_source *io;
	nghttp2_session *session;
	struct sl_link calls;
	bool busy, dead; /* within nghttp2; freed when that returns */
};

struct sl_grpc_call {
	struct sl_link link;     /* in the connection's list */
	struct connection *from; /* NULL: the stream is closed */
	int32_t stream;
	bool asked, answered;    /* the handler has it; is done with it */
	char method[METHOD_MAX]; /* "": too long, which matches no method */
	uint8_t *message;        /* with the prefix */
	size_t size, room;
	bool too_large;
	bool streams;    /* its answer is a stream of messages */
	uint8_t *answer; /* the message being sent, with the prefix */
	size_t answer_size, answer_sent;
	uint8_t *next; /* in a stream: the message after it; or NULL */
	size_t next_size;
};

/* --- calls -------------------------------------------------------------------------------- */

static void call_let_go(struct sl_grpc_call *call)
{
	if (call->from || (call->asked && !call->answered))
		return;
	free(call->message);
	free(call->answer);
	free(call->next);
	free(call);
}

static void flush(struct connection *connection);

/* Writes other characters than plain ASCII as %XX. */
static void encode(const char *text, char *out, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t used = 0;

	for (; *text && used + 4 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c < 0x7f && c != '%') {
			out[used++] = *text;
			continue;
		}
		out[used++] = '%';
		out[used++] = digits[c >> 4];
		out[used++] = digits[c & 15];
	}
	out[used] = '\0';
}

/* A response of trailers only. */
static void submit_status(
	struct sl_grpc_call *call, enum sl_grpc_status status, const char *text)
{
	char number[8], words[STATUS_MAX];
	nghttp2_nv headers[4] = {sl_grpc_header(":status", "200"),
		sl_grpc_header("content-type", "application/grpc")};

	(void)snprintf(number, sizeof(number), "%d", (int)status);
	encode(text, words, sizeof(words));
	headers[2] = sl_grpc_header("grpc-status", number);
	headers[3] = sl_grpc_header("grpc-message", words);
	if (nghttp2_submit_response(call->from->session, call->stream, headers, 4, NULL) <
		0)
		call->from->dead = true;
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *buf,
	size_t size, uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct sl_grpc_call *call = source->ptr;
	nghttp2_nv trailer = sl_grpc_header("grpc-status", "0");
	size_t left;

	if (call->next && call->answer_sent == call->answer_size) {
		free(call->answer);
		call->answer = sl_steal(&call->next);
		call->answer_size = call->next_size;
		call->answer_sent = 0;
	}
	left = call->answer_size - call->answer_sent;
	if (!left && call->streams)
		return NGHTTP2_ERR_DEFERRED;
	size = size < left ? size : left;
	memcpy(buf, call->answer + call->answer_sent, size);
	call->answer_sent += size;
	if (call->streams || call->answer_sent < call->answer_size)
		return (ssize_t)size;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(session, stream, &trailer, 1) < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)size;
}

static void submit_answer(struct sl_grpc_call *call)
{
	nghttp2_data_provider provider = {
		.source = {.ptr = call}, .read_callback = read_answer};
	nghttp2_nv headers[2] = {sl_grpc_header(":status", "200"),
		sl_grpc_header("content-type", "application/grpc")};

	if (nghttp2_submit_response(
		    call->from->session, call->stream, headers, 2, &provider) < 0)
		call->from->dead = true;
}

uint8_t *sl_grpc_frame(const void *message, size_t size)
{
	uint8_t *framed =
		size <= SL_GRPC_MESSAGE_MAX ? malloc(PREFIX_BYTES + size) : NULL;

	if (!framed)
		return NULL;
	framed[0] = 0; /* not compressed */
	for (int i = 0; i < 4; i++)
		framed[1 + i] = (uint8_t)(size >> (24 - 8 * i));
	if (size)
		memcpy(framed + PREFIX_BYTES, message, size);
	return framed;
}

void sl_grpc_answer(struct sl_grpc_call *call, const void *message, size_t size)
{
	struct connection *from = call->from;

	call->answered = true;
	if (!from) {
		call_let_go(call);
		return;
	}
	call->answer = sl_grpc_frame(message, size);
	if (call->answer) {
		call->answer_size = PREFIX_BYTES + size;
		submit_answer(call);
	} else {
		submit_status(
			call, SL_GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
	}
	flush(from);
}

bool sl_grpc_send(struct sl_grpc_call *call, const void *message, size_t size)
{
	struct connection *from = call->from;
	uint8_t *framed = from ? sl_grpc_frame(message, size) : NULL;

	if (!framed)
		return false;
	free(call->next);
	call->next = framed;
	call->next_size = PREFIX_BYTES + size;
	if (!call->streams) {
		call->streams = true;
		submit_answer(call);
	} else {
		/* An error means that the last message is still being sent; this one follows it. */
		(void)nghttp2_session_resume_data(from->session, call->stream);
	}
	flush(from);
	return true;
}

void sl_grpc_end(struct sl_grpc_call *call)
{
	struct connection *from = call->from;

	call->answered = true;
	if (!from) {
		call_let_go(call);
		return;
	}
	if (nghttp2_submit_rst_stream(
		    from->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL) < 0)
		from->dead = true;
	flush(from);
}

void sl_grpc_refuse(
	struct sl_grpc_call *call, enum sl_grpc_status status, const char *text)
{
	struct connection *from = call->from;

	call->answered = true;
	if (!from) {
		call_let_go(call);
		return;
	}
	submit_status(call, status, text);
	flush(from);
}

/* --- nghttp2's callbacks ------------------------------------------------------------------ */

static int on_begin_headers(
	nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct connection *connection = context;
	struct sl_grpc_call *call;

	if (frame->hd.type != NGHTTP2_HEADERS ||
		frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	call->from = connection;
	call->stream = frame->hd.stream_id;
	sl_list_push_tail(&connection->calls, &call->link);
	(void)nghttp2_session_set_stream_user_data(session, call->stream, call);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_size, const uint8_t *value, size_t value_size,
	uint8_t flags, void *context)
{
	struct sl_grpc_call *call =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	if (call && name_size == 5 && memcmp(name, ":path", 5) == 0 &&
		value_size < sizeof(call->method))
		memcpy(call->method, value, value_size);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
	const uint8_t *data, size_t size, void *context)
{
	struct sl_grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	if (!call || call->asked || call->too_large)
		return 0;
	if (call->size + size > PREFIX_BYTES + SL_GRPC_MESSAGE_MAX) {
		call->too_large = true;
		return 0;
	}
	if (call->size + size > call->room) {
		size_t room = 2 * (call->size + size);
		uint8_t *grown = realloc(call->message, room);

		if (!grown)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		call->message = grown;
		call->room = room;
	}
	memcpy(call->message + call->size, data, size);
	call->size += size;
	return 0;
}

static void dispatch(struct connection *connection, struct sl_grpc_call *call)
{
	const uint8_t *message = call->message;
	const struct sl_grpc *grpc = connection->grpc;

	call->asked = true;
	if (call->too_large)
		sl_grpc_refuse(
			call, SL_GRPC_RESOURCE_EXHAUSTED, "a message may have 4 MiB");
	else if (call->size < PREFIX_BYTES ||
		 call->size - PREFIX_BYTES != sl_grpc_length(message))
		sl_grpc_refuse(call, SL_GRPC_INTERNAL, "this is not one message of gRPC");
	else if (message[0])
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED,
			"compressed messages are not understood");
	else
		grpc->fn(grpc->context, call, call->method, message + PREFIX_BYTES,
			call->size - PREFIX_BYTES);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct sl_grpc_call *call;

	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
		(frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
		return 0;
	call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (call && !call->asked)
		dispatch(context, call);
	return 0;
}

static void call_detach(struct sl_grpc_call *call)
{
	sl_list_unlink(&call->link);
	call->from = NULL;
	call_let_go(call);
}

static int on_stream_close(
	nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct sl_grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	if (call)
		call_detach(call);
	return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size,
	int flags, void *context)
{
	const struct connection *connection = context;
	ssize_t sent = send(connection->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
						 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* --- connections -------------------------------------------------------------------------- */

static void connection_free(struct connection *connection)
{
	while (!sl_list_is_empty(&connection->calls))
		call_detach(
			SL_LIST_ENTRY(connection->calls.next, struct sl_grpc_call, link));
	sl_list_unlink(&connection->link);
	connection->grpc->connection_count--;
	nghttp2_session_del(connection->session);
	connection->io = sd_event_source_disable_unref(connection->io);
	sl_closep(&connection->fd);
	free(connection);
}

static void send_all(struct connection *connection)
{
	nghttp2_session *session = connection->session;
	uint32_t events;

	connection->busy = true;
	if (nghttp2_session_send(session) < 0)
		connection->dead = true;
	connection->busy = false;
	events = EPOLLIN | (nghttp2_session_want_write(session) ? (uint32_t)EPOLLOUT : 0);
	if (sd_event_source_set_io_events(connection->io, events) < 0 ||
		(!nghttp2_session_want_read(session) &&
			!nghttp2_session_want_write(session)))
		connection->dead = true;
}

/* After an answer: within nghttp2 the data is sent when that returns. */
static void flush(struct connection *connection)
{
	if (connection->busy)
		return;
	if (!connection->dead)
		send_all(connection);
	/* The connection's own handler frees it: the caller may be walking its calls. */
	if (connection->dead)
		(void)shutdown(connection->fd, SHUT_RDWR);
}

static void receive(struct connection *connection)
{
	uint8_t buf[16384];
	ssize_t size = recv(connection->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	connection->busy = true;
	if (size <= 0 ||
		nghttp2_session_mem_recv(connection->session, buf, (size_t)size) != size)
		connection->dead = true;
	connection->busy = false;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct connection *connection = context;

	if (!connection->dead && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		receive(connection);
	/* Includes the reply to bytes that are not HTTP/2. */
	send_all(connection);
	if (connection->dead)
		connection_free(connection);
	return 0;
}

static int make_session(struct connection *connection)
{
	nghttp2_settings_entry settings = {
		NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SL_GRPC_STREAMS_MAX};
	nghttp2_session_callbacks *callbacks = NULL;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r < 0)
		return sl_err_origin(-ENOMEM);
	nghttp2_session_callbacks_set_on_begin_headers_callback(
		callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(
		callbacks, on_stream_close);
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	r = nghttp2_session_server_new(&connection->session, callbacks, connection);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(
			connection->session, NGHTTP2_FLAG_NONE, &settings, 1);
	return r < 0 ? sl_err_origin(-ENOMEM) : 0;
}

static void accept_one(struct sl_grpc *grpc, int fd_in)
{
	sl_cleanup(sl_closep) int fd = fd_in;
	struct connection *connection;

	if (grpc->connection_count == SL_GRPC_CONNECTIONS_MAX) {
		sl_warning("%s: more than %d connections; one is closed", grpc->path,
			SL_GRPC_CONNECTIONS_MAX);
		return;
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return;
	connection->grpc = grpc;
	connection->fd = sl_steal_fd(&fd);
	sl_list_init(&connection->calls);
	sl_list_push_tail(&grpc->connections, &connection->link);
	grpc->connection_count++;
	if (make_session(connection) < 0 ||
		sd_event_add_io(grpc->loop, &connection->io, connection->fd, EPOLLIN,
			on_io, connection) < 0) {
		connection_free(connection);
		return;
	}
	send_all(connection);
}

/* --- the server --------------------------------------------------------------------------- */

static int on_pause_end(sd_event_source *source, uint64_t usec, void *context)
{
	const struct sl_grpc *grpc = context;

	(void)sd_event_source_set_enabled(grpc->io, SD_EVENT_ON);
	return 0;
}

/* The connection stays in the queue and would wake the loop at once. */
static void pause_accepting(struct sl_grpc *grpc, int error)
{
	if (!grpc->is_short)
		sl_warning("%s: accepting a connection: %s; trying again each second",
			grpc->path, strerror(error));
	grpc->is_short = true;
	if (sd_event_source_set_time_relative(grpc->pause, PAUSE / SL_US) >= 0 &&
		sd_event_source_set_enabled(grpc->pause, SD_EVENT_ONESHOT) >= 0)
		(void)sd_event_source_set_enabled(grpc->io, SD_EVENT_OFF);
}

static int on_connection(
	sd_event_source *source, int listen_fd, uint32_t events, void *context)
{
	struct sl_grpc *grpc = context;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		grpc->is_short = false;
		accept_one(grpc, fd);
	} else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
		pause_accepting(grpc, errno);
	}
	return 0;
}

static int listen_at(struct sl_grpc *grpc)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sl_cleanup(sl_closep) int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, grpc->path, strlen(grpc->path));
	r = sl_file_clear_socket(grpc->path);
	if (r < 0)
		return r;
	/* The mode is set before the first connection. */
	if (fchmod(fd, 0600) < 0 ||
		bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	grpc->fd = sl_steal_fd(&fd);
	if (chmod(grpc->path, 0600) < 0 || listen(grpc->fd, SOMAXCONN) < 0)
		return -errno;
	r = sd_event_add_io(
		grpc->loop, &grpc->io, grpc->fd, EPOLLIN, on_connection, grpc);
	if (r >= 0)
		r = sd_event_add_time_relative(grpc->loop, &grpc->pause, CLOCK_MONOTONIC,
			PAUSE / SL_US, 0, on_pause_end, grpc);
	return r < 0 ? r : sd_event_source_set_enabled(grpc->pause, SD_EVENT_OFF);
}

int sl_grpc_new(sd_event *loop, const char *path, sl_grpc_fn fn, void *context,
	struct sl_grpc **out, struct sl_error *err)
{
	struct sl_grpc *grpc;
	int r;

	if (strlen(path) >= sizeof(grpc->path)) {
		sl_error_set(err,
			"the path %.120s is too long for a socket: at most %zu bytes",
			path, sizeof(grpc->path) - 1);
		return sl_err_origin(-ENAMETOOLONG);
	}
	grpc = calloc(1, sizeof(*grpc));
	if (!grpc) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	grpc->loop = sd_event_ref(loop);
	grpc->fn = fn;
	grpc->context = context;
	grpc->fd = -1;
	memcpy(grpc->path, path, strlen(path));
	sl_list_init(&grpc->connections);
	r = listen_at(grpc);
	if (r < 0) {
		sl_error_set(err, "cannot listen on %s: %s%s", path, strerror(-r),
			r == -EEXIST       ? "; it is no socket, move it away"
			: r == -EADDRINUSE ? "; end the program that does"
					   : "");
		(void)sl_grpc_free(grpc);
		return sl_err_origin(r);
	}
	*out = grpc;
	return 0;
}

struct sl_grpc *sl_grpc_free(struct sl_grpc *grpc)
{
	if (!grpc)
		return NULL;
	while (!sl_list_is_empty(&grpc->connections))
		connection_free(
			SL_LIST_ENTRY(grpc->connections.next, struct connection, link));
	grpc->io = sd_event_source_disable_unref(grpc->io);
	grpc->pause = sd_event_source_disable_unref(grpc->pause);
	if (grpc->fd >= 0)
		(void)unlink(grpc->path);
	sl_closep(&grpc->fd);
	grpc->loop = sd_event_unref(grpc->loop);
	free(grpc);
	return NULL;
}
