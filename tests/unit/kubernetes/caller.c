/* A client of gRPC over nghttp2; see the header. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "caller.h"

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size,
	int flags, void *context)
{
	const struct caller *caller = context;
	ssize_t sent = send(caller->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent < 0 ? NGHTTP2_ERR_WOULDBLOCK : sent;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_size, const uint8_t *value, size_t value_size,
	uint8_t flags, void *context)
{
	struct caller_call *call =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	if (call && strcmp((const char *)name, "grpc-status") == 0)
		call->status = atoi((const char *)value);
	if (call && strcmp((const char *)name, "grpc-message") == 0)
		(void)snprintf(call->text, sizeof(call->text), "%s", (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
	const uint8_t *data, size_t size, void *context)
{
	struct caller_call *call = nghttp2_session_get_stream_user_data(session, stream);

	call->answer = realloc(call->answer, call->size + size);
	assert_non_null(call->answer);
	memcpy(call->answer + call->size, data, size);
	call->size += size;
	return 0;
}

static int on_close(
	nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct caller_call *call = nghttp2_session_get_stream_user_data(session, stream);

	call->over = true;
	if (call->size >= 5) {
		call->size -= 5;
		memmove(call->answer, call->answer + 5, call->size);
	}
	return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream, uint8_t *buf,
	size_t room, uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct caller_call *call = source->ptr;
	size_t left = call->sent_size - call->sent_at, size = left < room ? left : room;

	memcpy(buf, call->sent + call->sent_at, size);
	call->sent_at += size;
	if (call->sent_at == call->sent_size)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)size;
}

void caller_open(struct caller *caller, sd_event *loop, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	nghttp2_session_callbacks *callbacks;

	*caller = (struct caller){.loop = loop};
	caller->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(caller->fd >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(
		connect(caller->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(fcntl(caller->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	assert_int_equal(
		nghttp2_session_client_new(&caller->session, callbacks, caller), 0);
	nghttp2_session_callbacks_del(callbacks);
	assert_int_equal(
		nghttp2_submit_settings(caller->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

void caller_close(struct caller *caller)
{
	nghttp2_session_del(caller->session);
	for (size_t i = 0; i < caller->count; i++) {
		free(caller->calls[i].sent);
		free(caller->calls[i].answer);
	}
	(void)close(caller->fd);
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value,
		strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

struct caller_call *caller_begin(struct caller *caller, const char *method,
	const void *message, size_t size, bool raw)
{
	struct caller_call *call = &caller->calls[caller->count++];
	nghttp2_data_provider provider = {
		.source = {.ptr = call}, .read_callback = on_read};
	const nghttp2_nv headers[] = {header(":method", "POST"),
		header(":scheme", "http"), header(":authority", "localhost"),
		header(":path", method), header("content-type", "application/grpc"),
		header("te", "trailers")};
	size_t prefix = raw ? 0 : 5;

	assert_true(caller->count <= CALLER_CALLS);
	*call = (struct caller_call){.status = -1, .sent_size = prefix + size};
	call->sent = malloc(prefix + size + 1);
	assert_non_null(call->sent);
	call->sent[0] = 0;
	for (int i = 0; !raw && i < 4; i++)
		call->sent[1 + i] = (uint8_t)(size >> (24 - 8 * i));
	if (size)
		memcpy(call->sent + prefix, message, size);
	call->stream = nghttp2_submit_request(caller->session, NULL, headers,
		sizeof(headers) / sizeof(headers[0]), &provider, call);
	assert_true(call->stream > 0);
	return call;
}

void caller_turn(struct caller *caller)
{
	uint8_t buf[65536];
	ssize_t size;

	(void)nghttp2_session_send(caller->session);
	assert_true(sd_event_run(caller->loop, 1000) >= 0);
	size = recv(caller->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (size == 0 || (size < 0 && errno != EAGAIN))
		caller->closed = true;
	else if (size > 0)
		assert_int_equal(
			nghttp2_session_mem_recv(caller->session, buf, (size_t)size),
			size);
}

void caller_wait(struct caller *caller, const struct caller_call *call)
{
	sl_ns end = sl_clock_now() + 20 * SL_S;

	while (!call->over) {
		if (caller->closed || sl_clock_now() > end)
			fail_msg("the call does not end");
		caller_turn(caller);
	}
}

void caller_wait_for(
	struct caller *caller, const struct caller_call *call, size_t more_than)
{
	sl_ns end = sl_clock_now() + 20 * SL_S;

	while (call->size <= more_than) {
		if (call->over || caller->closed || sl_clock_now() > end)
			fail_msg("no message comes");
		caller_turn(caller);
	}
}
