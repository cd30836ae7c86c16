/*
 * grpc - a gRPC server on a Unix socket, in the event loop
 *
 * nghttp2 implements HTTP/2; gRPC adds a path per method, five bytes before a message, and a status
 * in the trailers. A call has one message in, and one message, or a stream of them, out. Clients
 * keep their own deadlines. The server announces no compression, so it refuses compressed messages.
 *
 * The socket's mode (0600) decides which processes may connect. Their bytes are not trusted: bytes
 * that are not HTTP/2 end only their own connection. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_GRPC_H
#define SL_CLUSTER_KUBERNETES_API_GRPC_H

#include <systemd/sd-event.h>

#include "base/error.h"

#define SL_GRPC_MESSAGE_MAX     (4u << 20)
#define SL_GRPC_CONNECTIONS_MAX 16
#define SL_GRPC_STREAMS_MAX     100 /* per connection */

/* The codes of gRPC that are used here. */
enum sl_grpc_status {
	SL_GRPC_OK = 0,
	SL_GRPC_INVALID_ARGUMENT = 3,
	SL_GRPC_RESOURCE_EXHAUSTED = 8,
	SL_GRPC_UNIMPLEMENTED = 12,
	SL_GRPC_INTERNAL = 13,
	SL_GRPC_UNAVAILABLE = 14
};

struct sl_grpc;      /* the server */
struct sl_grpc_call; /* one call, until it is answered */

/* method: "/package.Service/Method". message: valid until the function returns. End each call
 * exactly once (answer, refuse, end), now or later, even after the server was freed. An unknown
 * method answers UNIMPLEMENTED. */
typedef void (*sl_grpc_fn)(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size);

/* Makes the socket; replaces one that no process listens on. 0 or negative errno (err). */
SL_MUST_CHECK int sl_grpc_new(sd_event *loop, const char *path, sl_grpc_fn fn,
	void *context, struct sl_grpc **out, struct sl_error *err);
/* Closes all connections and removes the socket. Not from within fn. Returns NULL; accepts NULL. */
struct sl_grpc *sl_grpc_free(struct sl_grpc *grpc);

/* The call is gone afterwards. The client may be gone before. */
void sl_grpc_answer(struct sl_grpc_call *call, const void *message, size_t size);
void sl_grpc_refuse(
	struct sl_grpc_call *call, enum sl_grpc_status status, const char *text);

/* Sends a message of a stream. Each message has the complete new state, so the next message
 * replaces one that is still waiting to be sent. False: the client is gone, memory ran out, or the
 * message is too large; end the call. */
SL_MUST_CHECK bool sl_grpc_send(
	struct sl_grpc_call *call, const void *message, size_t size);
/* Ends a stream: the client sees a cancellation. The call is gone. */
void sl_grpc_end(struct sl_grpc_call *call);

#endif
