/*
 * grpc_ask - see the header
 *
 * nghttp2's callbacks only note things; the call ends when they have returned.
 */
#include "cluster/kubernetes/api/grpc_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/api/grpc_frame.h"

struct sl_grpc_ask {
	struct sl_grpc_ask **slot;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	sl_grpc_ask_fn fn;
	void *context;
	int fd;
	sd_event_source *io, *timer;
	nghttp2_session *session;
	uint8_t *question; /* with the prefix, as the answer */
	size_t question_size, question_sent;
	uint8_t *answer;
	size_t size, room;
	int status; /* of gRPC; -1: none yet */
	char words[256];
	bool over;
};

static void ask_free(struct sl_grpc_ask *ask)
{
	if (ask->slot)
		*ask->slot = NULL;
	nghttp2_session_del(ask->session);
	ask->io = sd_event_source_disable_unref(ask->io);
	ask->timer = sd_event_source_disable_unref(ask->timer);
	sl_closep(&ask->fd);
	free(ask->question);
	free(ask->answer);
	free(ask);
}

void sl_grpc_ask_cancel(struct sl_grpc_ask **slot)
{
	if (*slot)
		ask_free(*slot);
}

/* trouble: NULL if there is an answer to examine. */
static void finish(struct sl_grpc_ask *ask, const char *trouble)
{
	size_t size = ask->size - SL_GRPC_PREFIX_BYTES;
	struct sl_error err = {0};

	if (ask->slot)
		*ask->slot = NULL;
	ask->slot = NULL;
	if (trouble)
		sl_error_set(&err, "%s: %s", ask->path, trouble);
	else if (ask->status != SL_GRPC_OK)
		sl_error_set(&err, "%s: %s (%d)", ask->path,
			ask->words[0] ? ask->words : "the call failed", ask->status);
	else if (ask->size < SL_GRPC_PREFIX_BYTES || ask->answer[0] ||
		 size != sl_grpc_length(ask->answer))
		sl_error_set(&err, "%s: the answer is not one message", ask->path);
	if (err.text[0])
		ask->fn(ask->context, NULL, 0, &err);
	else
		ask->fn(ask->context, ask->answer + SL_GRPC_PREFIX_BYTES, size, NULL);
	ask_free(ask);
}

/* --- nghttp2's callbacks ------------------------------------------------------------------ */

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size,
	int flags, void *context)
{
	const struct sl_grpc_ask *ask = context;
	ssize_t sent = send(ask->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
						 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream, uint8_t *buf,
	size_t size, uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct sl_grpc_ask *ask = source->ptr;

	size = sl_min_u64(size, ask->question_size - ask->question_sent);
	memcpy(buf, ask->question + ask->question_sent, size);
	ask->question_sent += size;
	if (ask->question_sent == ask->question_size)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)size;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_size, const uint8_t *value, size_t value_size,
	uint8_t flags, void *context)
{
	struct sl_grpc_ask *ask = context;

	/* nghttp2 ends both with a NUL. */
	if (strcmp((const char *)name, "grpc-status") == 0)
		ask->status = atoi((const char *)value);
	if (strcmp((const char *)name, "grpc-message") == 0)
		(void)snprintf(ask->words, sizeof(ask->words), "%s", (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
	const uint8_t *data, size_t size, void *context)
{
	struct sl_grpc_ask *ask = context;

	if (ask->size + size > SL_GRPC_PREFIX_BYTES + SL_GRPC_MESSAGE_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (ask->size + size > ask->room) {
		size_t room = 2 * (ask->size + size);
		uint8_t *grown = realloc(ask->answer, room);

		if (!grown)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		ask->answer = grown;
		ask->room = room;
	}
	memcpy(ask->answer + ask->size, data, size);
	ask->size += size;
	return 0;
}

static int on_close(
	nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct sl_grpc_ask *ask = context;

	ask->over = true;
	return 0;
}

/* --- the connection ----------------------------------------------------------------------- */

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_grpc_ask *ask = context;
	uint8_t buf[16384];
	ssize_t size = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	bool waits = size < 0 && (errno == EAGAIN || errno == EINTR);
	int r = 0;

	if (size > 0)
		r = nghttp2_session_mem_recv(ask->session, buf, (size_t)size) < 0 ? -1
										  : 0;
	if (r == 0 && (size > 0 || waits))
		r = nghttp2_session_send(ask->session);
	if (ask->over)
		finish(ask, NULL);
	else if (r < 0 || (size <= 0 && !waits))
		finish(ask, "the connection is lost");
	else
		(void)sd_event_source_set_io_events(
			ask->io, EPOLLIN | (nghttp2_session_want_write(ask->session)
							   ? (uint32_t)EPOLLOUT
							   : 0));
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	finish(context, "no answer came in time");
	return 0;
}

static int make_session(struct sl_grpc_ask *ask)
{
	nghttp2_session_callbacks *callbacks = NULL;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r < 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	r = nghttp2_session_client_new(&ask->session, callbacks, ask);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(ask->session, NGHTTP2_FLAG_NONE, NULL, 0);
	return r < 0 ? -ENOMEM : 0;
}

static int submit(struct sl_grpc_ask *ask, const char *method)
{
	const nghttp2_nv headers[] = {sl_grpc_header(":method", "POST"),
		sl_grpc_header(":scheme", "http"), sl_grpc_header(":path", method),
		sl_grpc_header(":authority", "localhost"),
		sl_grpc_header("content-type", "application/grpc"),
		sl_grpc_header("te", "trailers")};
	nghttp2_data_provider provider = {
		.source = {.ptr = ask}, .read_callback = on_read};

	return nghttp2_submit_request(ask->session, NULL, headers, SL_ARRAY_LEN(headers),
		       &provider, NULL) < 0
		       ? -ENOMEM
		       : 0;
}

static int open_socket(struct sl_grpc_ask *ask, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	memcpy(ask->path, path, strlen(path));
	ask->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ask->fd < 0 ||
		connect(ask->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

int sl_grpc_ask(sd_event *loop, const char *path, const char *method, const void *message,
	size_t size, sl_grpc_ask_fn fn, void *context, struct sl_grpc_ask **slot,
	struct sl_error *err)
{
	struct sl_grpc_ask *ask = calloc(1, sizeof(*ask));
	int r = ask ? 0 : -ENOMEM;

	if (ask) {
		*ask = (struct sl_grpc_ask){
			.fn = fn, .context = context, .fd = -1, .status = -1};
		ask->question = sl_grpc_frame(message, size);
		ask->question_size = SL_GRPC_PREFIX_BYTES + size;
		r = ask->question ? open_socket(ask, path) : -ENOMEM;
	}
	if (r == 0)
		r = make_session(ask);
	if (r == 0)
		r = submit(ask, method);
	/* The loop sends it once the socket is writable. */
	if (r == 0)
		r = sd_event_add_io(
			loop, &ask->io, ask->fd, EPOLLIN | EPOLLOUT, on_io, ask);
	if (r >= 0)
		r = sd_event_add_time_relative(loop, &ask->timer, CLOCK_MONOTONIC,
			SL_GRPC_ASK_TIMEOUT / SL_US, 0, on_timer, ask);
	if (r >= 0) {
		ask->slot = slot;
		*slot = ask;
		return 0;
	}
	sl_error_set(err, "cannot ask at %.107s: %s", path, strerror(-r));
	if (ask)
		ask_free(ask);
	return sl_err_origin(r);
}
